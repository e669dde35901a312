"""Mapped regions and cells: layout, sharing, truncation, full disks, returned memory."""

import errno
import gc
import mmap
import os
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from storage import mapping
from storage.mapping import HUGE_PAGE_BYTES, Region, give_back, map_reserved
from storage.schema import ArraySpec

PAGE = mmap.PAGESIZE


def region(path, name, shape, dtype="float32", offset=0, size=None):
    """Write a file whose cells count up from 1; return a region of it."""
    cells = np.arange(1, np.prod(shape) + 1, dtype=dtype)
    with path.open("wb") as file:
        file.truncate(offset + cells.nbytes)
        file.seek(offset)
        file.write(cells.tobytes())
    return Region(name, str(path), offset, cells.nbytes, shape, dtype)


def mapped_files():
    return {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text().splitlines()}


def test_regions_of_odd_sizes_form_one_flat_array(tmp_path):
    regions = [
        region(tmp_path / "a", "a", (3, 5)),
        region(tmp_path / "b", "b", (7,), offset=3 * PAGE),
        region(tmp_path / "c", "c", (600_001, 2), offset=HUGE_PAGE_BYTES),
        region(tmp_path / "d", "d", (600_001, 1), offset=PAGE),  # large, but not at a multiple of 2 MiB in its file
        region(tmp_path / "e", "e", (2, 2, 2)),
    ]
    mapped = mapping.map_regions(regions, writable=True, populate=True)
    address = mapped.flat.__array_interface__["data"][0]
    assert address % HUGE_PAGE_BYTES == 0
    assert mapped.flat.dtype == np.float32
    end = 0
    for one in regions:
        start, count = mapped.offsets[one.name], np.prod(one.shape)
        assert start >= end
        assert not mapped.flat[end:start].any()  # gaps between regions can be read and are zero
        assert (mapped.flat[start : start + count] == np.arange(1, count + 1)).all()
        assert mapped.view(one.name).shape == one.shape
        end = start + count
    assert end == mapped.flat.size
    assert (address + 4 * mapped.offsets["c"]) % HUGE_PAGE_BYTES == 0
    mapped.flat[mapped.offsets["a"] + 15] = 9  # writing to a gap changes no file
    mapped.view("c")[-1, -1] = -5
    assert np.fromfile(tmp_path / "c", np.float32)[-1] == -5


def test_pages_are_unmapped_with_the_last_array(tmp_path):
    one = region(tmp_path / "cells", "a", (5000,))
    mapped = mapping.map_regions([one], writable=False, populate=True)
    part = mapped.view("a")[4990:]
    assert not part.flags.writeable
    mapped.close()
    refused("closed", mapped.view, "a")
    gc.collect()
    assert part.tolist() == list(range(4991, 5001))
    assert str(tmp_path / "cells") in mapped_files()
    del part
    gc.collect()
    assert str(tmp_path / "cells") not in mapped_files()


@pytest.mark.parametrize("missing", [1, 5 * PAGE])
def test_a_truncated_file_is_refused_and_not_extended(tmp_path, missing):
    one = region(tmp_path / "cells", "a", (10_000,))
    os.truncate(one.path, 40_000 - missing)
    words = f"truncated: {40_000 - missing} bytes, and array 'a' ends at byte 40000"
    refused(words, mapping.map_regions, [one], writable=True, populate=True, error=OSError)
    assert Path(one.path).stat().st_size == 40_000 - missing


def test_regions_that_do_not_fit_are_refused(tmp_path):
    good = region(tmp_path / "a", "a", (4,))
    double = region(tmp_path / "b", "b", (4,), "float64")
    refused("float32, float64", mapping.map_regions, [good, double], writable=True, populate=False)
    refused("at least one", mapping.map_regions, [], writable=True, populate=False)
    refused("different names", mapping.map_regions, [good, good], writable=True, populate=False)
    for offset, shape, words in ((8, (2,), "page size"), (0, (4,), "which takes 16")):
        wrong = Region("a", good.path, offset, 8, shape, "float32")
        refused(words, mapping.map_regions, [wrong], writable=True, populate=False)
    with pytest.raises(FileNotFoundError):
        mapping.map_regions([Region("a", str(tmp_path / "no"), 0, 8, (2,), "float32")], writable=True, populate=False)
    refused("shape", mapping.regions_from_json, [{**mapping.regions_to_json([good])[0], "shape": "x"}])
    assert mapping.regions_from_json(mapping.regions_to_json([good])) == (good,)


def test_cells_are_shared_with_another_process(tmp_path, worker):
    block = mapping.create_cells(tmp_path / "cells", (2, 3))
    assert block.cells.dtype == np.int64 and not block.cells.any()
    block.cells[1, 2] = 2**40
    worker({"cells": str(block.path), "shape": [2, 3], "add": 5})
    assert block.cells.tolist() == [[5, 5, 5], [5, 5, 2**40 + 5]]
    with pytest.raises(FileExistsError):
        mapping.create_cells(tmp_path / "cells", (2, 3))
    refused("48 bytes", mapping.map_cells, tmp_path / "cells", (2, 4), error=OSError)
    refused(">= 1", mapping.create_cells, tmp_path / "none", (0,))
    block.close()
    assert (tmp_path / "cells").exists()


def test_on_a_full_disk_cells_are_anonymous_and_arrays_are_refused(tmp_path, worker, monkeypatch):
    allocate, full = os.posix_fallocate, []

    def fails_in_files(descriptor, offset, length):
        if Path(f"/proc/self/fd/{descriptor}").readlink().is_relative_to(tmp_path):
            full.append(length)
            raise OSError(errno.ENOSPC, "No space left on device")
        allocate(descriptor, offset, length)

    monkeypatch.setattr(os, "posix_fallocate", fails_in_files)
    block = mapping.create_cells(tmp_path / "cells", (2, 3))
    assert full == [48] and block.path.is_symlink()
    worker({"cells": str(block.path), "shape": [2, 3], "add": 5})
    assert block.cells.tolist() == [[5, 5, 5], [5, 5, 5]]
    kept = block.path.readlink()
    block.close()
    assert not kept.exists()
    with pytest.raises(OSError, match=r"no room for 4,096 bytes in .*: free some, or name another tables.live_dir \("):
        mapping.create_regions(tmp_path / "arrays", [ArraySpec("a", (1024,), "float32", ("x",))])
    assert not (tmp_path / "arrays").exists()


def test_reserved_cells_take_memory_when_written_and_can_be_given_back():
    cells = map_reserved(1 << 37, "float64")  # 1 TiB
    before = process_bytes()
    part = cells[1 << 36 : (1 << 36) + (4 << 20)]
    part[:] = 1.0
    assert 30e6 < process_bytes() - before < 60e6
    give_back(part)
    assert process_bytes() - before < 10e6 and not part.any()
    cells[7] = 3.0
    give_back(cells[6:9])
    assert not cells[:10].any()


def process_bytes():
    """Return the bytes of memory that this process does not share."""
    pages = Path("/proc/self/statm").read_text().split()
    return (int(pages[1]) - int(pages[2])) * mmap.PAGESIZE
