"""Stores a run's arrays as one HDF5 file: live tables, on which workers train, and checkpoints.

Live tables are contiguous datasets, allocated early and aligned. Each is mapped at its offset after the file is closed.
HDF5's own data (the superblock) are never mapped, and the file is never open for writing during a run. Cells in
anonymous memory are external raw files of the HDF5 file, because HDF5 needs the real path of its own file.

Checkpoints have chunks of about 4 MiB, raw or with gzip and a Fletcher-32 checksum. The manifest has a checksum of the
whole file. Several threads encode the chunks here, because HDF5's own gzip runs in one thread. The deflate strategy is
zlib's Z_RLE: as small as the default for tables, and 2 to 3 times as fast.
"""

import contextlib
import json
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from storage import durable
from storage.checksums import XXH3, Checksum
from storage.damage import DamagedError, decoding, reading
from storage.mapping import HUGE_PAGE_BYTES, Region, allocate, anonymous_file
from storage.schema import ArraySpec, split_at_chunks
from storage.table_formats import CHECKPOINT_CHUNK_BYTES, check_chunks, check_layout, chunk_of, chunk_positions
from storage.threads import ordered

TABLES = "tables.h5"

_METADATA_BYTES = 1 << 16  # enough for superblock, groups and headers of dozens of arrays
_GZIP_LEVEL = 1
_DEFLATE_RATIO = 1100  # deflate cannot compress by more than about 1032


def _alignment(specs: Sequence[ArraySpec]) -> int:
    """Return the alignment, in bytes, of the arrays on which workers train, in their HDF5 file.

    It is 2 MiB (a huge page) if any array is at least as large, otherwise the page size.
    """
    return HUGE_PAGE_BYTES if max(spec.nbytes for spec in specs) >= HUGE_PAGE_BYTES else mmap.PAGESIZE


def live_bytes(specs: Sequence[ArraySpec]) -> int:
    """Return the bytes of memory that live tables take, to within a few pages per array.

    Live tables are the arrays on which a run trains.
    """
    return sum(spec.nbytes for spec in specs) + _METADATA_BYTES


def _note(file: Any, notes: Mapping[str, Any] | None) -> None:
    for name, note in (notes or {}).items():
        file.attrs[name] = note if isinstance(note, str) else json.dumps(note)


def _label_axes(dataset: Any, spec: ArraySpec) -> None:
    for dimension, name in zip(dataset.dims, spec.axes, strict=True):
        dimension.label = name


def _create_dataset(file: Any, spec: ArraySpec) -> int:
    """Create a contiguous dataset in an open HDF5 file; return the byte offset of its cells in the file.

    Raises `OSError` if the offset is not at a memory page, so that the cells cannot be mapped.
    """
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.CONTIGUOUS)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)  # the mapping fills the cells
    dataset = file.create_dataset(spec.name, shape=spec.shape, dtype=spec.numpy_dtype, dcpl=properties)
    _label_axes(dataset, spec)
    offset = dataset.id.get_offset()
    if offset is None or offset == 0 or offset % mmap.PAGESIZE:
        raise OSError(f"{file.filename}: dataset {spec.name!r} lies at {offset}, which cannot be mapped")
    return int(offset)


def create_live(
    directory: Path, specs: Sequence[ArraySpec], notes: Mapping[str, Any] | None = None
) -> tuple[Region, ...]:
    """Create live tables, the arrays on which workers train, in one HDF5 file.

    Args:
        directory: an existing directory, in which `tables.h5` is created
        specs:     the arrays
        notes:     attributes of the file; values that are not text are stored as JSON

    Returns:
        A `Region`, the file and offset of the cells, for each of `specs` in their order; all cells are zero.
    """
    path = directory / TABLES
    smallest = min(spec.nbytes for spec in specs)  # the threshold that aligns every dataset
    with h5py.File(
        path, "x", libver="latest", alignment_threshold=smallest, alignment_interval=_alignment(specs)
    ) as file:
        _note(file, notes)
        offsets = [_create_dataset(file, spec) for spec in specs]
    with path.open("r+b") as raw:
        for spec, offset in zip(specs, offsets, strict=True):
            allocate(raw.fileno(), offset, spec.nbytes)
    return tuple(
        Region(spec.name, str(path), offset, spec.nbytes, spec.shape, spec.dtype)
        for spec, offset in zip(specs, offsets, strict=True)
    )


def create_live_anonymous(directory: Path, specs: Sequence[ArraySpec]) -> tuple[tuple[Region, ...], list[int]]:
    """Create the arrays on which workers train (live tables) in anonymous shared memory.

    `directory` gets `tables.h5`, and a link to the memory of each array, which HDF5 reads as an external raw file.

    Returns:
        (a `Region`, the link and offset of the cells, for each of `specs`; file descriptors). The memory is kept, and
        the links work, while this process has the descriptors open.
    """
    regions, descriptors = [], []
    try:
        with h5py.File(directory / TABLES, "x", libver="latest") as file:
            for number, spec in enumerate(specs):
                path = directory / f"cells-{number}"
                descriptors.append(anonymous_file(path, spec.nbytes))
                dataset = file.create_dataset(
                    spec.name,
                    shape=spec.shape,
                    dtype=spec.numpy_dtype,
                    external=[(str(path), 0, spec.nbytes)],
                    fill_time="never",
                )
                _label_axes(dataset, spec)
                regions.append(Region(spec.name, str(path), 0, spec.nbytes, spec.shape, spec.dtype))
    except BaseException:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return tuple(regions), descriptors


def fletcher32(data: bytes) -> int:
    """Return HDF5's Fletcher-32 checksum, over big-endian 16-bit words; at most 8 MiB of data."""
    words = np.frombuffer(data if len(data) % 2 == 0 else data + b"\0", ">u2").astype(np.int64)
    plain, weighted = int(words.sum()), int(words @ np.arange(len(words), 0, -1))
    # A sum of 0 stays 0; multiples of 65,535 become 65,535, as in HDF5's folding of carries.
    low, high = ((total - 1) % 0xFFFF + 1 if total else 0 for total in (plain, weighted))
    return high << 16 | low


def encoded(chunk: np.ndarray, compressed: bool) -> tuple[bytes | memoryview]:
    """Return a 1-tuple of a chunk's bytes as the file stores them.

    compressed  True: the cells compressed by zlib, followed by a Fletcher-32 checksum; False: raw cells
    """
    raw = chunk.data.cast("B")
    if not compressed:
        return (raw,)
    compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_RLE)
    data = compressor.compress(raw) + compressor.flush()
    return (data + fletcher32(data).to_bytes(4, "little"),)


def write_tables(
    directory: Path,
    specs: Sequence[ArraySpec],
    arrays: Mapping[str, np.ndarray],
    *,
    compressed: bool = True,
    background: bool = False,
    notes: Mapping[str, Any] | None = None,
) -> dict[str, tuple[int, Checksum]]:
    """Write the tables of a checkpoint to `directory / "tables.h5"` durably, a few chunks at a time.

    arrays      {name: array} with the shapes and dtypes of `specs`
    compressed  True: gzip and a Fletcher-32 checksum for each chunk; False: raw cells
    background  encode the chunks at low priority
    notes       attributes of the file; values that are not text are stored as JSON

    Returns {"tables.h5": (length in bytes, XXH3-128)}.

    Raises `NotFiniteError` for a NaN or infinite cell, and `OSError` if the disk is full or fails.
    """
    filters: dict[str, Any] = {"compression": "gzip", "compression_opts": _GZIP_LEVEL, "fletcher32": True}
    with decoding(directory / TABLES, str(directory / TABLES)), h5py.File(directory / TABLES, "x") as file:
        _note(file, notes)
        for spec in specs:
            shape = split_at_chunks(spec.shape, spec.numpy_dtype.itemsize, CHECKPOINT_CHUNK_BYTES)
            dataset = file.create_dataset(
                spec.name,
                shape=spec.shape,
                dtype=spec.numpy_dtype,
                chunks=shape,
                fillvalue=spec.fill,
                **(filters if compressed else {}),
            )
            _label_axes(dataset, spec)
            _write_chunks(dataset, arrays[spec.name], spec, shape, compressed, background)
    return {TABLES: durable.adopt_file(directory / TABLES, kind=XXH3)}


def _write_chunks(
    dataset: Any, array: np.ndarray, spec: ArraySpec, shape: tuple[int, ...], compressed: bool, background: bool
) -> None:
    positions = chunk_positions(spec.shape, shape)
    chunks = ordered(
        lambda position: encoded(chunk_of(array, spec, shape, position), compressed),
        positions,
        background=background,
    )
    for position, (data,) in zip(positions, chunks, strict=True):
        dataset.id.write_direct_chunk(tuple(i * width for i, width in zip(position, shape, strict=True)), data)


def files_of(spec: ArraySpec, files: Sequence[str]) -> list[str]:
    """Return the names of the files that store an array: ["tables.h5"], which stores all arrays.

    files  names of a checkpoint's files; the result is [] if they lack "tables.h5"
    """
    return [name for name in files if name == TABLES]


def _opened(path: Path) -> h5py.File:
    """Open an HDF5 file for reading.

    HDF5 hides the system's error if it cannot look up the file; `Path.stat` then raises that error.
    """
    try:
        return h5py.File(path, "r")
    except OSError as error:
        if "stat info" not in str(error):
            raise
        path.stat()
        return h5py.File(path, "r")


def _own_dataset(file: Any, name: str, path: Path) -> Any:
    """Return the dataset `name` of an open HDF5 file; check that its cells are in this file.

    The manifest's checksum covers this file only. Raises `DamagedError` for external and soft links, virtual datasets,
    external raw files, and missing datasets.
    """
    parts = name.split("/")
    for depth in range(1, len(parts) + 1):
        group_name = "/".join(parts[:depth])
        link = file.get(group_name, getlink=True)
        if link is None:
            raise DamagedError(f"{path} has no array {name!r}")
        if not isinstance(link, h5py.HardLink):
            raise DamagedError(f"{path}: {group_name} is not a hard link, so checksums do not cover its data")
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset):
        raise DamagedError(f"{path} has no array {name!r}")
    if dataset.chunks is None:
        raise DamagedError(f"{path}: array {name!r} is not stored in chunks of this file, as those of checkpoints are")
    return dataset


@contextlib.contextmanager
def open_array(directory: Path, spec: ArraySpec, files: Sequence[str]) -> Iterator[Any]:
    """Open an array of a checkpoint in a `with` block, for reading by slices such as array[2:5].

    Args:
        directory: the checkpoint
        spec:      the array's schema, from the manifest
        files:     names of the files that the manifest lists

    Raises:
        ValueError: shape or dtype differ from the manifest's.
        DamagedError: the file is not in the manifest, does not store the array in chunks, or is too short for its
            cells. Also raised in the `with` block for data that cannot be decoded.
        UnreadableError: the system cannot read the file.
    """
    path = directory / TABLES
    if TABLES not in files:
        raise DamagedError(f"{path} is missing from the manifest")
    with reading(path), decoding(path, f"{path} cannot be read"), _opened(path) as file:
        dataset = _own_dataset(file, spec.name, path)
        check_layout(spec, dataset.shape, dataset.dtype, path)
        check_chunks(spec, dataset.chunks, dataset.id.get_storage_size(), _DEFLATE_RATIO, path)
        yield dataset
