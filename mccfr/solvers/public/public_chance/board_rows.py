"""Rows of one decision node for all hands of a player on a board: strategies, reach, strategy sums, regrets.

Tables are [slot, bucket]: the hands of a board that have a row each then lie side by side (lossless games number their
buckets board by board), so that a node's rows are a few streams of vector instructions.  Where hands share rows, a row
is matched once a node and hands look it up.  `SampledBoard.direct` tells the cases apart.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, part_njit, types
from mccfr.rounding import lane_bits, rounded
from mccfr.solvers.minimisers import Rows, regret_matching
from mccfr.solvers.public.terminals.lane_code import I64, Code, aligned_zeros, counting
from mccfr.solvers.regret import as_element

GROUP = 4  # hands, and actions, that are worked on together where hands share rows


class DecisionRows(NamedTuple):
    """A decision's rows as they are worked on.  A actions, n hands.

    sigma  [A, n]         current strategy
    gain   [A, n]         what each action gains; before that, gathered regrets
    total  [n]            sums
    parts  [4, n, GROUP]  sums of a group of actions under way
    side   [n, GROUP]     strategy of a group of actions, side by side
    taken  [A] int64      actions: a group of them, or those that are taken
    """

    sigma: npt.NDArray[np.floating]
    gain: npt.NDArray[np.floating]
    total: npt.NDArray[np.floating]
    parts: npt.NDArray[np.floating]
    side: npt.NDArray[np.floating]
    taken: npt.NDArray[np.int64]


def new_rows(actions: int, hands: int, dtype: npt.DTypeLike) -> DecisionRows:
    """Room for decisions of so many actions at most."""
    sigma, gain = (np.zeros((actions, hands), dtype) for _ in range(2))
    parts, side = aligned_zeros((GROUP, hands, GROUP), dtype), aligned_zeros((hands, GROUP), dtype)
    taken = np.zeros(max(actions, GROUP), np.int64)
    return DecisionRows(sigma, gain, np.zeros(hands, dtype), parts, side, taken)


@part_njit
def current_strategy(table, slot, actions, board, street, player, sigma, gathered):
    """Regret matching of all rows of a node on the board: sigma [actions, rows], in place.

    `table` [slots, buckets] holds regrets; `gathered` [actions, rows] is scratch.
    """
    rows, bucket, none = board.rows[street, player], board.bucket[street, player], np.int64(0)
    if board.direct[street, player] == 2:
        regret_matching(table, Rows(np.int64(slot), np.int64(actions), np.int64(bucket[0]), rows), sigma, none)
        return
    for a in range(actions):
        cells, here = table[slot + a], gathered[a]
        for k in range(rows):
            here[k] = cells[np.uint32(bucket[k])]
    regret_matching(gathered, Rows(none, np.int64(actions), none, rows), sigma, none)


@part_njit
def pass_reach(board, place, incoming, rows, reach, passed):
    """Ranges behind a node's actions: reach[a, k] = incoming[k] times the strategy of each hand's row, sigma[a].

    place   (street, player)
    rows    DecisionRows; of hands that share rows, those that nobody takes an action of are left out
    passed  [actions], in place: whether any of a range is above 0
    """
    (street, player), sigma, some = place, rows.sigma, 0
    count, direct = board.count[player], board.direct[street, player]
    for a in range(reach.shape[0]):
        passed[a] = 0
        if direct:
            for k in range(count):
                reach[a, k] = incoming[k] * sigma[a, k]
            passed[a] = _any_above(reach[a], count)
            continue
        if _any_above(sigma[a], board.rows[street, player]):
            rows.taken[some] = a
            some += 1
        if some and (some == GROUP or a + 1 == reach.shape[0]):
            _pass_group(board, place, incoming, rows, reach, some)
            for i in range(some):
                passed[rows.taken[i]] = _any_above(reach[rows.taken[i]], count)
            some = 0


@part_njit
def _any_above(values, count):
    """Whether any of the first `count` is above 0: apart, so that it is compiled to vector instructions."""
    found = False
    for k in range(count):
        found |= values[k] > 0
    return found


@part_njit
def _pass_group(board, place, incoming, rows, reach, some):
    """`pass_reach` of the first `some` of `rows.taken`."""
    street, player = place
    local, count = board.local[street, player], board.count[player]
    _put_aside(rows.sigma, rows.taken, some, rows.side, board.rows[street, player])
    whole = count - count % GROUP
    _pass_hands(reach, incoming, rows.taken, rows.side, local, np.int64(some), whole)
    for i in range(some):
        for k in range(whole, count):
            reach[rows.taken[i], k] = incoming[k] * rows.side[np.uint32(local[k]), i]


@part_njit
def _put_aside(sigma, taken, some, side, rows):
    """side[row, i] = sigma[taken[i], row], and 0 behind the first `some`."""
    for i in range(GROUP):
        for row in range(rows):
            side[row, i] = sigma[taken[i], row] if i < some else as_element(side, 0.0)


@part_njit
def sum_rows(board, street, player, reach, total, parts):
    """total [rows] = reach of the hands that share each row; `parts` as of `share_rows`."""
    local, count, rows = board.local[street, player], board.count[player], board.rows[street, player]
    parts[:, :rows, 0] = as_element(parts, 0.0)
    one, two, three, four = parts[0], parts[1], parts[2], parts[3]
    whole = count - count % GROUP
    for k in range(0, whole, GROUP):
        one[np.uint32(local[k]), 0] += reach[k]
        two[np.uint32(local[k + 1]), 0] += reach[k + 1]
        three[np.uint32(local[k + 2]), 0] += reach[k + 2]
        four[np.uint32(local[k + 3]), 0] += reach[k + 3]
    for k in range(whole, count):
        one[np.uint32(local[k]), 0] += reach[k]
    for row in range(rows):
        total[row] = (one[row, 0] + two[row, 0]) + (three[row, 0] + four[row, 0])


@part_njit
def add_sums(table, slot, board, place, step, total, rows):
    """Strategy sums of one action: table[slot, bucket] += weight · total · sigma by row, added in float64.

    step  (action, weight float64, word uint64: random bits that float32 sums are rounded by)
    """
    (street, player), (action, weight, word) = place, step
    cells, sigma = table[slot + action], rows.sigma[action]
    count, bucket = board.rows[street, player], board.bucket[street, player]
    if board.direct[street, player] == 2:
        here = cells[bucket[0] : bucket[0] + count]
        for k in range(count):
            here[k] = rounded(here, np.float64(here[k]) + weight * (total[k] * sigma[k]), lane_bits(word, k))
        return
    for k in range(count):
        cell = np.uint32(bucket[k])
        cells[cell] = rounded(cells, np.float64(cells[cell]) + weight * (total[k] * sigma[k]), lane_bits(word, k))


@part_njit
def add_regrets(table, slot, board, street, player, step, gain):
    """Regrets of one action: table[slot, bucket] += weight · gain by row; step = (weight, floored: not below 0)."""
    rows, bucket = board.rows[street, player], board.bucket[street, player]
    factor, zero, cells = as_element(table, step[0]), as_element(table, 0.0), table[slot]
    lowest = zero if step[1] else as_element(table, -np.inf)
    if board.direct[street, player] == 2:
        here = cells[bucket[0] : bucket[0] + rows]
        for k in range(rows):
            here[k] = max(here[k] + factor * gain[k], lowest)
    else:
        for k in range(rows):
            place = np.uint32(bucket[k])
            cells[place] = max(cells[place] + factor * gain[k], lowest)


# --- values, hand by hand: small, so that each loop is compiled to vector instructions before callers take it in ---


@part_njit
def add_values(values, out, count):
    """out[k] += values[k] for the first `count` hands."""
    for k in range(count):
        out[k] += values[k]


@part_njit
def begin_values(values, out, count):
    """out[k] = 0 + values[k] for the first `count` hands, which has no -0."""
    for k in range(count):
        out[k] = as_element(out, 0.0) + values[k]


@part_njit
def copy_values(values, out, count):
    """out[k] = values[k] for the first `count` hands."""
    for k in range(count):
        out[k] = values[k]


@part_njit
def take_values(values, out, count):
    """out[k] -= values[k] for the first `count` rows."""
    for k in range(count):
        out[k] -= values[k]


@part_njit
def add_shares(values, sigma, out, count):
    """out[k] += sigma[k] · values[k] for the first `count` hands."""
    for k in range(count):
        out[k] += sigma[k] * values[k]


@part_njit
def weigh_gains(values, mean, weight, out, count):
    """out[k] = weight[k] · (values[k] - mean[k]) for the first `count` hands."""
    for k in range(count):
        out[k] = weight[k] * (values[k] - mean[k])


@part_njit
def share_rows(values, board, place, rows, out):
    """Where hands share rows: out[k] = Σ sigma[a, row] · values[a, k], and gain[a, row] = Σ weight[k] · values[a, k].

    values  [actions, n]
    place   (street, player)
    rows    DecisionRows: of `parts` each takes every fourth hand; hands that follow each other share rows, and a sum
            that is read as soon as it was written has to be waited for
    """
    (street, player), taken, parts = place, rows.taken, rows.parts
    local, weight = board.local[street, player], board.weight[player]
    count, found = board.count[player], board.rows[street, player]
    whole = count - count % GROUP
    for first in range(0, values.shape[0], GROUP):
        some = min(GROUP, values.shape[0] - first)
        for i in range(GROUP):
            taken[i] = first + min(i, some - 1)
        _put_aside(rows.sigma, taken, some, rows.side, found)
        parts[:, :found] = as_element(parts, 0.0)
        _share_hands((out, values, weight, taken), (rows.side, parts, local), np.int64(some), np.int64(first), whole)
        for k in range(whole, count):
            row, here = np.uint32(local[k]), out[k] if first else as_element(out, 0.0)
            for i in range(some):
                here += rows.side[row, i] * values[first + i, k]
                parts[0, row, i] += weight[k] * values[first + i, k]
            out[k] = here
        for i in range(some):
            for row in range(found):
                one, two = parts[0, row, i] + parts[1, row, i], parts[2, row, i] + parts[3, row, i]
                rows.gain[first + i, row] = one + two


# --- code for four hands, and up to four actions, at a time ---


def _turned(builder, rows, wanted):
    """The first `wanted` columns of 2 or 4 rows of GROUP cells; of two rows, columns' other cells are anything."""

    def mixed(one, other, *chosen):
        return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(ir.IntType(32), GROUP), chosen))

    low = [mixed(one, other, 0, 4, 1, 5) for one, other in zip(rows[::2], rows[1::2], strict=True)]
    high = [mixed(one, other, 2, 6, 3, 7) for one, other in zip(rows[::2], rows[1::2], strict=True)]
    if len(rows) == 2:
        return [each for (half,) in (low, high) for each in (half, mixed(half, half, 2, 3, 2, 3))][:wanted]
    return [mixed(*half, *chosen) for half in (low, high) for chosen in ((0, 1, 4, 5), (2, 3, 6, 7))][:wanted]


def _by_actions(builder, some, body):
    """The code of `body` for two actions and for four."""
    with builder.if_else(builder.icmp_signed("<=", some, I64(2))) as branches:
        for branch, actions in zip(branches, (2, GROUP), strict=True):
            with branch:
                body(actions)


def _side_rows(code, k):
    """Row numbers of four hands from k on, and what stands aside for them."""
    places = [code.index("local", code.builder.add(k, I64(i))) for i in range(GROUP)]
    return places, [code.block(code.at("side", place), I64(0), GROUP) for place in places]


@intrinsic
def _pass_hands(typing_context, reach, incoming, taken, side, local, some, count):
    """reach[taken[i], k] = incoming[k] · side[local[k], i] for the first `some`, and `count` hands, in whole groups."""

    def codegen(context, builder, signature, arguments):
        code = Code(context, builder, signature.args, arguments, "reach incoming taken side local")
        some_, count_ = arguments[5:]

        def body(actions):
            places = [builder.select(builder.icmp_signed("<", I64(i), some_), I64(i), I64(0)) for i in range(actions)]
            rows = [code.at("reach", code.index("taken", place)) for place in places]
            with counting(builder, I64(0), count_, GROUP) as k:
                here, sides = code.block(code.data("incoming"), k, GROUP), _side_rows(code, k)[1]
                columns = _turned(builder, sides, actions)
                for row, column in reversed([*zip(rows, columns, strict=True)]):  # the first is written last
                    code.store(builder.fmul(here, column), builder.gep(row, [k]))

        _by_actions(builder, some_, body)
        return context.get_dummy_value()

    return types.void(reach, incoming, taken, side, local, types.int64, types.int64), codegen


@intrinsic
def _share_hands(typing_context, hands, rows, some, first, count):
    """`share_rows` of a group of actions, for `count` hands in whole groups.

    hands  (out, values, weight, taken)
    rows   (side, parts, local)
    """

    def codegen(context, builder, signature, arguments):
        code = Code(context, builder, signature.args, arguments, "out values weight taken side parts local")
        some_, first_, count_ = arguments[2:]
        begins = builder.icmp_signed("==", first_, I64(0))
        cells = builder.mul(code.length("parts", 1), I64(GROUP))

        def body(actions):
            given = [code.at("values", code.index("taken", I64(i))) for i in range(actions)]
            parts = [builder.gep(code.data("parts"), [builder.mul(cells, I64(i))]) for i in range(GROUP)]
            nothing = ir.Constant(code.vector("out", GROUP), [0.0] * GROUP)
            with counting(builder, I64(0), count_, GROUP) as k:
                places, sides = _side_rows(code, k)
                values = [code.block(row, k, GROUP) for row in given]
                found = builder.select(begins, nothing, code.block(code.data("out"), k, GROUP))
                for value, column in zip(values, _turned(builder, sides, actions), strict=True):
                    found = builder.fadd(found, builder.fmul(column, value))
                code.store(found, builder.gep(code.data("out"), [k]))
                weight = code.block(code.data("weight"), k, GROUP)
                weighed = _turned(builder, [builder.fmul(weight, value) for value in values], GROUP)
                for part, place, hand in zip(parts, places, weighed, strict=True):
                    row = builder.gep(part, [builder.mul(place, I64(GROUP))])
                    code.store(builder.fadd(code.block(row, I64(0), GROUP), hand), row)

        _by_actions(builder, some_, body)
        return context.get_dummy_value()

    return types.void(hands, rows, *[types.int64] * 3), codegen
