"""Tables as one HDF5 file.

Live: contiguous datasets, allocated early and aligned, mapped at their offset once the file is closed; the superblock
is never mapped and the file is never open for writing during a run.  In anonymous memory the datasets' cells are
external raw files instead, because HDF5 insists on the real path of its own file, which anonymous memory has not.

Checkpoints: chunks of about 4 MiB, gzip level 1 and Fletcher-32.
"""

import contextlib
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from storage.formats import CHECKPOINT_CHUNK_BYTES, blocks, check_layout
from storage.mapping import HUGE_PAGE_BYTES, Region
from storage.schema import ArraySpec, split_at_chunks

TABLES = "tables.h5"

_METADATA_BYTES = 1 << 16  # generous: superblock, groups and headers of a few dozen arrays
_DEFLATE_RATIO = 1100  # deflate cannot compress by more than about 1032


def _alignment(specs: Sequence[ArraySpec]) -> int:
    """Huge pages where any array fills one; small tables would waste address space with that."""
    return HUGE_PAGE_BYTES if max(spec.nbytes for spec in specs) >= HUGE_PAGE_BYTES else mmap.PAGESIZE


def live_bytes(specs: Sequence[ArraySpec]) -> int:
    """Bytes that live tables take, within a few pages for each array; the gaps between them are not allocated."""
    return sum(spec.nbytes for spec in specs) + _METADATA_BYTES


def _label_axes(dataset: Any, spec: ArraySpec) -> None:
    for dimension, name in zip(dataset.dims, spec.axes, strict=True):
        dimension.label = name


def _create_dataset(file: Any, spec: ArraySpec) -> int:
    """Create one contiguous dataset, allocated at once; return the offset of its cells in the file."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.CONTIGUOUS)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)  # the cells are filled through the mapping, not twice
    dataset = file.create_dataset(spec.name, shape=spec.shape, dtype=spec.numpy_dtype, dcpl=properties)
    _label_axes(dataset, spec)
    offset = dataset.id.get_offset()
    if offset is None or offset == 0 or offset % mmap.PAGESIZE:
        raise OSError(f"{file.filename}: dataset {spec.name!r} lies at {offset}, which cannot be mapped")
    return int(offset)


def create_live(directory: Path, specs: Sequence[ArraySpec]) -> tuple[Region, ...]:
    """Create live tables in one file.

    Args:
        directory: an existing directory, which gets `tables.h5`
        specs:     the arrays

    Returns:
        Where each array's cells lie, in the order of `specs`; all cells are zero.
    """
    path = directory / TABLES
    smallest = min(spec.nbytes for spec in specs)  # so that every dataset is aligned
    with h5py.File(
        path, "x", libver="latest", alignment_threshold=smallest, alignment_interval=_alignment(specs)
    ) as file:
        offsets = [_create_dataset(file, spec) for spec in specs]
    with path.open("r+b") as raw:
        for spec, offset in zip(specs, offsets, strict=True):
            os.posix_fallocate(raw.fileno(), offset, spec.nbytes)
    return tuple(
        Region(spec.name, str(path), offset, spec.nbytes, spec.shape, spec.dtype)
        for spec, offset in zip(specs, offsets, strict=True)
    )


def create_live_anonymous(directory: Path, specs: Sequence[ArraySpec]) -> tuple[tuple[Region, ...], list[int]]:
    """Create live tables in anonymous shared memory: `tables.h5` and, beside it, links to the raw cells it refers to.

    Returns:
        (regions in the order of `specs`, descriptors that keep the memory; the links work while this process has them
        open).
    """
    regions, descriptors = [], []
    try:
        with h5py.File(directory / TABLES, "x", libver="latest") as file:
            for number, spec in enumerate(specs):
                path = directory / f"cells-{number}"
                descriptors.append(os.memfd_create(f"mccfr-{path.name}"))
                os.posix_fallocate(descriptors[-1], 0, spec.nbytes)
                path.symlink_to(f"/proc/{os.getpid()}/fd/{descriptors[-1]}")
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


def write_tables(directory: Path, specs: Sequence[ArraySpec], arrays: Mapping[str, np.ndarray]) -> None:
    """Write the tables of a checkpoint into `directory / "tables.h5"`, a few chunks at a time."""
    with h5py.File(directory / TABLES, "x") as file:
        for spec in specs:
            chunk = split_at_chunks(spec.shape, spec.numpy_dtype.itemsize, CHECKPOINT_CHUNK_BYTES)
            dataset = file.create_dataset(
                spec.name,
                shape=spec.shape,
                dtype=spec.numpy_dtype,
                chunks=chunk,
                compression="gzip",
                compression_opts=1,
                fletcher32=True,
                fillvalue=spec.fill,
            )
            _label_axes(dataset, spec)
            for block in blocks(spec.shape, chunk):
                dataset[block] = arrays[spec.name][block]


def files_of(spec: ArraySpec, files: Sequence[str]) -> list[str]:
    """Those of a checkpoint's `files` that hold the array: the one file of all of them."""
    return [name for name in files if name == TABLES]


@contextlib.contextmanager
def open_array(directory: Path, spec: ArraySpec, files: Sequence[str]) -> Iterator[Any]:
    """Open one array of a checkpoint for reading by slices.

    Args:
        directory: the checkpoint
        spec:      what the manifest states about the array
        files:     the names of the files that the manifest lists

    Raises:
        ValueError: shape or dtype differ from the manifest's.
        OSError: the file is not in the manifest, has no such array or cannot hold its cells.
    """
    path = directory / TABLES
    if TABLES not in files:
        raise OSError(f"{path} is missing from the manifest")
    with h5py.File(path, "r") as file:
        dataset = file.get(spec.name)
        if not isinstance(dataset, h5py.Dataset):
            raise OSError(f"{path} has no array {spec.name!r}")
        check_layout(spec, dataset.shape, dataset.dtype, path)
        stored = dataset.id.get_storage_size()
        if stored * _DEFLATE_RATIO < spec.nbytes:
            raise OSError(f"{path}: {stored} stored bytes of array {spec.name!r} cannot hold {spec.nbytes} bytes")
        yield dataset
