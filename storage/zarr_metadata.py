"""Writes metadata of Zarr version 3 groups and arrays, byte for byte as the zarr package does.

The documents are small and fixed by the format's specification, while importing zarr takes longer than all other table
work of a small run. zarr itself reads them in tests, in checkpoints, and in users' programs.
"""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path, PurePosixPath
from typing import Any

from storage.schema import ArraySpec

FILE = "zarr.json"
Document = dict[str, Any]

_GROUP: Document = {"attributes": {}, "zarr_format": 3, "node_type": "group"}
_LITTLE: Document = {"name": "bytes", "configuration": {"endian": "little"}}
_CRC32C: Document = {"name": "crc32c"}


def chunk_key(position: Sequence[int]) -> str:
    """Return the path of a chunk's file, such as "c/0/2", relative to its array's directory.

    position  position of the chunk, counted in chunks along each axis
    """
    return "/".join(["c", *map(str, position)])


def sharded(spec: ArraySpec, shard: Sequence[int], chunk: Sequence[int]) -> Document:
    """Return the metadata of an array stored in shards: the content of `zarr.json` as a dictionary.

    A shard is a file with several uncompressed chunks and, at its end, their index.

    shard, chunk  shapes of a shard and of a chunk
    """
    inside = {
        "chunk_shape": list(chunk),
        "codecs": [_bytes(spec)],
        "index_codecs": [_LITTLE, _CRC32C],
        "index_location": "end",
    }
    return _array(spec, shard, [{"name": "sharding_indexed", "configuration": inside}])


def chunked(spec: ArraySpec, chunk: Sequence[int], level: int | None) -> Document:
    """Return the metadata, the content of `zarr.json` as a dictionary, of an array stored in chunks.

    Each chunk is a file of its own that ends with a CRC-32C.

    chunk  shape of a chunk
    level  Zstandard level; None: uncompressed
    """
    zstd = {"name": "zstd", "configuration": {"level": level, "checksum": False}}
    return _array(spec, chunk, [_bytes(spec), *([] if level is None else [zstd]), _CRC32C])


def write_group(root: Path, arrays: Mapping[str, Document], attributes: Mapping[str, Any] | None = None) -> None:
    """Create a Zarr group without cells: directories and metadata of groups and arrays.

    root        directory of the group, which must not exist
    arrays      {path of the array in the group: content of its `zarr.json`, from `sharded` or `chunked`}
    attributes  JSON for readers of the group
    """
    root.mkdir()
    _write(root, _GROUP | {"attributes": dict(attributes or {})})
    for name, document in arrays.items():
        for folder in reversed(PurePosixPath(name).parents):
            if not (root / folder).exists():
                (root / folder).mkdir()
                _write(root / folder, _GROUP)
        (root / name).mkdir()
        _write(root / name, document)


def _write(directory: Path, document: Document) -> None:
    (directory / FILE).write_text(json.dumps(document, indent=2))


def _bytes(spec: ArraySpec) -> Document:
    """Return Zarr's metadata on the byte order of an array: little endian, or none for cells of one byte."""
    return _LITTLE if spec.numpy_dtype.itemsize > 1 else {"name": "bytes"}


def _array(spec: ArraySpec, chunk: Sequence[int], codecs: list[Document]) -> Document:
    return {
        "shape": list(spec.shape),
        "data_type": spec.dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": _fill(spec),
        "codecs": codecs,
        "attributes": {},
        "dimension_names": list(spec.axes),
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }


def _fill(spec: ArraySpec) -> int | float | str:
    if spec.numpy_dtype.kind != "f":
        return int(spec.fill)
    return float(spec.fill) if isfinite(spec.fill) else "Infinity" if spec.fill > 0 else "-Infinity"
