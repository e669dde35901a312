"""Atomic outputs: a file or directory gets its final name in one step when it is complete.

Outputs are checkpoints, and files and directories under names that users give, such as reports. An earlier output of
the same kind is replaced atomically; other files are never overwritten. Readers never see an incomplete output.
"""

import contextlib
import errno
import glob
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from storage import durable
from storage.damage import reading
from storage.directory_lock import unread

SCRATCH = "-scratch"
"""Suffix to a temporary name for a directory of intermediate files, swept like the output itself."""
_LEFT_SECONDS = 86_400.0  # much longer than any output takes
_READERS_SECONDS = 1.0  # enough for most readers of a replaced version
_STILL_READ = ".old"  # suffix to the temporary name of a replaced version


@reading()
def check_output(path: Path, replaceable: Callable[[Path], bool]) -> None:
    """Raise `FileExistsError` unless `path` is absent, empty, or an output that may be replaced.

    replaceable  function of a path: returns True if the existing file or directory may be replaced

    Call it for every path that a user names for writing, also for appending. It always raises for a symbolic link, a
    device or a pipe. Raises `UnreadableError` if the system cannot read `path`.
    """
    if path.is_symlink() or (path.exists() and not (path.is_file() or path.is_dir())):
        raise FileExistsError(f"{path} is a link, a device or a pipe, not a file or directory: choose another name")
    if path.exists() and not _is_empty(path) and not replaceable(path):
        raise FileExistsError(
            f"{path} exists and is not an earlier output of the same kind: remove it or choose another name"
        )


def begins_with(*heads: bytes) -> Callable[[Path], bool]:
    """Return a function of a path: True for a file that begins with one of the byte strings `heads`.

    It serves as the argument `replaceable` of `output`.
    """
    most = max(map(len, heads))
    return lambda path: _head(path, most).startswith(heads)


def contains(mark: bytes, within: int) -> Callable[[Path], bool]:
    """Return a function of a path: True for a file whose first `within` bytes contain the bytes `mark`.

    It serves as the argument `replaceable` of `output`.
    """
    return lambda path: mark in _head(path, within)


def _head(path: Path, most_bytes: int) -> bytes:
    """Return the first `most_bytes` bytes of a file; b"" if there is no file."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(most_bytes)


@contextlib.contextmanager
def output(path: Path, replaceable: Callable[[Path], bool], *, parents: bool = True) -> Iterator[Path]:
    """Yield a temporary name beside `path`; at the end of the block it is renamed to `path` atomically.

    The `with` block writes the file or directory, and must fsync its content (`durable.write_file`, `adopt_file`,
    `adopt_tree`). This function fsyncs the names. If the block raises, its output is removed and `path` is unchanged.
    Parent directories that this function created are then removed too, if they are empty.

    Args:
        path:        final name of the file or directory
        replaceable: function of a path: returns True if the existing file or directory may be replaced
        parents:     create missing parent directories; otherwise they must exist

    Raises:
        FileExistsError: `path` exists and may not be replaced (`check_output`); checked before and after the block.
        OSError: the file system fails, or cannot swap the names of an old and a new directory atomically.
    """
    check_output(path, replaceable)
    with durable.making_dirs(path.parent) if parents else contextlib.nullcontext():
        _sweep(path)
        temporary = path.with_name(f"{durable.TEMPORARY_PREFIX}{path.name}-{secrets.token_hex(4)}")
        try:
            with durable.naming(path):
                yield temporary
                check_output(path, replaceable)  # writing takes minutes, in which the name may be taken
                _give_name(temporary, path)
            durable.fsync_dir(path.parent)
        finally:
            _remove_unread(temporary)


def _give_name(temporary: Path, path: Path) -> None:
    """Rename the file or directory `temporary` to its final name `path`, atomically.

    If the system cannot replace the old output at `path`, such as a non-empty directory, the two swap their names.
    """
    try:
        durable.rename(temporary, path)
    except OSError as error:  # a non-empty directory, or a file in place of a directory or the reverse
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EISDIR, errno.ENOTDIR):
            raise
        durable.exchange(temporary, path)


def _remove_unread(temporary: Path) -> None:
    """Remove a temporary file or directory; only rename a directory that a reader has locked.

    temporary  an incomplete output, or the replaced version that has swapped names with the new output

    It waits at most 1 second (`_READERS_SECONDS`) for readers. A later call of `output` for the same final name removes
    the renamed directory after its last reader. Errors of the system are ignored.
    """
    with contextlib.suppress(OSError):
        if temporary.is_dir():
            with unread(temporary, _READERS_SECONDS) as free:
                if free:
                    durable.discard(temporary)
                else:
                    durable.rename(temporary, temporary.with_name(temporary.name + _STILL_READ))
            return
    durable.discard(temporary)


def _sweep(path: Path) -> None:
    """Remove temporary files and directories of earlier calls of `output` for `path`, older than a day.

    Replaced directories of any age are removed too, unless a reader has locked them. Errors of the system are ignored.
    """
    name = f"{durable.TEMPORARY_PREFIX}{glob.escape(path.name)}-????????"
    for leftover in (*path.parent.glob(name), *path.parent.glob(f"{name}{SCRATCH}")):
        with contextlib.suppress(OSError):
            if leftover.lstat().st_mtime < time.time() - _LEFT_SECONDS:
                shutil.rmtree(leftover) if leftover.is_dir() and not leftover.is_symlink() else leftover.unlink()
    for leftover in path.parent.glob(name + _STILL_READ):
        with contextlib.suppress(OSError), unread(leftover) as free:
            if free:
                shutil.rmtree(leftover)


def _is_empty(path: Path) -> bool:
    return next(path.iterdir(), None) is None if path.is_dir() else path.stat().st_size == 0
