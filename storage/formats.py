"""What the two table formats have in common, and the one place that loads them.

zarr and h5py are slow to import, so a format's module is loaded when a table of that format is first needed.
"""

import importlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from storage.checksums import Checksum
from storage.damage import DamagedError
from storage.mapping import Region
from storage.schema import ArraySpec

FORMATS = ("zarr", "hdf5")

CHECKPOINT_CHUNK_BYTES = 4 << 20
MOST_CHUNK_BYTES = 64 << 20
"""Of a chunk that is read: far above any that is written, far below what could exhaust memory."""
_CHUNKS_PER_BLOCK = 4


class TableFormat(Protocol):
    """What a format module offers.  `directory` is always the directory that holds the tables."""

    TABLES: str  # name of the tables inside the directory: `tables.zarr` or `tables.h5`

    def live_bytes(self, specs: Sequence[ArraySpec]) -> int:
        """Bytes that live tables take, within a few pages for each array."""

    def create_live(
        self, directory: Path, specs: Sequence[ArraySpec], notes: Mapping[str, Any] | None = None
    ) -> tuple[Region, ...]:
        """Create the live tables as files in `directory`, filled with zeros; `notes` as in `write_tables`."""

    def create_live_anonymous(
        self, directory: Path, specs: Sequence[ArraySpec]
    ) -> tuple[tuple[Region, ...], list[int]]:
        """Create the live tables in anonymous memory, with links to it in `directory`; also the open descriptors."""

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
        """Write the checksummed tables of a checkpoint, chunk by chunk, all of it durable.

        `background`: give way to whoever else wants the processors.  `notes`: JSON that becomes attributes of the
        whole.  Returns {name of each file relative to `directory`: (length in bytes, XXH3-128)}.
        """

    def files_of(self, spec: ArraySpec, files: Sequence[str]) -> list[str]:
        """Those of a checkpoint's `files` (relative to its directory) that hold the array."""

    def open_array(self, directory: Path, spec: ArraySpec, files: Sequence[str]) -> AbstractContextManager[Any]:
        """The array for reading by slices, once its shape, dtype and pieces agree with `spec` and `files`."""


def table_format(name: str) -> TableFormat:
    """Return the module of the format `zarr` or `hdf5`; ValueError for any other name."""
    if name not in FORMATS:
        raise ValueError(f"table format {name!r} is not one of {', '.join(FORMATS)}")
    return cast(TableFormat, importlib.import_module(f"storage.{name}_format"))


def check_layout(spec: ArraySpec, shape: Sequence[int], dtype: np.dtype[Any], where: Path) -> None:
    """Compare what a file states with the schema, before anything is allocated.

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
        name, axes: of the array
        index:      of the cell
    """

    def __init__(self, spec: ArraySpec, index: Sequence[int], value: float) -> None:
        self.name, self.axes, self.index = spec.name, spec.axes, tuple(index)
        where = ", ".join(f"{axis} {place}" for axis, place in zip(spec.axes, index, strict=True))
        super().__init__(f"array {spec.name!r} holds {value} at {where}")


def check_finite(spec: ArraySpec, part: np.ndarray, corner: Sequence[int]) -> None:
    """Raise `NotFiniteError` for the first cell of a part of an array that is NaN or infinite.

    Args:
        spec:   of the array
        part:   some of its cells
        corner: index of the part's first cell in the array
    """
    bad = first_not_finite(part)
    if bad is not None:
        raise NotFiniteError(spec, [first + at for first, at in zip(corner, bad, strict=True)], float(part[bad]))


def first_not_finite(part: np.ndarray) -> tuple[int, ...] | None:
    """Index of the first cell that is NaN or infinite; None where there is none."""
    if part.dtype.kind != "f":
        return None
    with np.errstate(all="ignore"):
        if np.isfinite(part.sum()):  # one pass, no memory: what is not finite stays so in a sum
            return None
    bad = np.argwhere(~np.isfinite(part))
    return tuple(bad[0].tolist()) if len(bad) else None  # none: the sum has overflowed, and no cell


def check_chunks(spec: ArraySpec, chunks: Sequence[int], stored_bytes: int, ratio: int, where: Path) -> None:
    """Compare what the chunks of a file would decode to with what is stored, before anything is decoded.

    Args:
        spec:         what the manifest states about the array
        chunks:       shape of a chunk
        stored_bytes: of all chunks, as they lie on the disk
        ratio:        most that the compression can achieve
        where:        the file

    Raises:
        DamagedError: there are too few bytes for the array, or one chunk is larger than any that is written.
    """
    chunk_bytes = math.prod(chunks) * spec.numpy_dtype.itemsize
    if chunk_bytes > MOST_CHUNK_BYTES:
        raise DamagedError(f"{where}: a chunk of {chunk_bytes:,} bytes; at most {MOST_CHUNK_BYTES:,} are allowed")
    if stored_bytes * ratio < spec.nbytes:
        raise DamagedError(
            f"{where}: {stored_bytes} stored bytes of array {spec.name!r} cannot hold {spec.nbytes} bytes"
        )


def chunk_of(array: np.ndarray, spec: ArraySpec, shape: Sequence[int], position: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return one chunk of an array [shape], row-major, little endian; beyond the array's edge it is filled up.

    Raises:
        NotFiniteError: a cell is NaN or infinite.
    """
    corner = tuple(slice(index * width, (index + 1) * width) for index, width in zip(position, shape, strict=True))
    part = np.ascontiguousarray(array[corner], spec.numpy_dtype)
    check_finite(spec, part, [edge.start for edge in corner])
    if part.shape == tuple(shape):
        return part
    whole = np.full(shape, spec.fill, spec.numpy_dtype)
    whole[tuple(slice(length) for length in part.shape)] = part
    return whole


def blocks(shape: Sequence[int], chunk: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield slices that cover an array in row-major order, each made of a few whole chunks."""
    step = list(chunk)
    if tuple(chunk[1:]) == tuple(shape[1:]):
        step[0] *= _CHUNKS_PER_BLOCK
    starts = (range(0, length, width) for length, width in zip(shape, step, strict=True))
    for corner in itertools.product(*starts):
        yield tuple(
            slice(start, min(start + width, length)) for start, width, length in zip(corner, step, shape, strict=True)
        )
