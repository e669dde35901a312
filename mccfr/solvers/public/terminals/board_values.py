"""Computes terminal values on full boards, of LANES ranges at a time, or of one range on many boards.

With ranges side by side, `[hand, lane]`, running totals and sums by card are vectors.  For a single range they are
chains of dependent scalar additions, which took five times as long.  Card removal is by inclusion and exclusion: a hand
a, b meets the opponent's total minus the hands with a, minus those with b, plus those with both.

A showdown sweeps hands in order of strength and takes this difference twice: before (L) and after (LE) the hands of
equal strength are added.  The hand's wins minus its losses are L + LE minus the whole.  Ties cancel, the hand itself
included.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, njit, part_njit, types
from mccfr.solvers.public.terminals.lane_code import I64, Code, aligned_zeros, counting, is_clear, swept, transposed

LANES = 16


class Lanes(NamedTuple):
    """Scratch for terminal values of LANES ranges: n hands, C cards; a float dtype except for `picked`.

    reach   [n+1, LANES]      ranges, in order of strength
    won     [n, LANES]        reach that a hand beats minus reach that beats it, plus (all reach - sums of its two
                              cards)
    total   [C+3, LANES]      sums of reach by card; then 0, for a missing card; the whole range; and a row that is
                              never read, for additions for missing cards
    turned  [LANES, n]        rows during a change of the order of hands
    picked  [2, LANES] int64  row from which each range is copied, and row to which its values go
    factor  [LANES]           factor of the values
    limit   [LANES]           values closer to 0 before the factor become 0
    """

    reach: npt.NDArray[np.floating]
    won: npt.NDArray[np.floating]
    total: npt.NDArray[np.floating]
    turned: npt.NDArray[np.floating]
    picked: npt.NDArray[np.int64]
    factor: npt.NDArray[np.floating]
    limit: npt.NDArray[np.floating]


def new_lanes(hands: int, cards: int, dtype: npt.DTypeLike) -> Lanes:
    """Return Lanes for boards of at most `hands` hands of a player and a deck of `cards` cards."""
    reach, won, total = (aligned_zeros((rows, LANES), dtype) for rows in (hands + 1, hands, cards + 3))
    factor, limit = np.zeros(LANES, dtype), np.zeros(LANES, dtype)
    return Lanes(reach, won, total, np.zeros((LANES, hands), dtype), np.zeros((2, LANES), np.int64), factor, limit)


# --- code ---


def _cells(code, name, row, lane=None):
    """Emit a pointer to a row of LANES cells as a vector, or to 32 bytes of the row.

    code  Code that emits, with the array `name`
    row   LLVM number of the row
    lane  LLVM number of the first of the cells in the 32 bytes; None: all LANES cells
    """
    builder, start = code.builder, code.builder.mul(row, I64(LANES))
    width = LANES if lane is None else code.lanes(name)[1]
    cell = builder.gep(code.data(name), [start if lane is None else builder.add(start, lane)])
    return builder.bitcast(cell, code.vector(name, width).as_pointer())


def _rest(code, found, hand, lane=None):
    """Emit `found` minus two rows of the array `total`: the sums of reach with each card of a hand.

    found  vector of all LANES, or of the 32 bytes of cells from `lane` on
    hand   number of the hand
    """
    for card in code.cards(hand):
        found = code.builder.fsub(found, code.load(_cells(code, "total", card, lane)))
    return found


@intrinsic
def _add_hands(typing_context, total, reach, card, none, first, stop):
    """Add the reach of hands first to stop-1 to the sums by card and to the sum of all hands.

    total  [C+3, LANES] sums by card, and of all hands (the whole) in row C+1
    reach  [n+1, LANES]
    card   [n, 2] int16 cards of each hand; `none`, which is C, for a missing card
    """

    def codegen(context, builder, signature, arguments):
        code = Code(context, builder, signature.args, arguments, "total reach card")
        none_, first_, stop_ = arguments[3:]
        over_all = _cells(code, "total", builder.add(none_, I64(1)))

        def add(hand, carried):
            reach_ = code.load(_cells(code, "reach", hand))
            for held in code.cards(hand):
                known = builder.icmp_unsigned("!=", held, none_)
                row = _cells(code, "total", builder.select(known, held, builder.add(none_, I64(2))))
                code.store(builder.fadd(code.load(row), reach_), row)
            return [builder.fadd(carried[0], reach_)]

        code.store(swept(builder, first_, stop_, [code.load(over_all)], add)[0], over_all)
        return context.get_dummy_value()

    return types.void(total, reach, card, *[types.int64] * 3), codegen


def _resting(adds):
    """Return the function that emits the code of `_set_rests`, or of `_add_rests` with `adds`.

    For each hand this code stores in `won`, or adds to it, the sum of reach without the hand's two cards.
    """

    def codegen(context, builder, signature, arguments):
        code = Code(context, builder, signature.args, arguments, "won total card")
        whole = code.load(_cells(code, "total", builder.add(arguments[3], I64(1))))
        with counting(builder, *arguments[4:]) as hand:
            place = _cells(code, "won", hand)
            begun = builder.fadd(code.load(place), whole) if adds else whole
            code.store(_rest(code, begun, hand), place)
        return context.get_dummy_value()

    return codegen


@intrinsic
def _set_rests(typing_context, won, total, card, none, first, stop):
    """Set won[k] to the whole minus the sums of hand k's cards in `total`, for hands first to stop-1.

    The whole is the sum of the reach of all hands added to `total` so far.  won is [n, LANES], total [C+3, LANES].

    card  [n, 2] int16 cards of each hand; `none` for a missing card
    """
    return types.void(won, total, card, *[types.int64] * 3), _resting(adds=False)


@intrinsic
def _add_rests(typing_context, won, total, card, none, first, stop):
    """Add the whole minus the sums of hand k's cards in `total` to won[k], for hands first to stop-1.

    The whole is the sum of the reach of all hands added to `total` so far.  won is [n, LANES], total [C+3, LANES].

    card  [n, 2] int16 cards of each hand; `none` for a missing card
    """
    return types.void(won, total, card, *[types.int64] * 3), _resting(adds=True)


def _storing(showdown):
    """Return the function that emits the code of `_store_folds`, or of `_store_showdowns`.

    showdown  True: for `_store_showdowns`; False: for `_store_folds`
    """

    def codegen(context, builder, signature, arguments):
        names = "rows total card table same target factor limit"
        code = Code(context, builder, signature.args, arguments, names)
        none, count, first, stop = arguments[4:]
        size, last = code.lanes("rows")[1], builder.sub(count, I64(1))
        nothing = ir.Constant(code.vector("rows", size), [0.0] * size)
        with counting(builder, builder.and_(first, I64(-size)), stop, size) as lane:
            given = [code.at("rows", code.index("target", builder.add(lane, I64(j)))) for j in range(size)]
            factor, limit = (code.block(code.data(name), lane, size) for name in ("factor", "limit"))
            whole = code.load(_cells(code, "total", builder.add(none, I64(1)), lane))
            with counting(builder, I64(0), count, size) as k:
                block = []
                for i in range(size):
                    hand = builder.add(k, I64(i))
                    hand = builder.select(builder.icmp_signed("<", hand, count), hand, last)
                    found = _rest(code, whole, hand, lane)
                    place = hand if showdown else code.index("same", hand)
                    other = code.load(_cells(code, "table", place, lane))
                    found = builder.fsub(other, found) if showdown else builder.fadd(found, other)
                    scaled = builder.fmul(found, factor)
                    block.append(builder.select(is_clear(builder, found, limit), scaled, nothing))
                for row, column in zip(given, transposed(builder, block), strict=True):
                    code.store(column, builder.gep(row, [k]))
        return context.get_dummy_value()

    return codegen


@intrinsic
def _store_folds(typing_context, rows, sums, table, aim, none, count, first, stop):
    """Store fold values: rows[target[l], k] = factor[l] times the reach that hand k meets in lane l.

    sums   (total, card): sums by card, and cards of the hands, `none` for a missing one
    table  (reach, same): ranges, and row in `reach` of each hand's own two cards
    aim    (target, factor, limit); values closer to 0 than limit[l] before the factor become 0

    At least lanes first to stop-1 are stored, for `count` hands.  A lane is one of LANES ranges side by side.
    """
    return types.void(rows, sums, table, aim, *[types.int64] * 4), _storing(showdown=False)


@intrinsic
def _store_showdowns(typing_context, rows, sums, table, aim, none, count, first, stop):
    """Store showdown values: factor[l] times (reach that hand k beats - reach that beats it) in lane l.

    They go to rows[target[l], k], for `count` hands and at least lanes (ranges side by side) first to stop-1.

    sums   (total, card): sums by card, and cards of the hands, `none` for a missing one
    table  (won, same), with won from `sum_lanes`
    aim    (target, factor, limit); values closer to 0 than limit[l] before the factor become 0
    """
    return types.void(rows, sums, table, aim, *[types.int64] * 4), _storing(showdown=True)


# --- kernels ---


@part_njit
def sum_lanes(board, hero, showdown, lanes):
    """Sum up the ranges that the hands of player `hero` meet, for values at folds or showdowns.

    Sets `lanes.total`, the sums of reach by card, and with `showdown` also `lanes.won`.  The other player's ranges are
    in `lanes.reach` [hand by strength, lane], whose row after the last hand is set to 0.

    board  SampledBoard
    """
    other, by_strength = 1 - hero, board.showdown
    none, total, won, reach = by_strength.cards[0], lanes.total, lanes.won, lanes.reach
    card, other_card = by_strength.card[hero], by_strength.card[other]
    strength, other_strength = by_strength.strength[hero], by_strength.strength[other]
    count, other_count = board.count[hero], board.count[other]
    total[: none + 3] = 0.0
    reach[other_count] = 0.0
    j, k = np.int64(0), np.int64(0)
    while showdown and k < count:
        own_strength, weaker, stop = strength[np.uint64(k)], j, k
        while weaker < other_count and other_strength[np.uint64(weaker)] < own_strength:
            weaker += 1
        equal = weaker
        while equal < other_count and other_strength[np.uint64(equal)] == own_strength:
            equal += 1
        while stop < count and strength[np.uint64(stop)] == own_strength:
            stop += 1
        _add_hands(total, reach, other_card, none, j, weaker)
        _set_rests(won, total, card, none, k, stop)
        _add_hands(total, reach, other_card, none, weaker, equal)
        _add_rests(won, total, card, none, k, stop)
        j, k = equal, stop
    _add_hands(total, reach, other_card, none, j, other_count)


@part_njit
def store_lanes(board, hero, showdown, lanes, span, out):
    """Store the values of a player's hands at folds or showdowns, one in each lane, in `out`.

    A lane is one of 16 columns of `lanes`, for one range of the opponent.  A hand's value at a fold is the weight
    of the range's hands that share no card with it; at a showdown, the weight that it beats minus the weight that beats
    it.  `sum_lanes` must have summed the ranges before.  In lane l, a value closer to 0 than lanes.limit[l] becomes 0.
    The values are then multiplied by lanes.factor[l] and stored in row lanes.picked[1, l] of `out`.

    board     SampledBoard
    hero      player whose hands are valued
    showdown  True: values of showdowns; False: of folds
    lanes     Lanes
    span      (first, stop): at least lanes first to stop-1 are stored
    out       [., n] rows of values, with the hands in order of strength
    """
    by_strength, count, (first, stop) = board.showdown, board.count[hero], span
    none, same = by_strength.cards[0], by_strength.same[hero]
    sums, aim = (lanes.total, by_strength.card[hero]), (lanes.picked[1], lanes.factor, lanes.limit)
    if showdown:
        _store_showdowns(out, sums, (lanes.won, same), aim, none, count, first, stop)
    else:
        _store_folds(out, sums, (lanes.reach, same), aim, none, count, first, stop)


# --- one range, many boards ---


@njit
def won_at_showdowns(strength, order, cards, weight, sums, out):
    """Add to out [H] float64 the weight that each hand beats minus the weight that beats it.

    strength  [K, H] int32     order at a showdown on each of K boards; below 0: the hand shares a card with the board
    order     [K, H] uint16    hands by strength, ascending
    cards     [H, 2] uint8     cards of each hand; the number of cards in the deck for a missing one
    weight    [H] float64      weights of the other player's hands
    sums      [C + 1] float64  scratch: weight of the hands with each card

    Hands are swept from weak to strong, and hands that share a card do not meet.  Unsigned indices save a third of the
    time, because numba checks signed ones for being negative.
    """
    none = sums.shape[0] - 1
    for board in range(strength.shape[0]):
        sums[:] = 0.0
        total = 0.0
        hands = order.shape[1]
        start = 0
        while start < hands and strength[board, order[board, start]] < 0:
            start += 1
        first = start
        while start < hands:
            own_strength, stop = strength[board, order[board, start]], start
            while stop < hands and strength[board, order[board, stop]] == own_strength:
                hand = order[board, stop]
                out[hand] += total - sums[cards[hand, 0]] - sums[cards[hand, 1]]
                stop += 1
            for k in range(start, stop):
                hand = order[board, k]
                total += weight[hand]
                for side in range(2):
                    if cards[hand, side] != none:
                        sums[cards[hand, side]] += weight[hand]
            for k in range(start, stop):
                hand = order[board, k]
                out[hand] += total - sums[cards[hand, 0]] - sums[cards[hand, 1]]
            start = stop
        for k in range(first, hands):
            hand = order[board, k]
            out[hand] -= total - sums[cards[hand, 0]] - sums[cards[hand, 1]]
