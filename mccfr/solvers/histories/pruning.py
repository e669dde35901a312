"""Regret-based pruning: CFR that leaves out actions of negative regret (Brown & Sandholm 2015, NIPS, section 4).

An action a of an infoset I with negative regret is not played.  From iteration T0 on it is not visited either, as long
as its regret could not have become positive, whatever had been played after it (equation 9):

    R^T0(I, a) + Σ_{T0 < t <= T} (π_{-i}^t(I) U(I, a) - v^t(I)) <= 0,   U(I, a) the largest payoff that a leads to.

The regret of a pruned action in the tables *is* this bound: the action's counterfactual value is taken to be π·U.  When
the bound turns positive, in iteration T1, the action is settled (`mccfr.solvers.histories.settlement`): a best response
after it, against the opponent's average strategy over T0 < t <= T1, is declared to have been played all the time.  What
was assumed is taken back from the regret, the best response's value added, and the regrets below are updated to match.
By Theorem 1 no positive regret elsewhere depends on when that happens.

* The best response is the paper's: counterfactual values of what follows an action without another own action, against
  the opponent's cumulative strategy, less the same at T0 (section 4.1).  They are kept for every action, as running
  sums: nothing is traversed when pruning begins, but for actions pruned further down, which are settled then.
* An action is pruned if the estimate (10) says that `threshold` iterations or more will be left out, and if another
  action of the infoset is better and goes on being visited.  Actions that end the game need no threshold: nothing is
  below them.
* In the place of the paper's U stands the sum over the histories of I of what both players together could bring about
  at most after a: a bound just as sure, and never a larger one.
* CFR+ keeps negative regrets for this, and an action's regret becomes r as soon as r > 0 (section 4.2).  The paper
  leaves open what r is where a pruned action is settled; `settle` takes the mean over the interval.
* A player's strategy is constant where he is not visited, because none of his regrets changes there.  Sums of it are
  brought forward when he is visited next, from the sum of the action above: what has arrived since times the strategy.
  So the average strategy is the one that visiting every infoset in every iteration would have given.

Histories that no traverser's opponent reaches are left out as in partial pruning.  Nodes touched are those of
traversals and of best responses.  Differences of long sums are taken: float64 only.  Exact up to rounding; differences
that are nothing but rounding (`mccfr.noise`) are taken to be 0, lest they choose an action.
"""

import numpy as np

from abstraction.kernels.jit import njit, part_njit
from mccfr.noise import gain_share
from mccfr.solvers.histories.history_cfr import BOTH, node_value
from mccfr.solvers.histories.settlement import REACH, SUM, added, meet, refresh, settle, settle_below
from mccfr.solvers.minimisers import REGRET_MATCHING, Rows, Step, gain
from mccfr.trees.compiled import CHANCE, NO_SLOT, TERMINAL


@part_njit
def _forward(tree, pruning, walk, step, traverser):
    """Visit what is neither pruned nor out of every traverser's opponent's reach.

    Returns the numbers of inner nodes, of rows (into `scratch.rows`) and of all nodes visited.
    """
    order, stack, reach, sigma = walk.order, walk.stack, walk.reach, walk.sigma
    infosets, state, scratch = pruning.infosets, pruning.state, pruning.scratch
    last, since, payoff_sum = infosets.by_node.last, state.pruned_since, state.payoff_sum
    marked, serial = scratch.marks.visited, scratch.marks.serial[0]
    starts, tables, reach_sum = infosets.starts, state.tables, state.reach_sum
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
        if not chance and marked[row] != serial:  # as `meet`, but what is above has been met on the way here
            marked[row], scratch.rows[rows], before = serial, row, infosets.above[row]
            rows += 1
            arrived = (scratch.totals[player, SUM], scratch.totals[player, REACH])
            if before != NO_SLOT:
                arrived = (tables.strategy_sum[before, 0], reach_sum[before])
            here = Rows(starts[row], starts[row + 1] - starts[row], 0, 1)
            refresh(step, tables, reach_sum, since, sigma, here, arrived)
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
    """Values of inner nodes, last visited first, and increments of traversers' actions; π·U where pruned."""
    upper, since, bound_sum = pruning.infosets.by_node.upper, pruning.state.pruned_since, pruning.state.bound_sum
    for place in range(visited - 1, -1, -1):
        node = walk.order[place]
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
    """Update the regrets of a traversal's rows from their increments, and clear these.

    Returns the number of pruned actions whose bound is above 0 now (in `scratch.waiting`).
    """
    listed, waiting, owner, starts = (
        pruning.scratch.rows,
        pruning.scratch.waiting,
        pruning.infosets.owner,
        pruning.infosets.starts,
    )
    sigma, increment, regret = walk.sigma, walk.increment, pruning.state.tables.regret
    since, assumed, value_sum = pruning.state.pruned_since, pruning.state.assumed, pruning.state.value_sum
    found, limit = 0, gain_share(regret)
    for place in range(rows):
        row = listed[place]
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
                    waiting[found] = cell
                    found += 1
            increment[cell, 0] = 0.0
    return found


@part_njit
def _consider(tree, pruning, walk, step, iteration, traverser, rows):
    """Prune those actions of a traverser's rows in `scratch.rows` that are worth it; returns the nodes visited.

    Rows come last first.  What a player prunes below and above in one iteration begins at the same time then: the
    settlement of the latter serves both.
    """
    infosets, state, touched = pruning.infosets, pruning.state, 0
    starts, ends, listed, regret = infosets.starts, infosets.ends, pruning.scratch.rows, state.tables.regret
    since, bound_sum, value_sum = state.pruned_since, state.bound_sum, state.value_sum
    for place in range(rows - 1, -1, -1):
        row, largest = listed[place], -np.inf
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
    """One traversal and what follows from it; returns the number of nodes visited."""
    scratch = pruning.scratch
    scratch.marks.serial[0] += 1
    for player in range(2):
        if traverser in (player, BOTH):
            scratch.totals[player, SUM] += step.weight
            scratch.totals[1 - player, REACH] += 1.0
    visited, rows, touched = _forward(tree, pruning, walk, step, traverser)
    _backward(tree, pruning, walk, traverser, visited)
    for place in range(_update(pruning, walk, traverser, rows)):
        after, nodes = settle(tree, pruning, walk, step, scratch.waiting[place])
        touched += nodes
        for k in range(after):
            scratch.rows[rows + k] = scratch.after[k]
        rows += after
    return touched + _consider(tree, pruning, walk, step, iteration, traverser, rows)


@njit
def run_pruned(tree, pruning, walk, weights, first_iteration, alternating):
    """Iterations from `first_iteration` on, one for each of `weights` [K] float64 in the average strategy.

    Everything is changed in place; returns the number of nodes touched.
    """
    touched = 0
    for k in range(weights.shape[0]):
        step = Step(REGRET_MATCHING, 0, 1.0, 1.0, 1.0, weights[k])
        for turn in range(1 + alternating):
            touched += _traverse(tree, pruning, walk, step, first_iteration + k, turn if alternating else BOTH)
    return touched


@njit
def bring_all_forward(pruning, walk):
    """Bring strategy and sums of every row up to date, for an average strategy between iterations; in place."""
    infosets, scratch = pruning.infosets, pruning.scratch
    scratch.marks.serial[0] += 1
    step = Step(REGRET_MATCHING, 0, 1.0, 1.0, 1.0, 0.0)
    for row in range(infosets.above.shape[0]):
        meet(step, pruning, walk.sigma, row)
