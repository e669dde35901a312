"""The one layer for file operations that must survive a crash.

Everything that has to be on the disk goes through these functions, each of which does one step: a file's content is
durable after `fsync_file`, a name (a created, renamed or removed entry) after `fsync_dir` of its parent.  Inside
`recording()` every step is also written down with its data, so that a test can rebuild the states which a crash after
any prefix of the steps may leave behind.
"""

import contextlib
import ctypes
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import FileIO
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

import msgspec

from storage.checksums import CRC32C, Checksum, new_sum
from storage.damage import UnreadableError, reading
from storage.held_directory import shown
from storage.threads import ordered

TEMPORARY_PREFIX = ".tmp-"

_AT_FDCWD = -100  # linux/fcntl.h
_RENAME_EXCHANGE = 2  # linux/fs.h
_READ_BYTES = 1 << 20  # stays in the second cache, and its pages are mapped once
_SYNCING_THREADS = 8  # file systems bring what several wait for to the disk in one go: three times as fast as in turn
_libc = ctypes.CDLL(None, use_errno=True)
_recordings: list[list["Operation"]] = []
_unsynced: set[Path] = set()  # journals whose last fsync failed: what it has dropped, no second one brings to the disk


class Operation(msgspec.Struct, frozen=True):
    """One recorded step.

    Fields:
        kind:   `make_dir`, `write_file`, `append`, `truncate`, `fsync_file`, `fsync_dir`, `link`, `rename`, `exchange`,
                `remove_file` or `remove_dir`
        path:   the file or directory the step is about
        data:   what `write_file` wrote (the whole file) or `append` added
        target: the new name of a `rename` or `link`, the second name of an `exchange`
        length: the length that `truncate` left, in bytes
    """

    kind: str
    path: Path
    data: bytes = b""
    target: Path | None = None
    length: int = 0


@contextlib.contextmanager
def recording() -> Iterator[list[Operation]]:
    """Collect the operations done until the block ends, in order, in the list that it yields.

    The content of written files is kept in memory: for tests and small files.
    """
    operations: list[Operation] = []
    _recordings.append(operations)
    try:
        yield operations
    finally:
        _recordings[:] = [other for other in _recordings if other is not operations]


def _record(operation: Operation) -> None:
    """Note a step by the names of its paths, also where it was done through a directory that is held open."""
    if not _recordings:
        return
    target = None if operation.target is None else Path(shown(str(operation.target)))
    named = msgspec.structs.replace(operation, path=Path(shown(str(operation.path))), target=target)
    for operations in _recordings:
        operations.append(named)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have an `OSError` of the system's that leaves the block name `path`, if it names no file or a temporary one.

    Errors of writing, truncating, allocating, locking and syncing name none by themselves.
    """
    try:
        yield
    except OSError as error:
        if error.strerror and (error.filename is None or f"/{TEMPORARY_PREFIX}" in str(error.filename)):
            error.filename, error.filename2 = str(path), None
        raise


def error_text(error: BaseException) -> str:
    """Return what an error says; one of the system's begins with its path, and has no advice."""
    if isinstance(error, UnreadableError):
        error = error.cause
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def make_dir(path: Path) -> None:
    """Create one directory; durable after `fsync_dir(path.parent)`."""
    path.mkdir()
    _record(Operation("make_dir", path))


def ensure_dir(path: Path) -> None:
    """Create a directory durably unless it exists; others may do so at the same time.  Its parent must exist."""
    if path.is_dir():
        return
    try:
        make_dir(path)
    except FileExistsError:
        if not path.is_dir():
            raise
    fsync_dir(path.parent)


def make_dirs(path: Path) -> None:
    """Create a directory and those above it that are missing, durably; others may do so at the same time."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        ensure_dir(folder)


@contextlib.contextmanager
def making_dirs(path: Path) -> Iterator[None]:
    """Create a directory as `make_dirs` does; if the block raises, what it has created and is empty is removed."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        make_dirs(path)
        yield
    except BaseException:
        for folder in missing:
            with contextlib.suppress(OSError):  # something else has come into it, or it was not made
                _remove_empty_dir(folder)
        raise


def write_file(
    path: Path, data: bytes | bytearray | memoryview | Iterable[bytes | memoryview], kind: str = CRC32C
) -> tuple[int, Checksum]:
    """Write a whole file and fsync it; its name is durable after `fsync_dir(path.parent)`.

    Args:
        path: the file, replaced if it exists
        data: the content, or its pieces one after the other
        kind: of checksum (`storage.checksums`)

    Returns:
        (length in bytes, checksum) of the content.
    """
    pieces = (data,) if isinstance(data, bytes | bytearray | memoryview) else data
    length, taken, kept = 0, new_sum(kind), []
    with naming(path), path.open("wb") as file:
        for piece in pieces:
            file.write(piece)
            length += memoryview(piece).nbytes
            taken.update(piece)
            if _recordings:
                kept.append(bytes(piece))
        file.flush()
        _record(Operation("write_file", path, b"".join(kept)))
        fsync_file(path, file)
    return length, taken.found()


def adopt_file(path: Path, known: tuple[int, Checksum] | None = None, kind: str = CRC32C) -> tuple[int, Checksum]:
    """Make durable a file that a library has written: read it back for its checksum, unless it is known, and fsync it.

    Returns:
        (length in bytes, checksum of the `kind`) of the content as read back, or what is `known` of it.
    """
    if known is not None and not _recordings:
        with naming(path), path.open("r+b") as file:
            fsync_file(path, file)
        return known
    length, taken, kept = 0, new_sum(kind), []
    with naming(path), path.open("r+b", buffering=0) as file:
        for piece in _pieces(file):
            length += len(piece)
            taken.update(piece)
            if _recordings:
                kept.append(bytes(piece))
        _record(Operation("write_file", path, b"".join(kept)))
        fsync_file(path, file)
    return length, taken.found()


def adopt(path: Path, known: Mapping[Path, tuple[int, Checksum]]) -> dict[str, tuple[int, Checksum]]:
    """Make durable a file or a directory that a library has written, as `adopt_file` and `adopt_tree`."""
    return adopt_tree(path, known) if path.is_dir() else {path.name: adopt_file(path, known.get(path))}


def _depth(path: Path) -> int:
    return len(path.parts)


def adopt_tree(
    path: Path, known: Mapping[Path, tuple[int, Checksum]] | None = None, kind: str = CRC32C
) -> dict[str, tuple[int, Checksum]]:
    """Make durable a directory that a library has written: every file, then every directory, the deepest first.

    The name of `path` itself is durable after `fsync_dir(path.parent)`.  `known`: {path: (length, checksum)} of files
    that need not be read back.

    Returns:
        {name of the file relative to `path.parent`: (length in bytes, checksum of the `kind`)}.
    """
    known = known or {}
    folders, files = [], []
    for folder, names, file_names in os.walk(path):
        _record(Operation("make_dir", Path(folder)))
        names.sort()
        folders.append(Path(folder))
        files += [Path(folder, name) for name in sorted(file_names)]
    adopted = ordered(lambda file: adopt_file(file, known.get(file), kind), files, threads=_SYNCING_THREADS)
    found = {file.relative_to(path.parent).as_posix(): each for file, each in zip(files, adopted, strict=True)}
    for _, level in groupby(sorted(folders, key=_depth, reverse=True), _depth):
        for _ in ordered(fsync_dir, level, threads=_SYNCING_THREADS):
            pass
    return found


def checksum_file(path: Path, kind: str = CRC32C) -> tuple[int, Checksum]:
    """Return (length in bytes, checksum of the `kind`) of a file, reading it piece by piece.

    Raises `UnreadableError` where the system cannot read it.
    """
    length, taken = 0, new_sum(kind)
    with reading(path), path.open("rb", buffering=0) as file:
        for piece in _pieces(file):
            length += len(piece)
            taken.update(piece)
    return length, taken.found()


def _pieces(file: FileIO) -> Iterator[memoryview]:
    """The content of an unbuffered file, piece by piece, each of which lasts until the next is asked for."""
    buffer = memoryview(bytearray(min(_READ_BYTES, os.fstat(file.fileno()).st_size + 1)))
    while size := file.readinto(buffer):
        yield buffer[:size]


def fsync_file(path: Path, file: BinaryIO) -> None:
    """Wait until the content of the open `file`, whose name is `path`, is on the disk."""
    with naming(path):
        os.fsync(file.fileno())
    _record(Operation("fsync_file", path))


def fsync_dir(path: Path) -> None:
    """Wait until the entries of a directory are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    _record(Operation("fsync_dir", path))


def rename(source: Path, target: Path) -> None:
    """Give a file or directory a new name in one step; durable after `fsync_dir` of the parent."""
    source.rename(target)
    _record(Operation("rename", source, target=target))


def exchange(first: Path, second: Path) -> None:
    """Swap the names of two files or directories in one step; durable after `fsync_dir` of the parents.

    Raises:
        OSError: one does not exist, or the file system cannot do it.
    """
    names = os.fsencode(first), os.fsencode(second)
    if _libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) != 0:
        number = ctypes.get_errno()
        advice = "cannot be replaced in one step here: remove it or choose another name"
        raise OSError(number, f"{advice} ({os.strerror(number)})", str(second))
    _record(Operation("exchange", first, target=second))


def link_file(source: Path, target: Path) -> None:
    """Give a file a second name (a hard link); durable after `fsync_dir` of the target's parent.

    Raises `OSError` where the file system has no hard links, or the name is on another one.
    """
    os.link(source, target, follow_symlinks=False)
    _record(Operation("link", source, target=target))


def remove_file(path: Path) -> None:
    """Remove one file or link; durable after `fsync_dir(path.parent)`."""
    path.unlink()
    _record(Operation("remove_file", path))


def remove_tree(path: Path) -> None:
    """Remove a directory and all it contains, links as links; durable after `fsync_dir(path.parent)`.

    A crash half-way leaves half of it: rename to a temporary name first where that matters.
    """
    for folder, names, file_names in os.walk(path, topdown=False):
        for name in file_names:
            remove_file(Path(folder, name))
        for name in names:
            inner = Path(folder, name)
            if inner.is_symlink():
                remove_file(inner)
            else:
                _remove_empty_dir(inner)
    _remove_empty_dir(path)


def drop_trees(paths: Iterable[Path]) -> None:
    """Remove directories that lie in one.

    Each is renamed first, so that a crash half-way leaves temporary names and nothing broken of theirs.
    """
    dropped = []
    for path in paths:
        dropped.append(path.with_name(f"{TEMPORARY_PREFIX}drop-{path.name}-{secrets.token_hex(4)}"))
        rename(path, dropped[-1])
    for parent in {path.parent for path in dropped}:
        fsync_dir(parent)
    for path in dropped:
        remove_tree(path)


def discard(path: Path) -> None:
    """Remove a file or a directory that is of no more use, as far as that can be done.

    It raises nothing: what was done before, or the error that led here, is what counts.
    """
    try:
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        elif os.path.lexists(path):
            remove_file(path)
    except OSError:
        with contextlib.suppress(OSError):  # `rmtree` raises some errors that it was told to ignore
            shutil.rmtree(path, ignore_errors=True)
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _remove_empty_dir(path: Path) -> None:
    path.rmdir()
    _record(Operation("remove_dir", path))


def replace_file(path: Path, data: bytes | Iterable[bytes]) -> tuple[int, Checksum]:
    """Replace a file in one durable step: after a crash it has the old content or the new.

    Returns:
        (length in bytes, crc32c) of the new content.
    """
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{path.name}-{secrets.token_hex(4)}")
    try:
        with naming(path):
            result = write_file(temporary, data)
            rename(temporary, path)
    except BaseException:
        discard(temporary)
        raise
    fsync_dir(path.parent)
    return result


def append_line(path: Path, line: str) -> None:
    """Append one line to a journal and fsync it.  A torn last line, left by a crash, is cut off first.

    Raises:
        ValueError: `line` contains a line break.
        OSError: the disk is full or fails; what was written of the line is cut off again, as far as that can be done.
            After a failed fsync the next line is written with all that is there into a file of its own, which takes the
            journal's place.
    """
    append_lines(path, [line.encode()])


def append_lines(path: Path, lines: Sequence[bytes]) -> None:
    """Append lines to a journal in one step and fsync it; otherwise as `append_line`."""
    for line in lines:
        if b"\n" in line:
            raise ValueError(f"a line of {path} cannot contain a line break: {line!r}")
    data = b"".join(line + b"\n" for line in lines)
    if path in _unsynced:
        with path.open("rb") as file:
            whole = whole_lines_length(file)
            file.seek(0)
            replace_file(path, [file.read(whole), data])
        _unsynced.discard(path)
        return
    created = not path.exists()
    with path.open("a+b", buffering=0) as file:
        whole = whole_lines_length(file)
        if whole < file.seek(0, os.SEEK_END):
            cut(path, file, whole)
        try:
            append(path, file, data)
            _unsynced.add(path)
            fsync_file(path, file)
            _unsynced.discard(path)
        except OSError:
            with contextlib.suppress(OSError):
                cut(path, file, whole)
            raise
    if created:
        fsync_dir(path.parent)


def append(path: Path, file: FileIO, data: bytes) -> None:
    """Write all of it at the end of the open `file`, whose name is `path`; durable after `fsync_file`."""
    left = memoryview(data)
    with naming(path):
        while left:
            left = left[file.write(left) :]
    _record(Operation("append", path, data))


def cut(path: Path, file: BinaryIO, length: int) -> None:
    """Cut the open `file`, whose name is `path`, off after `length` bytes; durable after `fsync_file`."""
    with naming(path):
        file.truncate(length)
    _record(Operation("truncate", path, length=length))


def whole_lines_length(file: BinaryIO) -> int:
    """Length in bytes of the lines that have their line break, found from the end backwards."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - 4096)
        file.seek(start)
        position = file.read(end - start).rfind(b"\n")
        if position >= 0:
            return start + position + 1
        end = start
    return 0


def read_lines(path: Path) -> list[str]:
    """Return the whole lines of a journal, none where it is absent; a torn last line (no line break) is left out."""
    try:
        with reading(path):
            return path.read_bytes().decode(errors="surrogateescape").split("\n")[:-1]
    except FileNotFoundError:
        return []
