"""Terminal values on full boards, LANES ranges at a time, or one range on many: card removal by inclusion-exclusion.

With the ranges side by side, `[hand, lane]`, running totals and sums by card are vectors, one machine instruction each;
for a single range they are chains of dependent scalar additions, which took about five times as long for each range.
Of an opponent's range, a hand a, b meets the total less what holds a, less what holds b, plus what holds both.  One
sweep in order of strength takes that difference before and after the hands of equal strength are added: L and LE.  What
a hand wins less what it loses is L + LE less the whole, and ties, the same hand among them, cancel.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, njit, part_njit, types
from mccfr.solvers.public.terminals.lane_code import aligned_zeros
from mccfr.solvers.regret import as_element

LANES = 16


class Lanes(NamedTuple):
    """Terminal values of LANES ranges; n hands, C cards, F the dtype of all but `picked`.

    reach    [n+1, LANES]      ranges under way, in order of strength
    disjoint [n, LANES]        reach that each hand meets
    won      [n, LANES]        reach that it beats less reach that beats it
    total    [C+2, LANES]      sums by card, 0 for no card, and over all
    picked   [2, LANES] int64  of each value that is stored: its lane, and the row it goes to
    factor   [LANES]           what it is multiplied with
    limit    [LANES]           of each lane: values closer to 0 are set to 0
    """

    reach: npt.NDArray[np.floating]
    disjoint: npt.NDArray[np.floating]
    won: npt.NDArray[np.floating]
    total: npt.NDArray[np.floating]
    picked: npt.NDArray[np.int64]
    factor: npt.NDArray[np.floating]
    limit: npt.NDArray[np.floating]


def new_lanes(hands: int, cards: int, dtype: npt.DTypeLike) -> Lanes:
    """Room for boards of at most `hands` hands and a deck of `cards`."""
    reach, disjoint, won, total = (aligned_zeros((rows, LANES), dtype) for rows in (hands + 1, hands, hands, cards + 2))
    return Lanes(
        reach, disjoint, won, total, np.zeros((2, LANES), np.int64), np.zeros(LANES, dtype), np.zeros(LANES, dtype)
    )


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
    place = np.uint64(j)  # nobody asks whether it counts from the end
    a, b = np.int64(card[place, 0]), np.int64(card[place, 1])
    _add_lanes(total, none + 1, source, j)
    if a != none:
        _add_lanes(total, a, source, j)
    if b != none:
        _add_lanes(total, b, source, j)


@part_njit
def load_lanes(board, player, reach, rows, out):
    """Copy ranges of `player`, rows of reach [., n], into the first lanes of out, by strength; others are emptied."""
    order, used, zero = board.showdown.order[player], rows.shape[0], as_element(reach, 0.0)
    for k in range(board.count[player]):
        hand = order[k]
        for lane in range(used):
            out[k, lane] = reach[rows[lane], hand]
        for lane in range(used, LANES):
            out[k, lane] = zero


@part_njit
def store_lanes(board, player, table, count, lanes, out):
    """Bring lanes of a table [n, LANES] back to the order of hands: rows of out [., n] are set.

    The first `count` of `lanes.picked` say which.
    """
    order, zero = board.showdown.order[player], as_element(out, 0.0)
    lane, row, factor, limit = lanes.picked[0], lanes.picked[1], lanes.factor, lanes.limit
    for k in range(board.count[player]):
        hand = order[k]
        for i in range(count):
            x = table[k, lane[i]]
            out[row[i], hand] = factor[i] * x if abs(x) >= limit[lane[i]] else zero


@part_njit
def fill_lanes(board, hero, showdown, lanes):
    """Set `lanes.disjoint`, and with `showdown` also `lanes.won`, of `hero`'s hands against ranges of the other player.

    `lanes.reach` holds them; its row behind his hands is set to 0.  Sums over all of each range are left in
    lanes.total[C+1].
    """
    other, by_strength = 1 - hero, board.showdown
    none = by_strength.cards[0]
    disjoint, won, total, reach = lanes.disjoint, lanes.won, lanes.total, lanes.reach
    card, other_card, same = by_strength.card[hero], by_strength.card[other], by_strength.same[hero]
    strength, other_strength = by_strength.strength[hero], by_strength.strength[other]
    count, other_count = board.count[hero], board.count[other]
    total[: none + 2] = 0.0
    reach[other_count] = 0.0
    j = 0
    if showdown:
        k = 0
        while k < count:
            here, stop = strength[np.uint64(k)], k
            while j < other_count and other_strength[np.uint64(j)] < here:
                add_hand(total, none, other_card, reach, j)
                j += 1
            while stop < count and strength[np.uint64(stop)] == here:
                c, d = card[np.uint64(stop), 0], card[np.uint64(stop), 1]
                _set_rest(won, stop, total, none + 1, np.int64(c), np.int64(d))
                stop += 1
            while j < other_count and other_strength[np.uint64(j)] == here:
                add_hand(total, none, other_card, reach, j)
                j += 1
            while k < stop:
                c, d = card[np.uint64(k), 0], card[np.uint64(k), 1]
                _add_rest(won, k, total, none + 1, np.int64(c), np.int64(d))
                k += 1
    while j < other_count:
        add_hand(total, none, other_card, reach, j)
        j += 1
    for k in range(count):
        _set_rest(disjoint, k, total, none + 1, np.int64(card[k, 0]), np.int64(card[k, 1]))
        if showdown:
            _take_lanes(won, k, disjoint, k)
        _add_lanes(disjoint, k, reach, np.int64(same[k]))


# --- one range, many boards ---


@njit
def won_at_showdowns(strength, order, cards, weight, sums, out):
    """Add to out [H] float64, over K boards, the weight that each hand beats less the weight that beats it, in place.

    strength  [K, H] int32    order at a showdown; below 0: the board hits the hand
    order     [K, H] uint16   hands by strength, ascending
    cards     [H, 2] uint8    cards of each hand; the number of cards in the deck where it has fewer
    weight    [H] float64     of the other player's hands
    sums      [C + 1] float64 scratch: weight of the hands that hold each card

    Indices without a sign are looked up a third faster: nobody asks whether they count from the end.

    Hands that share a card do not meet.  One sweep in order of strength takes the sums before and after the hands of
    equal strength are added, L and LE; what a hand wins less what it loses is L + LE less the whole.
    """
    none = sums.shape[0] - 1
    for board in range(strength.shape[0]):
        sums[:] = 0.0
        total = 0.0
        hands = order.shape[1]
        place = 0
        while place < hands and strength[board, order[board, place]] < 0:
            place += 1
        first = place
        while place < hands:
            here, stop = strength[board, order[board, place]], place
            while stop < hands and strength[board, order[board, stop]] == here:
                hand = order[board, stop]
                out[hand] += total - sums[cards[hand, 0]] - sums[cards[hand, 1]]
                stop += 1
            for k in range(place, stop):
                hand = order[board, k]
                total += weight[hand]
                for side in range(2):
                    if cards[hand, side] != none:
                        sums[cards[hand, side]] += weight[hand]
            for k in range(place, stop):
                hand = order[board, k]
                out[hand] += total - sums[cards[hand, 0]] - sums[cards[hand, 1]]
            place = stop
        for k in range(first, hands):
            hand = order[board, k]
            out[hand] -= total - sums[cards[hand, 0]] - sums[cards[hand, 1]]
