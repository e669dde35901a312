"""Reads rows of a strategy in kernels, from tables of probabilities or strategy sums.

Probabilities may be stored as integers in units of 1/255 or 1/65,535. `gather_rows` takes the bytes of every table and
a code for their form, so that one compiled kernel serves all dtypes. `BlockReader` uses a kernel for one dtype only.
Both compute float64 probabilities, equal to the last bit to the dense strategy
(`mccfr.tables.strategy.average_strategy`, `BlockRows.probabilities`).
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import by_reference, inline_njit, nogil_njit
from abstraction.kernels.parallel import run_ranges
from abstraction.kernels.prefetch import prefetch_to_read
from mccfr.tables.strategy import BlockRows

PROBABILITIES, SHARES_8, SHARES_16, SUMS_32, SUMS_64 = range(5)
"""Forms of cells: float64 probabilities; probabilities as integers; strategy sums.

The integers are in units of 1/255 (8 bits) or 1/65,535 (16 bits); the sums are float32 or float64.
"""
_AHEAD = 16  # buckets ahead of the current one whose cells are prefetched
_TOGETHER = 8  # buckets divided together: one vector, and one cache line of output
_SLOTS = 256  # slots written at a time, about: one cache line of each, and one memory page
LARGEST_EXPANDED_BYTES = 8 << 20
"""Largest block, in bytes of float64 probabilities, that `expanded_rows` expands."""
_FORMS = {
    ("float64", False): PROBABILITIES,
    ("uint8", False): SHARES_8,
    ("uint16", False): SHARES_16,
    ("float32", True): SUMS_32,
    ("float64", True): SUMS_64,
}


@by_reference
class RowTables(NamedTuple):
    """Strategy tables of B blocks (street and player) in the form that kernels read.

    A row is one decision of a block, a slot one action of a row.  `cells` and `weight` are read-only.

    cells   B × [bytes] uint8             cells of each table, as bytes
    weight  B × [buckets · rows] float32  for probabilities as integers: 0 where the row is uniform; else empty
    starts  B × [rows+1] int64            first slot of each row, and the end of the last
    form    [B] int64                     form of the cells: PROBABILITIES, SHARES_8 or SHARES_16 (probabilities as
                                          integers of 8 or 16 bits), SUMS_32 or SUMS_64 (strategy sums, float32 or
                                          float64)
    step    [B, 2] int64                  cells from one bucket to the next, and from one slot to the next; one is 1
    """

    cells: tuple[npt.NDArray[np.uint8], ...]
    weight: tuple[npt.NDArray[np.float32], ...]
    starts: tuple[npt.NDArray[np.int64], ...]
    form: npt.NDArray[np.int64]
    step: npt.NDArray[np.int64]


# --- kernels ---


@nogil_njit
def _copy_cells(cells, starts, step, first, stop, buckets, out):
    """Copy the probabilities of rows first to stop-1 to out [slots of the rows, >= n] for n buckets.

    A row is one decision of a street and player, a slot one action of a row.

    cells    flat float64 probabilities
    starts   [rows+1] int64 first slot of each row, and the end of the last
    step     (cells from one bucket to the next, from one slot to the next)
    buckets  [n] int32 numbers of the buckets
    out      float64
    """
    origin, count = starts[first], starts[stop] - starts[first]
    if step[0] == 1:
        for at in range(count):
            own, base = out[at], (origin + at) * step[1]
            for k in range(buckets.shape[0]):
                own[k] = cells[base + buckets[k]]
    else:
        for k in range(buckets.shape[0]):
            base = buckets[k] * step[0] + origin
            if k + _AHEAD < buckets.shape[0]:  # each row is a few cells, far from the next
                coming = buckets[k + _AHEAD] * step[0] + origin
                prefetch_to_read(cells, coming)
                prefetch_to_read(cells, coming + count - 1)
            for at in range(count):
                out[at, k] = cells[base + at]


@nogil_njit
def _divide_shares(cells, starts, step, weight, first, stop, buckets, out):
    """Write the probabilities of rows first to stop-1 to out [slots of the rows, >= n] for n buckets.

    A row is one decision of a street and player, a slot one action of a row.  A few buckets are done at a time, so that
    cache lines of `out` are written whole.

    cells    flat integer shares: uint8 in units of 1/255, uint16 of 1/65,535
    starts   [rows+1] int64 first slot of each row, and the end of the last
    step     (cells from one bucket to the next, from one slot to the next)
    weight   [buckets · rows] float32; a row with 0 is uniform
    buckets  [n] int32 numbers of the buckets
    out      float64
    """
    origin, count, row_count = starts[first], starts[stop] - starts[first], starts.shape[0] - 1
    total = 255.0 if cells.itemsize == 1 else 65535.0
    whole = buckets.shape[0] - buckets.shape[0] % _TOGETHER
    for begin in range(0, whole, _TOGETHER):
        for k in range(begin + _AHEAD, min(begin + _AHEAD + _TOGETHER, buckets.shape[0])):
            coming = buckets[k] * step[0] + origin * step[1]
            prefetch_to_read(cells, coming)
            prefetch_to_read(cells, coming + (count - 1) * step[1])
        for at in range(count):
            base = (origin + at) * step[1]
            for k in range(begin, begin + _TOGETHER):
                out[at, k] = cells[base + buckets[k] * step[0]] / total
    for at in range(count):
        base = (origin + at) * step[1]
        for k in range(whole, buckets.shape[0]):
            out[at, k] = cells[base + buckets[k] * step[0]] / total
    for k in range(buckets.shape[0]):
        base = buckets[k] * row_count
        if k + _AHEAD < buckets.shape[0]:
            prefetch_to_read(weight, buckets[k + _AHEAD] * row_count + first)
        for row in range(first, stop):
            if weight[base + row] == 0:
                for slot in range(starts[row], starts[row + 1]):
                    out[slot - origin, k] = 1.0 / (starts[row + 1] - starts[row])


@nogil_njit
def _normalise_sums(cells, starts, step, first, stop, buckets, out):
    """Write the normalised strategy sums of rows first to stop-1 to out [slots of the rows, >= n].

    A row is one decision, a slot one action of it.  Rows of total 0 become uniform.  A few buckets are done at a time,
    so that cache lines of `out` are written whole.

    cells    flat strategy sums, float32 or float64
    starts   [rows+1] int64 first slot of each row, and the end of the last
    step     (cells from one bucket to the next, from one slot to the next)
    buckets  [n] int32 numbers of the buckets
    out      float64
    """
    origin = starts[first]
    for from_bucket in range(0, buckets.shape[0], _TOGETHER):
        to_bucket = min(from_bucket + _TOGETHER, buckets.shape[0])
        for k in range(from_bucket + _AHEAD, min(to_bucket + _AHEAD, buckets.shape[0])):
            coming = buckets[k] * step[0]
            prefetch_to_read(cells, coming + origin * step[1])
            prefetch_to_read(cells, coming + (starts[stop] - 1) * step[1])
        for row in range(first, stop):
            begin, end = starts[row], starts[row + 1]
            for k in range(from_bucket, to_bucket):
                base, total = buckets[k] * step[0], 0.0
                for slot in range(begin, end):
                    total += cells[base + slot * step[1]]
                for slot in range(begin, end):
                    share = cells[base + slot * step[1]] / total if total > 0.0 else 1.0 / (end - begin)
                    out[slot - origin, k] = share


@inline_njit
def gather_rows(tables, block, rows, buckets, out):
    """Write the probabilities of some rows (decisions) of a block to `out`, in place.

    tables   RowTables
    block    index of the block
    rows     (first, stop): rows first to stop-1
    buckets  [n] int32 numbers of the buckets
    out      [slots of the rows, >= n] float64; a slot is one action of a row
    """
    form, cells, starts, step = tables.form[block], tables.cells[block], tables.starts[block], tables.step[block]
    weight, first, stop = tables.weight[block], rows[0], rows[1]
    if first == stop:
        pass
    elif form == PROBABILITIES:
        _copy_cells(cells.view(np.float64), starts, step, first, stop, buckets, out)
    elif form == SHARES_8:
        _divide_shares(cells, starts, step, weight, first, stop, buckets, out)
    elif form == SHARES_16:
        _divide_shares(cells.view(np.uint16), starts, step, weight, first, stop, buckets, out)
    elif form == SUMS_32:
        _normalise_sums(cells.view(np.float32), starts, step, first, stop, buckets, out)
    else:
        _normalise_sums(cells.view(np.float64), starts, step, first, stop, buckets, out)


# --- functions ---


class BlockReader:
    """Reads rows (decisions) of one street and player as probabilities, for many buckets at once.

    Its kernel is compiled for the dtype of these cells.  `gather_rows` instead serves all dtypes with one kernel.
    """

    def __init__(self, rows: BlockRows, starts: npt.NDArray[np.int64]) -> None:
        """Prepare to read the rows of a block (street and player), without copies if possible.

        rows    BlockRows: strategy of the block
        starts  [rows+1] first slot of each row, and the end of the last

        Raises `ValueError` for cells of an unsupported dtype.
        """
        tables = row_tables([rows], [starts], 1)
        cells = tables.cells[0].view(rows.cells.dtype)
        self._kernel: Callable[..., None] = _normalise_sums if rows.sums else _copy_cells
        self._block: tuple[Any, ...] = (cells, starts, tables.step[0])
        if rows.shares:
            self._kernel = _divide_shares
            self._block += (tables.weight[0],)

    def read(self, first: int, stop: int, buckets: npt.NDArray[np.int32], out: npt.NDArray[np.float64]) -> None:
        """Write the probabilities of rows first to stop-1, at least one row, to `out` for n buckets.

        buckets  [n] int32 numbers of the buckets
        out      [slots of these rows, n] float64; a slot is one action of a row
        """
        self._kernel(*self._block, first, stop, buckets, out)


def some_rows(
    rows: BlockRows, starts: npt.NDArray[np.int64], buckets: npt.NDArray[np.int32], threads: int = 1
) -> npt.NDArray[np.float64]:
    """Return [slots, n] probabilities of n buckets at all decisions of one street and player.

    rows     strategy of that street and player; a row is one decision, a slot one action
    starts   [rows+1] first slot of each row, and the end of the last
    buckets  [n] numbers of the buckets
    threads  number of threads

    Raises `ValueError` for cells of an unsupported dtype.
    """
    slots, reader = int(starts[-1]), BlockReader(rows, starts)
    out = np.empty((slots, len(buckets)))
    step = max(1, min(_SLOTS, slots // (2 * threads)) if threads > 1 else _SLOTS)
    edges = np.unique(np.searchsorted(starts, [*range(0, slots, step), slots])).tolist()

    def gather(piece: int, stop: int) -> None:
        first, last = edges[piece], edges[stop]
        reader.read(first, last, buckets, out[starts[first] : starts[last]])

    deque(run_ranges(gather, 0, len(edges) - 1, 1, threads), maxlen=0)
    return out


def full_rows(rows: BlockRows, starts: npt.NDArray[np.int64], threads: int = 1) -> npt.NDArray[np.float64]:
    """Return [slots, buckets] float64 probabilities of a block, without a copy if stored in that form.

    rows     strategy of a block (street and player); a slot is one action of a row (decision)
    starts   [rows+1] first slot of each row, and the end of the last
    threads  number of threads

    Raises `ValueError` for cells of an unsupported dtype.
    """
    cells = rows.cells
    if cells.dtype == np.float64 and not rows.sums and cells.T.flags.c_contiguous:
        return cells.T
    return some_rows(rows, starts, np.arange(len(cells), dtype=np.int32), threads)


def expanded_rows(rows: BlockRows, starts: npt.NDArray[np.int64]) -> BlockRows:
    """Convert a block's rows to float64 probabilities if these take at most `LARGEST_EXPANDED_BYTES`.

    Larger blocks, and blocks without rows, are returned unchanged.  The converted rows have no weights (`weight` is
    None).  Their cells are stored slot by slot, so that the buckets of a slot are adjacent; kernels read this order
    fastest.

    rows    BlockRows: strategy of one street and player; a row is one decision, a slot one action
    starts  [rows+1] int64 first slot of each row, and the end of the last

    Raises `ValueError` for cells of an unsupported dtype, and for probabilities as integers without weights.
    """
    buckets = len(rows.cells)
    if buckets * int(starts[-1]) * 8 > LARGEST_EXPANDED_BYTES or len(starts) < 2:
        return rows
    return BlockRows(full_rows(rows, starts).T)


def row_tables(blocks: Sequence[BlockRows], starts: Sequence[npt.NDArray[np.int64]], count: int) -> RowTables:
    """Return a strategy as RowTables, the form that kernels read, mostly without copies.

    blocks  BlockRows: strategy of each block (street and player)
    starts  for each block [rows+1] int64 first slot of each row, and the end of the last
    count   number of blocks of the result; those without rows are added at the end

    Raises `ValueError` for cells of an unsupported dtype, and for probabilities as integers without weights.
    """
    empty = max(0, count - len(blocks))
    forms, steps, cells, weights = [], [], [], []
    for rows in blocks:
        form = _FORMS.get((rows.cells.dtype.name, rows.sums))
        weight = rows.weight if rows.shares else np.zeros((0, 0), np.float32)
        if form is None or weight is None:
            raise ValueError(f"a strategy with cells of {rows.cells.dtype} cannot be read row by row")
        forms.append(form)
        flat, step = _flat(rows.cells)
        cells.append(_read_only(flat.view(np.uint8)))
        steps.append(step)
        weights.append(_read_only(_flat(weight)[0]))
    return RowTables(
        (*cells, *(_read_only(np.zeros(0, np.uint8)) for _ in range(empty))),
        (*weights, *(_read_only(np.zeros(0, np.float32)) for _ in range(empty))),
        (*starts, *(np.zeros(1, np.int64) for _ in range(empty))),
        np.array(forms + [PROBABILITIES] * empty, np.int64),
        np.array(steps + [(0, 0)] * empty, np.int64),
    )


def _flat(table: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], tuple[int, int]]:
    """Return a table [bucket, slot] as a flat array, and its steps.

    The steps are (cells from one bucket to the next, cells from one slot to the next).  The first is 0 if all buckets
    share one row.  A table that is contiguous in one of the two orders is not copied.
    """
    if table.flags.c_contiguous:
        return table.reshape(-1), (table.shape[1], 1)
    if table.strides[0] == 0:  # all buckets share one row
        return np.ascontiguousarray(table[0]), (0, 1)
    if table.T.flags.c_contiguous:
        return table.T.reshape(-1), (1, table.shape[0])
    return np.ascontiguousarray(table).reshape(-1), (table.shape[1], 1)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only view of an array, because numba would compile another version for writable ones."""
    view = array.view()
    view.flags.writeable = False
    return view
