"""Files swapped with those of another checkpoint, of equal names and lengths, are detected."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as array_strategy
from swapping import swaps

from storage import checkpoint, checkpoint_writer, zarr_format
from storage.checksums import CRC32C, cells_checksum
from storage.schema import ArraySpec

SPECS = tuple(
    ArraySpec(f"regret/street{i}/player{j}", (7, 3), "float32", ("bucket", "slot")) for i, j in np.ndindex(2, 2)
)
KINDS = {"": {}, ", raw": {"compressed": False}, ", whole": {"whole": True}}
LAYOUTS = {form + kind: {"format": form, **options} for form in ("zarr", "hdf5") for kind, options in KINDS.items()}


def commit(root, number, seed, **options):
    rng = np.random.default_rng(seed)
    cells = {spec.name: rng.integers(0, 2, spec.shape).astype(np.float32) for spec in SPECS}
    return checkpoint_writer.commit(root, number, SPECS, cells, {"seed": seed % 10}, {"run": 1}, keep=9, **options)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_file_of_another_checkpoint_passes(tmp_path, layout):
    """Swap with an older checkpoint, with another run, and with another player of the same checkpoint."""
    ours, older = (commit(tmp_path / "run", number, number, **LAYOUTS[layout]) for number in (2, 3))
    found = 0
    for other in (older, commit(tmp_path / "other", 2, 12, **LAYOUTS[layout])):
        for name in swaps(ours, other):
            found += 1
            assert checkpoint.verify(ours), name
            with pytest.raises((OSError, ValueError)):
                opened = checkpoint.open_checkpoint(ours)
                for spec in SPECS:
                    opened.read(spec.name)
    for name in swaps(ours / "tables.zarr/regret/street0/player0", ours / "tables.zarr/regret/street1/player1"):
        found += 1
        assert checkpoint.verify(ours), name
    assert checkpoint.verify(ours) == []
    assert found >= (2 if layout == "hdf5" else 4 if "zarr" in layout else 3), found


def test_planted_crc32c_of_chunks_that_end_with_their_crc32c_misses_swaps(tmp_path, monkeypatch):
    """Planted error: the manifest lists chunks by CRC-32C.

    Each chunk ends with its CRC-32C, so the CRC-32C of the whole file is the same for all.
    """
    monkeypatch.setattr(zarr_format, "XXH3", CRC32C)
    monkeypatch.setattr(checkpoint_writer, "XXH3", CRC32C)
    ours, other = (commit(tmp_path / "run", number, number, **LAYOUTS["zarr, raw"]) for number in (2, 3))
    entries = checkpoint.open_checkpoint(ours).files
    assert {file.checksum for name, file in entries.items() if "/c/" in name} == {1214729159}
    assert any(not checkpoint.verify(ours) for name in swaps(ours, other) if "/c/" in name)


@settings(max_examples=60, deadline=None)
@given(
    st.data(), st.sampled_from(["float32", "float64", "uint16", "int64"]), st.sampled_from([(5,), (3, 4), (2, 3, 2)])
)
def test_equal_cells_have_equal_checksums_and_changed_cells_have_others(data, dtype, shape):
    cells = data.draw(array_strategy(dtype, shape, elements={"allow_nan": False} if dtype[0] == "f" else None))
    assert cells_checksum(cells) == cells_checksum(np.asfortranarray(cells).astype(cells.dtype.newbyteorder(">")))
    other = cells.copy()
    raw = other.reshape(-1).view(np.uint8)
    raw[data.draw(st.integers(0, raw.size - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert cells_checksum(cells) != cells_checksum(other)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 20), st.sampled_from(sorted(LAYOUTS)))
def test_the_hash_of_a_manifest_differs_whenever_a_cell_does(tmp_path_factory, seed, place, layout):
    root, rng = tmp_path_factory.mktemp("hashes"), np.random.default_rng(seed)
    cells = {spec.name: rng.integers(-1, 2, spec.shape).astype(np.float32) for spec in SPECS}
    other = {name: array.copy() for name, array in cells.items()}
    other[SPECS[seed % 4].name].reshape(-1)[place] += 1
    hashes = []
    for name, each in (("one", cells), ("same", cells), ("other", other)):
        path = checkpoint_writer.commit(root / name, 1, SPECS, each, {}, {}, keep=1, **LAYOUTS[layout])
        hashes.append(checkpoint.open_checkpoint(path).content_hash)
    assert hashes[2] != hashes[0]
    if "hdf5" not in layout:  # HDF5 files hold timestamps
        assert hashes[0] == hashes[1]
