"""Reads and writes arrays as contiguous raw cells at the speed of the disk.

The files have the layout of live tables, on which a run trains (`storage.live_tables`). They are one Zarr shard per
array, or one HDF5 file with contiguous datasets. Threads move the cells in large pieces and bypass the page cache
(O_DIRECT) where possible. The page cache would cost another copy and evict other data. Checksums are computed from the
moving bytes, so nothing is read twice.
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
from storage.mapping import Region, map_anonymous
from storage.schema import ArraySpec
from storage.table_formats import NotFiniteError, TableFormat, first_not_finite
from storage.threads import ordered

Item = TypeVar("Item")
PIECE_BYTES = 16 << 20
"""Bytes moved at once: enough for a disk's full speed, and few enough to checksum quickly."""
MOVING_THREADS = 4
"""Some threads wait for the disk while others compute checksums; two threads were measured 20 % slower."""
_PAGE_BYTES = 4096  # alignment of direct transfers, in memory and in the file


class FileCells(msgspec.Struct, frozen=True):
    """Place of an array in a checkpoint's file: raw row-major, little-endian cells, no gaps.

    Fields:
        file:         path relative to the directory of the tables
        offset_bytes: offset of the first cell in the file
        crc32c:       CRC-32C of all cells
    """

    file: str
    offset_bytes: int
    crc32c: int


class Piece(NamedTuple):
    """Consecutive cells read or written at once: a flat array, and their byte offset in the file."""

    cells: np.ndarray[Any, Any]
    offset: int

    @property
    def aligned(self) -> bool:
        """True if address, offset and length are multiples of 4096 bytes, as O_DIRECT needs."""
        return not (self.offset | self.cells.ctypes.data | self.cells.nbytes) % _PAGE_BYTES


def _spans(cells: int, cell_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield (first, end) cell indices of the pieces in which an array is read or written.

    A piece has at most `PIECE_BYTES`. The cells after the last whole page of 4096 bytes are a piece of their own.

    cells, cell_bytes  number of the array's cells, and size of one in bytes
    """
    step = PIECE_BYTES // cell_bytes
    whole = cells * cell_bytes // _PAGE_BYTES * _PAGE_BYTES // cell_bytes
    for first, end in ((0, whole), (whole, cells)):
        for at in range(first, end, step):
            yield at, min(at + step, end)


def pieces(array: np.ndarray, offset: int) -> Iterator[Piece]:
    """Divide a C-ordered array into pieces of at most `PIECE_BYTES`; yield them in order.

    offset  position of the array's first cell in its file, in bytes
    """
    flat = array.reshape(-1)
    for first, end in _spans(flat.size, array.itemsize):
        yield Piece(flat[first:end], offset + first * array.itemsize)


class MovingFile:
    """A file opened twice: with O_DIRECT for cells at multiples of 4096 bytes, and normally for the rest.

    Several threads may read and write at the same time.
    """

    def __init__(self, path: Path, flags: int) -> None:
        self._path = path
        self._descriptor = self._direct = os.open(path, flags | os.O_CLOEXEC)
        with suppress(OSError):  # file systems without O_DIRECT use the page cache
            self._direct = os.open(path, flags | os.O_CLOEXEC | os.O_DIRECT)

    def close(self) -> None:
        """Close both descriptors."""
        for descriptor in {self._descriptor, self._direct}:
            os.close(descriptor)

    def write(self, piece: Piece) -> np.ndarray:
        """Write a piece (cells and their offset in the file); return its cells.

        Raises `OSError` if the disk is full or fails.
        """
        remaining, offset, descriptor = _bytes(piece.cells), piece.offset, self._for(piece)
        with durable.naming(self._path):
            while remaining:
                count = os.pwrite(descriptor, remaining, offset)
                remaining, offset = remaining[count:], offset + count
        return piece.cells

    def read(self, piece: Piece) -> np.ndarray:
        """Fill a piece's cells from its byte offset in the file, and return them.

        Raises `OSError` if the disk fails, `DamagedError` if the file is too short.
        """
        remaining, offset, descriptor = _bytes(piece.cells), piece.offset, self._for(piece)
        while remaining:
            with durable.naming(self._path):
                count = os.preadv(descriptor, [remaining], offset)
            if count == 0:
                raise DamagedError(f"{self._path} ends at byte {offset}, in the middle of its cells")
            remaining, offset = remaining[count:], offset + count
        return piece.cells

    def between(self, first: int, end: int | None = None) -> Iterator[bytes]:
        """Yield the file's bytes from offset `first` to `end` (None: the file's end), in parts."""
        while end is None or first < end:
            with durable.naming(self._path):
                block = os.pread(self._descriptor, PIECE_BYTES if end is None else min(PIECE_BYTES, end - first), first)
            if not block:
                return
            first += len(block)
            yield block

    def _for(self, piece: Piece) -> int:
        return self._direct if piece.aligned else self._descriptor


def _bytes(cells: np.ndarray) -> memoryview:
    return cells.view(np.uint8).data


@contextmanager
def moving(path: Path, flags: int) -> Iterator[MovingFile]:
    """Open a `MovingFile` in a `with` statement: a file for fast transfers, with and without O_DIRECT.

    flags  those of `os.open`, such as `os.O_RDONLY`
    """
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
    """Write the arrays `specs` durably into a directory, each as contiguous raw cells.

    layout      module of the format, `storage.zarr_format` or `storage.hdf5_format`, which creates the files
    arrays      {name: array} with the schema's shapes and dtypes
    background  run at low priority
    notes       JSON that becomes attributes of the Zarr group or HDF5 file

    Returns ({file name relative to `directory`: (length in bytes, CRC-32C)}, {array name: its file, offset, CRC-32C}).

    Raises:
        NotFiniteError: a cell is NaN or infinite.
        OSError: the disk fails, or is full, which is found before any cells are written.
    """
    regions = layout.create_live(directory, specs, notes)
    by_name = {spec.name: spec for spec in specs}
    files: dict[Path, tuple[int, Checksum]] = {}
    cells: dict[str, FileCells] = {}
    for path, file_regions in groupby(sorted(regions, key=lambda region: (region.path, region.offset_bytes)), _path_of):
        of_file = [(by_name[region.name], region.offset_bytes) for region in file_regions]
        files[path], checksums = _write_file(path, of_file, arrays, background)
        name = path.relative_to(directory).as_posix()
        cells |= {spec.name: FileCells(name, at, checksums[spec.name]) for spec, at in of_file}
    return durable.adopt(directory / layout.TABLES, files), cells


def _path_of(region: Region) -> Path:
    return Path(region.path)


def _write_file(
    path: Path, places: Sequence[tuple[ArraySpec, int]], arrays: Mapping[str, np.ndarray], background: bool
) -> tuple[tuple[int, int], dict[str, int]]:
    """Write the arrays into an allocated file, each at its offset.

    places      (schema of the array, offset of its cells in bytes), ascending by offset
    arrays      {name: array}
    background  run at low priority

    Returns ((length in bytes, CRC-32C of the file), {array: CRC-32C of its cells}).
    """
    with moving(path, os.O_RDWR) as file:

        def write(spec: ArraySpec, offset: int) -> int:
            array = np.ascontiguousarray(arrays[spec.name], spec.numpy_dtype)
            return _sum_of(partial(_write_piece, file, spec, offset), pieces(array, offset), array.nbytes, background)

        whole, checksums = _file_sums(file, places, write)
    return (path.stat().st_size, whole), checksums


def _file_sums(
    file: MovingFile, arrays: Iterable[tuple[ArraySpec, int]], move: Callable[[ArraySpec, int], int]
) -> tuple[int, dict[str, int]]:
    """Read or write the arrays of a file; return (CRC-32C of the file, {array: CRC-32C of its cells}).

    arrays  (array, offset of its cells in bytes), ascending by offset
    move    function of (array, offset in bytes) that reads or writes the cells and returns their CRC-32C

    The bytes between the arrays are only read, for the file's checksum.
    """
    checksums, whole, end = {}, 0, 0
    for spec, offset in arrays:
        for between in file.between(end, offset):
            whole = joined(whole, checksum(between), len(between))
        checksums[spec.name] = move(spec, offset)
        whole, end = joined(whole, checksums[spec.name], spec.nbytes), offset + spec.nbytes
    for between in file.between(end):
        whole = joined(whole, checksum(between), len(between))
    return whole, checksums


def _sum_of(
    work: Callable[[Item], tuple[int, int]], parts: Iterable[Item], size_bytes: int, background: bool = False
) -> int:
    """Call `work` for all parts of an array in several threads; return the CRC-32C of the whole array.

    work        function that reads or writes one part and returns (its CRC-32C, its length in bytes)
    parts       parts of the array, in the order of its cells
    size_bytes  length of all parts in bytes; below 1 MiB no threads are started
    background  run at low priority
    """
    whole = 0
    for part, length in ordered(work, parts, size_bytes=size_bytes, background=background, threads=MOVING_THREADS):
        whole = joined(whole, part, length)
    return whole


def _write_piece(file: MovingFile, spec: ArraySpec, offset: int, piece: Piece) -> tuple[int, int]:
    """Write a piece of an array to the file, and return its (CRC-32C, length in bytes).

    spec    schema of the array
    offset  offset of the array's first cell in the file, in bytes

    Raises `NotFiniteError`, before writing, for a NaN or infinite cell.
    """
    bad = _not_finite(spec, offset, piece)
    if bad is not None:
        raise bad
    file.write(piece)
    return checksum(_bytes(piece.cells)), piece.cells.nbytes


def _not_finite(spec: ArraySpec, offset: int, piece: Piece) -> NotFiniteError | None:
    """Return an error for the first NaN or infinite cell of a piece of an array, or None.

    spec    schema of the array
    offset  offset of the array's first cell in the file, in bytes
    """
    bad = first_not_finite(piece.cells)
    if bad is None:
        return None
    at = (piece.offset - offset) // piece.cells.itemsize + bad[0]
    return NotFiniteError(spec, [int(index) for index in np.unravel_index(at, spec.shape)], float(piece.cells[bad]))


def _read_piece(file: MovingFile, piece: Piece) -> tuple[int, int]:
    file.read(piece)
    return checksum(_bytes(piece.cells)), piece.cells.nbytes


def read_array(directory: Path, cells: FileCells, out: np.ndarray) -> bool:
    """Fill a C-ordered array with its stored cells; return whether their checksum is right.

    directory  directory of the tables
    cells      place of the array in its file
    out        array to fill

    Raises `UnreadableError` if the system cannot read the file, `DamagedError` if it is too short.
    """
    path = directory / cells.file
    with reading(path), moving(path, os.O_RDONLY) as file:
        return _sum_of(partial(_read_piece, file), pieces(out, cells.offset_bytes), out.nbytes) == cells.crc32c


def file_problems(path: Path, stated: Checksum, arrays: Sequence[tuple[ArraySpec, FileCells]]) -> list[str]:
    """Read every byte of a file of arrays once; return one sentence for each problem.

    stated  CRC-32C of the file
    arrays  (array, place of its cells) of all arrays in the file, ascending by offset

    A wrong checksum of the file is the only problem returned. Otherwise each array gives one for a wrong checksum, and
    one for its first NaN or infinite cell.

    Raises `UnreadableError` if the system cannot read the file, `DamagedError` if it is too short.
    """
    bad: list[NotFiniteError] = []
    with reading(path), moving(path, os.O_RDONLY) as file:

        def read(spec: ArraySpec, offset: int) -> int:
            def work(span: tuple[int, int]) -> tuple[int, int]:
                cells = map_anonymous(span[1] - span[0], spec.numpy_dtype)
                piece = Piece(cells, offset + span[0] * cells.itemsize)
                summed, problem = _read_piece(file, piece), _not_finite(spec, offset, piece)
                bad.extend([] if problem is None else [problem])
                return summed

            return _sum_of(work, _spans(math.prod(spec.shape), spec.numpy_dtype.itemsize), spec.nbytes)

        whole, checksums = _file_sums(file, [(spec, cells.offset_bytes) for spec, cells in arrays], read)
    if whole != stated:
        return [f"{arrays[0][1].file} has checksum {whole:08x}; the manifest states {stated:08x}"]
    first = {error.name: error for error in sorted(bad, key=lambda error: error.index, reverse=True)}
    return [
        *(wrong_cells_message(spec, cells) for spec, cells in arrays if cells.crc32c != checksums[spec.name]),
        *(str(first[spec.name]) for spec, _ in arrays if spec.name in first),
    ]


def wrong_cells_message(spec: ArraySpec, cells: FileCells) -> str:
    """Return the message for an array whose cells have a wrong checksum."""
    return f"{cells.file} has another checksum in the cells of array {spec.name!r} than the manifest states"
