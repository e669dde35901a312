"""Values of terminals on one full board, range against range, LANES pairs of ranges at a time.

As in `range_lanes`, ranges lie side by side, `[hand, lane]`, in order of strength, and a hand meets the total less what
shares a card with it.  Here the ranges of both players are known, so what a hand is worth is weighed at once and not
kept.

Ranges come as rows, `[row, hand]`.  They are brought into lanes, and strategies to hands, by vectors that are put
together by loads and shuffles: what compilers make of such loops, gather instructions, measured three to four times
slower.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.jit import intrinsic, part_njit, types
from mccfr.solvers.public.range_lanes import LANES, add_hand, lane_rows, lanes_of

BLOCK = 8  # hands that are brought into lanes, or multiplied, at a time
_I32 = ir.IntType(32)
_BLOCK_VECTOR = ir.VectorType(ir.DoubleType(), BLOCK)


class MetLanes(NamedTuple):
    """LANES pairs of ranges; n hands, C cards; all float64.

    reach    [n+1, LANES]     ranges of the player who did not act last; the row behind his hands is set to 0
    own      2 × [n, LANES]   ranges of the one who did, behind his fold and behind a showdown
    total    [C+2, LANES]     sums of `reach` by card, 0 for no card, and over all
    weaker   [C+2, LANES]     the same of the hands that are weaker than those at hand
    sums     [5, LANES]       pairs that meet, at a fold and at a showdown; of the latter those that are beaten, and
                              those that are beaten or tie; and a fold's pairs of the same two cards
    """

    reach: npt.NDArray[np.float64]
    own: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
    total: npt.NDArray[np.float64]
    weaker: npt.NDArray[np.float64]
    sums: npt.NDArray[np.float64]


def new_met_lanes(hands: int, cards: int) -> MetLanes:
    """Room for boards of at most `hands` hands and a deck of `cards`."""
    return MetLanes(
        lane_rows(hands + 1),
        (lane_rows(hands), lane_rows(hands)),
        lane_rows(cards + 2),
        lane_rows(cards + 2),
        lane_rows(5),
    )


# --- vectors ---


def _cell(context, builder, array_type, array, *index):
    """Pointer to a cell of a C-contiguous array; leading axes take their strides in cells."""
    made = context.make_array(array_type)(context, builder, array)
    place = index[-1]
    if len(index) == 2:
        strides = builder.extract_value(made.strides, 0)
        cells = builder.sdiv(strides, strides.type(8))
        place = builder.add(builder.mul(index[0], cells), place)
    return builder.gep(made.data, [place])


def _vector(builder, pointer, kind):
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=8)


def _put(builder, value, pointer):
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=8)


def _lanes(context, builder, array_type, array, row):
    return builder.load(lanes_of(context, builder, array_type, array, row), align=8)


@intrinsic
def _transpose_block(typing_context, out, k, reach, rows, lane):
    """out[k+i, lane+j] = reach[rows[lane+j], k+i] for i, j < BLOCK."""

    def codegen(context, builder, signature, arguments):
        kinds, (out_, k_, reach_, rows_, lane_) = signature.args, arguments
        found = []
        for j in range(BLOCK):
            place = builder.add(lane_, lane_.type(j))
            row = builder.load(_cell(context, builder, kinds[3], rows_, place))
            found.append(_vector(builder, _cell(context, builder, kinds[2], reach_, row, k_), _BLOCK_VECTOR))
        for step in (1, 2, 4):
            for i in range(BLOCK):
                if not i & step:
                    one, other = found[i], found[i + step]
                    low = [p if not p & step else BLOCK + p - step for p in range(BLOCK)]
                    high = [p + step if not p & step else BLOCK + p for p in range(BLOCK)]
                    for place, lanes in ((i, low), (i + step, high)):
                        chosen = ir.Constant(ir.VectorType(_I32, BLOCK), lanes)
                        found[place] = builder.shuffle_vector(one, other, chosen)
        for i in range(BLOCK):
            row = builder.add(k_, k_.type(i))
            _put(builder, found[i], _cell(context, builder, kinds[0], out_, row, lane_))
        return context.get_dummy_value()

    return types.void(out, types.int64, reach, types.Array(types.int64, 1, "C"), types.int64), codegen


@intrinsic
def _pass_block(typing_context, out, k, reach, sigma, local, factor):
    """out[k+i] = reach[k+i] · sigma[local[k+i]] · factor for i < BLOCK; bits of those above 0."""

    def codegen(context, builder, signature, arguments):
        kinds, (out_, k_, reach_, sigma_, local_, factor_) = signature.args, arguments
        shares = ir.Constant(_BLOCK_VECTOR, ir.Undefined)
        for i in range(BLOCK):
            place = builder.load(_cell(context, builder, kinds[4], local_, builder.add(k_, k_.type(i))))
            share = builder.load(_cell(context, builder, kinds[3], sigma_, builder.sext(place, k_.type)))
            shares = builder.insert_element(shares, share, _I32(i))
        nothing = ir.Constant(_BLOCK_VECTOR, [0.0] * BLOCK)
        spread = builder.insert_element(ir.Constant(_BLOCK_VECTOR, ir.Undefined), factor_, _I32(0))
        spread = builder.shuffle_vector(spread, spread, ir.Constant(ir.VectorType(_I32, BLOCK), [0] * BLOCK))
        before = _vector(builder, _cell(context, builder, kinds[2], reach_, k_), _BLOCK_VECTOR)
        value = builder.fmul(builder.fmul(before, shares), spread)
        _put(builder, value, _cell(context, builder, kinds[0], out_, k_))
        return builder.bitcast(builder.fcmp_ordered(">", value, nothing), ir.IntType(BLOCK))

    return types.int8(out, types.int64, reach, sigma, local, types.float64), codegen


@intrinsic
def _add_product(typing_context, out, r, own, k, reach, j):
    """out[r] += own[k] · reach[j], rows of LANES."""

    def codegen(context, builder, signature, arguments):
        kinds, (out_, r_, own_, k_, reach_, j_) = signature.args, arguments
        target = lanes_of(context, builder, kinds[0], out_, r_)
        weight, other = _lanes(context, builder, kinds[2], own_, k_), _lanes(context, builder, kinds[4], reach_, j_)
        builder.store(builder.fadd(builder.load(target, align=8), builder.fmul(weight, other)), target, align=8)
        return context.get_dummy_value()

    return types.void(out, types.int64, own, types.int64, reach, types.int64), codegen


@intrinsic
def _add_met(typing_context, out, r, own, k, total, whole, c, d):
    """out[r] += own[k] · (total[whole] - total[c] - total[d]), rows of LANES."""

    def codegen(context, builder, signature, arguments):
        kinds, (out_, r_, own_, k_, total_, *cards) = signature.args, arguments
        target = lanes_of(context, builder, kinds[0], out_, r_)
        weight = _lanes(context, builder, kinds[2], own_, k_)
        all_, c_, d_ = (_lanes(context, builder, kinds[4], total_, row) for row in cards)
        met = builder.fmul(weight, builder.fsub(builder.fsub(all_, c_), d_))
        builder.store(builder.fadd(builder.load(target, align=8), met), target, align=8)
        return context.get_dummy_value()

    arguments = (out, types.int64, own, types.int64, total, types.int64, types.int64, types.int64)
    return types.void(*arguments), codegen


# --- kernels ---


@part_njit
def gather_lanes(reach, rows, count, out):
    """out[k, lane] = reach[rows[lane], k] for the first `count` hands."""
    k = 0
    while k + BLOCK <= count:
        for lane in range(0, LANES, BLOCK):
            _transpose_block(out, k, reach, rows, lane)
        k += BLOCK
    while k < count:
        for lane in range(LANES):
            out[k, lane] = reach[rows[lane], k]
        k += 1


@part_njit
def pass_range(local, direct, count, reach, sigma, factor, out):
    """out [n] = reach [n] times the strategy of each hand's row times `factor`; whether any of it is above 0.

    direct  each hand has a row of its own, in order: `local` [n] int32 need not be asked
    """
    alive = False
    if direct:
        for k in range(count):
            out[k] = reach[k] * sigma[k] * factor
            alive |= out[k] > 0
        return alive
    k, bits = 0, 0
    while k + BLOCK <= count:
        bits |= _pass_block(out, k, reach, sigma, local, factor)
        k += BLOCK
    while k < count:
        out[k] = reach[k] * sigma[local[k]] * factor
        alive |= out[k] > 0
        k += 1
    return alive or bits != 0


@part_njit
def weigh_lanes(board, hero, showdown, lanes):
    """Set `lanes.sums` of `hero`'s ranges `lanes.own` against `lanes.reach`; of showdowns only with `showdown`."""
    other, none = 1 - hero, board.cards[0]
    reach, own, total, weaker, sums = lanes.reach, lanes.own, lanes.total, lanes.weaker, lanes.sums
    card, other_card, same = board.card[hero], board.card[other], board.same[hero]
    strength, other_strength = board.strength[hero], board.strength[other]
    count, other_count = board.count[hero], board.count[other]
    whole = none + 1
    total[: none + 2] = 0.0
    sums[:] = 0.0
    reach[other_count] = 0.0
    for j in range(other_count):
        add_hand(total, none, other_card, reach, j)
    for k in range(count):
        a, b = np.int64(card[k, 0]), np.int64(card[k, 1])
        _add_met(sums, 0, own[0], k, total, whole, a, b)
        _add_product(sums, 4, own[0], k, reach, np.int64(same[k]))
        if showdown:
            _add_met(sums, 1, own[1], k, total, whole, a, b)
    if not showdown:
        return
    weaker[: none + 2] = 0.0
    j, k = 0, 0
    while k < count:
        here, stop = strength[k], k
        while j < other_count and other_strength[j] < here:
            add_hand(weaker, none, other_card, reach, j)
            j += 1
        while stop < count and strength[stop] == here:
            _add_met(sums, 2, own[1], stop, weaker, whole, np.int64(card[stop, 0]), np.int64(card[stop, 1]))
            stop += 1
        while j < other_count and other_strength[j] == here:
            add_hand(weaker, none, other_card, reach, j)
            j += 1
        while k < stop:
            _add_met(sums, 3, own[1], k, weaker, whole, np.int64(card[k, 0]), np.int64(card[k, 1]))
            k += 1


@part_njit
def lane_value(sums, kind, lane):
    """Pairs that meet at the fold of a lane (0), and pairs won less pairs lost at its showdown (1)."""
    if kind == 0:
        return sums[0, lane] + sums[4, lane]
    return sums[2, lane] + sums[3, lane] - sums[1, lane]
