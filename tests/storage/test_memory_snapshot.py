"""Snapshots of tables in memory, and ordered work in threads."""

import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from storage import memory_snapshot, threads


def tables():
    rng = np.random.default_rng(3)
    return {"a": rng.random((70, 1001), np.float32), "b": rng.random(33), "c": rng.integers(0, 9, (5, 7), np.uint32)}


@pytest.mark.parametrize("populate", [True, False])
def test_copies_are_equal_and_independent(monkeypatch, populate):
    monkeypatch.setattr(memory_snapshot, "_PIECE_BYTES", 4096)  # many pieces, the last ones short
    arrays = tables()
    snapshot = memory_snapshot.Snapshot(arrays)
    if populate:
        snapshot.populate()
    snapshot.take(arrays)
    before = {name: array.copy() for name, array in arrays.items()}
    for array in arrays.values():
        array[...] = 0
    assert snapshot.arrays.keys() == before.keys()
    for name, copy in snapshot.arrays.items():
        assert copy.dtype == before[name].dtype
        np.testing.assert_array_equal(copy, before[name])


def test_dropping_an_array_frees_its_memory():
    arrays = {"large": np.ones(64 << 20, np.uint8), "small": np.ones(8, np.uint8)}
    snapshot = memory_snapshot.Snapshot(arrays)
    snapshot.take(arrays)
    taken = _resident_bytes()
    del snapshot.arrays["large"]
    assert taken - _resident_bytes() > 60 << 20


def _resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_results_come_in_order_and_from_several_threads(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 4)
    seen = set()

    def work(item):
        seen.add(threading.get_ident())
        time.sleep(0.002 * (item % 3))
        return item * item

    assert list(threads.ordered(work, range(50))) == [item * item for item in range(50)]
    assert 1 < len(seen) <= 4 and threading.get_ident() not in seen


def test_an_error_is_raised_and_stops_the_work(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 2)
    done = []

    def work(item):
        if item == 5:
            raise OSError("disk full")
        done.append(item)

    refused("disk full", list, threads.ordered(work, range(1000)), error=OSError)
    assert max(done) < 20
