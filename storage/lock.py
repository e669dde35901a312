"""The run lock: one process at a time works on a run directory.

A `flock` belongs to the open file and is freed by the kernel when its holder dies, however it dies.
"""

import errno
import fcntl
import os
import time
import weakref
from pathlib import Path
from types import TracebackType
from typing import Self

_TRIES, _TRY_SECONDS = 5, 0.01
_NOTE_BYTES = 4096  # of the file: process id, and what its process does

_held: "weakref.WeakSet[RunLock]" = weakref.WeakSet()


class RunLock:
    """An exclusive lock on a file, for use in a `with` statement; the file stays and holds the holder's process id.

    A forked child gives its copy up at once, so that orphaned children cannot keep the lock of a killed parent.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock without waiting.

        Raises:
            BlockingIOError: another process, or another lock object, holds it; the message names the process id.
        """
        if self._descriptor is not None:
            raise BlockingIOError(errno.EWOULDBLOCK, f"{self.path} is already locked by this very object")
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _lock_patiently(descriptor)
        except BlockingIOError:
            holder = os.pread(descriptor, 64, 0).decode("ascii", "replace").partition("\n")[0] or "unknown"
            os.close(descriptor)
            raise BlockingIOError(
                errno.EWOULDBLOCK,
                f"{self.path} is locked by process {holder}: wait for it, stop it, or use another directory",
            ) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor
        _held.add(self)

    def note(self, text: str) -> None:
        """Write one line about what the holder does behind its process id, for `noted`; nothing while it is not held.

        It is meant for people, and not durable: the lock itself does not outlive its holder either.
        """
        if self._descriptor is not None:
            data = f"{os.getpid()}\n{' '.join(text.split())}\n".encode()[:_NOTE_BYTES]
            os.pwrite(self._descriptor, data, 0)
            os.ftruncate(self._descriptor, len(data))

    def is_in_place(self) -> bool:
        """Whether the file that is locked is still the one at `path`: not removed, nor moved with its directory."""
        if self._descriptor is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Free the lock; nothing happens where it is not held."""
        if self._descriptor is None:
            return
        os.ftruncate(self._descriptor, 0)
        self._abandon()

    def _abandon(self) -> None:
        """Close the descriptor without touching the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            _held.discard(self)


def noted(path: Path) -> str | None:
    """Return what the holder of the lock on `path` has noted last; None where it has not, or there is no such file."""
    try:
        with path.open("rb") as file:
            lines = file.read(_NOTE_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    return lines[1] if len(lines) > 1 and lines[1] else None


def is_held(path: Path) -> bool:
    """Return whether somebody holds the lock on `path`; reads only, and holds nothing up for more than a moment."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock_patiently(descriptor: int) -> None:
    """Lock exclusively; a look by `is_held` may be in the way for an instant, so try a few times."""
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
