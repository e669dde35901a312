"""Shared locks on directories: writers do not remove a directory that a reader has locked.

Such directories are old checkpoints, which a run removes, and exports, which a newer export replaces. The lock is a
`flock` on the directory itself: a reader needs no write permission, and the kernel frees the lock if the reader dies.
Some file systems have no such locks, or show them only to processes on one machine (NFS). On these, a reader whose
directory was removed reads the one that replaced it.
"""

import errno
import fcntl
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self, TypeVar

from storage import durable
from storage.damage import UnreadableError, reading

Found = TypeVar("Found")

UNSUPPORTED = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)
"""Errors of `flock` on file systems that have no locks."""
_WAIT_SECONDS, _TRY_SECONDS = 2.0, 0.005  # a writer holds its lock while it removes a directory
_READS = 100  # most attempts on a directory that is replaced during reading, without locks

_locks: "weakref.WeakSet[ReadLock]" = weakref.WeakSet()


class ReadLock:
    """A reader's lock on the directory now at `path`, until `release` or the end of the object.

    Several readers may lock a directory at the same time. A forked child does not inherit the lock.

    Attributes:
        path:    as given
        inside:  path to the locked directory, valid until `release` even after another directory takes its name
        is_held: True if writers leave the directory in place; False on file systems without locks, without permission
                 to open the directory, or if a writer was still replacing it
    """

    def __init__(self, path: Path) -> None:
        """Lock the directory, waiting a moment if a writer is replacing it.

        Raises `FileNotFoundError` if there is no directory, `UnreadableError` if it cannot be opened. Without
        permission to open it, it is not locked and nothing is raised.
        """
        self.path, self.inside, self.is_held = Path(path), Path(path), False
        self._descriptor: int | None = None
        until = time.monotonic() + _WAIT_SECONDS
        while not self._lock() and time.monotonic() < until:
            self.release()
            time.sleep(_TRY_SECONDS)
        _locks.add(self)

    def _lock(self) -> bool:
        """Open and lock the directory; return False if a writer is removing or replacing it."""
        try:
            with reading(self.path):
                self._descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except UnreadableError as error:
            if not isinstance(error.cause, PermissionError):
                raise
            return True  # its files may still be readable
        self.inside = Path(f"/proc/self/fd/{self._descriptor}")
        try:
            locked = _flock(self._descriptor, fcntl.LOCK_SH)
        except BlockingIOError:
            return False
        in_place = _leads_to(self.path, self._descriptor)
        self.is_held = locked and in_place
        return in_place

    def is_in_place(self) -> bool:
        """Return whether `path` still leads to the directory that was opened; True if none was opened."""
        return self._descriptor is None or _leads_to(self.path, self._descriptor)

    def release(self) -> None:
        """Release the lock, if held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    __del__ = release

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def read_directory(path: Path, read: Callable[[Path], Found]) -> Found:
    """Call `read` with a path that leads to one directory even if it is renamed; return its result.

    path  path that leads to the directory now
    read  function that reads files below the path that it gets

    All files that `read` opens belong to this directory, even if another one replaces it at `path` meanwhile. Errors of
    `read` name `path`. If there is no directory, `read` gets `path` itself.
    """
    for _ in range(_READS):
        try:
            lock = ReadLock(path)
        except (FileNotFoundError, NotADirectoryError):
            break
        with lock:
            try:
                return read(lock.inside)
            except (OSError, ValueError) as error:
                if lock.is_held or lock.is_in_place():
                    _rename_in(error, str(lock.inside), str(path))
                    raise
    return read(path)


def read_unchanged(path: Path, read: Callable[[], Found]) -> Found:
    """Call `read` and return its result; call it again if the directory at `path` was replaced meanwhile.

    read  function without arguments that reads the directory in several steps by its name
    """
    for _ in range(_READS):
        try:
            lock = ReadLock(path)
        except (FileNotFoundError, NotADirectoryError):
            break
        with lock:
            content = read()
            if lock.is_in_place():
                return content
    return read()


def _rename_in(error: OSError | ValueError, inside: str, path: str) -> None:
    """Replace one path by another in the texts of an error, in place.

    inside  path of a locked directory, such as /proc/self/fd/5
    path    path of this directory as the caller gave it, which replaces `inside`
    """

    def renamed(text: object) -> object:
        return text.replace(inside, path) if isinstance(text, str) else text

    error.args = tuple(map(renamed, error.args))
    if isinstance(error, OSError) and error.filename is not None:
        error.filename = renamed(os.fspath(error.filename))


@contextmanager
def unread(path: Path, patience_seconds: float = 0.0) -> Iterator[bool]:
    """Lock a directory against readers in a `with` block; yield False if a reader holds it.

    patience_seconds  longest time to wait until readers release it

    Yields True without a lock if the file system has no locks, or without permission to open the directory. Raises
    `OSError` if there is no directory.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        yield True
        return
    try:
        until = time.monotonic() + patience_seconds
        while not (free := _is_free(descriptor)) and time.monotonic() < until:
            time.sleep(_TRY_SECONDS)
        yield free
    finally:
        os.close(descriptor)


def drop_unread(paths: Iterable[Path]) -> None:
    """Remove directories durably, except those that a reader has locked.

    Each is renamed to a temporary name first, so that a crash leaves no incomplete directory under its name.
    """
    with ExitStack() as locks:
        durable.drop_trees([path for path in paths if locks.enter_context(unread(path))])


def _is_free(descriptor: int) -> bool:
    try:
        _flock(descriptor, fcntl.LOCK_EX)
    except BlockingIOError:
        return False
    return True


def _flock(descriptor: int, kind: int) -> bool:
    """Lock an open file without waiting; return True, or False if the file system has no locks.

    kind  `fcntl.LOCK_SH` (shared) or `fcntl.LOCK_EX` (exclusive)

    Raises `BlockingIOError` if another lock forbids this one.
    """
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in UNSUPPORTED:
            return False
        raise
    return True


def _leads_to(path: Path, descriptor: int) -> bool:
    try:
        with reading(path):
            return os.path.samestat(os.fstat(descriptor), path.stat())
    except (FileNotFoundError, NotADirectoryError):
        return False


def _release_all() -> None:
    for lock in list(_locks):
        lock.release()


os.register_at_fork(after_in_child=_release_all)
