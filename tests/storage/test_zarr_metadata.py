"""Zarr metadata written without the zarr package: equal to the package's, byte for byte.

Shows:

* Tables have the metadata and chunks that the zarr package writes
  (test_metadata_documents_equal_those_that_zarr_writes, test_chunks_equal_those_that_zarr_writes)
"""

import numpy as np
import pytest
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from storage import zarr_metadata as metadata
from storage.schema import ALLOWED_DTYPES, ArraySpec

SPECS = [
    *(ArraySpec(f"kinds/{name}", (10, 3), name, ("row", "column")) for name in ALLOWED_DTYPES),
    ArraySpec("kinds/deep/down", (7,), "float32", ("cell",), fill=-0.5),
    ArraySpec("endless", (2, 2, 2), "float64", ("a", "b", "c"), fill=np.inf),
    ArraySpec("bottomless", (1,), "float32", ("cell",), fill=-np.inf),
    ArraySpec("full", (9,), "uint64", ("cell",), fill=2**64 - 1),
]
OPTIONS = {"live": [], "compressed": [ZstdCodec(level=1), Crc32cCodec()], "raw": [Crc32cCodec()]}


def documents(root):
    return {path.relative_to(root): path.read_text() for path in root.rglob("zarr.json")}


@pytest.mark.parametrize("layout", OPTIONS)
def test_metadata_documents_equal_those_that_zarr_writes(layout, tmp_path):
    wanted, group = {}, zarr.create_group(tmp_path / "zarr")
    for spec in SPECS:
        chunk = (max(1, spec.shape[0] // 2), *spec.shape[1:])
        shard, live = (2 * chunk[0], *chunk[1:]), layout == "live"
        kind = {"shape": spec.shape, "dtype": spec.numpy_dtype, "fill_value": spec.fill, "dimension_names": spec.axes}
        form = {"chunks": chunk, "shards": shard if live else None, "filters": None, "compressors": OPTIONS[layout]}
        group.create_array(spec.name, **kind, **form)
        level = 1 if layout == "compressed" else None
        wanted[spec.name] = metadata.sharded(spec, shard, chunk) if live else metadata.chunked(spec, chunk, level)
    metadata.write_group(tmp_path / "ours", wanted)
    assert documents(tmp_path / "ours") == documents(tmp_path / "zarr")
    assert len(documents(tmp_path / "ours")) == len(SPECS) + 3  # and three groups: the root, kinds and kinds/deep
