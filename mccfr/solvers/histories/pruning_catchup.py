"""State of regret-based pruning, and the settlement that ends the pruning of an action.

To settle an action, a best response after it counts as played in all iterations in which the action was pruned.  The
algorithm is described in `mccfr.solvers.histories.regret_based_pruning`; sections and equations are those of Brown &
Sandholm 2015.

A row is one infoset, a cell is one action of a row; both are numbered over both players, player 0 first.  T0 is the
iteration in which an action was pruned.  π_{-i} is the opponent's reach times that of chance.  U is an upper bound of
the value that follows an action.

These arguments are the same in all kernels here:

tree     TreeArrays of N nodes
pruning  PruningArrays, changed in place
walk     HistoryWalk, whose `sigma` has the current strategies of both players
step     Step: parameters of the iteration
cell     number of the action
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import inline_njit, part_njit
from mccfr.common.float_tolerance import SETTLED
from mccfr.solvers.minimisers import Rows, Tables, current_strategy
from mccfr.trees.compiled import CHANCE, NO_SLOT, TERMINAL

SUM, REACH = 0, 1
"""Columns of `PruningScratch.totals`: total weight of iterations, number of the opponent's traversals."""


class NodeFacts(NamedTuple):
    """Constants of the tree's N nodes for pruning.

    A row is an infoset, a cell is one action of a row; both are numbered over both players.

    upper   [N] float64   upper bound, in chips, of a node's value to the player whose action leads to it; 0 after
                          chance and at the root
    row     [N] int64     row of each decision node
    last    [2, N] int64  cell of each player's last action before a node, or NO_SLOT
    chance  [N] float64   product of chance probabilities on the path to a node
    """

    upper: npt.NDArray[np.float64]
    row: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    chance: npt.NDArray[np.float64]


class PrunedInfosets(NamedTuple):
    """Infosets of both players in one numbering, player 0's first: R rows, C cells, D decision nodes.

    A row is an infoset, a cell is one action of a row.

    starts       [R+1] int64  first cell of each row, and the end of the last
    above        [R] int64    cell of the row's owner's last action before the row, or NO_SLOT
    row_of       [C] int64    row of each cell
    owner        [R] int64    player who acts at each row
    below_first  [C+1] int64  index in `below` of the first row after each cell, and the end of the last
    below        [<= R] int64 rows that have a cell as `above`, grouped by that cell
    node_first   [R+1] int64  index in `node` of each row's first node, and the end of the last
    node         [D] int64    decision nodes (histories), grouped by row
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
    """State of pruning between iterations, for R rows and C cells of both players; values are in chips.

    A row is an infoset, a cell is one action of a row.  T0 is the iteration in which an action was pruned.  π_{-i} is
    the opponent's reach times that of chance, U an upper bound of the value that follows an action.

    tables         Tables [C, 1]  regrets (bounds for pruned actions), which also give the next strategy; strategy sums
    reach_sum      [C] float64    own reach times strategy, summed over the opponent's traversals without weights
    payoff_sum     [C] float64    sum of counterfactual payoffs that follow an action without another own action
    assumed        [C] float64    sum of the values π_{-i}·U assumed of a pruned action since T0
    pruned_regret  [C] float64    regret of a pruned action at T0
    pruned_since   [C] uint32     T0; 0: not pruned
    value_sum      [R] float64    sum over iterations of the row's counterfactual value v(I)
    bound_sum      [C] float64    sum over iterations of π_{-i}·U of every action
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
    """Marks of R rows (infosets): the traversal and the settlement that last visited each.

    A settlement ends the pruning of an action and counts a best response after it as played.
    Traversals and settlements are numbered by counters, so that marks need no reset.

    visited  [R] int64  number of the traversal in which a row was last brought up to date
    settled  [R] int64  number of the last settlement of an action above the row that visited it
    serial   [2] int64  number of the current traversal, and of the current settlement
    """

    visited: npt.NDArray[np.int64]
    settled: npt.NDArray[np.int64]
    serial: npt.NDArray[np.int64]


class PruningScratch(NamedTuple):
    """Scratch of `run_pruned`; the tables and the iteration determine all that must last between calls.

    A row is an infoset, a cell is one action of a row.  To settle an action ends its pruning, which began at iteration
    T0, and updates regrets and sums.

    marks    MetRowMarks     when each row was last visited
    rows     [R] int64       rows visited in this traversal
    after    [R] int64       rows after the action to settle, from the root downwards
    path     [R] int64       a row and the rows above it, up to the first that is up to date (excluded)
    waiting  [C] int64       cells of pruned actions to settle; in `settle_below`, of actions after which it looks
                             for such cells
    stack    [N] int64       nodes to visit in a best response's traversal
    gain     [C] float64     sums of counterfactual values of actions since T0 of the action to settle; 0 between
                             settlements
    payoff   [C] float64     new values of `Pruned.payoff_sum`; 0 between settlements
    scale    [C] float64     sums of the absolute values of the terms in `payoff`; 0 between settlements
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
    """All arrays and parameters of pruning that kernels take, besides a tree and a `HistoryWalk`.

    infosets   constants of the game
    state      state between iterations
    scratch    scratch of kernels
    threshold  least number of iterations that pruning of an action is estimated to skip; actions that end the game
               need none
    restarts   1 for CFR+: a positive gain replaces a regret of 0 or below; else 0: it is added
    """

    infosets: PrunedInfosets
    state: Pruned
    scratch: PruningScratch
    threshold: float
    restarts: int


@part_njit
def meet(step, pruning, sigma, row):
    """Bring strategy and sums of an infoset, and of its player's infosets above it, up to date.

    They are changed in place: strategy, strategy sums and reach sums.  An infoset's strategy was constant since its
    last visit.  So its sums grow by the reach that has arrived since, times that strategy.  If no regret is positive,
    the strategy is uniform over the actions that are not pruned.

    sigma  [C, 1] float64 current strategies of both players; the rows' cells are written
    row    number of the infoset
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
    """Return the regret plus a gain; with `restarts` (CFR+) a gain > 0 replaces a regret <= 0."""
    return gain if restarts and gain > 0.0 and regret <= 0.0 else regret + gain


@part_njit
def _push_histories(tree, pruning, walk, step, cell):
    """Push the node after action `cell` in each history of its infoset onto `scratch.stack`.

    Histories that the opponent has never reached are left out.  Returns the number of nodes pushed.
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
    """Visit the nodes after action `cell` and add payoffs against the opponent's cumulative strategy.

    The owner is the player who acts at `cell`.  The cumulative strategy is the opponent's reach, summed over all its
    past strategies.  Nodes that it has never reached are skipped.  Payoffs are added to `scratch.payoff` and
    `scratch.scale` of the owner's last action before a terminal.  `bound_sum` (reach times upper bound) of the owner's
    actions below is computed anew.

    Returns (number of the owner's rows (infosets) after the action, listed in `scratch.after`; nodes visited).
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
    """Add the growth of an action's payoff sum to `scratch.gain`, and store the new sum in the state.

    The payoff sum has the counterfactual payoffs that follow the action without another action of its player.  A growth
    that is only rounding is not added.
    """
    state, scratch = pruning.state, pruning.scratch
    growth = scratch.payoff[cell] - state.payoff_sum[cell]
    if abs(growth) > SETTLED * scratch.scale[cell]:
        scratch.gain[cell] += growth
    state.payoff_sum[cell] = scratch.payoff[cell]
    scratch.payoff[cell], scratch.scale[cell] = 0.0, 0.0


@part_njit
def settle(tree, pruning, walk, step, cell):
    """End the pruning of action `cell`: count a best response after it as played; set regrets to match.

    With CFR+ the regret of an action that has gained becomes at least its mean gain for an iteration since T0, when it
    was pruned.  All gains since T0 would give it the regret of many iterations at once, which no bound allows.
    Prunings of the player's actions further down end too, as far as the opponent has ever reached them.

    Returns (number of the player's rows (infosets) after the action, listed in `scratch.after`; nodes visited).
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
    """Settle the player's pruned actions after action `cell`; return the number of nodes visited.

    The player is the one who acts at `cell`, an action that is about to be pruned itself.  To settle an action ends its
    pruning and updates regrets (`settle`).  Actions below a settled one that the opponent never reached stay pruned.

    Actions that were pruned in `iteration` itself stay pruned too, with all after them, because the settlement of
    `cell` will end their pruning as well.  The pruning of `cell` itself is unchanged.

    iteration  number of the current iteration, from 1
    cell       number of the action
    """
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
