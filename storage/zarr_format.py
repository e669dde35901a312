"""Stores the arrays of a run as Zarr version 3 arrays: live tables and checkpoints.

Workers train on live tables. A live array is one file, in Zarr's terms an uncompressed shard of several inner chunks.
It has the raw row-major cells from byte 0, padded to whole inner chunks, then an index of the chunks. The file can be
mapped and is a normal Zarr array for readers. Writing it through zarr would replace the file under its mappings, so
zarr is only imported to read checkpoints.

Checkpoints have chunks of about 4 MiB, each followed by a CRC-32C. They are raw, or compressed by Zstandard level 1
without shuffling, the best that was measured on tables early in training. Several threads encode and write the chunks
here, because writing through zarr takes several times the processor time. The manifest has the XXH3-128 of each file.
A CRC-32C of data followed by their own CRC-32C is a constant, which would be the same for all chunks.
"""

import contextlib
import functools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import crc32c
import numpy as np

from storage import durable
from storage.checksums import XXH3, Checksum
from storage.damage import DamagedError, decoding, reading
from storage.json_files import read_json
from storage.mapping import Region, allocate, anonymous_file
from storage.schema import ArraySpec, split_at_chunks
from storage.table_formats import CHECKPOINT_CHUNK_BYTES, check_chunks, check_layout, chunk_of, chunk_positions
from storage.threads import ordered
from storage.zarr_metadata import FILE, chunk_key, chunked, sharded, write_group

TABLES = "tables.zarr"

_LEVEL = 1
_METADATA_BYTES = 1 << 20  # limit for an array's zarr.json
_ZSTD_RATIO = 1 << 15  # a block of one repeated byte: 128 kB in four bytes
_INNER_CHUNK_BYTES = 1 << 20
_INDEX_ENTRY_BYTES = 16


def _inner_rows(spec: ArraySpec) -> int:
    """Return how many rows (indices of the first axis) each chunk inside of a live array's file has.

    A chunk has at most 1 MiB, or one row. Only chunks of whole rows keep the cells of the file in row-major order.
    """
    row_bytes = spec.nbytes // spec.shape[0]
    return min(spec.shape[0], max(1, _INNER_CHUNK_BYTES // row_bytes))


def _shard_bytes(spec: ArraySpec) -> tuple[int, int]:
    """Return (bytes of a live array's cells in its file, number of chunks in the file).

    The cells are padded to whole chunks.
    """
    rows = _inner_rows(spec)
    chunks = -(-spec.shape[0] // rows)
    return chunks * rows * (spec.nbytes // spec.shape[0]), chunks


def _index(spec: ArraySpec) -> bytes:
    """Return the index at the end of a live array's shard, by which Zarr finds the inner chunks.

    It has offset and length of each inner chunk as little-endian uint64, then a CRC-32C.
    """
    padded, chunks = _shard_bytes(spec)
    length = padded // chunks
    entries = np.empty((chunks, 2), "<u8")
    entries[:, 0] = np.arange(chunks, dtype="<u8") * np.uint64(length)
    entries[:, 1] = length
    index = entries.tobytes()
    return index + crc32c.crc32c(index).to_bytes(4, "little")


def live_bytes(specs: Sequence[ArraySpec]) -> int:
    """Return the bytes of memory that live tables take, to within a few pages per array.

    Live tables are the arrays on which a run trains.
    """
    return sum(padded + chunks * _INDEX_ENTRY_BYTES + 4 for padded, chunks in map(_shard_bytes, specs))


def _create_arrays(
    root: Path, specs: Sequence[ArraySpec], notes: Mapping[str, Any] | None = None
) -> Iterator[tuple[ArraySpec, Path]]:
    """Create the Zarr group `root` with the metadata of live arrays, without cells.

    Workers train on live arrays; each is stored in one file, its shard.

    Yields for each array (schema, path of its shard). The shard's file is not created, but its directory is.
    """
    documents = {}
    for spec in specs:
        rows = _inner_rows(spec)
        padded_rows = -(-spec.shape[0] // rows) * rows
        documents[spec.name] = sharded(spec, (padded_rows, *spec.shape[1:]), (rows, *spec.shape[1:]))
    write_group(root, documents, notes)
    for spec in specs:
        path = root / spec.name / chunk_key((0,) * len(spec.shape))
        path.parent.mkdir(parents=True)
        yield spec, path


def _fill_shard(descriptor: int, spec: ArraySpec) -> None:
    (padded, _), index = _shard_bytes(spec), _index(spec)
    allocate(descriptor, 0, padded + len(index))
    os.pwrite(descriptor, index, padded)


def create_live(
    directory: Path, specs: Sequence[ArraySpec], notes: Mapping[str, Any] | None = None
) -> tuple[Region, ...]:
    """Create live tables, the arrays on which workers train, as files of a Zarr group.

    Args:
        directory: an existing directory, in which `tables.zarr` is created
        specs:     the arrays
        notes:     JSON attributes of the Zarr group

    Returns:
        A `Region`, the file and offset of the cells, for each of `specs` in their order; all cells are zero.
    """
    regions = []
    for spec, path in _create_arrays(directory / TABLES, specs, notes):
        with path.open("x+b") as file:
            _fill_shard(file.fileno(), spec)
        regions.append(Region(spec.name, str(path), 0, spec.nbytes, spec.shape, spec.dtype))
    return tuple(regions)


def create_live_anonymous(directory: Path, specs: Sequence[ArraySpec]) -> tuple[tuple[Region, ...], list[int]]:
    """Create the arrays on which workers train in anonymous memory, as a Zarr group in `directory`.

    The arrays' files are links to the memory.

    Returns:
        (a `Region`, the link and offset of the cells, for each of `specs`; file descriptors). The memory is kept, and
        the links work, while this process has the descriptors open.
    """
    regions, descriptors = [], []
    try:
        for spec, path in _create_arrays(directory / TABLES, specs):
            descriptors.append(anonymous_file(path, 1))
            _fill_shard(descriptors[-1], spec)
            regions.append(Region(spec.name, str(path), 0, spec.nbytes, spec.shape, spec.dtype))
    except BaseException:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return tuple(regions), descriptors


def encoded(chunk: np.ndarray, compressed: bool) -> tuple[bytes | memoryview, bytes]:
    """Return (cells, CRC-32C of these bytes), which the file of a chunk has one after the other.

    compressed  True: the cells compressed by Zstandard; False: raw
    """
    from numcodecs.zstd import Zstd  # type: ignore[import-untyped]

    cells = chunk.data.cast("B")
    if compressed:
        cells = memoryview(Zstd(level=_LEVEL).encode(cells))
    return cells, crc32c.crc32c(cells).to_bytes(4, "little")


def write_tables(
    directory: Path,
    specs: Sequence[ArraySpec],
    arrays: Mapping[str, np.ndarray],
    *,
    compressed: bool = True,
    background: bool = False,
    notes: Mapping[str, Any] | None = None,
) -> dict[str, tuple[int, Checksum]]:
    """Write the tables of a checkpoint to `directory / "tables.zarr"` durably, a few chunks at a time.

    All-zero chunks are written too, so that an absent file is always a lost one.

    arrays      {name: array} with the shapes and dtypes of `specs`
    compressed  True: Zstandard; False: raw cells
    background  compress and write at low priority
    notes       JSON attributes of the Zarr group

    Returns {file name relative to `directory`: (length in bytes, XXH3-128)}.

    Raises `NotFiniteError` for a NaN or infinite cell, and `OSError` if the disk is full or fails.
    """
    root, level = directory / TABLES, _LEVEL if compressed else None
    shapes = {spec: split_at_chunks(spec.shape, spec.numpy_dtype.itemsize, CHECKPOINT_CHUNK_BYTES) for spec in specs}
    write_group(root, {spec.name: chunked(spec, shape, level) for spec, shape in shapes.items()}, notes)
    chunks: list[tuple[Path, ArraySpec, tuple[int, ...], tuple[int, ...]]] = []
    for spec, shape in shapes.items():
        for position in chunk_positions(spec.shape, shape):
            chunks.append((root / spec.name / chunk_key(position), spec, shape, position))
    files = durable.adopt_tree(root, kind=XXH3)
    folders = _make_folders(chunk[0].parent for chunk in chunks)

    def write(chunk: tuple[Path, ArraySpec, tuple[int, ...], tuple[int, ...]]) -> tuple[str, tuple[int, Checksum]]:
        path, spec, shape, position = chunk
        pieces = encoded(chunk_of(arrays[spec.name], spec, shape, position), compressed)
        return path.relative_to(directory).as_posix(), durable.write_file(path, pieces, XXH3)

    files.update(ordered(write, chunks, background=background))
    for _ in ordered(durable.fsync_dir, folders, background=background):
        pass
    return files


def _make_folders(folders: Iterable[Path]) -> list[Path]:
    """Create those of the directories `folders`, and of their parents, that are missing.

    Returns the directories that need an fsync, the deepest first: `folders`, the created ones and their parents.
    """
    changed: dict[Path, None] = {}
    for folder in folders:
        changed[folder] = None
        for path in reversed(durable.missing_dirs(folder)):
            durable.make_dir(path)
            changed[path] = changed[path.parent] = None
    return sorted(changed, key=lambda path: len(path.parts), reverse=True)


def files_of(spec: ArraySpec, files: Sequence[str]) -> list[str]:
    """Return the names of the files that store an array: its metadata and its chunks.

    files  names of all files of a checkpoint, relative to its directory
    """
    prefix = f"{TABLES}/{spec.name}/"
    return [name for name in files if name.startswith(prefix)]


@contextlib.contextmanager
def open_array(directory: Path, spec: ArraySpec, files: Sequence[str]) -> Iterator[Any]:
    """Open an array of a checkpoint in a `with` block, for reading by slices such as array[2:5].

    Args:
        directory: the checkpoint
        spec:      the array's schema, from the manifest
        files:     names of the files that the manifest lists

    Raises:
        ValueError: shape or dtype differ from the manifest's.
        DamagedError: the metadata is invalid, a chunk is missing (zarr would read zeros), or the chunks are too short
            for the array. Also raised in the `with` block for data that cannot be decoded.
        UnreadableError: the system cannot read a file.
    """
    import zarr

    path = directory / TABLES / spec.name
    try:
        read_json(path / FILE, _METADATA_BYTES)
        with reading(path), decoding(path, f"{path} holds no array that can be read"):
            array = zarr.open_array(_whole_store()(path), mode="r", zarr_format=3)
    except ValueError as error:
        raise DamagedError(f"{path} holds no array that can be read: {error}") from error
    check_layout(spec, array.shape, array.dtype, path)
    if array.shards is not None:
        raise DamagedError(f"{path} is stored in shards, and checkpoints are not stored so")
    listed = set(files_of(spec, files))
    needed = math.prod(-(-length // width) for length, width in zip(array.shape, array.chunks, strict=True))
    if needed > len(listed):
        raise DamagedError(f"{path}: {needed} chunks are needed and the manifest lists {len(listed)} files")
    stored = 0
    for position in chunk_positions(array.shape, array.chunks):
        key = array.metadata.encode_chunk_key(position)
        if f"{TABLES}/{spec.name}/{key}" not in listed:
            raise DamagedError(f"{path}: chunk {key} is missing from the manifest")
        with reading():
            stored += (path / key).stat().st_size
    check_chunks(spec, array.chunks, stored, _ZSTD_RATIO, path)
    with reading(path), decoding(path, f"{path} cannot be read"):
        yield array


@functools.cache
def _whole_store() -> Any:
    """Return a zarr store class whose reading raises `DamagedError` for a missing chunk.

    zarr's own class would give fill values.
    """
    from zarr.storage import LocalStore

    class CompleteStore(LocalStore):
        async def get(self, key: str, *arguments: Any, **options: Any) -> Any:
            chunk = await super().get(key, *arguments, **options)
            if chunk is None:
                raise DamagedError(f"{self.root / key} is missing")
            return chunk

    return CompleteStore
