"""State of regret-based pruning, and the settlement that ends the pruning of an action.

The algorithm is described in `mccfr.solvers.histories.regret_based_pruning`; sections and equations are those of Brown
& Sandholm 2015.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import inline_njit, part_njit
from mccfr.common.float_tolerance import SETTLED
from mccfr.solvers.minimisers import Rows, Tables, current_strategy
from mccfr.trees.compiled import CHANCE, NO_SLOT, TERMINAL

SUM, REACH = 0, 1
"""Columns of `PruningScratch.totals`."""


class NodeFacts(NamedTuple):
    """Constants of N nodes for pruning.

    upper   [N] float64   upper bound of a node's value to the player who acts before it
    row     [N] int64     row of each decision node
    last    [2, N] int64  cell of each player's last action before a node, or NO_SLOT
    chance  [N] float64   product of chance probabilities on the path to a node
    """

    upper: npt.NDArray[np.float64]
    row: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    chance: npt.NDArray[np.float64]


class PrunedInfosets(NamedTuple):
    """Both players' infosets in one numbering, player 0's first: R rows, C cells (slots), D decisions.

    starts       [R+1] int64  first cell of each row, and the end of the last
    above        [R] int64    cell of the own action before each row, or NO_SLOT
    row_of       [C] int64    row of each cell
    owner        [R] int64    player of each row
    below_first  [C+1] int64  where in `below` the rows right after each own action begin
    below        [R] int64    rows that come after an own action, grouped by that action
    node_first   [R+1] int64  where in `node` each row's histories begin
    node         [D] int64    decision nodes, grouped by row
    ends         [C] uint8    1: the action ends the game in every history
    by_node      NodeFacts    constants of each node
    """

    starts: npt.NDArray[np.int64]
    above: npt.NDArray[np.int64]
    row_of: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    below_first: npt.NDArray[np.int64]
    below: npt.NDArray[np.int64]
    node_first: npt.NDArray[np.int64]
    node: npt.NDArray[np.int64]
    ends: npt.NDArray[np.uint8]
    by_node: NodeFacts


class Pruned(NamedTuple):
    """State of pruning between iterations, both players' tables end to end.

    tables         Tables [C, 1]  regrets (bounds for pruned actions) and strategy sums; the basis is the regrets
    reach_sum      [C] float64    own reach times strategy, summed over the opponent's traversals without weights
    payoff_sum     [C] float64    sum of counterfactual values that follow an action without another own action
    assumed        [C] float64    values assumed of a pruned action since T0
    pruned_regret  [C] float64    regret of a pruned action at T0
    pruned_since   [C] uint32     T0; 0: not pruned
    value_sum      [R] float64    sum of counterfactual values v(I)
    bound_sum      [C] float64    sum of π_{-i}·U of every action
    """

    tables: Tables
    reach_sum: npt.NDArray[np.float64]
    payoff_sum: npt.NDArray[np.float64]
    assumed: npt.NDArray[np.float64]
    pruned_regret: npt.NDArray[np.float64]
    pruned_since: npt.NDArray[np.uint32]
    value_sum: npt.NDArray[np.float64]
    bound_sum: npt.NDArray[np.float64]


class MetRowMarks(NamedTuple):
    """Marks of the R rows that were met.

    visited  [R] int64  traversal in which a row was last met
    settled  [R] int64  settlement in which it was last met
    serial   [2] int64  number of the current traversal, and of the current settlement
    """

    visited: npt.NDArray[np.int64]
    settled: npt.NDArray[np.int64]
    serial: npt.NDArray[np.int64]


class PruningScratch(NamedTuple):
    """Scratch of `run_pruned`, which keeps no state between calls.

    marks    MetRowMarks     rows that were met
    rows     [R] int64       rows of this traversal
    after    [R] int64       rows after the action to settle, from the top down
    path     [R] int64       rows from one up to the first that is up to date
    waiting  [C] int64       pruned actions to settle
    stack    [N] int64       nodes to visit in a best response's traversal
    gain     [C] float64     values of actions over the settled interval
    payoff   [C] float64     new payoff sums
    scale    [C] float64     sums of the absolute values of their terms
    totals   [2, 2] float64  by player: total weight of iterations, number of the opponent's traversals
    """

    marks: MetRowMarks
    rows: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]
    path: npt.NDArray[np.int64]
    waiting: npt.NDArray[np.int64]
    stack: npt.NDArray[np.int64]
    gain: npt.NDArray[np.float64]
    payoff: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]
    totals: npt.NDArray[np.float64]


class PruningArrays(NamedTuple):
    """All data of pruning besides a tree and a walk.

    threshold  least number of iterations to skip
    restarts   1 for CFR+
    """

    infosets: PrunedInfosets
    state: Pruned
    scratch: PruningScratch
    threshold: float
    restarts: int


@part_njit
def meet(step, pruning, sigma, row):
    """Bring strategy and sums of a row and the rows above it up to this traversal, in place.

    If no regret is positive, the strategy is uniform over the actions that are not pruned.
    """
    infosets, scratch = pruning.infosets, pruning.scratch
    tables, reach_sum, since = pruning.state.tables, pruning.state.reach_sum, pruning.state.pruned_since
    visited, serial, length = scratch.marks.visited, scratch.marks.serial[0], 0
    while visited[row] != serial:
        visited[row] = serial
        scratch.path[length] = row
        length += 1
        if infosets.above[row] == NO_SLOT:
            break
        row = infosets.row_of[infosets.above[row]]
    for position in range(length - 1, -1, -1):
        row = scratch.path[position]
        above, owner = infosets.above[row], infosets.owner[row]
        weight, reach = scratch.totals[owner, SUM], scratch.totals[owner, REACH]  # that have arrived at the row so far
        if above != NO_SLOT:
            weight, reach = tables.strategy_sum[above, 0], reach_sum[above]
        first, stop, total, whole = infosets.starts[row], infosets.starts[row + 1], 0.0, True
        current_strategy(step, tables, Rows(first, stop - first, 0, 1), sigma, first)
        for cell in range(first, stop):
            if since[cell] != 0 and sigma[cell, 0] > 0.0:
                sigma[cell, 0], whole = 0.0, False
            total += sigma[cell, 0]
            weight -= tables.strategy_sum[cell, 0]
            reach -= reach_sum[cell]
        for cell in range(first, stop):
            if not whole:
                sigma[cell, 0] /= total
            if weight > 0.0:
                tables.strategy_sum[cell, 0] += weight * sigma[cell, 0]
            if reach > 0.0:
                reach_sum[cell] += reach * sigma[cell, 0]


@inline_njit
def added(restarts, regret, gain):
    """Return the regret after a gain; CFR+ restarts a negative regret from a positive gain (section 4.2)."""
    return gain if restarts and gain > 0.0 and regret <= 0.0 else regret + gain


@part_njit
def _push_histories(tree, pruning, walk, step, cell):
    """Push the nodes after an action, for all histories of its infoset that the opponent has ever reached.

    Returns their number; the nodes are in `scratch.stack`.
    """
    infosets, stack, height = pruning.infosets, pruning.scratch.stack, 0
    row = infosets.row_of[cell]
    for position in range(infosets.node_first[row], infosets.node_first[row + 1]):
        node = infosets.node[position]
        last_slot = infosets.by_node.last[1 - infosets.owner[row], node]
        if last_slot != NO_SLOT:
            meet(step, pruning, walk.sigma, infosets.row_of[last_slot])
            if pruning.state.reach_sum[last_slot] <= 0.0:
                continue
        stack[height] = tree.first[node] + cell - infosets.starts[row]
        height += 1
    return height


@part_njit
def _collect(tree, pruning, walk, step, cell):
    """Visit all nodes after an action and add payoffs against the opponent's cumulative strategy.

    Returns the number of own rows below (listed in `scratch.after`) and of nodes visited.
    """
    height = _push_histories(tree, pruning, walk, step, cell)
    player = pruning.infosets.owner[pruning.infosets.row_of[cell]]
    arrived, bound_sum, stack = pruning.state.reach_sum, pruning.state.bound_sum, pruning.scratch.stack
    scratch, marks, by_node, kind = pruning.scratch, pruning.scratch.marks, pruning.infosets.by_node, tree.kind
    chance, last, upper, rows_of = by_node.chance, by_node.last, by_node.upper, by_node.row
    marks.serial[1] += 1
    touched, rows, sign = 0, 0, 1.0 - 2.0 * player
    while height > 0:
        height -= 1
        node = stack[height]
        touched += 1
        last_slot, first, count = last[1 - player, node], tree.first[node], tree.count[node]
        reach = chance[node] * (scratch.totals[1 - player, REACH] if last_slot == NO_SLOT else arrived[last_slot])
        if kind[node] == TERMINAL:
            term = reach * sign * tree.fixed[node]
            scratch.payoff[last[player, node]] += term
            scratch.scale[last[player, node]] += abs(term)
            continue
        own, first_cell = tree.player[node] == player, walk.cell[node]
        if kind[node] != CHANCE:
            row = rows_of[node]
            if marks.visited[row] != marks.serial[0]:
                meet(step, pruning, walk.sigma, row)
            if own and marks.settled[row] != marks.serial[1]:
                marks.settled[row] = marks.serial[1]
                scratch.after[rows] = row
                rows += 1
                bound_sum[first_cell : first_cell + count] = 0.0
        for a in range(count - 1, -1, -1):
            if own:
                bound_sum[first_cell + a] += reach * upper[first + a]
            elif kind[node] != CHANCE and arrived[first_cell + a] <= 0.0:
                continue
            stack[height] = first + a
            height += 1
    return rows, touched


@inline_njit
def _take_payoff(pruning, cell):
    """Add the growth of an action's payoff sum to its gain, and store the new sum."""
    state, scratch = pruning.state, pruning.scratch
    growth = scratch.payoff[cell] - state.payoff_sum[cell]
    if abs(growth) > SETTLED * scratch.scale[cell]:
        scratch.gain[cell] += growth
    state.payoff_sum[cell] = scratch.payoff[cell]
    scratch.payoff[cell], scratch.scale[cell] = 0.0, 0.0


@part_njit
def settle(tree, pruning, walk, step, cell):
    """End an action's pruning: take the best response after it as played, and set the regrets to match.

    With CFR+ an action that has gained restarts from its mean gain for an iteration, as if that had come last.  The
    whole gain would give it the regret of many iterations at once, which no bound allows.

    Returns the numbers of rows after it (in `scratch.after`) and of nodes visited.
    """
    infosets, state, scratch, gain = pruning.infosets, pruning.state, pruning.scratch, pruning.scratch.gain
    regret = state.tables.regret
    rows, touched = _collect(tree, pruning, walk, step, cell)
    for position in range(rows - 1, -1, -1):
        row = scratch.after[position]
        best = -np.inf
        for below in range(infosets.starts[row], infosets.starts[row + 1]):
            _take_payoff(pruning, below)
            best = max(best, gain[below])
        for below in range(infosets.starts[row], infosets.starts[row + 1]):
            regret[below, 0] += gain[below] - best  # at most 0; no values were assumed below a pruned action
            state.pruned_since[below] = 0
            gain[below] = 0.0
        state.value_sum[row] += best
        gain[infosets.above[row]] += best
    _take_payoff(pruning, cell)
    assumed, before = state.assumed[cell], state.pruned_regret[cell]
    regret[cell, 0] += gain[cell] - assumed
    gained = regret[cell, 0] - before
    if pruning.restarts and gained > SETTLED * (abs(gain[cell]) + abs(assumed) + abs(before)):
        skipped = scratch.totals[1 - infosets.owner[infosets.row_of[cell]], REACH] - state.pruned_since[cell]
        regret[cell, 0] = max(regret[cell, 0], gained / skipped)
    state.pruned_since[cell] = 0
    gain[cell] = 0.0
    return rows, touched


@part_njit
def settle_below(tree, pruning, walk, step, iteration, cell):
    """Settle the actions after `cell` that were pruned in earlier iterations; return the nodes visited."""
    infosets, since, waiting = pruning.infosets, pruning.state.pruned_since, pruning.scratch.waiting
    waiting[0], height, touched = cell, 1, 0
    while height > 0:
        height -= 1
        above = waiting[height]
        for position in range(infosets.below_first[above], infosets.below_first[above + 1]):
            row = infosets.below[position]
            meet(step, pruning, walk.sigma, row)  # its regrets will change, and this traversal may have skipped it
            for below in range(infosets.starts[row], infosets.starts[row + 1]):
                if since[below] == 0:
                    waiting[height] = below
                    height += 1
                elif since[below] != iteration:
                    touched += settle(tree, pruning, walk, step, below)[1]
    return touched
