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
from mccfr.solvers.public.range_lanes import LANES, lane_rows, lanes_of

BLOCK = 8  # hands that are brought into lanes, or multiplied, at a time
_I32 = ir.IntType(32)
_BLOCK_VECTOR = ir.VectorType(ir.DoubleType(), BLOCK)


class MetLanes(NamedTuple):
    """LANES pairs of ranges; n hands, C cards; all float64.

    reach    [n+1, LANES]     ranges of the player who did not act last; the row behind his hands is set to 0
    own      2 × [n, LANES]   ranges of the one who did, behind his fold and behind a showdown
    total    [C+2, LANES]     sums of `reach` by card, 0 for no card, and over all
    sums     [3, LANES]       pairs that meet at a fold; pairs won less pairs lost at a showdown; pairs that meet there
    """

    reach: npt.NDArray[np.float64]
    own: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
    total: npt.NDArray[np.float64]
    sums: npt.NDArray[np.float64]


def new_met_lanes(hands: int, cards: int) -> MetLanes:
    """Room for boards of at most `hands` hands and a deck of `cards`."""
    return MetLanes(
        lane_rows(hands + 1),
        (lane_rows(hands), lane_rows(hands)),
        lane_rows(cards + 2),
        lane_rows(3),
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


def _hand_cards(context, builder, kind, array, hand):
    """Both cards of a hand, of an array [., 2] int16."""
    data = context.make_array(kind)(context, builder, array).data
    first = builder.gep(data, [builder.mul(hand, hand.type(2))])
    return [builder.sext(builder.load(place), hand.type) for place in (first, builder.gep(first, [_I32(1)]))]


def _swept(builder, start, stop, carried, body):
    """Code of a loop over start .. stop-1 that carries vectors in registers: body(k, carried) gives them anew."""
    before = builder.block
    head, inside, behind = (builder.append_basic_block(name) for name in ("head", "inside", "behind"))
    builder.branch(head)
    builder.position_at_end(head)
    k = builder.phi(start.type)
    kept = [builder.phi(vector.type) for vector in carried]
    for phi, value in zip([k, *kept], [start, *carried], strict=True):
        phi.add_incoming(value, before)
    builder.cbranch(builder.icmp_signed("<", k, stop), inside, behind)
    builder.position_at_end(inside)
    following = body(k, kept)
    for phi, value in zip([k, *kept], [builder.add(k, k.type(1)), *following], strict=True):
        phi.add_incoming(value, builder.block)
    builder.branch(head)
    builder.position_at_end(behind)
    return kept


@intrinsic
def _add_hands(typing_context, total, none, card, reach, start, stop):
    """Add rows start .. stop-1 of `reach`, whose cards are `card`, to the sums by card and to the one over all.

    The one over all stays in a register: in memory each addition would wait for the last one's way there and back.
    What hands of one card add to the sum of no card is taken off again.
    """

    def codegen(context, builder, signature, arguments):
        kinds, (total_, none_, card_, reach_, start_, stop_) = signature.args, arguments

        def add(k, carried):
            here = _lanes(context, builder, kinds[3], reach_, k)
            for each in _hand_cards(context, builder, kinds[2], card_, k):
                place = lanes_of(context, builder, kinds[0], total_, each)
                builder.store(builder.fadd(builder.load(place, align=8), here), place, align=8)
            return [builder.fadd(carried[0], here)]

        whole = lanes_of(context, builder, kinds[0], total_, builder.add(none_, none_.type(1)))
        builder.store(_swept(builder, start_, stop_, [builder.load(whole, align=8)], add)[0], whole, align=8)
        empty = lanes_of(context, builder, kinds[0], total_, none_)
        builder.store(ir.Constant(empty.type.pointee, [0.0] * LANES), empty, align=8)
        return context.get_dummy_value()

    return types.void(total, types.int64, card, reach, types.int64, types.int64), codegen


@intrinsic
def _meet_hands(typing_context, sums, r, own, card, start, stop, total, none):
    """sums[r] += own[k] · met(k) of hands k = start .. stop-1, met(k) = total[all] - total[a] - total[b], its cards."""

    def codegen(context, builder, signature, arguments):
        kinds, (sums_, r_, own_, card_, start_, stop_, total_, none_) = signature.args, arguments
        whole = _lanes(context, builder, kinds[6], total_, builder.add(none_, none_.type(1)))

        def meet(k, carried):
            cards = _hand_cards(context, builder, kinds[3], card_, k)
            a, b = (_lanes(context, builder, kinds[6], total_, each) for each in cards)
            met = builder.fsub(builder.fsub(whole, a), b)
            return [builder.fadd(carried[0], builder.fmul(_lanes(context, builder, kinds[2], own_, k), met))]

        target = lanes_of(context, builder, kinds[0], sums_, r_)
        builder.store(_swept(builder, start_, stop_, [builder.load(target, align=8)], meet)[0], target, align=8)
        return context.get_dummy_value()

    arguments = (sums, types.int64, own, card, types.int64, types.int64, total, types.int64)
    return types.void(*arguments), codegen


@intrinsic
def _meet_same(typing_context, sums, r, own, same, stop, reach):
    """sums[r] += own[k] · reach[same[k]] of hands k < stop."""

    def codegen(context, builder, signature, arguments):
        kinds, (sums_, r_, own_, same_, stop_, reach_) = signature.args, arguments
        data = context.make_array(kinds[3])(context, builder, same_).data

        def meet(k, carried):
            there = builder.sext(builder.load(builder.gep(data, [k])), k.type)
            mine = _lanes(context, builder, kinds[2], own_, k)
            return [builder.fadd(carried[0], builder.fmul(mine, _lanes(context, builder, kinds[5], reach_, there)))]

        target = lanes_of(context, builder, kinds[0], sums_, r_)
        kept = _swept(builder, stop_.type(0), stop_, [builder.load(target, align=8)], meet)
        builder.store(kept[0], target, align=8)
        return context.get_dummy_value()

    return types.void(sums, types.int64, own, same, types.int64, reach), codegen


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
    other, none = 1 - hero, np.int64(board.cards[0])
    reach, own, total, sums = lanes.reach, lanes.own, lanes.total, lanes.sums
    card, other_card, same = board.card[hero], board.card[other], board.same[hero]
    count, other_count = np.int64(board.count[hero]), np.int64(board.count[other])
    total[: none + 2] = 0.0
    sums[:] = 0.0
    reach[other_count] = 0.0
    # Of a showdown the sums are those of weaker hands, before and behind the ones of equal strength, less all.
    strength, other_strength = board.strength[hero], board.strength[other]
    j, k = np.int64(0), np.int64(0)
    while showdown and k < count:
        here, first, stop = strength[k], j, k
        while stop < count and strength[stop] == here:
            stop += 1
        while j < other_count and other_strength[j] < here:
            j += 1
        _add_hands(total, none, other_card, reach, first, j)
        _meet_hands(sums, 1, own[1], card, k, stop, total, none)
        first = j
        while j < other_count and other_strength[j] == here:
            j += 1
        _add_hands(total, none, other_card, reach, first, j)
        _meet_hands(sums, 1, own[1], card, k, stop, total, none)
        k = stop
    _add_hands(total, none, other_card, reach, j, other_count)
    _meet_hands(sums, 0, own[0], card, 0, count, total, none)
    _meet_same(sums, 0, own[0], same, count, reach)
    if showdown:
        _meet_hands(sums, 2, own[1], card, 0, count, total, none)
        for lane in range(LANES):
            sums[1, lane] -= sums[2, lane]
