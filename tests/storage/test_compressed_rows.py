"""Tables compressed row by row: unpacking, damage, invalid row starts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from refusals import refused

from storage.compressed_rows import PackedRows, pack_rows
from storage.damage import DamagedError

TABLES = arrays.arrays(
    st.sampled_from(["uint8", "uint16", "uint32"]), st.tuples(st.integers(1, 9), st.integers(1, 40)), fill=st.just(7)
)


def packed_rows(streams, starts, table, **options):
    return PackedRows("table.npy", streams, starts, table.shape[1], table.dtype, **options)


@given(TABLES, st.data())
def test_every_row_is_unpacked_unchanged(table, data):
    streams, starts = pack_rows(table)
    checked = []
    packed = packed_rows(streams, starts, table, check=checked.append)
    first = data.draw(st.integers(0, len(table)))
    stop = data.draw(st.integers(first, len(table) + 3))
    found = packed.rows(first, stop)
    assert len(packed) == len(table) and found.dtype == table.dtype and np.array_equal(found, table[first:stop])
    rows = range(first, min(stop, len(table)))
    assert checked == [byte for row in rows for byte in (starts[row], starts[row + 1] - 1)]


def test_no_damaged_row_is_read():
    """Change each byte of a row: the row is refused, or it is right because zlib ignores the changed bits."""
    table = np.arange(300, dtype=np.uint16).reshape(3, 100) // 7
    streams, starts = pack_rows(table)
    refusals = 0
    for place in range(starts[1], starts[2]):
        damaged = streams.copy()
        damaged[place] ^= 0x5A
        packed = packed_rows(damaged, starts, table)
        assert np.array_equal(packed.rows(0, 1)[0], table[0])
        try:
            assert np.array_equal(packed.rows(1, 2)[0], table[1])
        except DamagedError:
            refusals += 1
    assert refusals >= starts[2] - starts[1] - 2


@pytest.mark.parametrize("width", [99, 101])
def test_rows_of_another_width_are_refused(width):
    table = np.zeros((2, 100), np.uint8)
    packed = PackedRows("table.npy", *pack_rows(table), width, table.dtype)
    refused(f"table.npy: row 1 does not unpack to {width} bytes", packed.rows, 1, 2, error=DamagedError)


@pytest.mark.parametrize("change", [lambda s: s + 1, lambda s: s[::-1].copy(), lambda s: s[:-1], lambda s: s // s[-1]])
def test_starts_that_do_not_divide_the_streams_are_refused(change):
    table = np.arange(12, dtype=np.uint8).reshape(4, 3)
    streams, starts = pack_rows(table)
    refused("do not ascend from 0 to its", packed_rows, streams, change(starts), table)
