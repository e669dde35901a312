"""Computes terminal values on one full board, for LANES pairs of ranges at a time.

A range at a terminal is the player's range at the start of the street times the probability of the actions since.  All
hands of a bucket have these actions in common.  So ranges are not stored by hand.  The *shares* (these probabilities)
of LANES betting lines lie side by side, `[bucket, lane]`, and are multiplied with a hand's weight when needed.  Every
two neighbouring lanes must start the street with the same ranges, whose weights are stored once.

As in `board_values`, hands are in order of strength, and a hand meets the total minus the hands that share a card with
it.  Each hand's value is weighted and added at once.

Shares come as rows, `[row, bucket]`, and are transposed by loads and shuffles; compiled loops took three to four times
as long.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, part_njit, types
from mccfr.solvers.public.terminals.board_values import LANES
from mccfr.solvers.public.terminals.lane_code import I64, aligned_zeros, first_cells, swept

BLOCK = 8  # buckets that are transposed, or hands that are multiplied, at a time
PAIRS = LANES // BLOCK  # lanes that start with the same ranges
_I32, _F64 = ir.IntType(32), ir.DoubleType()
_BLOCK_VECTOR = ir.VectorType(_F64, BLOCK)
_LANE_VECTOR = ir.VectorType(_F64, LANES)


class HandLists(NamedTuple):
    """Hands on a board for terminals, in order of strength: n hands, S streets, C cards; all by player.

    count   [2] int64          number of hands
    card    [2, n, 2] int16    cards of each hand; C for a missing card
    same    [2, n] int32       index of the same two cards in the other player's list; else that list's length
    place   [S, 2, n+1] int32  index of each hand's bucket on a street, its row in `PairLanes.shares`; the last stays 0
    phases  [2] int64          number of phases of a showdown in which the player's hands meet the other's
    phase   [2, 2n, 3] int64   a phase is a run of the player's hands that meet the same hands, the weakest, of the
                               other: number of the other's hands; first and end of the run
    cards   [1] int64          C
    """

    count: npt.NDArray[np.int64]  # type: ignore[assignment]  # hides the tuple's own method
    card: npt.NDArray[np.int16]
    same: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]
    phases: npt.NDArray[np.int64]
    phase: npt.NDArray[np.int64]
    cards: npt.NDArray[np.int64]


class PairLanes(NamedTuple):
    """Scratch for LANES (16) betting lines with a pair of ranges each: n hands, C cards.

    All is float64 except `rows`, `ways` and `roots`.  A lane is one betting line with both players' ranges.  Lanes 2j
    and 2j+1 start the street with the same ranges, so there are BLOCK (8) starts, with the numbers j.

    The actor is the player who acted last; the other player is the one who did not.  A share is the probability of a
    player's actions on the street with a bucket.  A way is an index of both players' ranges at the start of the street.

    rows     [3, LANES] int64  source rows of shares: the other player's; the actor's after a call; after a fold
    ways     [BLOCK] int64     way of lanes 2j and 2j+1
    shares   3 × [n, LANES]    shares by bucket: the other player's; the actor's after a call and after a fold, times
                               the chips at stake
    weights  2 × [n+1, BLOCK]  weights of hands at the start of the street, of lanes 2j and 2j+1: the other's, the
                               actor's
    roots    [BLOCK] int64     source rows of one player's ranges, while `weights` are copied
    total    [C+1, LANES]      sums by card of the other player's ranges; 0 for no card
    won      [LANES]           chips of player 0
    """

    rows: npt.NDArray[np.int64]
    ways: npt.NDArray[np.int64]
    shares: tuple[npt.NDArray[np.float64], ...]
    weights: tuple[npt.NDArray[np.floating], ...]
    roots: npt.NDArray[np.int64]
    total: npt.NDArray[np.float64]
    won: npt.NDArray[np.float64]


def new_hand_lists(streets: int, hands: int) -> HandLists:
    """Return a HandLists of zeros for boards of `streets` streets and at most `hands` hands of a player."""
    return HandLists(
        np.zeros(2, np.int64),
        np.zeros((2, hands, 2), np.int16),
        np.zeros((2, hands), np.int32),
        np.zeros((streets, 2, hands + 1), np.int32),
        np.zeros(2, np.int64),
        np.zeros((2, 2 * hands, 3), np.int64),
        np.zeros(1, np.int64),
    )


def new_pair_lanes(hands: int, cards: int) -> PairLanes:
    """Return PairLanes of zeros for boards of at most `hands` hands and a deck of `cards` cards."""
    return PairLanes(
        np.zeros((3, LANES), np.int64),
        np.zeros(BLOCK, np.int64),
        tuple(aligned_zeros((hands, LANES), np.float64) for _ in range(3)),
        tuple(aligned_zeros((hands + 1, BLOCK), np.float64) for _ in range(2)),
        np.zeros(BLOCK, np.int64),
        aligned_zeros((cards + 1, LANES), np.float64),
        np.zeros(LANES),
    )


# --- vectors ---


def _cell(context, builder, array_type, array, *index):
    """Emit a pointer to a cell of an array with contiguous rows.

    index  LLVM index of the cell, or indices of its row and column; with two, cells must have 8 bytes
    """
    array_struct = context.make_array(array_type)(context, builder, array)
    offset = index[-1]
    if len(index) == 2:
        strides = builder.extract_value(array_struct.strides, 0)
        cells = builder.sdiv(strides, strides.type(8))
        offset = builder.add(builder.mul(index[0], cells), offset)
    return builder.gep(array_struct.data, [offset])


def _vector(builder, pointer, kind):
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=8)


def _put(builder, value, pointer):
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=8)


@intrinsic
def _transpose_block(typing_context, out, k, shares, rows, lane):
    """Set out[k+i, lane+j] = shares[rows[lane+j], k+i] for i, j < BLOCK; all are float64 but rows, int64."""

    def codegen(context, builder, signature, arguments):
        kinds, (out_, k_, shares_, rows_, lane_) = signature.args, arguments
        found = []
        for j in range(BLOCK):
            place = builder.add(lane_, lane_.type(j))
            row = builder.load(_cell(context, builder, kinds[3], rows_, place))
            found.append(_vector(builder, _cell(context, builder, kinds[2], shares_, row, k_), _BLOCK_VECTOR))
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

    return types.void(out, types.int64, shares, types.Array(types.int64, 1, "C"), types.int64), codegen


@intrinsic
def _hand_block(typing_context, out, k, reach, shares, place):
    """Set out[k+i] = reach[k+i] · shares[place[k+i]] for i < BLOCK; return a bit for each positive result.

    place  [n] int32 index in `shares` (a player's action probabilities by bucket) of each hand; the other arrays are
           float64
    """

    def codegen(context, builder, signature, arguments):
        kinds, (out_, k_, reach_, shares_, place_) = signature.args, arguments
        found = ir.Constant(_BLOCK_VECTOR, ir.Undefined)
        for i in range(BLOCK):
            row = builder.load(_cell(context, builder, kinds[4], place_, builder.add(k_, k_.type(i))))
            share = builder.load(_cell(context, builder, kinds[3], shares_, builder.sext(row, k_.type)))
            found = builder.insert_element(found, share, _I32(i))
        nothing = ir.Constant(_BLOCK_VECTOR, [0.0] * BLOCK)
        before = _vector(builder, _cell(context, builder, kinds[2], reach_, k_), _BLOCK_VECTOR)
        value = builder.fmul(before, found)
        _put(builder, value, _cell(context, builder, kinds[0], out_, k_))
        return builder.bitcast(builder.fcmp_ordered(">", value, nothing), ir.IntType(BLOCK))

    return types.int8(out, types.int64, reach, shares, place), codegen


class _Hands:
    """Emits LLVM loads of a player's hands on a board: weights, shares of LANES lines, sums by card.

    A share is the probability of the player's actions on a betting line, by bucket.
    """

    def __init__(self, context, builder, kind, value):
        """Take pointers to the first cells of the arrays in a tuple.

        value  (weights of the hands, their cards, rows of shares of their buckets), of the numba type `kind`
        """
        self._builder = builder
        self._weights, self._card, self._place = first_cells(context, builder, kind, value)

    def weights(self, k):
        """Emit hand k's weights at the start of the street on LANES betting lines, as a vector."""
        start = self._builder.gep(self._weights, [self._builder.mul(k, I64(BLOCK))])
        weights = self._builder.load(self._builder.bitcast(start, _BLOCK_VECTOR.as_pointer()), align=8)
        lanes = ir.Constant(ir.VectorType(_I32, LANES), [lane // PAIRS for lane in range(LANES)])
        return self._builder.shuffle_vector(weights, weights, lanes)

    def shares(self, k, *tables):
        """Emit loads of hand k's row in each of `tables`: vectors of LANES shares.

        A share is the probability of the player's actions on a betting line; tables are [bucket, LANES].
        """
        row = self._builder.sext(self._builder.load(self._builder.gep(self._place, [k])), I64)
        return [self._builder.load(_row(self._builder, table, row), align=8) for table in tables]

    def sums(self, k, total):
        """Emit pointers to the rows of hand k's two cards in `total` [card, LANES] of reach."""
        builder = self._builder
        first = builder.gep(self._card, [builder.mul(k, I64(2))])
        cards = [builder.sext(builder.load(each), I64) for each in (first, builder.gep(first, [_I32(1)]))]
        return [_row(builder, total, card) for card in cards]

    def rest(self, k, total, whole):
        """Emit a vector of LANES: `whole` minus the two rows of `total` for hand k's cards.

        total  [card, LANES] sums of reach by card, of the hands added so far
        whole  vector of LANES: the sum of their reach
        """
        for each in self.sums(k, total):
            whole = self._builder.fsub(whole, self._builder.load(each, align=8))
        return whole


def _row(builder, table, row):
    """Emit a pointer to a row of a table [., LANES], as a vector of LANES cells."""
    start = builder.gep(table, [builder.mul(row, I64(LANES))])
    return builder.bitcast(start, _LANE_VECTOR.as_pointer())


@intrinsic
def _weigh(typing_context, tables, theirs, mine, lists, span):
    """Set won [LANES] to player 0's chips on LANES lines, over all pairs of hands; `total` must be 0.

    tables        (shares [bucket, LANES], probabilities of a player's actions: the other player's, the actor's after a
                  call and after a fold; total; won), float64
    theirs, mine  (weights, cards, rows of shares) of hands: the other player's, the actor's, who acted last
    lists         (index of a hand's two cards in the other's list; phases of a showdown, [., 3] int64: number of the
                  other's weakest hands, first and end of the actor's hands that meet them)
    span          (numbers of phases, of the actor's hands, of the other's; row of `total` for no card)
    """

    def codegen(context, builder, signature, arguments):
        kinds = signature.args
        disjoint, called, folded, total, won_ = first_cells(context, builder, kinds[0], arguments[0])
        other, own = (_Hands(context, builder, kinds[i], arguments[i]) for i in (1, 2))
        same, steps = first_cells(context, builder, kinds[3], arguments[3])
        phases, count, other_count, none = (builder.extract_value(arguments[4], i) for i in range(4))
        nothing = ir.Constant(_LANE_VECTOR, [0.0] * LANES)

        def add(k, carried):
            here = builder.fmul(other.weights(k), *other.shares(k, disjoint))
            for each in other.sums(k, total):
                builder.store(builder.fadd(builder.load(each, align=8), here), each, align=8)
            return [builder.fadd(carried[0], here)]

        def add_until(first, stop, whole):
            """Emit the addition of hands first to stop-1; `total` for no card is set to 0."""
            whole = swept(builder, first, stop, [whole], add)[0]
            builder.store(nothing, _row(builder, total, none), align=8)
            return whole

        def weigh(p, carried):
            """Emit phase p of a showdown: a run of the actor's hands that meet the same hands of the other."""
            whole, won, counted = carried
            cell = builder.mul(p, I64(3))
            until, first, stop = (builder.load(builder.gep(steps, [builder.add(cell, I64(i))])) for i in range(3))
            whole = add_until(counted, until, whole)

            def meet(k, carried):
                here = builder.fmul(own.weights(k), *own.shares(k, called))
                return [builder.fadd(carried[0], builder.fmul(here, own.rest(k, total, whole)))]

            return [whole, swept(builder, first, stop, [won], meet)[0], until]

        whole, won, counted = swept(builder, I64(0), phases, [nothing, nothing, I64(0)], weigh)
        whole = add_until(counted, other_count, whole)

        def meet_all(k, carried):
            there = builder.sext(builder.load(builder.gep(same, [k])), I64)
            itself = builder.fmul(other.weights(there), *other.shares(there, disjoint))
            call, fold = own.shares(k, called, folded)
            found = builder.fmul(builder.fsub(fold, call), own.rest(k, total, whole))
            found = builder.fadd(found, builder.fmul(fold, itself))
            return [builder.fadd(carried[0], builder.fmul(own.weights(k), found))]

        won = swept(builder, I64(0), count, [won], meet_all)[0]
        builder.store(won, builder.bitcast(won_, _LANE_VECTOR.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(tables, theirs, mine, lists, types.UniTuple(types.int64, 4)), codegen


# --- kernels ---


@part_njit
def _add_phase(phase, phases, counted, first, stop):
    """Append a phase of a showdown: hands first to stop-1 meet the other player's `counted` weakest hands.

    phase   [., 3] int64 list of phases (counted, first, stop)
    phases  number of phases before

    A phase that continues the last one with the same `counted` is merged with it.  One that meets no hand is left out.
    Returns the number of phases.
    """
    if counted == 0:
        return phases
    if phases > 0 and phase[phases - 1, 0] == counted and phase[phases - 1, 2] == first:
        phase[phases - 1, 2] = stop
        return phases
    phase[phases, 0], phase[phases, 1], phase[phases, 2] = counted, first, stop
    return phases + 1


@part_njit
def _list_phases(board, player, phase):
    """Write the phases of a showdown of a player's hands to `phase` [., 3]; return their number.

    board  SampledBoard in order of strength

    A phase (counted, first, stop) says that the player's hands first to stop-1 meet the other's `counted` weakest
    hands.  A hand is in up to two phases: with the other's weaker hands, and with these and the equal ones.
    """
    strength, other_strength = board.showdown.strength[player], board.showdown.strength[1 - player]
    count, other_count = board.count[player], board.count[1 - player]
    k, weaker, phases = 0, 0, 0
    while k < count:
        own_strength, stop = strength[k], k
        while stop < count and strength[stop] == own_strength:
            stop += 1
        while weaker < other_count and other_strength[weaker] < own_strength:
            weaker += 1
        equal = weaker
        while equal < other_count and other_strength[equal] == own_strength:
            equal += 1
        phases = _add_phase(phase, phases, weaker, k, stop)
        phases = _add_phase(phase, phases, equal, k, stop)
        k, weaker = stop, equal
    return phases


@part_njit
def list_hands(board, lists):
    """Copy a board's hands to `lists` (HandLists) and list the phases of showdowns there.

    A phase is a run of one player's hands that meet the same number of the other's weakest hands.

    board  SampledBoard with hands in order of strength
    """
    showdown = board.showdown
    lists.cards[0] = showdown.cards[0]
    for player in range(2):
        count = board.count[player]
        lists.count[player] = count
        for k in range(count):
            for c in range(2):
                lists.card[player, k, c] = showdown.card[player, k, c]
            lists.same[player, k] = showdown.same[player, k]
        for street in range(board.rows.shape[0]):
            for k in range(count):
                lists.place[street, player, k] = board.local[street, player, k]
        lists.phases[player] = _list_phases(board, player, lists.phase[player])


@part_njit
def _transpose(table, rows, count, out):
    """Copy rows of `table` to the columns of `out`: out[k, j] = table[rows[j], k] for k < count.

    table  [., >= count] float64
    rows   int64 row for each column of `out`
    """
    whole = count - count % BLOCK
    for k in range(0, whole, BLOCK):
        for first in range(0, out.shape[1], BLOCK):
            _transpose_block(out, k, table, rows, first)
    for k in range(whole, count):
        for j in range(out.shape[1]):
            out[k, j] = table[rows[j], k]


@part_njit
def gather_shares(shares, counts, lanes):
    """Set the three arrays `lanes.shares` from the rows `lanes.rows` of `shares` [row, bucket].

    counts  numbers of buckets of the other player and of the actor (the one who acted last)

    Shares are probabilities of a player's actions on the street; the actor's are already times the chips at stake.
    """
    for kind in range(3):
        _transpose(shares, lanes.rows[kind], counts[min(kind, 1)], lanes.shares[kind])


@part_njit
def take_shares(place, count, reach, shares, out):
    """Set out [n] = reach [n] · shares[place [n]] for `count` hands; return whether any is positive.

    place   [n] int32 index of each hand's bucket in `shares`
    shares  [buckets] float64 probability of the player's actions with each bucket
    """
    alive, k, bits = False, 0, 0
    while k + BLOCK <= count:
        bits |= _hand_block(out, k, reach, shares, place)
        k += BLOCK
    while k < count:
        out[k] = reach[k] * shares[place[k]]
        alive |= out[k] > 0
        k += 1
    return alive or bits != 0


@part_njit
def weigh_lanes(lists, street, hero, showdown, reach, lanes):
    """Set `lanes.won` to player 0's chips, over all pairs of hands, at terminals where `hero` acted last.

    lists     HandLists
    showdown  whether any lane has a showdown; else only folds are weighed
    reach     [2R, n+1] float64  R pairs of ranges at the start of the street: row 2r + p is player p's of pair r; 0
                                 after the last hand
    lanes     PairLanes with the shares of LANES betting lines, and the number r (`ways`) of each two lines' ranges
    """
    other, none = 1 - hero, lists.cards[0]
    for kind in range(2):
        player = hero if kind else other
        for j in range(BLOCK):
            lanes.roots[j] = 2 * lanes.ways[j] + player
        _transpose(reach, lanes.roots, lists.count[player] + 1, lanes.weights[kind])
    lanes.total[:] = 0.0
    _weigh(
        (*lanes.shares, lanes.total, lanes.won),
        (lanes.weights[0], lists.card[other], lists.place[street, other]),
        (lanes.weights[1], lists.card[hero], lists.place[street, hero]),
        (lists.same[hero], lists.phase[hero]),
        (lists.phases[hero] if showdown else np.int64(0), lists.count[hero], lists.count[other], none),
    )
