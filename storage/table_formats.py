"""Interface of the two file formats of tables, Zarr and HDF5, and functions that both use.

Tables are the arrays of a run, such as regrets. They exist as live tables, on which workers train, and in checkpoints,
there usually divided into chunks. zarr and h5py are slow to import, so `table_format` imports a format's module on
first use.
"""

import importlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from storage.checksums import Checksum
from storage.damage import DamagedError
from storage.mapping import Region
from storage.schema import ArraySpec, split_at_chunks

FORMATS = ("zarr", "hdf5")

CHECKPOINT_CHUNK_BYTES = 4 << 20
MOST_CHUNK_BYTES = 64 << 20
"""Largest chunk that is read: far above all that are written, and too small to exhaust memory."""
_CHUNKS_PER_BLOCK = 4


def raw_bytes(spec: ArraySpec) -> int:
    """Return the size in bytes of an uncompressed array in a checkpoint, whose last chunks are padded."""
    chunk = split_at_chunks(spec.shape, spec.numpy_dtype.itemsize, CHECKPOINT_CHUNK_BYTES)
    counts = [-(-length // width) for length, width in zip(spec.shape, chunk, strict=True)]
    return spec.numpy_dtype.itemsize * math.prod(chunk) * math.prod(counts)


class TableFormat(Protocol):
    """Interface of the modules `storage.zarr_format` and `storage.hdf5_format`, which store tables.

    The argument `directory` of the functions is the directory that contains `tables.zarr` or `tables.h5`.
    """

    TABLES: str  # name of the tables inside the directory: `tables.zarr` or `tables.h5`

    def live_bytes(self, specs: Sequence[ArraySpec]) -> int:
        """Return the bytes of memory that live tables take, to within a few pages per array.

        Live tables are the arrays on which a run trains.
        """

    def create_live(
        self, directory: Path, specs: Sequence[ArraySpec], notes: Mapping[str, Any] | None = None
    ) -> tuple[Region, ...]:
        """Create the arrays on which workers train (live tables) in `directory`, with all cells zero.

        notes  JSON that becomes attributes of the group or file

        Returns a `Region`, the file and offset of the cells, for each of `specs` in their order.
        """

    def create_live_anonymous(
        self, directory: Path, specs: Sequence[ArraySpec]
    ) -> tuple[tuple[Region, ...], list[int]]:
        """Create the arrays on which workers train, in memory that belongs to no file on disk.

        `directory` gets a symbolic link to the memory of each array, by which other processes map it. Memory and links
        last while this process keeps the file descriptors of the memory open.

        Returns (a `Region` for each of `specs`: path of its link, and offset of its cells; file descriptors).
        """

    def write_tables(
        self,
        directory: Path,
        specs: Sequence[ArraySpec],
        arrays: Mapping[str, np.ndarray],
        *,
        compressed: bool = True,
        background: bool = False,
        notes: Mapping[str, Any] | None = None,
    ) -> dict[str, tuple[int, Checksum]]:
        """Write the tables of a checkpoint durably, chunk by chunk, with checksums.

        arrays      {name: array} with the shapes and dtypes of `specs`
        compressed  False: raw cells
        background  run at low priority
        notes       JSON that becomes attributes of the group or file

        Returns {file name relative to `directory`: (length in bytes, XXH3-128)}.

        Raises `NotFiniteError` for a NaN or infinite cell, and `OSError` if the disk is full or fails.
        """

    def encoded(self, chunk: np.ndarray, compressed: bool) -> tuple[bytes | memoryview, ...]:
        """Return the bytes of a chunk as a checkpoint stores them, as a tuple of parts to concatenate.

        chunk       row-major, little-endian cells of a whole chunk (`chunk_of`)
        compressed  False: raw cells
        """

    def files_of(self, spec: ArraySpec, files: Sequence[str]) -> list[str]:
        """Return the names of the files that store an array.

        files  names of all files of a checkpoint, relative to its directory
        """

    def open_array(self, directory: Path, spec: ArraySpec, files: Sequence[str]) -> AbstractContextManager[Any]:
        """Open an array of a checkpoint in a `with` block, for reading by slices such as array[2:5].

        spec   schema of the array, from the manifest
        files  names of all files that the manifest lists

        Raises `ValueError` for another shape or dtype, and `DamagedError` for missing or damaged chunks.
        """


def table_format(name: str) -> TableFormat:
    """Return the module of the format `zarr` or `hdf5`; raises `ValueError` for another name."""
    if name not in FORMATS:
        raise ValueError(f"table format {name!r} is not one of {', '.join(FORMATS)}")
    return cast(TableFormat, importlib.import_module(f"storage.{name}_format"))


def compressed_share(
    specs: Sequence[ArraySpec],
    arrays: Mapping[str, np.ndarray],
    name: str,
    change: Callable[[ArraySpec, np.ndarray], np.ndarray] = lambda _spec, chunk: chunk,
) -> float:
    """Estimate the compressed size of tables in a checkpoint, as a share of the bytes of their cells.

    It compresses only the first chunk of each table, for speed. Without tables the share is 1.

    specs, arrays  the schema, and {name: array} with its shapes and dtypes
    name           format, `zarr` or `hdf5`
    change         function of (schema, chunk) that returns the cells to compress in place of the chunk
    """
    layout, stored, cells = table_format(name), 0.0, sum(spec.nbytes for spec in specs)
    for spec in specs:
        shape = split_at_chunks(spec.shape, spec.numpy_dtype.itemsize, CHECKPOINT_CHUNK_BYTES)
        first = (0,) * len(spec.shape)
        pieces = layout.encoded(change(spec, chunk_of(arrays[spec.name], spec, shape, first)), True)
        stored += sum(map(len, pieces)) * spec.nbytes / arrays[spec.name][_corner(shape, first)].nbytes
    return stored / cells if cells else 1.0


def check_layout(spec: ArraySpec, shape: Sequence[int], dtype: np.dtype[Any], where: Path) -> None:
    """Compare the shape and dtype that a file states for an array with the array's schema.

    where  the file, for the message

    Raises:
        ValueError: shape or dtype differ; the message has both.
    """
    if tuple(shape) != spec.shape or dtype != spec.numpy_dtype:
        raise ValueError(
            f"{where}: array {spec.name!r} has shape {tuple(shape)} of {dtype}; the manifest states {spec.shape} of "
            f"{spec.dtype}"
        )


class NotFiniteError(FloatingPointError):
    """A cell is NaN or infinite.

    Attributes:
        name, axes: name of the array, and names of its axes
        index:      index of the cell in the array
    """

    def __init__(self, spec: ArraySpec, index: Sequence[int], value: float) -> None:
        self.name, self.axes, self.index = spec.name, spec.axes, tuple(index)
        where = ", ".join(f"{axis} {position}" for axis, position in zip(spec.axes, index, strict=True))
        super().__init__(f"array {spec.name!r} holds {value} at {where}")


def check_finite(spec: ArraySpec, part: np.ndarray, corner: Sequence[int]) -> None:
    """Raise `NotFiniteError` for the first NaN or infinite cell of a part of an array.

    Args:
        spec:   schema of the array
        part:   a rectangular part of the array
        corner: index of the part's first cell in the array, along each axis
    """
    bad = first_not_finite(part)
    if bad is not None:
        raise NotFiniteError(spec, [first + at for first, at in zip(corner, bad, strict=True)], float(part[bad]))


def first_not_finite(part: np.ndarray) -> tuple[int, ...] | None:
    """Return the index, along each axis, of the first NaN or infinite cell of an array; None without one."""
    if part.dtype.kind != "f":
        return None
    with np.errstate(all="ignore"):
        if np.isfinite(part.sum()):  # one pass without memory: NaN and infinity persist in a sum
            return None
    bad = np.argwhere(~np.isfinite(part))
    return tuple(bad[0].tolist()) if len(bad) else None  # None: the sum overflowed, but all cells are finite


def check_chunks(spec: ArraySpec, chunks: Sequence[int], stored_bytes: int, ratio: int, where: Path) -> None:
    """Check that the sizes of stored chunks are possible for an array, before anything is decoded.

    Args:
        spec:         the array according to the manifest
        chunks:       shape of a chunk
        stored_bytes: size of all chunks on disk
        ratio:        largest factor by which the format's compression can shrink data
        where:        the file, for the message

    Raises:
        DamagedError: the chunks have too few bytes for the array, or a chunk is larger than any that is written.
    """
    chunk_bytes = math.prod(chunks) * spec.numpy_dtype.itemsize
    if chunk_bytes > MOST_CHUNK_BYTES:
        raise DamagedError(f"{where}: a chunk of {chunk_bytes:,} bytes; at most {MOST_CHUNK_BYTES:,} are allowed")
    if stored_bytes * ratio < spec.nbytes:
        raise DamagedError(
            f"{where}: {stored_bytes} stored bytes of array {spec.name!r} cannot hold {spec.nbytes} bytes"
        )


def chunk_positions(shape: Sequence[int], chunk: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the positions of an array's chunks, in chunks along each axis, in row-major order.

    shape, chunk  shapes of the array and of a chunk
    """
    return list(itertools.product(*(range(-(-length // width)) for length, width in zip(shape, chunk, strict=True))))


def _corner(shape: Sequence[int], position: Sequence[int]) -> tuple[slice, ...]:
    """Return the slices that select a chunk from its array.

    shape     shape of a chunk
    position  position of the chunk, counted in chunks along each axis
    """
    return tuple(slice(index * width, (index + 1) * width) for index, width in zip(position, shape, strict=True))


def chunk_of(array: np.ndarray, spec: ArraySpec, shape: Sequence[int], position: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return a chunk of an array as [shape], row-major, little endian, padded with the fill value.

    shape     shape of a chunk
    position  position of the chunk, counted in chunks along each axis

    Raises:
        NotFiniteError: a cell is NaN or infinite.
    """
    corner = _corner(shape, position)
    part = np.ascontiguousarray(array[corner], spec.numpy_dtype)
    check_finite(spec, part, [edge.start for edge in corner])
    if part.shape == tuple(shape):
        return part
    whole = np.full(shape, spec.fill, spec.numpy_dtype)
    whole[tuple(slice(length) for length in part.shape)] = part
    return whole


def blocks(shape: Sequence[int], chunk: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield slices that divide an array into parts of one or a few chunks, in row-major order.

    shape, chunk  shapes of the array and of a chunk
    """
    step = list(chunk)
    if tuple(chunk[1:]) == tuple(shape[1:]):
        step[0] *= _CHUNKS_PER_BLOCK
    starts = (range(0, length, width) for length, width in zip(shape, step, strict=True))
    for corner in itertools.product(*starts):
        yield tuple(
            slice(start, min(start + width, length)) for start, width, length in zip(corner, step, shape, strict=True)
        )
