"""Live tables: creation, mapping, reading with zarr and h5py, lack of memory, stale links, removal."""

import errno
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import mapping_worker
import numpy as np
import pytest
import zarr
from failing import fails
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from storage import durable, free_space, live_tables, mapping, zarr_format
from storage.schema import ALLOWED_DTYPES, ArraySpec

PLAIN_READER = """
import sys
if sys.argv[2] == "zarr":
    import zarr
    tables = zarr.open(sys.argv[1] + "/tables.zarr", mode="r")
else:
    import h5py
    tables = h5py.File(sys.argv[1] + "/tables.h5", "r")
print([float(tables[name][...].sum()) for name in sys.argv[3:]])
"""


def spec(name, shape, dtype="float32", fill=0):
    return ArraySpec(name, shape, dtype, tuple(f"axis{i}" for i in range(len(shape))), fill)


def shrink_shared_memory(patch):
    """Pretend that each file system, /dev/shm included, has 2 MiB free, as in some containers."""
    patch.setattr(free_space, "free_bytes", lambda path: 2 << 20)


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(zarr_format, "_INNER_CHUNK_BYTES", 64)


def read_plainly(link, layout, name):
    """Return an array, read with zarr or h5py alone."""
    if layout == "zarr":
        return zarr.open(str(link / "tables.zarr"), mode="r")[name][...]
    with h5py.File(link / "tables.h5", "r") as file:
        return file[name][...]


def our_directories():
    return sorted(Path("/dev/shm").glob(f"mccfr-{os.getpid()}-*"))


def open_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


shapes = st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple)
arrays = st.tuples(shapes, st.sampled_from(ALLOWED_DTYPES), st.sampled_from([0, 0, 3]))
schemas = st.lists(arrays, min_size=1, max_size=4)


@pytest.mark.parametrize("layout", ["zarr", "hdf5"])
def test_zarr_and_h5py_read_what_another_process_writes_through_its_mapping(small_chunks, worker, layout):
    @settings(max_examples=15, deadline=None)
    @given(schemas, st.booleans(), st.integers(0, 1000))
    def check(shapes, in_memory, seed):
        specs = [spec(f"table/part{i}", *one) for i, one in enumerate(shapes)]
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            if in_memory:
                shrink_shared_memory(patch)
            with live_tables.create_live(specs, format=layout, link=Path(folder, "live")) as tables:
                assert tables.anonymous == in_memory
                for one in specs:
                    assert (read_plainly(tables.link, layout, one.name) == one.fill).all()
                worker({"regions": mapping.regions_to_json(tables.regions), "seed": seed})
                for one, region in zip(specs, tables.regions, strict=True):
                    seen = read_plainly(tables.link, layout, one.name)
                    assert seen.dtype == one.dtype
                    assert np.array_equal(seen, mapping_worker.values(region, seed))
            assert not tables.directory.exists()
            assert not os.path.lexists(tables.link)

    check()
    assert our_directories() == []


@pytest.mark.parametrize("layout", ["zarr", "hdf5"])
@pytest.mark.parametrize("small", [False, True])
def test_a_third_process_reads_large_tables_during_the_run(tmp_path, monkeypatch, worker, layout, small):
    if small:
        shrink_shared_memory(monkeypatch)
    specs = [spec("regret/street0/player1", (350_003, 3)), spec("sum", (350_003, 3), "float64"), spec("few", (5,))]
    with live_tables.create_live(specs, format=layout, link=tmp_path / "live") as tables:
        assert tables.anonymous == small
        worker({"regions": mapping.regions_to_json(tables.regions), "seed": 1})
        expected = [float(mapping_worker.values(region, 1).sum(dtype=np.float64)) for region in tables.regions]
        reader = [sys.executable, "-c", PLAIN_READER, tmp_path / "live", layout, *(one.name for one in specs)]
        # Another working directory: nothing may depend on it.
        assert eval(subprocess.check_output(reader, cwd="/")) == pytest.approx(expected, rel=1e-6)
        assert tables.warning is None
        assert all(region.offset_bytes % mapping.HUGE_PAGE_BYTES == 0 for region in tables.regions)
        stored = sum(Path(path).stat().st_blocks * 512 for path in {region.path for region in tables.regions})
        assert stored >= sum(one.nbytes for one in specs)  # allocated, not sparse
        assert live_tables.live_bytes(specs, format=layout) >= sum(one.nbytes for one in specs)


@pytest.mark.parametrize("shapes", [[(3, 4), (5, 7), (1000, 3)], [(3, 4), (600_000, 1), (5, 7)]])
def test_mapped_pages_of_an_hdf5_file_hold_none_of_its_metadata(tmp_path, shapes):
    specs = [spec(f"group/a{i}", shape) for i, shape in enumerate(shapes)]
    with live_tables.create_live(specs, format="hdf5", link=tmp_path / "live") as tables:
        mapped = mapping.map_regions(tables.regions, writable=True, populate=True)
        mapped.flat[...] = -1e30
        for number, one in enumerate(specs):
            mapped.view(one.name)[...] = number
        for number, one in enumerate(specs):
            assert (read_plainly(tables.link, "hdf5", one.name) == number).all()


def test_too_little_memory_is_refused_with_both_numbers_and_leaves_no_trace(tmp_path, monkeypatch):
    specs = [spec("a", (1000, 250))]  # 1,000,000 bytes
    needed = live_tables.live_bytes(specs, format="zarr")
    for live_dir, share in (("auto", 0.8), ("/dev/shm", 0.8), (tmp_path, 1.0)):
        monkeypatch.setattr(free_space, "available_memory_bytes", lambda share=share: math.ceil(needed / share) - 1)
        place = {"live_dir": live_dir, "link": tmp_path / "live"}
        message = refused("tables need", live_tables.create_live, specs, format="zarr", **place, error=MemoryError)
        assert f"{free_space.bytes_text(needed)} and {free_space.bytes_text(needed / share)} of memory" in message
        assert our_directories() == list(tmp_path.iterdir()) == []
    monkeypatch.setattr(free_space, "available_memory_bytes", lambda: math.ceil(needed / 0.8))
    live_tables.create_live(specs, format="zarr", link=tmp_path / "live").close()


def test_too_little_disk_is_refused_with_both_numbers_and_leaves_no_trace(tmp_path, monkeypatch):
    shrink_shared_memory(monkeypatch)
    specs = [spec("a", (1000, 1000))]
    words, place = f"{live_tables.live_bytes(specs, format='hdf5'):,} bytes", {"live_dir": tmp_path}
    text = refused(words, live_tables.create_live, specs, format="hdf5", link=tmp_path / "live", **place, error=OSError)
    assert "2,097,152 bytes" in text
    assert list(tmp_path.iterdir()) == []


def test_a_directory_on_disk_is_used_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(free_space, "is_in_memory", lambda path: False)
    (tmp_path / "here").mkdir()
    options = {"format": "zarr", "link": tmp_path / "l"}
    with live_tables.create_live([spec("a", (9,))], live_dir=tmp_path / "here", **options) as tables:
        assert tables.directory.parent == tmp_path / "here" and "not in memory" in tables.warning
    with pytest.raises(NotADirectoryError, match="nowhere"):
        live_tables.create_live([spec("a", (9,))], live_dir=tmp_path / "nowhere", **options)


@pytest.mark.parametrize(("place", "name"), [(os, "posix_fallocate"), (durable, "write_file")])
def test_a_failed_creation_leaves_no_files(tmp_path, monkeypatch, place, name):
    """Allocating the cells fails, or writing the marker file that states the owner."""
    for small in (False, True):
        if small:
            shrink_shared_memory(monkeypatch)
        descriptors = open_descriptors()
        for layout in ("zarr", "hdf5"):
            with monkeypatch.context() as patch:
                patch.setattr(place, name, fails(errno.EIO))
                with pytest.raises(OSError, match="Input/output error"):
                    live_tables.create_live([spec("a", (9,))], format=layout, link=tmp_path / "live")
            assert our_directories() == list(tmp_path.iterdir()) == []
        assert open_descriptors() == descriptors


def test_an_existing_link_is_not_replaced(tmp_path):
    with live_tables.create_live([spec("a", (9,))], format="zarr", link=tmp_path / "live") as tables:
        with pytest.raises(FileExistsError, match="already exists"):
            live_tables.create_live([spec("a", (9,))], format="zarr", link=tmp_path / "live")
        assert our_directories() == [tables.directory]
        # The owner is alive, so only the link goes: a copied run directory must not remove another run's tables.
        assert live_tables.remove_stale_live(tmp_path / "live") is None
        assert tables.tables.is_dir()
        assert not os.path.lexists(tmp_path / "live")
    assert not tables.directory.exists()


def test_foreign_files_behind_a_stale_link_are_not_removed(tmp_path):
    foreign = tmp_path / "mccfr-foreign"
    foreign.mkdir()
    (foreign / "file").write_text("kept")
    for target in (foreign, tmp_path / "dangling"):
        (tmp_path / "live").symlink_to(target)
        assert live_tables.remove_stale_live(tmp_path / "live") is None
        assert not os.path.lexists(tmp_path / "live")
    assert (foreign / "file").read_text() == "kept"
    (tmp_path / "live").mkdir()
    refused("not", live_tables.remove_stale_live, tmp_path / "live", error=FileExistsError)


def test_a_forked_child_cannot_remove_the_tables(tmp_path):
    with live_tables.create_live([spec("a", (9,))], format="hdf5", link=tmp_path / "live") as tables:
        tables._owner = os.getpid() + 1  # a child sees that another process owns the tables
        tables.close()
        assert tables.tables.exists()
        tables._owner = os.getpid()
    assert not tables.directory.exists()
