"""Run lock: only one process at a time works on a run directory.

A `flock` belongs to the open file; the kernel frees it when its holder dies.
"""

import errno
import fcntl
import os
import socket
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from storage.damage import UnreadableError
from storage.directory_lock import UNSUPPORTED
from storage.durable import naming
from storage.open_directory import OpenDirectory

_TRIES, _TRY_SECONDS = 5, 0.01
_NOTE_BYTES = 4096  # of the lock file: its holder and the holder's note

_held: "weakref.WeakSet[RunLock]" = weakref.WeakSet()


class LostDirectoryError(RuntimeError):
    """A run's directory or lock file was removed or replaced, so nothing is written."""


class RunLock:
    """An exclusive lock on the file `path`, held in a `with` statement.

    The file is created if missing, and stays after release. While it is locked, its first line is the holder's process
    id and host name. While the lock is held, the file's directory is held open; `directory` leads to it even if it is
    moved. A forked child gives up its copy at once, so that orphans cannot keep the lock of a killed parent.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._descriptor: int | None = None
        self._directory: OpenDirectory | None = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock; do not wait while another process works under it.

        It tries for 0.04 seconds, because `lock_is_held` in another process holds the lock for an instant.

        Raises:
            BlockingIOError: another process, or another lock object, holds it; the message names the process id.
            OSError: the directory cannot be opened, or its file system has no file locks.
        """
        if self._descriptor is not None:
            raise BlockingIOError(errno.EWOULDBLOCK, f"{self.path} is already locked by this object")
        directory = OpenDirectory(self.path.parent)
        try:
            descriptor = self._locked_file(directory)
        except BaseException:
            directory.close()
            raise
        self._descriptor, self._directory = descriptor, directory
        _held.add(self)

    def _locked_file(self, directory: OpenDirectory) -> int:
        """Open and lock the file in an open directory; return its descriptor.

        Writes this process's id and host name to the file. Raises `BlockingIOError` if another process holds the lock.
        """
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            descriptor = os.open(self.path.name, flags, 0o644, dir_fd=directory.descriptor)
        except OSError as error:
            error.filename = str(self.path)
            raise
        try:
            with naming(self.path):
                _lock_patiently(descriptor)
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, _own_line().encode(), 0)
        except BlockingIOError:  # before OSError, of which it is a kind
            os.close(descriptor)
            holder = holder_of(self.path) or "an unknown process"
            raise BlockingIOError(
                errno.EWOULDBLOCK,
                f"{self.path} is locked by {holder}: wait for it, stop it, or use another directory",
            ) from None
        except OSError as error:
            os.close(descriptor)
            if error.errno not in UNSUPPORTED:
                raise
            raise OSError(
                error.errno,
                f"{self.path.parent} lies on a file system without file locks (flock), and two processes could change "
                "the run at once: choose a directory on another disk, or let the administrator enable locks (NFS: "
                "mount without nolock)",
            ) from None
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    @property
    def directory(self) -> OpenDirectory:
        """The directory with the lock file, held open; raises `ValueError` unless the lock is held."""
        if self._directory is None:
            raise ValueError(f"{self.path} is not locked")
        return self._directory

    def check(self) -> None:
        """Raise `LostDirectoryError` unless the directory exists and still holds the locked file.

        Raises `UnreadableError` where the system cannot tell.
        """
        run_directory = self.directory.current_path()
        if self.directory.is_removed():
            raise LostDirectoryError(
                f"{run_directory} was removed, or moved to another file system, while this process worked on it: "
                "nothing more was written"
            )
        if not self._holds(self.path.name, self.directory.descriptor):
            raise LostDirectoryError(
                f"{run_directory / self.path.name} was removed or replaced while this process held it, so another "
                f"process may work in {run_directory}: nothing more was written there"
            )

    def _holds(self, path: Path | str, directory: int | None = None) -> bool:
        """Return whether the file at a path is the locked one.

        directory  descriptor of an open directory to which `path` is relative; None: the working directory
        """
        if self._descriptor is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(path, dir_fd=directory))
        except FileNotFoundError:
            return False
        except OSError as error:
            error.filename = str(self.path)
            raise UnreadableError(error) from error

    def note(self, text: str) -> None:
        """Write to the lock file a line on the present work of this process, such as its progress.

        Other processes read the line with the function `noted`, only to show it to users. So errors of the disk are
        ignored. If this object does not hold the lock, nothing is written.
        """
        if self._descriptor is not None:
            data = f"{_own_line()}{' '.join(text.split())}\n".encode()[:_NOTE_BYTES]
            with suppress(OSError):
                os.pwrite(self._descriptor, data, 0)
                os.ftruncate(self._descriptor, len(data))

    def is_in_place(self) -> bool:
        """Return whether the locked file is still at `path`: neither removed nor moved with its directory."""
        return self._holds(self.path)

    def release(self) -> None:
        """Release the lock, if held."""
        if self._descriptor is None:
            return
        with suppress(OSError):  # a name left in the file means nothing once the lock is free
            os.ftruncate(self._descriptor, 0)
        self._abandon()

    def _abandon(self) -> None:
        """Close the descriptors of the lock file and its directory, without changing the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self.directory.close()
            self._directory = None
            _held.discard(self)


class Holder(NamedTuple):
    """The process that holds a lock: its id and the host name of its machine."""

    process: int
    machine: str

    def __str__(self) -> str:
        away = not self.is_here
        return f"process {self.process}" + (f" on {self.machine}" if away else "")

    @property
    def is_here(self) -> bool:
        """True if the process runs on this machine."""
        return self.machine == socket.gethostname()


def holder_of(path: Path) -> Holder | None:
    """Return the process that a lock file names, or None if it names none or does not exist.

    A process that was killed stays named, so call `lock_is_held` to know whether it still holds the lock.
    """
    number, _, machine = (_lines(path) or [""])[0].partition(" ")
    return Holder(int(number), machine) if number.isdecimal() else None


def noted(path: Path) -> str | None:
    """Return the text that `RunLock.note` last wrote to the lock file `path`; None if there is none."""
    return next(iter(_lines(path)[1:]), None)


def _own_line() -> str:
    return f"{os.getpid()} {socket.gethostname()}\n"


def _lines(path: Path) -> list[str]:
    """Return the non-empty lines of a lock file; [] if it does not exist."""
    try:
        with path.open("rb") as file:
            return [line for line in file.read(_NOTE_BYTES).decode("utf-8", "replace").splitlines() if line]
    except FileNotFoundError:
        return []


def lock_is_held(path: Path) -> bool:
    """Return whether a process holds the lock on the file `path`, without writing to it.

    Returns False if the file does not exist, and on file systems without locks.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:  # without locks no process works here
        if error.errno not in UNSUPPORTED:
            raise
    finally:
        os.close(descriptor)
    return False


def _lock_patiently(descriptor: int) -> None:
    """Lock an open file exclusively; try again a few times before raising `BlockingIOError`.

    `lock_is_held` in another process holds a shared lock for an instant.
    """
    for _ in range(_TRIES - 1):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_TRY_SECONDS)
        else:
            return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _abandon_all() -> None:
    for lock in list(_held):
        lock._abandon()


os.register_at_fork(after_in_child=_abandon_all)
