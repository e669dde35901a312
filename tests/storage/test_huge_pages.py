"""Huge pages: allocation, system settings, counters, plans.

Shows:

* Memory in huge pages is zeroed, aligned, and freed with its last array (test_huge_pages)
"""

import contextlib
import gc
import mmap
import resource
import tempfile
from pathlib import Path

import numpy as np
import pytest

from mccfr.config.toml_files import config_from
from mccfr.runs.session import run_plan
from mccfr.runs.session.run_plan import make_plan
from storage import huge_page_counts
from storage.mapping import HUGE_PAGE_BYTES, Region, allocate, create_cells, map_anonymous, map_cells, map_regions


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize(("cells", "dtype"), [(1, "float32"), (HUGE_PAGE_BYTES // 8 + 1, "float64"), (0, "uint8")])
def test_anonymous_memory_is_zero_aligned_and_populated(cells, dtype):
    array = map_anonymous(cells, np.dtype(dtype))
    assert array.dtype == np.dtype(dtype) and array.shape == (cells,) and not array.any()
    assert address(array) % HUGE_PAGE_BYTES == 0
    if cells > 1:
        resident = next(line for line in mapping_of(array) if line.startswith("Rss:"))
        assert 1024 * int(resident.split()[1]) >= array.nbytes
        array[:] = 1
        assert array.sum() == cells


def mapping_of(array):
    """Return the lines of /proc/self/smaps on the mapping that holds an array."""
    found, here = [], False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split(maxsplit=1)[0]
        if not head.endswith(":"):
            first, end = (int(part, 16) for part in head.split("-"))
            here = first <= address(array) < end
        elif here:
            found.append(line)
    return found


def test_anonymous_memory_is_freed_with_its_last_array():
    array = map_anonymous(HUGE_PAGE_BYTES, np.dtype(np.uint8))
    part = array[mmap.PAGESIZE :]
    del array
    gc.collect()
    assert mapping_of(part)
    place = type("Place", (), {"__array_interface__": {"data": (address(part), False)}})
    del part
    gc.collect()
    assert not mapping_of(place)


def test_shared_memory_has_huge_pages_exactly_if_the_system_gives_them(tmp_path, monkeypatch):
    """Map a file of shared memory as another process does, and look for huge pages in the mapping."""
    found = huge_page_counts.gives_huge_pages()
    with contextlib.closing(create_cells(tmp_path / "cells", (HUGE_PAGE_BYTES // 8,))) as block:
        mapped = map_cells(block.path, (HUGE_PAGE_BYTES // 8,))
        assert (mapped.cells == 0).all()
        if tmp_path.is_relative_to("/dev/shm"):
            assert (huge_page_counts.huge_bytes([mapped.cells]) > 0) == found
    monkeypatch.setattr(huge_page_counts, "_SMAPS", tmp_path / "nowhere")
    assert not huge_page_counts.gives_huge_pages()


@pytest.mark.skipif(not huge_page_counts.gives_huge_pages(), reason="shared memory has no huge pages here")
def test_new_tables_fault_once_for_each_huge_page():
    """Count page faults; filling pages of 4 KiB and then copying them into huge pages has 16,384."""
    count = 32
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory, (Path(directory) / "cells").open("x+b") as file:
        region = Region("cells", file.name, 0, count * HUGE_PAGE_BYTES, (count * HUGE_PAGE_BYTES,), "uint8")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        allocate(file.fileno(), 0, region.length_bytes)
        mapped = map_regions([region], writable=True, populate=True)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        assert huge_page_counts.huge_bytes([mapped.flat]) == mapped.flat.nbytes and not mapped.flat.any()
        mapped.close()
    assert count <= faults < 20 * count


@pytest.mark.parametrize("given", [False, True])
def test_plans_advise_switching_huge_pages_on_if_they_are_off(monkeypatch, given):
    monkeypatch.setattr(run_plan, "gives_huge_pages", lambda: given)
    config = config_from({"game": {"name": "leduc", "ranks": 12}}, "test")
    assert make_plan(config, None, speed=3e7)["huge_pages"] == {"given": given, "gain": 1.0, "advice": None}
    # Pretend that tables are large.
    monkeypatch.setattr(run_plan, "_HUGE_PAGE_BYTES", tuple(np.array(run_plan._HUGE_PAGE_BYTES) * 1e-6))
    found = make_plan(config, None, speed=3e7)["huge_pages"]
    assert (found["given"], found["gain"] > 1) == (given, True)
    assert ("'echo advise > /sys/" in (found["advice"] or "")) != given
