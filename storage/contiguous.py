"""Arrays as raw cells, each in one run of a file: written once and read once, at the speed of the disk.

The files are those of live tables: one Zarr shard for each array, or one HDF5 file of contiguous datasets.  Cells move
between memory and disk in large pieces, several under way at a time, and past the system's page cache where it lets
them (O_DIRECT): there they would push out what others need, be copied once more, and wait for each other.  Checksums
are taken of the very bytes that move, so that nothing is read a second time for them.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from storage import durable
from storage.checksums import Checksum, checksum, joined
from storage.cleanup import closed_after
from storage.damage import DamagedError, reading
from storage.formats import NotFiniteError, TableFormat, first_not_finite
from storage.mapping import Region, map_anonymous
from storage.schema import ArraySpec
from storage.threads import ordered

Item = TypeVar("Item")
PIECE_BYTES = 16 << 20
"""Of what moves at once: enough for a disk's full speed, little enough for a checksum not to be waited for."""
MOVING_THREADS = 4
"""While some wait for the disk, others take checksums: two were measured a fifth slower on busy processors."""
_PAGE_BYTES = 4096  # what direct transfers begin and end at, in memory as in the file


class FileCells(msgspec.Struct, frozen=True):
    """Where an array's raw row-major cells lie, little endian.

    Fields:
        file:         relative to the directory of the tables
        offset_bytes: of the first cell in the file
        crc32c:       of all cells
    """

    file: str
    offset_bytes: int
    crc32c: int


class Piece(NamedTuple):
    """Neighbouring cells, flat, and where they lie in the file."""

    cells: np.ndarray[Any, Any]
    offset: int

    @property
    def aligned(self) -> bool:
        """Whether they may move past the page cache."""
        return not (self.offset | self.cells.ctypes.data | self.cells.nbytes) % _PAGE_BYTES


def _spans(cells: int, cell_bytes: int) -> Iterator[tuple[int, int]]:
    """(first, end) of neighbouring cells that move at once: whole pages in large pieces, then what is left."""
    step = PIECE_BYTES // cell_bytes
    whole = cells * cell_bytes // _PAGE_BYTES * _PAGE_BYTES // cell_bytes
    for first, end in ((0, whole), (whole, cells)):
        for at in range(first, end, step):
            yield at, min(at + step, end)


def pieces(array: np.ndarray, offset: int) -> Iterator[Piece]:
    """A C-ordered array whose cells begin at an offset of a file."""
    flat = array.reshape(-1)
    for first, end in _spans(flat.size, array.itemsize):
        yield Piece(flat[first:end], offset + first * array.itemsize)


class MovingFile:
    """A file open twice: past the page cache for whole pages, and through it for all else."""

    def __init__(self, path: Path, flags: int) -> None:
        self._path = path
        self._descriptor = self._direct = os.open(path, flags | os.O_CLOEXEC)
        with suppress(OSError):  # of file systems that know no such thing: all goes through the cache
            self._direct = os.open(path, flags | os.O_CLOEXEC | os.O_DIRECT)

    def close(self) -> None:
        """Close it."""
        for descriptor in {self._descriptor, self._direct}:
            os.close(descriptor)

    def write(self, piece: Piece) -> np.ndarray:
        """Write a piece; returns its cells.  `OSError` where the disk is full or fails."""
        left, offset, descriptor = _bytes(piece.cells), piece.offset, self._for(piece)
        with durable.naming(self._path):
            while left:
                done = os.pwrite(descriptor, left, offset)
                left, offset = left[done:], offset + done
        return piece.cells

    def read(self, piece: Piece) -> np.ndarray:
        """Fill the cells of a piece; returns them.  `OSError` where the disk fails or the file is too short."""
        left, offset, descriptor = _bytes(piece.cells), piece.offset, self._for(piece)
        while left:
            with durable.naming(self._path):
                done = os.preadv(descriptor, [left], offset)
            if done == 0:
                raise DamagedError(f"{self._path} ends at byte {offset}, in the midst of its cells")
            left, offset = left[done:], offset + done
        return piece.cells

    def between(self, first: int, end: int | None = None) -> Iterator[bytes]:
        """What lies from one offset to another, or to the file's end, and is no cell."""
        while end is None or first < end:
            with durable.naming(self._path):
                found = os.pread(self._descriptor, PIECE_BYTES if end is None else min(PIECE_BYTES, end - first), first)
            if not found:
                return
            first += len(found)
            yield found

    def _for(self, piece: Piece) -> int:
        return self._direct if piece.aligned else self._descriptor


def _bytes(cells: np.ndarray) -> memoryview:
    return cells.view(np.uint8).data


@contextmanager
def moving(path: Path, flags: int) -> Iterator[MovingFile]:
    """A `MovingFile`, for as long as a `with` statement lasts."""
    file = MovingFile(path, flags)
    with closed_after(file.close):
        yield file


def write_tables(
    layout: TableFormat,
    directory: Path,
    specs: Sequence[ArraySpec],
    arrays: Mapping[str, np.ndarray],
    *,
    background: bool = False,
    notes: Mapping[str, Any] | None = None,
) -> tuple[dict[str, tuple[int, Checksum]], dict[str, FileCells]]:
    """Write tables into a directory, all of it durable.

    background  give way to whoever else wants the processors
    notes       JSON that becomes attributes of the whole

    Returns ({name of each file relative to `directory`: (length in bytes, crc32c)}, {name of each array: its cells}).

    Raises:
        NotFiniteError: a cell is NaN or infinite.
        OSError: the disk is full, which is found before anything is moved, or it fails.
    """
    regions = layout.create_live(directory, specs, notes)
    by_name = {spec.name: spec for spec in specs}
    written: dict[Path, tuple[int, Checksum]] = {}
    cells: dict[str, FileCells] = {}
    for path, found in groupby(sorted(regions, key=lambda region: (region.path, region.offset_bytes)), _path_of):
        of_file = [(by_name[region.name], region.offset_bytes) for region in found]
        written[path], checksums = _write_file(path, of_file, arrays, background)
        name = path.relative_to(directory).as_posix()
        cells |= {spec.name: FileCells(name, at, checksums[spec.name]) for spec, at in of_file}
    return durable.adopt(directory / layout.TABLES, written), cells


def _path_of(region: Region) -> Path:
    return Path(region.path)


def _write_file(
    path: Path, places: Sequence[tuple[ArraySpec, int]], arrays: Mapping[str, np.ndarray], background: bool
) -> tuple[tuple[int, int], dict[str, int]]:
    """Write cells into a file that has room for them; ((its length, its crc32c), {array: crc32c of its cells})."""
    with moving(path, os.O_RDWR) as file:

        def written(spec: ArraySpec, offset: int) -> int:
            array = np.ascontiguousarray(arrays[spec.name], spec.numpy_dtype)
            return _sum_of(partial(_write_piece, file, spec, offset), pieces(array, offset), array.nbytes, background)

        whole, found = _file_sums(file, places, written)
    return (path.stat().st_size, whole), found


def _file_sums(
    file: MovingFile, places: Iterable[tuple[ArraySpec, int]], moved: Callable[[ArraySpec, int], int]
) -> tuple[int, dict[str, int]]:
    """(crc32c of a file, {array: crc32c of its cells}), where `moved` moves an array's cells and returns the latter.

    places  of the file's arrays: (which, offset in bytes of its cells), ascending
    """
    found, whole, end = {}, 0, 0
    for spec, offset in places:
        for between in file.between(end, offset):
            whole = joined(whole, checksum(between), len(between))
        found[spec.name] = moved(spec, offset)
        whole, end = joined(whole, found[spec.name], spec.nbytes), offset + spec.nbytes
    for between in file.between(end):
        whole = joined(whole, checksum(between), len(between))
    return whole, found


def _sum_of(
    work: Callable[[Item], tuple[int, int]], parts: Iterable[Item], size_bytes: int, background: bool = False
) -> int:
    """The crc32c of all parts, where `work` moves one of them and returns (its crc32c, its bytes)."""
    whole = 0
    for part, length in ordered(work, parts, size_bytes=size_bytes, background=background, threads=MOVING_THREADS):
        whole = joined(whole, part, length)
    return whole


def _write_piece(file: MovingFile, spec: ArraySpec, offset: int, piece: Piece) -> tuple[int, int]:
    """Write a piece of an array whose cells begin at an offset; raises `NotFiniteError` instead for one that is bad."""
    bad = _not_finite(spec, offset, piece)
    if bad is not None:
        raise bad
    file.write(piece)
    return checksum(_bytes(piece.cells)), piece.cells.nbytes


def _not_finite(spec: ArraySpec, offset: int, piece: Piece) -> NotFiniteError | None:
    """The first cell that is NaN or infinite, of a piece of an array whose cells begin at an offset; else None."""
    bad = first_not_finite(piece.cells)
    if bad is None:
        return None
    at = (piece.offset - offset) // piece.cells.itemsize + bad[0]
    return NotFiniteError(spec, [int(index) for index in np.unravel_index(at, spec.shape)], float(piece.cells[bad]))


def _read_piece(file: MovingFile, piece: Piece) -> tuple[int, int]:
    file.read(piece)
    return checksum(_bytes(piece.cells)), piece.cells.nbytes


def read_array(directory: Path, cells: FileCells, out: np.ndarray) -> bool:
    """Fill a C-ordered array with cells of its size; return whether they have their checksum.

    Raises `UnreadableError` where the system cannot read the file, `DamagedError` where it is too short.
    """
    path = directory / cells.file
    with reading(path), moving(path, os.O_RDONLY) as file:
        return _sum_of(partial(_read_piece, file), pieces(out, cells.offset_bytes), out.nbytes) == cells.crc32c


def file_problems(path: Path, stated: Checksum, places: Sequence[tuple[ArraySpec, FileCells]]) -> list[str]:
    """What is wrong with a file of arrays, every byte of it read once; a sentence for each thing.

    stated  crc32c of the file
    places  of its arrays: (which, where its cells are), by their offsets

    Raises `UnreadableError` where the system cannot read the file, `DamagedError` where it is too short.
    """
    bad: list[NotFiniteError] = []
    with reading(path), moving(path, os.O_RDONLY) as file:

        def read(spec: ArraySpec, offset: int) -> int:
            def work(span: tuple[int, int]) -> tuple[int, int]:
                cells = map_anonymous(span[1] - span[0], spec.numpy_dtype)
                piece = Piece(cells, offset + span[0] * cells.itemsize)
                summed, found = _read_piece(file, piece), _not_finite(spec, offset, piece)
                bad.extend([] if found is None else [found])
                return summed

            return _sum_of(work, _spans(math.prod(spec.shape), spec.numpy_dtype.itemsize), spec.nbytes)

        whole, found = _file_sums(file, [(spec, cells.offset_bytes) for spec, cells in places], read)
    if whole != stated:
        return [f"{places[0][1].file} has checksum {whole:08x}; the manifest states {stated:08x}"]
    first = {error.name: error for error in sorted(bad, key=lambda error: error.index, reverse=True)}
    return [
        *(other_cells(spec, cells) for spec, cells in places if cells.crc32c != found[spec.name]),
        *(str(first[spec.name]) for spec, _ in places if spec.name in first),
    ]


def other_cells(spec: ArraySpec, cells: FileCells) -> str:
    """The sentence for an array whose cells have not their checksum."""
    return f"{cells.file} has another checksum in the cells of array {spec.name!r} than the manifest states"
