"""Finished outputs, a file or a directory, that take their final name in one step.

What is written here is meant for people and other programs, under a name that they chose: nothing of theirs may be
overwritten, a reader must never meet half an output, and an older output of the same kind gives way in one step.
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
from storage.directory_lock import unread

SCRATCH = "-scratch"
"""Added to a temporary name: a directory for what an output is made from, swept like the output itself."""
_LEFT_SECONDS = 86_400.0  # far above what any output takes
_READERS_SECONDS = 1.0  # for readers of a version that was replaced: most have read it by then
_STILL_READ = ".old"  # behind the temporary name of a version that was replaced


def check_output(path: Path, replaceable: Callable[[Path], bool]) -> None:
    """Raise `FileExistsError` unless `path` is free - nothing, or an empty file or directory - or `replaceable` has it.

    Whatever a user names as a place to write to goes through this before anything is opened, also what is appended to.
    Links, devices and pipes are never free: the place of one is taken, or what it leads to changed, by nothing here.
    """
    if path.is_symlink() or (path.exists() and not (path.is_file() or path.is_dir())):
        raise FileExistsError(f"{path} is a link, a device or a pipe, and no file or directory: choose another name")
    if path.exists() and not _is_empty(path) and not replaceable(path):
        raise FileExistsError(
            f"{path} exists and is not an earlier output of the same kind: remove it or choose another name"
        )


def begins_with(*heads: bytes) -> Callable[[Path], bool]:
    """What tells a file that begins with one of `heads`, for `check_output` and `output`."""
    most = max(map(len, heads))

    def ours(path: Path) -> bool:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(most).startswith(heads)

    return ours


def contains(mark: bytes, within: int) -> Callable[[Path], bool]:
    """What tells a file that has `mark` somewhere in its first bytes."""

    def ours(path: Path) -> bool:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return mark in file.read(within)

    return ours


@contextlib.contextmanager
def output(path: Path, replaceable: Callable[[Path], bool], *, parents: bool = True) -> Iterator[Path]:
    """Yield a free temporary name beside `path`; what is there when the block ends gets the name `path` in one step.

    The block must make its content durable (`durable.write_file`, `adopt_file`, `adopt_tree`); this takes care of the
    names.  If the block raises, the temporary is removed and `path` is as it was.

    Args:
        path:        the output
        replaceable: whether the file or directory that has the name now may be replaced
        parents:     make missing parents; without it, they must exist

    Raises:
        FileExistsError: the name is taken by something else, before the block or after it; `path` is as it was.
        OSError: the file system fails, or cannot exchange two names in one step.
    """
    check_output(path, replaceable)
    with durable.making_dirs(path.parent) if parents else contextlib.nullcontext():
        yield from _output(path, replaceable)


def _output(path: Path, replaceable: Callable[[Path], bool]) -> Iterator[Path]:
    _sweep(path)
    temporary = path.with_name(f"{durable.TEMPORARY_PREFIX}{path.name}-{secrets.token_hex(4)}")
    try:
        with durable.naming(path):
            yield temporary
            check_output(path, replaceable)  # writing takes minutes, in which others may have taken the name
            _give_name(temporary, path)
        durable.fsync_dir(path.parent)
    finally:
        _remove_unread(temporary)


def _give_name(temporary: Path, path: Path) -> None:
    """Give an output its name in one step; the temporary name then leads to what had it, if that was not empty."""
    try:
        durable.rename(temporary, path)
    except OSError as error:  # a directory that is not empty, or a file in place of a directory or the reverse
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EISDIR, errno.ENOTDIR):
            raise
        durable.exchange(temporary, path)


def _remove_unread(temporary: Path) -> None:
    """Remove what has the temporary name; a directory that is still read is renamed, for a later output to remove.

    Raises nothing, as `durable.discard`.
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
    """Remove what killed processes left of outputs of this name a day ago or longer, and versions no longer read."""
    name = f"{durable.TEMPORARY_PREFIX}{glob.escape(path.name)}-????????"
    for left in (*path.parent.glob(name), *path.parent.glob(f"{name}{SCRATCH}")):
        with contextlib.suppress(OSError):
            if left.lstat().st_mtime < time.time() - _LEFT_SECONDS:
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
    for left in path.parent.glob(name + _STILL_READ):
        with contextlib.suppress(OSError), unread(left) as free:
            if free:
                shutil.rmtree(left)


def _is_empty(path: Path) -> bool:
    return next(path.iterdir(), None) is None if path.is_dir() else path.stat().st_size == 0
