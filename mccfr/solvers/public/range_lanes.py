"""Terminal values on one full board, LANES ranges at a time: card removal by inclusion-exclusion.

With the ranges side by side, `[hand, lane]`, running totals and sums by card are vectors, one machine instruction each;
for a single range they are chains of dependent scalar additions, which took about five times as long for each range.
Of an opponent's range, a hand a, b meets the total less what holds a, less what holds b, plus what holds both.  One
sweep in order of strength takes that difference before and after the hands of equal strength are added: L and LE.  What
a hand wins less what it loses is L + LE less the whole, and ties, the same hand among them, cancel.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, part_njit, types
from mccfr.solvers.regret import as_element

LANES = 16
_LINE_BYTES = 64


class Lanes(NamedTuple):
    """Terminal values of LANES ranges; n hands, C cards.

    met    [n, LANES] F    reach that each hand meets, in order of strength
    won    [n, LANES] F    reach that it beats less reach that beats it
    total  [C+2, LANES] F  sums by card, 0 for no card, and over all
    """

    met: npt.NDArray[np.floating]
    won: npt.NDArray[np.floating]
    total: npt.NDArray[np.floating]


def new_lanes(hands: int, cards: int, dtype: npt.DTypeLike) -> Lanes:
    """Room for boards of at most `hands` hands and a deck of `cards`."""
    return Lanes(lane_rows(hands, dtype), lane_rows(hands, dtype), lane_rows(cards + 2, dtype))


def lane_rows(rows: int, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """Zeros [rows, LANES] that begin with a cache line: no row of float32 lies across two."""
    cells, size = rows * LANES, np.dtype(dtype).itemsize
    room = np.zeros(cells + _LINE_BYTES // size, dtype)
    start = -room.ctypes.data % _LINE_BYTES // size
    return room[start : start + cells].reshape(rows, LANES)


# --- kernels ---


def lanes_of(context, builder, array_type, array, row):
    """Pointer to row `row` of an array [., LANES] as one vector."""
    data = context.make_array(array_type)(context, builder, array).data
    start = builder.mul(row, row.type(LANES))
    vector = ir.VectorType(data.type.pointee, LANES)
    return builder.bitcast(builder.gep(data, [start]), vector.as_pointer())


def _combine(signs):
    """Code of an intrinsic (out, k, source, i, j, ...) that sets out[k] to the signed sum of rows of LANES.

    `signs` has one sign for out[k] itself (0: its old value does not count), then one for each row of `source`.
    """

    def codegen(context, builder, signature, arguments):
        target = lanes_of(context, builder, signature.args[0], arguments[0], arguments[1])
        places = [target]
        places += [lanes_of(context, builder, signature.args[2], arguments[2], row) for row in arguments[3:]]
        result = None
        for sign, place in zip(signs, places, strict=True):
            if sign:
                row = builder.load(place, align=4)
                result = row if result is None else (builder.fadd if sign > 0 else builder.fsub)(result, row)
        builder.store(result, target, align=4)
        return context.get_dummy_value()

    return codegen


@intrinsic
def _add_lanes(typing_context, out, k, source, i):
    """out[k] += source[i], rows of LANES."""
    return types.void(out, types.int64, source, types.int64), _combine((1, 1))


@intrinsic
def _take_lanes(typing_context, out, k, source, i):
    """out[k] -= source[i], rows of LANES."""
    return types.void(out, types.int64, source, types.int64), _combine((1, -1))


@intrinsic
def _set_rest(typing_context, out, k, total, whole, c, d):
    """out[k] = total[whole] - total[c] - total[d], rows of LANES."""
    arguments = (out, types.int64, total, types.int64, types.int64, types.int64)
    return types.void(*arguments), _combine((0, 1, -1, -1))


@intrinsic
def _add_rest(typing_context, out, k, total, whole, c, d):
    """out[k] += total[whole] - total[c] - total[d], rows of LANES."""
    arguments = (out, types.int64, total, types.int64, types.int64, types.int64)
    return types.void(*arguments), _combine((1, 1, -1, -1))


@part_njit
def add_hand(total, none, card, source, j):
    """Add row j of `source`, whose cards are card[j], to the sums."""
    a, b = np.int64(card[j, 0]), np.int64(card[j, 1])
    _add_lanes(total, none + 1, source, j)
    if a != none:
        _add_lanes(total, a, source, j)
    if b != none:
        _add_lanes(total, b, source, j)


@part_njit
def load_lanes(board, player, reach, rows, out):
    """Copy ranges of `player`, rows of reach [., n], into the first lanes of out, by strength; others are emptied."""
    order, used, zero = board.order[player], rows.shape[0], as_element(reach, 0.0)
    for k in range(board.count[player]):
        hand = order[k]
        for lane in range(used):
            out[k, lane] = reach[rows[lane], hand]
        for lane in range(used, LANES):
            out[k, lane] = zero


@part_njit
def store_lanes(board, player, table, pick, limit, out):
    """Bring lanes of a table [n, LANES] back to the order of hands: rows of out [., n] are set.

    pick   (lane, row, factor): arrays that name for each value the lane it is in, the row it goes to and what it is
           multiplied with
    limit  [LANES] values closer to 0 are set to 0
    """
    order, zero = board.order[player], as_element(out, 0.0)
    lane, row, factor = pick
    for k in range(board.count[player]):
        hand = order[k]
        for i in range(lane.shape[0]):
            x = table[k, lane[i]]
            out[row[i], hand] = factor[i] * x if abs(x) >= limit[lane[i]] else zero


@part_njit
def fill_lanes(board, hero, showdown, reach, lanes):
    """Set `lanes.met`, and with `showdown` also `lanes.won`, of `hero`'s hands against ranges of the other player.

    reach [n+1, LANES] holds them in order of strength; its row behind his hands is set to 0.  Sums over all of each
    range are left in lanes.total[C+1].
    """
    other, none = 1 - hero, board.cards[0]
    met, won, total = lanes.met, lanes.won, lanes.total
    card, other_card, same = board.card[hero], board.card[other], board.same[hero]
    strength, other_strength = board.strength[hero], board.strength[other]
    count, other_count = board.count[hero], board.count[other]
    total[: none + 2] = 0.0
    reach[other_count] = 0.0
    j = 0
    if showdown:
        k = 0
        while k < count:
            here, stop = strength[k], k
            while j < other_count and other_strength[j] < here:
                add_hand(total, none, other_card, reach, j)
                j += 1
            while stop < count and strength[stop] == here:
                _set_rest(won, stop, total, none + 1, np.int64(card[stop, 0]), np.int64(card[stop, 1]))
                stop += 1
            while j < other_count and other_strength[j] == here:
                add_hand(total, none, other_card, reach, j)
                j += 1
            while k < stop:
                _add_rest(won, k, total, none + 1, np.int64(card[k, 0]), np.int64(card[k, 1]))
                k += 1
    while j < other_count:
        add_hand(total, none, other_card, reach, j)
        j += 1
    for k in range(count):
        _set_rest(met, k, total, none + 1, np.int64(card[k, 0]), np.int64(card[k, 1]))
        if showdown:
            _take_lanes(won, k, met, k)
        _add_lanes(met, k, reach, np.int64(same[k]))
