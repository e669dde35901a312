"""Metadata of Zarr version 3 groups and arrays, as the zarr package writes it, to the byte.

The documents are small and fixed by the specification of the format, and importing zarr takes longer than all else
that a small run does with its tables.  Zarr itself reads them: in tests, when checkpoints are read, and at the user's.
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
    """The file of a chunk, relative to its array."""
    return "/".join(["c", *map(str, position)])


def sharded(spec: ArraySpec, shard: Sequence[int], chunk: Sequence[int]) -> Document:
    """An array in shards of uncompressed chunks, their index behind them; `shard` and `chunk` are shapes."""
    inside = {
        "chunk_shape": list(chunk),
        "codecs": [_bytes(spec)],
        "index_codecs": [_LITTLE, _CRC32C],
        "index_location": "end",
    }
    return _array(spec, shard, [{"name": "sharding_indexed", "configuration": inside}])


def chunked(spec: ArraySpec, chunk: Sequence[int], level: int | None) -> Document:
    """An array in chunks of a shape with a checksum each, compressed by Zstandard where there is a level."""
    zstd = {"name": "zstd", "configuration": {"level": level, "checksum": False}}
    return _array(spec, chunk, [_bytes(spec), *([] if level is None else [zstd]), _CRC32C])


def write_group(root: Path, arrays: Mapping[str, Document], attributes: Mapping[str, Any] | None = None) -> None:
    """Make a group of arrays, by name, without cells: the directory `root`, one for each array, and those between."""
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
    """How cells are laid out; single bytes have no order."""
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
