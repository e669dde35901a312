"""Updates one decision for all hands of a player on a board: strategies, reach, sums, regrets.

Tables are [slot, bucket]; a slot is one action of a decision.  A *row* is one of the different buckets of the player's
hands on the board.  In lossless games buckets are numbered board by board, so the rows of a board are adjacent and are
handled as vectors.  If hands share rows, regret matching is done once for each row, and hands look up the result.
`SampledBoard.direct` tells the cases apart.

In kernels `board` is a SampledBoard, `place` is (street, player), `player` the player to act, and `rows` the
DecisionRows or the number of rows.  n is the number of the player's hands.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, part_njit, types
from mccfr.common.rounding import lane_bits, rounded
from mccfr.solvers.minimisers import Rows, regret_matching
from mccfr.solvers.public.terminals.lane_code import I64, Code, aligned_zeros, counting
from mccfr.solvers.regret import as_element

GROUP = 4  # hands, and actions, that are handled together if hands share rows


class DecisionRows(NamedTuple):
    """Scratch for a decision of A actions, in the dtype of regrets: n hands, in at most n rows.

    A row is one of the different buckets of the player's hands on the board.  GROUP (4) actions are handled together.

    sigma  [A, n]         current strategy of each row
    gain   [A, n]         gain of each action by row; before that, copied regrets or weighted values
    total  [n]            by row: sum of its hands' reach, or of the decision's value times the hands' weights
    parts  [4, n, GROUP]  partial sums by row for a group of actions
    side   [n, GROUP]     strategy of each row for a group of actions, side by side
    taken  [.] int64      actions of a group, or actions that are taken: max(A, GROUP) cells
    """

    sigma: npt.NDArray[np.floating]
    gain: npt.NDArray[np.floating]
    total: npt.NDArray[np.floating]
    parts: npt.NDArray[np.floating]
    side: npt.NDArray[np.floating]
    taken: npt.NDArray[np.int64]


def new_rows(actions: int, hands: int, dtype: npt.DTypeLike) -> DecisionRows:
    """Return scratch for decisions of at most `actions` actions and `hands` hands."""
    sigma, gain = (np.zeros((actions, hands), dtype) for _ in range(2))
    parts, side = aligned_zeros((GROUP, hands, GROUP), dtype), aligned_zeros((hands, GROUP), dtype)
    taken = np.zeros(max(actions, GROUP), np.int64)
    return DecisionRows(sigma, gain, np.zeros(hands, dtype), parts, side, taken)


@part_njit
def current_strategy(table, slot, actions, board, street, player, sigma, gathered):
    """Write the strategy by regret matching at a decision to sigma [actions, rows].

    There is one row for each different bucket of the player's hands on the board.

    table     [slot, bucket] regrets
    slot      slot of the decision's first action
    gathered  [actions, rows] scratch for regrets of these buckets
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
    """Set the range after each action: reach[a, k] = incoming[k] · sigma[a, row of hand k].

    A row is one of the different buckets of the player's hands on the board.

    incoming  [n] range before the decision
    rows      DecisionRows, whose sigma is read
    reach     [actions, n]; if hands share rows, not written for actions that no hand takes
    passed    [actions], set to 1 if any cell of the action's range is positive, else to 0
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
    """Return whether any of the first `count` values is positive.

    As a loop of its own it compiles to vector code.
    """
    above = False
    for k in range(count):
        above |= values[k] > 0
    return above


@part_njit
def _pass_group(board, place, incoming, rows, reach, some):
    """Compute the ranges after the actions rows.taken[:some], where hands share rows.

    A row is one of the different buckets of the player's hands on the board.

    place     (street, player)
    incoming  [n] range before the decision
    reach     [actions, n]; row a receives incoming[k] · sigma[a, row of hand k]
    """
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
    """Copy the strategy of `some` actions side by side: side[row, i] = sigma[taken[i], row].

    A row is one of the different buckets of a player's hands.  Columns i from `some` to GROUP-1 (3) become 0.

    rows  number of rows that are set
    """
    for i in range(GROUP):
        for row in range(rows):
            side[row, i] = sigma[taken[i], row] if i < some else as_element(side, 0.0)


@part_njit
def sum_rows(board, street, player, reach, total, parts):
    """Set total [rows] to the sum of reach [n] over the hands that share each row (bucket).

    parts  [4, n, GROUP] scratch: four partial sums, each of every fourth hand, so that an addition need not wait for
           the result of the one before
    """
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
    """Add weight · total · sigma to one action's strategy sums, by row, computed in float64.

    A row is one of the different buckets of the player's hands on the board.

    table  [slot, bucket] strategy sums, changed in place
    slot   slot of the decision's first action
    step   (action counted from the decision's first, weight float64, word uint64: random bits for rounding float32
           sums)
    total  [rows] reach of the hands of each row
    rows   DecisionRows, with the strategy
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
    """Add weight · gain to the regrets of one action, by row.

    A row is one of the different buckets of the player's hands on the board.

    table  [slot, bucket] regrets, changed in place
    slot   slot of the action
    step   (weight, floored: whether regrets are kept at 0 or above)
    gain   [rows] action's value minus the decision's, summed over the row's hands, each times its weight
    """
    rows, bucket = board.rows[street, player], board.bucket[street, player]
    factor, zero, cells = as_element(table, step[0]), as_element(table, 0.0), table[slot]
    lowest = zero if step[1] else as_element(table, -np.inf)
    if board.direct[street, player] == 2:
        row_cells = cells[bucket[0] : bucket[0] + rows]
        for k in range(rows):
            row_cells[k] = max(row_cells[k] + factor * gain[k], lowest)
    else:
        for k in range(rows):
            row = np.uint32(bucket[k])
            cells[row] = max(cells[row] + factor * gain[k], lowest)


# --- values by hand: small functions, so that each loop compiles to vector code before it is inlined ---


@part_njit
def add_values(values, out, count):
    """Add values[k] to out[k] for the first `count` hands, for example the values of an action."""
    for k in range(count):
        out[k] += values[k]


@part_njit
def begin_values(values, out, count):
    """Set out[k] = 0 + values[k] for the first `count` hands, which turns -0 into 0."""
    for k in range(count):
        out[k] = as_element(out, 0.0) + values[k]


@part_njit
def copy_values(values, out, count):
    """Set out[k] = values[k] for the first `count` hands."""
    for k in range(count):
        out[k] = values[k]


@part_njit
def take_values(values, out, count):
    """Subtract values[k] from out[k] for the first `count` cells."""
    for k in range(count):
        out[k] -= values[k]


@part_njit
def add_shares(values, sigma, out, count):
    """Add sigma[k] · values[k] to out[k] for the first `count` hands."""
    for k in range(count):
        out[k] += sigma[k] * values[k]


@part_njit
def weigh_gains(values, mean, weight, out, count):
    """Set out[k] = weight[k] · (values[k] - mean[k]) for the first `count` hands."""
    for k in range(count):
        out[k] = weight[k] * (values[k] - mean[k])


@part_njit
def share_rows(values, board, place, rows, out):
    """Compute each hand's value and each row's weighted action values, where hands share rows.

    A row is one of the different buckets of the player's hands.

    values  [actions, n] values of the actions by hand
    board   SampledBoard; its weights of the player's hands are `weight` below
    rows    DecisionRows: its sigma is read, its gain is set
    out     [n] receives the values of the hands

    out[k] = Σ sigma[a, row] · values[a, k], over actions; gain[a, row] = Σ weight[k] · values[a, k], over the row's
    hands.  Each of the four `parts` takes every fourth hand.  Consecutive hands often share rows, and one sum would
    have to wait for the addition before.
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


# --- code for four hands and up to four actions ---


def _turned(builder, rows, count):
    """Emit LLVM code that transposes 2 or 4 vectors of GROUP cells; return its first `count` rows.

    With 2 vectors, half of each result is unused.
    """

    def mixed(one, other, *chosen):
        return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(ir.IntType(32), GROUP), chosen))

    low = [mixed(one, other, 0, 4, 1, 5) for one, other in zip(rows[::2], rows[1::2], strict=True)]
    high = [mixed(one, other, 2, 6, 3, 7) for one, other in zip(rows[::2], rows[1::2], strict=True)]
    if len(rows) == 2:
        return [each for (half,) in (low, high) for each in (half, mixed(half, half, 2, 3, 2, 3))][:count]
    return [mixed(*half, *chosen) for half in (low, high) for chosen in ((0, 1, 4, 5), (2, 3, 6, 7))][:count]


def _by_actions(builder, some, body):
    """Emit LLVM code that runs body(2) for groups of up to two actions and body(4) for larger ones.

    some  LLVM value of the number of actions in the group
    body  function that emits the code for this many actions
    """
    with builder.if_else(builder.icmp_signed("<=", some, I64(2))) as branches:
        for branch, actions in zip(branches, (2, GROUP), strict=True):
            with branch:
                body(actions)


def _side_rows(code, k):
    """Emit LLVM code that loads the row of each of four hands, and the strategies of these rows.

    code  Code that is emitted, with the arrays `local` and `side`
    k     LLVM value of the number of the first hand

    Returns (four rows local[k : k+4], four vectors side[row]), as LLVM values.
    """
    places = [code.index("local", code.builder.add(k, I64(i))) for i in range(GROUP)]
    return places, [code.block(code.at("side", place), I64(0), GROUP) for place in places]


@intrinsic
def _pass_hands(typing_context, reach, incoming, taken, side, local, some, count):
    """Set reach[taken[i], k] = incoming[k] · side[local[k], i] for i < some and k < count.

    reach     [actions, n]
    incoming  [n]
    taken     [.] int64 actions of the group, `some` of them
    side      [rows, GROUP] strategy of the group
    local     [n] int32 row of each hand
    count     multiple of GROUP
    """

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
    """Add the share of a group of actions to hand values, and to the partial sums of rows.

    hands  (out [n], values [actions, n], weight [n], taken [GROUP]: the actions)
    rows   (side [rows, GROUP], parts [4, rows, GROUP], local [n] int32: row of each hand)
    some   number of actions in the group
    first  number of its first action; if 0, `out` begins at 0
    count  number of hands, a multiple of GROUP

    For i < some, out[k] grows by side[local[k], i] · values[taken[i], k], and parts[k % 4, local[k], i] by weight[k] ·
    values[taken[i], k].
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
