"""Tables as Zarr version 3 arrays.

Live: one shard without compression, so that the shard's file is the raw row-major cells from byte 0, padded to whole
inner chunks, and then the shard's index.  Such a file can be mapped into memory and is an ordinary Zarr array to every
reader.  Nothing writes a live array through zarr: that would replace the file under the mappings.  So zarr is imported
where checkpoints are read, and nowhere else.

Checkpoints: chunks of about 4 MiB, Zstandard level 1 without shuffling (the best of what was measured on young
tables) or nothing, and a CRC-32C after it.  The chunks are encoded and written here, by several threads, in the form
that zarr gives them: writing through zarr costs several times as much processor time.  What the manifest says of their
files is a checksum of another kind: a CRC-32C of what ends with its CRC-32C is the same for all.
"""

import contextlib
import functools
import itertools
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
from storage.formats import CHECKPOINT_CHUNK_BYTES, check_chunks, check_layout, chunk_of
from storage.json_files import read_json
from storage.mapping import Region
from storage.schema import ArraySpec, split_at_chunks
from storage.threads import ordered
from storage.zarr_metadata import FILE, chunk_key, chunked, sharded, write_group

TABLES = "tables.zarr"

_LEVEL = 1
_METADATA_BYTES = 1 << 20  # of an array's zarr.json, generously
_ZSTD_RATIO = 1 << 15  # a block of one repeated byte: 128 kB in four
_INNER_CHUNK_BYTES = 1 << 20
_INDEX_ENTRY_BYTES = 16


def _inner_rows(spec: ArraySpec) -> int:
    """Rows of the first axis in one inner chunk; only whole rows keep the shard row-major."""
    row_bytes = spec.nbytes // spec.shape[0]
    return min(spec.shape[0], max(1, _INNER_CHUNK_BYTES // row_bytes))


def _shard_bytes(spec: ArraySpec) -> tuple[int, int]:
    """(bytes of the padded cells, number of inner chunks)."""
    rows = _inner_rows(spec)
    chunks = -(-spec.shape[0] // rows)
    return chunks * rows * (spec.nbytes // spec.shape[0]), chunks


def _index(spec: ArraySpec) -> bytes:
    """The shard's index: offset and length of every inner chunk, little endian, and their checksum."""
    padded, chunks = _shard_bytes(spec)
    length = padded // chunks
    entries = np.empty((chunks, 2), "<u8")
    entries[:, 0] = np.arange(chunks, dtype="<u8") * np.uint64(length)
    entries[:, 1] = length
    index = entries.tobytes()
    return index + crc32c.crc32c(index).to_bytes(4, "little")


def live_bytes(specs: Sequence[ArraySpec]) -> int:
    """Bytes that live tables take, within a few pages for each array."""
    return sum(padded + chunks * _INDEX_ENTRY_BYTES + 4 for padded, chunks in map(_shard_bytes, specs))


def _create_arrays(
    root: Path, specs: Sequence[ArraySpec], notes: Mapping[str, Any] | None = None
) -> Iterator[tuple[ArraySpec, Path]]:
    """Write the metadata of live arrays; each with the path of its shard, whose directory is made."""
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
    os.posix_fallocate(descriptor, 0, padded + len(index))
    os.pwrite(descriptor, index, padded)


def create_live(
    directory: Path, specs: Sequence[ArraySpec], notes: Mapping[str, Any] | None = None
) -> tuple[Region, ...]:
    """Create live tables as files.

    Args:
        directory: an existing directory, which gets `tables.zarr`
        specs:     the arrays
        notes:     become attributes of the group

    Returns:
        Where each array's cells lie, in the order of `specs`; all cells are zero.
    """
    regions = []
    for spec, path in _create_arrays(directory / TABLES, specs, notes):
        with path.open("xb") as file:
            _fill_shard(file.fileno(), spec)
        regions.append(Region(spec.name, str(path), 0, spec.nbytes, spec.shape, spec.dtype))
    return tuple(regions)


def create_live_anonymous(directory: Path, specs: Sequence[ArraySpec]) -> tuple[tuple[Region, ...], list[int]]:
    """Create live tables in anonymous shared memory, with links in `directory` that make a Zarr group of it.

    Returns:
        (regions in the order of `specs`, descriptors that keep the memory; the links work while this process has them
        open).
    """
    regions, descriptors = [], []
    try:
        for spec, path in _create_arrays(directory / TABLES, specs):
            descriptors.append(os.memfd_create(f"mccfr-{path.parent.name}"))
            _fill_shard(descriptors[-1], spec)
            path.symlink_to(f"/proc/{os.getpid()}/fd/{descriptors[-1]}")
            regions.append(Region(spec.name, str(path), 0, spec.nbytes, spec.shape, spec.dtype))
    except BaseException:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
    return tuple(regions), descriptors


def write_tables(
    directory: Path,
    specs: Sequence[ArraySpec],
    arrays: Mapping[str, np.ndarray],
    *,
    compressed: bool = True,
    background: bool = False,
    notes: Mapping[str, Any] | None = None,
) -> dict[str, tuple[int, Checksum]]:
    """Write the tables of a checkpoint into `directory / "tables.zarr"`, a few chunks at a time, all of it durable.

    All-zero chunks are written too, so that a file that is not there is always a file that was lost.  `notes` become
    attributes of the group.

    Returns:
        {name of each file relative to `directory`: (length in bytes, XXH3-128)}.
    """
    from numcodecs.zstd import Zstd  # type: ignore[import-untyped]

    root, level = directory / TABLES, _LEVEL if compressed else None
    shapes = {spec: split_at_chunks(spec.shape, spec.numpy_dtype.itemsize, CHECKPOINT_CHUNK_BYTES) for spec in specs}
    write_group(root, {spec.name: chunked(spec, shape, level) for spec, shape in shapes.items()}, notes)
    chunks: list[tuple[Path, ArraySpec, tuple[int, ...], tuple[int, ...]]] = []
    for spec, shape in shapes.items():
        grid = (range(-(-length // width)) for length, width in zip(spec.shape, shape, strict=True))
        for position in itertools.product(*grid):
            chunks.append((root / spec.name / chunk_key(position), spec, shape, position))
    files = durable.adopt_tree(root, kind=XXH3)
    folders = _make_folders(chunk[0].parent for chunk in chunks)

    def write(chunk: tuple[Path, ArraySpec, tuple[int, ...], tuple[int, ...]]) -> tuple[str, tuple[int, Checksum]]:
        path, spec, shape, position = chunk
        encoded = chunk_of(arrays[spec.name], spec, shape, position).data.cast("B")
        if compressed:
            encoded = memoryview(Zstd(level=_LEVEL).encode(encoded))
        pieces = (encoded, crc32c.crc32c(encoded).to_bytes(4, "little"))
        return path.relative_to(directory).as_posix(), durable.write_file(path, pieces, XXH3)

    files.update(ordered(write, chunks, background=background))
    for _ in ordered(durable.fsync_dir, folders, background=background):
        pass
    return files


def _make_folders(wanted: Iterable[Path]) -> list[Path]:
    """Make the directories that are missing; return all whose entries are to be fsynced, the deepest first."""
    changed: dict[Path, None] = {}
    for folder in wanted:
        changed[folder] = None
        missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        for path in reversed(missing):
            durable.make_dir(path)
            changed[path] = changed[path.parent] = None
    return sorted(changed, key=lambda path: len(path.parts), reverse=True)


def files_of(spec: ArraySpec, files: Sequence[str]) -> list[str]:
    """Those of a checkpoint's `files` that hold the array: its metadata and its chunks."""
    prefix = f"{TABLES}/{spec.name}/"
    return [name for name in files if name.startswith(prefix)]


@contextlib.contextmanager
def open_array(directory: Path, spec: ArraySpec, files: Sequence[str]) -> Iterator[Any]:
    """Open one array of a checkpoint for reading by slices.

    Args:
        directory: the checkpoint
        spec:      what the manifest states about the array
        files:     the names of the files that the manifest lists

    Raises:
        ValueError: shape or dtype differ from the manifest's.
        DamagedError: the metadata is no array's, the manifest or the directory lacks a chunk, which zarr would read as
            zeros, or the chunks are too short for what they should hold; also where what is read inside the `with`
            statement cannot be decoded.
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
        raise DamagedError(f"{path} is stored in shards, and checkpoints have none")
    listed = set(files_of(spec, files))
    grid = [range(-(-length // width)) for length, width in zip(array.shape, array.chunks, strict=True)]
    if math.prod(map(len, grid)) > len(listed):
        raise DamagedError(
            f"{path}: {math.prod(map(len, grid))} chunks are needed and the manifest lists {len(listed)} files"
        )
    stored = 0
    for position in itertools.product(*grid):
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
    """Return a class of stores in which a chunk that is missing is damage, where zarr would read fill values."""
    from zarr.storage import LocalStore

    class WholeStore(LocalStore):
        async def get(self, key: str, *arguments: Any, **options: Any) -> Any:
            found = await super().get(key, *arguments, **options)
            if found is None:
                raise DamagedError(f"{self.root / key} is missing")
            return found

    return WholeStore
