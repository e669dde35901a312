"""File operations that survive a crash; all durable writes go through this module.

Durable means on the disk, so that it survives a power cut. A file's content is durable after `fsync_file`; a created,
renamed or removed name is durable after `fsync_dir` of its parent. Inside `recording()`, every step is recorded with
its data. Tests rebuild from it the states that a crash after any step may leave.
"""

import contextlib
import ctypes
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import FileIO
from itertools import groupby, takewhile
from pathlib import Path
from typing import BinaryIO

import msgspec

from storage.checksums import CRC32C, Checksum, new_sum
from storage.damage import UnreadableError, UnsyncedError, check_openable, reading, walk
from storage.open_directory import shown
from storage.threads import ordered

TEMPORARY_PREFIX = ".tmp-"

_AT_FDCWD = -100  # linux/fcntl.h
_RENAME_EXCHANGE = 2  # linux/fs.h
_READ_BYTES = 1 << 20  # fits the second-level cache
_SYNCING_THREADS = 8  # file systems sync several files in one go: three times faster than in turn
_libc = ctypes.CDLL(None, use_errno=True)
_recordings: list[list["Operation"]] = []
_unsynced: set[Path] = set()  # journals whose last fsync failed; another fsync would not write the lost pages


class Operation(msgspec.Struct, frozen=True):
    """One recorded step of writing to disk, such as a rename or an fsync.

    Fields:
        kind:   `make_dir`, `write_file`, `append`, `truncate`, `fsync_file`, `fsync_dir`, `rename`, `exchange`,
                `remove_file` or `remove_dir`
        path:   the file or directory
        data:   the whole content of a `write_file`, or the bytes of an `append`
        target: the new name of a `rename`, the second name of an `exchange`
        length: the length after a `truncate`, in bytes
    """

    kind: str
    path: Path
    data: bytes = b""
    target: Path | None = None
    length: int = 0


@contextlib.contextmanager
def recording() -> Iterator[list[Operation]]:
    """Record all steps of writing to disk in a `with` block, in the list that it yields.

    For tests with small files: the content of written files is kept in memory.
    """
    operations: list[Operation] = []
    _recordings.append(operations)
    try:
        yield operations
    finally:
        _recordings[:] = [other for other in _recordings if other is not operations]


def _record(operation: Operation) -> None:
    """Add a step of writing to disk, such as a rename, to the lists of all `recording` blocks in progress.

    Paths through an open directory (/proc/PID/fd/N) are replaced by its real name.
    """
    if not _recordings:
        return
    target = None if operation.target is None else Path(shown(str(operation.target)))
    named = msgspec.structs.replace(operation, path=Path(shown(str(operation.path))), target=target)
    for operations in _recordings:
        operations.append(named)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file name `path` to a system error of a `with` block that names no file.

    If the error names a temporary file, which users do not know, `path` replaces this name. Errors of writing,
    truncating, allocating, locking and fsync name no file by themselves.
    """
    try:
        yield
    except OSError as error:
        if error.strerror and (error.filename is None or f"/{TEMPORARY_PREFIX}" in str(error.filename)):
            error.filename, error.filename2 = str(path), None
        raise


def error_text(error: BaseException) -> str:
    """Return the message of an error; "PATH: MESSAGE" for a system error that names a file."""
    if isinstance(error, UnreadableError):
        error = error.cause
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def make_dir(path: Path) -> None:
    """Create a directory; durable after `fsync_dir(path.parent)`."""
    path.mkdir()
    _record(Operation("make_dir", path))


def ensure_dir(path: Path) -> None:
    """Create a directory durably unless it exists; its parent must exist.

    Several processes may call it for the same path at the same time.
    """
    if path.is_dir():
        return
    try:
        make_dir(path)
    except FileExistsError:
        if not path.is_dir():
            raise
    fsync_dir(path.parent)


def make_dirs(path: Path) -> None:
    """Create a directory and its missing parents durably; several processes may do so at once."""
    for folder in reversed(missing_dirs(path)):
        ensure_dir(folder)


def missing_dirs(path: Path) -> list[Path]:
    """Return those of `path` and its parents that do not exist, the deepest first.

    Raises `UnreadableError` if the system cannot tell.
    """
    with reading(path):
        return list(takewhile(lambda folder: not folder.exists(), (path, *path.parents)))


@contextlib.contextmanager
def making_dirs(path: Path) -> Iterator[None]:
    """Create a directory and its missing parents durably for a `with` block.

    If the block raises, the directories that did not exist before are removed, unless they have content.
    """
    missing = missing_dirs(path)
    try:
        make_dirs(path)
        yield
    except BaseException:
        for folder in missing:
            with contextlib.suppress(OSError):  # no longer empty, or not created
                _remove_empty_dir(folder)
        raise


def write_file(
    path: Path, data: bytes | bytearray | memoryview | Iterable[bytes | memoryview], kind: str = CRC32C
) -> tuple[int, Checksum]:
    """Write a whole file and fsync it; its name is durable after `fsync_dir(path.parent)`.

    Args:
        path: the file; an existing one is overwritten in place, so a crash may leave part of the content
        data: the content, or an iterable of its pieces
        kind: kind of the checksum: `CRC32C` or `XXH3`

    Returns:
        (length in bytes, checksum) of the content.
    """
    pieces = (data,) if isinstance(data, bytes | bytearray | memoryview) else data
    length, running, pieces_written = 0, new_sum(kind), []
    with naming(path), path.open("wb") as file:
        for piece in pieces:
            file.write(piece)
            length += memoryview(piece).nbytes
            running.update(piece)
            if _recordings:
                pieces_written.append(bytes(piece))
        file.flush()
        _record(Operation("write_file", path, b"".join(pieces_written)))
        fsync_file(path, file)
    return length, running.found()


def adopt_file(path: Path, checksum: tuple[int, Checksum] | None = None, kind: str = CRC32C) -> tuple[int, Checksum]:
    """Make a file durable that a library such as h5py wrote; return (length in bytes, checksum).

    checksum  the result if known; None: read the file back
    kind      kind of the computed checksum: `CRC32C` or `XXH3`
    """
    if checksum is not None and not _recordings:
        with naming(path), path.open("r+b") as file:
            fsync_file(path, file)
        return checksum
    length, running, pieces_read = 0, new_sum(kind), []
    with naming(path), path.open("r+b", buffering=0) as file:
        for piece in _pieces(file):
            length += len(piece)
            running.update(piece)
            if _recordings:
                pieces_read.append(bytes(piece))
        _record(Operation("write_file", path, b"".join(pieces_read)))
        fsync_file(path, file)
    return length, running.found()


def adopt(path: Path, checksums: Mapping[Path, tuple[int, Checksum]]) -> dict[str, tuple[int, Checksum]]:
    """Make a file or directory durable that a library has written; return the checksums of its files.

    checksums  {path: (length in bytes, CRC-32C)} of files that need not be read back

    Returns {file name relative to `path.parent`: (length in bytes, CRC-32C)}.
    """
    return adopt_tree(path, checksums) if path.is_dir() else {path.name: adopt_file(path, checksums.get(path))}


def _depth(path: Path) -> int:
    return len(path.parts)


def adopt_tree(
    path: Path, checksums: Mapping[Path, tuple[int, Checksum]] | None = None, kind: str = CRC32C
) -> dict[str, tuple[int, Checksum]]:
    """Make a directory durable that a library has written: all files, then folders, deepest first.

    checksums  {path: (length in bytes, checksum)} of files that need not be read back
    kind       kind of the checksums: `CRC32C` or `XXH3`

    The name of `path` itself is durable after `fsync_dir(path.parent)`.

    Returns:
        {file name relative to `path.parent`: (length in bytes, checksum)}.
    """
    checksums = checksums or {}
    folders, files = [], []
    for folder, names, file_names in walk(path):
        _record(Operation("make_dir", Path(folder)))
        names.sort()
        folders.append(Path(folder))
        files += [Path(folder, name) for name in sorted(file_names)]
    adopted = ordered(lambda file: adopt_file(file, checksums.get(file), kind), files, threads=_SYNCING_THREADS)
    listed = {file.relative_to(path.parent).as_posix(): each for file, each in zip(files, adopted, strict=True)}
    for _, level in groupby(sorted(folders, key=_depth, reverse=True), _depth):
        for _ in ordered(fsync_dir, level, threads=_SYNCING_THREADS):
            pass
    return listed


def checksum_file(path: Path, kind: str = CRC32C) -> tuple[int, Checksum]:
    """Return (length in bytes, checksum) of a file, which is read in pieces.

    kind  kind of the checksum: `CRC32C` or `XXH3`

    Raises `UnreadableError` if the system cannot read it.
    """
    length, running = 0, new_sum(kind)
    with reading(path):
        check_openable(path)
    with reading(path), path.open("rb", buffering=0) as file:
        for piece in _pieces(file):
            length += len(piece)
            running.update(piece)
    return length, running.found()


def _pieces(file: FileIO) -> Iterator[memoryview]:
    """Yield the content of an unbuffered file in pieces; each is valid until the next is requested."""
    buffer = memoryview(bytearray(min(_READ_BYTES, os.fstat(file.fileno()).st_size + 1)))
    while size := file.readinto(buffer):
        yield buffer[:size]


def fsync_file(path: Path, file: BinaryIO) -> None:
    """Wait until the content of the open `file`, whose name is `path`, is on the disk."""
    with naming(path):
        os.fsync(file.fileno())
    _record(Operation("fsync_file", path))


def fsync_dir(path: Path) -> None:
    """Wait until the entries of a directory are on the disk.

    Raises `UnsyncedError` if the system cannot open the directory, and `FileNotFoundError` if there is none. Raises
    another `OSError` if the disk fails.
    """
    try:
        with reading(path):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except UnreadableError as error:
        text = f"{error.cause.strerror}: a new name in this folder is not synced to the disk; run the command again"
        raise UnsyncedError(error.errno, text, str(path)) from None
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    _record(Operation("fsync_dir", path))


def rename(source: Path, target: Path) -> None:
    """Rename a file or directory atomically; durable after `fsync_dir` of the parents of both names.

    A file replaces an existing file at `target`, and a directory an empty one. Otherwise an existing `target` raises
    `OSError`.
    """
    source.rename(target)
    _record(Operation("rename", source, target=target))


def exchange(first: Path, second: Path) -> None:
    """Swap the names of two files or directories atomically; durable after `fsync_dir` of the parents.

    Raises:
        OSError: one does not exist, or the file system does not support the operation.
    """
    names = os.fsencode(first), os.fsencode(second)
    if _libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) != 0:
        number = ctypes.get_errno()
        advice = "cannot be replaced in one step here: remove it or choose another name"
        raise OSError(number, f"{advice} ({os.strerror(number)})", str(second))
    _record(Operation("exchange", first, target=second))


def remove_file(path: Path) -> None:
    """Remove one file or link; durable after `fsync_dir(path.parent)`."""
    path.unlink()
    _record(Operation("remove_file", path))


def remove_tree(path: Path) -> None:
    """Remove a directory with all its content; links are removed, not followed.

    Durable after `fsync_dir(path.parent)`. A crash may leave part of it, so rename it to a temporary name first if that
    matters.
    """
    for folder, names, file_names in walk(path, topdown=False):
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
    """Remove directories with all their content, durably: they stay removed after a power cut.

    Each is renamed to a temporary name first, so that a crash leaves no incomplete directory under the old name.
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
    """Remove a file or directory as far as possible; raises nothing.

    An error here must not hide the caller's result or an earlier error.
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
    """Replace or create a file atomically and durably: after a crash it has the old or the new content.

    data  the new content, or an iterable of its pieces

    Returns (length in bytes, CRC-32C) of the new content. Raises `OSError` if the disk is full or fails.
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
    """Append a line to a journal (a file of lines) and fsync it.

    An incomplete last line, left by a crash, is cut off first.

    Raises:
        ValueError: `line` contains a line break.
        OSError: the disk is full or fails. The partly written line is cut off if possible. After a failed fsync, the
            next call writes the whole journal to a new file that replaces it.
    """
    append_lines(path, [line.encode()])


def append_lines(path: Path, lines: Sequence[bytes]) -> None:
    """Append lines to a journal (a file of lines) in one write and fsync it.

    An incomplete last line, left by a crash, is cut off first. Raises `ValueError` for a line break in a line, and
    `OSError` if the disk is full or fails.
    """
    for line in lines:
        if b"\n" in line:
            raise ValueError(f"a line of {path} cannot contain a line break: {line!r}")
    data = b"".join(line + b"\n" for line in lines)
    if path in _unsynced:
        with path.open("rb") as file:
            whole = complete_lines_length(file)
            file.seek(0)
            replace_file(path, [file.read(whole), data])
        _unsynced.discard(path)
        return
    created = not path.exists()
    with naming(path), path.open("a+b", buffering=0) as file:
        whole = complete_lines_length(file)
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
    """Write all bytes at the end of the open `file`, whose name is `path`; durable after `fsync_file`."""
    remaining = memoryview(data)
    with naming(path):
        while remaining:
            remaining = remaining[file.write(remaining) :]
    _record(Operation("append", path, data))


def cut(path: Path, file: BinaryIO, length: int) -> None:
    """Truncate the open `file`, whose name is `path`, to `length` bytes; durable after `fsync_file`."""
    with naming(path):
        file.truncate(length)
    _record(Operation("truncate", path, length=length))


def complete_lines_length(file: BinaryIO) -> int:
    """Return the length in bytes of an open file up to and with its last line break; 0 if it has none."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - 4096)
        file.seek(start)
        position = file.read(end - start).rfind(b"\n")
        if position >= 0:
            return start + position + 1
        end = start
    return 0
