"""Arrays stored as contiguous cells: reading, writing and verifying, with and without direct I/O.

Shows:

* This package and plain readers read whole arrays back unchanged
  (test_whole_arrays_are_read_back_by_this_package_zarr_and_h5py,
  test_files_are_the_same_on_file_systems_without_direct_io)
* Damaged cells are never accepted (test_damaged_cells_are_never_accepted,
  test_checksums_of_parts_join_to_the_checksum_of_the_whole)
* `verify` reads every byte once and names damaged cells, NaN and infinity
  (test_verify_reads_every_byte_once_and_names_cells_that_are_not_finite,
  test_verify_compares_the_cells_of_each_array_with_their_own_checksum)
"""

import errno
import os

import crc32c
import h5py
import numpy as np
import pytest
import zarr
from failing import fails
from manifests import flip, forge
from refusals import refused

from storage import checkpoint, checkpoint_writer, contiguous_arrays, durable
from storage.checksums import checksum, joined
from storage.disk_speed import disk_speed
from storage.mapping import create_regions, map_regions
from storage.schema import ArraySpec
from storage.table_formats import NotFiniteError

BOTH = pytest.mark.parametrize("layout", ["zarr", "hdf5"])
SPECS = [
    ArraySpec("regret/street1/player0", (37, 1024), "float32", ("bucket", "slot")),
    ArraySpec("strategy_sum/street1/player0", (37, 1024), "float64", ("bucket", "slot")),
    ArraySpec("regret_stamp/street1/player0", (37, 3), "uint32", ("bucket", "row")),
]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(contiguous_arrays, "PIECE_BYTES", 4 * 4096)


def tables():
    random = np.random.default_rng(3)
    return {spec.name: random.integers(1, 9, spec.shape).astype(spec.dtype) for spec in SPECS}


def aligned(tmp_path):
    """Return the cells of `tables()` in mapped files, aligned to pages as in live tables."""
    arrays = {}
    for number, (spec, cells) in enumerate(zip(SPECS, tables().values(), strict=True)):
        regions = create_regions(tmp_path / f"cells-{number}", [spec])
        arrays[spec.name] = map_regions(regions, writable=True, populate=False).view(spec.name)
        arrays[spec.name][...] = cells
    return arrays


def commit_whole(root, layout, arrays):
    return checkpoint_writer.commit(root, 1, SPECS, arrays, {}, {}, format=layout, keep=1, whole=True)


@BOTH
def test_whole_arrays_are_read_back_by_this_package_zarr_and_h5py(tmp_path, layout, monkeypatch):
    moved = {"direct": 0, "cached": 0}
    choose = contiguous_arrays.MovingFile._for

    def counted(file, piece):
        moved["direct" if piece.aligned else "cached"] += piece.cells.nbytes
        return choose(file, piece)

    monkeypatch.setattr(contiguous_arrays.MovingFile, "_for", counted)
    arrays, expected = aligned(tmp_path), tables()
    path = commit_whole(tmp_path / "all", layout, arrays)
    assert checkpoint.verify(path) == []
    for cells in arrays.values():
        cells[...] = 0
    found = checkpoint.open_checkpoint(path)
    for name, cells in arrays.items():
        found.read_into(name, cells)
        np.testing.assert_array_equal(cells, expected[name])
        np.testing.assert_array_equal(found.read(name), expected[name])
        strided = np.zeros((*cells.shape, 2), cells.dtype)[..., 0]
        found.read_into(name, strided)
        np.testing.assert_array_equal(strided, expected[name])
    assert moved["direct"] >= 2 * 37 * 4096 * 3 and moved["cached"] < 2 * moved["direct"]
    opened = zarr.open(str(path / "tables.zarr"), mode="r") if layout == "zarr" else h5py.File(path / "tables.h5", "r")
    for name, cells in expected.items():
        np.testing.assert_array_equal(opened[name][...], cells)


def test_files_are_the_same_on_file_systems_without_direct_io(tmp_path, monkeypatch):
    direct, opening = commit_whole(tmp_path / "direct", "zarr", aligned(tmp_path)), os.open

    def open_without_direct(path, flags, *rest, **options):
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return opening(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", open_without_direct)
    cached = commit_whole(tmp_path / "cached", "zarr", tables())
    files = [path.relative_to(direct) for path in direct.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert all((direct / name).read_bytes() == (cached / name).read_bytes() for name in files)
    np.testing.assert_array_equal(checkpoint.open_checkpoint(cached).read(SPECS[0].name), tables()[SPECS[0].name])


@BOTH
@pytest.mark.parametrize("damage", ["a bit", "short"])
def test_damaged_cells_are_never_accepted(tmp_path, layout, damage):
    path = commit_whole(tmp_path / "all", layout, tables())
    file = path / ("tables.h5" if layout == "hdf5" else f"tables.zarr/{SPECS[0].name}/c/0/0")
    data = file.read_bytes()
    at = data.index(tables()[SPECS[0].name].tobytes()[:64]) + 9000
    file.write_bytes(data[:at] if damage == "short" else data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
    words = "checksum" if damage == "a bit" else "bytes; the manifest states"
    refused(words, checkpoint.open_checkpoint(path).read, SPECS[0].name, error=OSError)
    assert any(words in problem for problem in checkpoint.verify(path))


@BOTH
def test_a_changed_bit_outside_the_cells_is_reported(tmp_path, layout):
    """Flip a bit in a file's header or index, which zarr and h5py need and this package does not read."""
    path = commit_whole(tmp_path / "all", layout, tables())
    name = "tables.h5" if layout == "hdf5" else f"tables.zarr/{SPECS[0].name}/c/0/0"
    flip(path / name, 0 if layout == "hdf5" else -1)
    [problem] = checkpoint.verify(path)
    assert problem.startswith(f"000001: {name} has checksum")


def test_an_infinite_cell_is_reported_and_no_file_is_left(tmp_path):
    arrays = tables()
    arrays[SPECS[1].name][30, 700] = np.inf
    refused("holds inf at bucket 30, slot 700", commit_whole, tmp_path / "all", "zarr", arrays, error=NotFiniteError)
    assert list((tmp_path / "all").iterdir()) == []


@BOTH
def test_verify_reads_every_byte_once_and_names_cells_that_are_not_finite(tmp_path, layout, monkeypatch):
    arrays = tables()
    arrays[SPECS[0].name][[36, 5, 30], [1, 700, 1]] = np.nan, np.inf, np.nan
    with monkeypatch.context() as patch:
        patch.setattr(contiguous_arrays, "_not_finite", lambda *_: None)
        path = commit_whole(tmp_path / "all", layout, arrays)
    read, summed = [0], []

    def counted(file, piece):
        read[0] += piece.cells.nbytes
        return reading(file, piece)

    reading, summing = contiguous_arrays.MovingFile.read, durable.checksum_file
    monkeypatch.setattr(contiguous_arrays.MovingFile, "read", counted)
    monkeypatch.setattr(durable, "checksum_file", lambda file, kind: summed.append(file) or summing(file, kind))
    assert checkpoint.verify(path) == ["000001: array 'regret/street1/player0' holds inf at bucket 5, slot 700"]
    assert read[0] == sum(spec.nbytes for spec in SPECS)
    assert {file.name for file in summed} <= {"zarr.json", "state.json"}


def test_verify_compares_the_cells_of_each_array_with_their_own_checksum(tmp_path):
    path = commit_whole(tmp_path / "all", "hdf5", tables())
    forge(path, lambda content: content["cells"][SPECS[1].name].update(crc32c=1))
    (problem,) = checkpoint.verify(path)
    assert "another checksum in the cells of array 'strategy_sum/street1/player0'" in problem


def test_a_full_disk_is_detected_before_cells_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "posix_fallocate", fails(errno.ENOSPC))
    monkeypatch.setattr(contiguous_arrays.MovingFile, "write", lambda *_: pytest.fail("cells were written"))
    refused("No space left", commit_whole, tmp_path / "all", "zarr", tables(), error=OSError)
    assert list((tmp_path / "all").iterdir()) == []


def test_checksums_of_parts_join_to_the_checksum_of_the_whole():
    random = np.random.default_rng(1)
    for first, second in [(0, 0), (0, 5), (7, 0), (1, 1), (4096, 12_345), (99, 1 << 20)]:
        one, other = random.bytes(first), random.bytes(second)
        assert joined(checksum(one), checksum(other), second) == crc32c.crc32c(one + other)
    assert joined(checksum(b"ab"), checksum(b"c"), 2) != crc32c.crc32c(b"abc")


def test_the_speed_of_a_disk_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr("storage.disk_speed._SECONDS", 0.01)
    found = disk_speed(tmp_path)
    assert min(found) > 1e5 and list(tmp_path.iterdir()) == []
