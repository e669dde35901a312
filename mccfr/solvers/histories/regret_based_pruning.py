"""Regret-based pruning: CFR that skips actions of negative regret.

Source: Brown & Sandholm 2015 (NIPS), section 4.  An action a of an infoset I with negative regret has probability 0.
From iteration T0 on it is not visited either, as long as no play after it could have made its regret positive (equation
9):

    R^T0(I, a) + Σ_{T0 < t <= T} (π_{-i}^t(I) U(I, a) - v^t(I)) <= 0,   U(I, a) the largest payoff that a leads to.

The regret of a pruned action in the tables is this bound: the action's counterfactual value is taken to be π·U.  When
the bound becomes positive, in iteration T1, the action is *settled* (`mccfr.solvers.histories.pruning_catchup`).  A
best response after it, against the opponent's average strategy over T0 < t <= T1, then counts as played all the time.
Its value replaces the assumed one, and the regrets below are updated to match.

* The best response (section 4.1) uses the payoffs that follow each action, against the opponent's cumulative strategy,
  minus the same at T0.  They are kept as running sums, so the start of pruning needs no traversal.  Only actions pruned
  further down are settled then.
* An action is pruned if the estimate (10) says that at least `threshold` iterations will be skipped.  Another action of
  the infoset must be better and stay visited.  Actions that end the game need no threshold.
* In place of the paper's U there is the most that both players together could reach after a, summed over the histories
  of I: a valid bound, never larger.
* CFR+ keeps negative regrets for this, and an action's regret becomes r as soon as r > 0 (section 4.2).  For a settled
  action, which the paper leaves open, `settle` takes the mean r over the interval.
* Strategies are constant where the player is not visited.  Their sums are brought up to date at the next visit: the
  reach that arrived since, times the strategy.  So the average strategy is that of visiting every infoset in every
  iteration.

Histories that no traverser's opponent reaches are skipped as in partial pruning.  Nodes touched are those of traversals
and of best responses.  All tables are float64, because long sums are subtracted.  Results are exact up to rounding;
differences that are only rounding (`mccfr.common.float_tolerance`) count as 0.
"""

import numpy as np

from abstraction.kernels.jit import njit, part_njit
from mccfr.common.float_tolerance import gain_share
from mccfr.solvers.histories.history_cfr import BOTH, node_value
from mccfr.solvers.histories.pruning_catchup import REACH, SUM, added, meet, settle, settle_below
from mccfr.solvers.minimisers import Step, gain
from mccfr.trees.compiled import CHANCE, NO_SLOT, TERMINAL


@part_njit
def _forward(tree, pruning, walk, step, traverser):
    """Visit all nodes that some traverser's opponent reaches, except those after pruned actions.

    Strategies and strategy sums of rows (infosets) visited are brought up to date.  Counterfactual payoffs of terminals
    are added to `payoff_sum` of the traversers' actions.

    pruning    PruningArrays
    walk       HistoryWalk
    traverser  player 0 or 1, or BOTH

    Returns (inner nodes visited, rows visited, all nodes visited); inner nodes are listed in `walk.order`, rows in
    `scratch.rows`.
    """
    order, stack, reach, sigma = walk.order, walk.stack, walk.reach, walk.sigma
    infosets, state, scratch = pruning.infosets, pruning.state, pruning.scratch
    last, since, payoff_sum = infosets.by_node.last, state.pruned_since, state.payoff_sum
    marked, serial = scratch.marks.visited, scratch.marks.serial[0]
    reach[0, 0], reach[1, 0] = 1.0, 1.0
    height, visited, touched, rows = 0, 0, 1, 0
    if tree.kind[0] != TERMINAL:
        stack[0], height = 0, 1
    while height > 0:
        height -= 1
        node = stack[height]
        order[visited] = node
        visited += 1
        chance, player, cell = tree.kind[node] == CHANCE, tree.player[node], walk.cell[node]
        row = infosets.by_node.row[node]
        if not chance and marked[row] != serial:
            scratch.rows[rows] = row
            rows += 1
            meet(step, pruning, sigma, row)
        for a in range(tree.count[node] - 1, -1, -1):
            child = tree.first[node] + a
            reach_0, reach_1 = reach[0, node], reach[1, node]
            if chance:
                reach_0 *= tree.probability[child]
                reach_1 *= tree.probability[child]
            elif player == 0:
                reach_0 *= sigma[cell + a, 0]
            else:
                reach_1 *= sigma[cell + a, 0]
            if not ((traverser != 0 and reach_0 > 0.0) or (traverser != 1 and reach_1 > 0.0)):
                continue
            if not chance and since[cell + a] != 0:
                continue
            reach[0, child], reach[1, child] = reach_0, reach_1
            touched += 1
            if tree.kind[child] != TERMINAL:
                stack[height] = child
                height += 1
                continue
            if traverser != 1 and last[0, child] != NO_SLOT:
                payoff_sum[last[0, child]] += reach_1 * tree.fixed[child]
            if traverser != 0 and last[1, child] != NO_SLOT:
                payoff_sum[last[1, child]] -= reach_0 * tree.fixed[child]
    return visited, rows, touched


@part_njit
def _backward(tree, pruning, walk, traverser, visited):
    """Compute values of visited inner nodes; add traversers' counterfactual values to `walk.increment`.

    A pruned action gets π_{-i}·U: the reach of opponent and chance times an upper bound of the action's value.
    π_{-i}·U of every action of a traverser is added to `bound_sum`.

    pruning    PruningArrays; walk is a HistoryWalk
    traverser  player 0 or 1, or BOTH
    visited    number of inner nodes visited, in `walk.order`; the last one is handled first
    """
    upper, since, bound_sum = pruning.infosets.by_node.upper, pruning.state.pruned_since, pruning.state.bound_sum
    for position in range(visited - 1, -1, -1):
        node = walk.order[position]
        node_value(tree, walk, node)
        player = tree.player[node]
        if tree.kind[node] == CHANCE or traverser == 1 - player:
            continue
        others, first, cell = walk.reach[1 - player, node], tree.first[node], walk.cell[node]
        if others > 0.0:
            weight = others if player == 0 else -others
            for a in range(tree.count[node]):
                bound = others * upper[first + a]
                bound_sum[cell + a] += bound
                walk.increment[cell + a, 0] += bound if since[cell + a] != 0 else weight * walk.value[first + a]


@part_njit
def _update(pruning, walk, traverser, rows):
    """Update regrets of traversers' infosets by the values in `walk.increment`; set these to 0.

    pruning    PruningArrays; walk is a HistoryWalk
    traverser  player 0 or 1, or BOTH
    rows       number of infosets visited, in `scratch.rows`

    Returns the number of pruned actions whose regret, an upper bound, is now above 0; they are listed in
    `scratch.waiting`.
    """
    owner, starts, waiting = pruning.infosets.owner, pruning.infosets.starts, pruning.scratch.waiting
    sigma, increment, regret = walk.sigma, walk.increment, pruning.state.tables.regret
    since, assumed, value_sum = pruning.state.pruned_since, pruning.state.assumed, pruning.state.value_sum
    count, limit = 0, gain_share(regret)
    for position in range(rows):
        row = pruning.scratch.rows[position]
        if traverser not in (owner[row], BOTH):
            continue
        value = 0.0
        for cell in range(starts[row], starts[row + 1]):
            value += sigma[cell, 0] * increment[cell, 0]
        value_sum[row] += value
        for cell in range(starts[row], starts[row + 1]):
            gained = gain(increment[cell, 0], value, limit)
            if since[cell] == 0:
                regret[cell, 0] = added(pruning.restarts, regret[cell, 0], gained)
            else:
                regret[cell, 0] += gained
                assumed[cell] += increment[cell, 0]
                if regret[cell, 0] > 0.0:
                    waiting[count] = cell
                    count += 1
            increment[cell, 0] = 0.0
    return count


@part_njit
def _consider(tree, pruning, walk, step, iteration, traverser, rows):
    """Prune actions whose regrets are estimated to stay negative for at least `threshold` iterations.

    A row is an infoset.  A better action of the row must stay visited.  Actions that end the game need no threshold.

    pruning    PruningArrays; walk is a HistoryWalk
    iteration  number of the iteration, from 1
    traverser  player 0 or 1, or BOTH: whose rows are handled
    rows       number of rows visited, in `scratch.rows`

    Before an action is pruned, older prunings of its player's actions after it are ended; returns the number of nodes
    visited for that.

    Rows are handled in reverse order.  So actions that a player prunes below and above in one iteration have the same
    start of pruning, and ending the upper pruning serves both.
    """
    infosets, state, touched = pruning.infosets, pruning.state, 0
    starts, ends, listed, regret = infosets.starts, infosets.ends, pruning.scratch.rows, state.tables.regret
    since, bound_sum, value_sum = state.pruned_since, state.bound_sum, state.value_sum
    for position in range(rows - 1, -1, -1):
        row, largest = listed[position], -np.inf
        if traverser not in (infosets.owner[row], BOTH):
            continue
        for cell in range(starts[row], starts[row + 1]):
            if since[cell] == 0:
                largest = max(largest, regret[cell, 0])
        for cell in range(starts[row], starts[row + 1]):
            if since[cell] != 0 or regret[cell, 0] >= min(largest, 0.0):
                continue
            rate = (bound_sum[cell] - value_sum[row]) / iteration
            least = 0.0 if ends[cell] else pruning.threshold
            if rate <= 0.0 or -regret[cell, 0] >= least * rate:
                touched += settle_below(tree, pruning, walk, step, iteration, cell)
                since[cell] = iteration
                state.assumed[cell], state.pruned_regret[cell] = 0.0, regret[cell, 0]
    return touched


@part_njit
def _traverse(tree, pruning, walk, step, iteration, traverser):
    """Run one traversal: update regrets, end and begin prunings; return how many nodes were visited.

    pruning    PruningArrays; walk is a HistoryWalk
    step       Step, with the weight of the iteration in the average strategy
    iteration  number of the iteration, from 1
    traverser  player 0 or 1, or BOTH
    """
    scratch = pruning.scratch
    scratch.marks.serial[0] += 1
    for player in range(2):
        if traverser in (player, BOTH):
            scratch.totals[player, SUM] += step.weight
            scratch.totals[1 - player, REACH] += 1.0
    visited, rows, touched = _forward(tree, pruning, walk, step, traverser)
    _backward(tree, pruning, walk, traverser, visited)
    for position in range(_update(pruning, walk, traverser, rows)):
        after, nodes = settle(tree, pruning, walk, step, scratch.waiting[position])
        touched += nodes
        for k in range(after):
            scratch.rows[rows + k] = scratch.after[k]
        rows += after
    return touched + _consider(tree, pruning, walk, step, iteration, traverser, rows)


@njit
def run_pruned(tree, pruning, walk, weights, first_iteration, alternating):
    """Run K iterations from `first_iteration` on, in place; return the number of nodes touched.

    tree             TreeArrays
    pruning          PruningArrays; walk is a HistoryWalk
    weights          [K] float64 weight of each iteration in the average strategy
    first_iteration  number of the first of these iterations, counted from 1 at the start of the run
    alternating      1: player 0 traverses and updates, then player 1; 0: one traversal for both
    """
    touched = 0
    for k in range(weights.shape[0]):
        step = Step(None, None, 1.0, 1.0, 1.0, weights[k])
        for turn in range(1 + alternating):
            touched += _traverse(tree, pruning, walk, step, first_iteration + k, turn if alternating else BOTH)
    return touched


@njit
def bring_all_forward(pruning, walk):
    """Bring the strategy, strategy sums and reach sums of every infoset up to date, in place.

    Before, those of an infoset that traversals have skipped are as of its last visit.

    pruning  PruningArrays; walk is a HistoryWalk
    """
    infosets, scratch = pruning.infosets, pruning.scratch
    scratch.marks.serial[0] += 1
    step = Step(None, None, 1.0, 1.0, 1.0, 0.0)
    for row in range(infosets.above.shape[0]):
        meet(step, pruning, walk.sigma, row)
