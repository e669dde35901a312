"""Huge pages: memory that asks for them, what the system says, and what is counted.

Shows:

* Memory in huge pages is zero, aligned, there at once and gone with its last array; what is counted and switched on
  is said (test_huge_pages, test_plans_say_what_to_switch_on)
"""

import gc
import mmap
from pathlib import Path

import numpy as np
import pytest

from storage import pages
from storage.mapping import HUGE_PAGE_BYTES


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize(("cells", "dtype"), [(1, "float32"), (HUGE_PAGE_BYTES // 8 + 1, "float64"), (0, "uint8")])
def test_memory_of_ones_own_is_zero_aligned_and_there_at_once(cells, dtype):
    array = pages.huge_zeros(cells, dtype)
    assert array.dtype == np.dtype(dtype) and array.shape == (cells,) and not array.any()
    assert address(array) % HUGE_PAGE_BYTES == 0
    if cells > 1:
        resident = next(
            line for line in mapping_of(array) if line.startswith("Rss:")
        )  # every page is there before it is touched
        assert 1024 * int(resident.split()[1]) >= array.nbytes
        array[:] = 1
        assert array.sum() == cells


def mapping_of(array):
    """Lines of /proc/self/smaps that tell of the mapping which holds an array."""
    found, here = [], False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split(maxsplit=1)[0]
        if not head.endswith(":"):
            first, end = (int(part, 16) for part in head.split("-"))
            here = first <= address(array) < end
        elif here:
            found.append(line)
    return found


def test_memory_of_ones_own_goes_with_its_last_array():
    array = pages.huge_zeros(HUGE_PAGE_BYTES, "uint8")
    part = array[mmap.PAGESIZE :]
    del array
    gc.collect()
    assert mapping_of(part)
    place = type("Place", (), {"__array_interface__": {"data": (address(part), False)}})
    del part
    gc.collect()
    assert not mapping_of(place)


@pytest.mark.parametrize(
    ("own", "shared", "given"),
    [
        ("always [madvise] never", "always within_size advise [never] deny force", (True, False)),
        ("[always] madvise never", "always within_size [advise] never deny force", (True, True)),
        ("always madvise [never]", None, (False, False)),
    ],
)
def test_what_the_system_says_is_read(tmp_path, monkeypatch, own, shared, given):
    monkeypatch.setattr(pages, "SETTINGS", tmp_path)
    (tmp_path / "enabled").write_text(own + "\n")
    if shared is not None:
        (tmp_path / "shmem_enabled").write_text(shared + "\n")
    found = pages.page_settings()
    assert (found.given(shared=False), found.given(shared=True)) == given
    assert (found.shared is None) == (shared is None)


def test_huge_pages_are_counted_of_the_mappings_that_hold_the_arrays(tmp_path, monkeypatch):
    array = pages.huge_zeros(HUGE_PAGE_BYTES, "uint8")
    start = address(array)
    assert 0 <= pages.huge_bytes([array]) <= array.nbytes
    mine, others = f"{start:x}-{start + array.nbytes:x}", f"{start + array.nbytes:x}-{start + 2 * array.nbytes:x}"
    (tmp_path / "smaps").write_text(
        f"{mine} rw-p 00000000 00:00 0 \nRss: 2048 kB\nAnonHugePages:      2048 kB\nShmemPmdMapped:        4 kB\n"
        f"{others} rw-p 00000000 00:00 0 [heap]\nAnonHugePages:      6144 kB\n"
    )
    monkeypatch.setattr(pages, "_SMAPS", tmp_path / "smaps")
    assert pages.huge_bytes([array, array[:0]]) == 2052 << 10
    monkeypatch.setattr(pages, "_SMAPS", tmp_path / "nowhere")
    assert pages.huge_bytes([array]) == 0
