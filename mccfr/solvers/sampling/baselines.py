"""Baselines for sampled traversals: what an action has been worth stands in for what was not sampled.

Schmid, Burch, Lanctot, Moravčík, Kadlec & Bowling, "Variance Reduction in Monte Carlo Counterfactual Regret
Minimization (VR-MCCFR) for Extensive Form Games Using Baselines" (AAAI 2019), equations 6 to 9.  Where one of several
actions is sampled, each is worth its baseline b(a), and the sampled one (value - b(a)) / (probability of sampling it)
besides; a node is worth the mean of that under the strategy.  Whatever the baselines are, the expectation is that
without them, so long as they do not depend on what is sampled now; the closer they are to the values, the less it
scatters.

A baseline belongs to a cell of the tables, an action of an infoset of whoever acts: chips for player 0, kept in a table
`baseline` beside the regrets, and moved towards each value sampled there by a constant share (their section 5).  A
deal's values are written when both traversals of it are done, so that no baseline is used on the deal that moved it.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.jit import nogil_njit, part_njit
from mccfr.rng import next_word, random_at
from mccfr.solvers.regret import as_element, choose, discount_regrets, regret_matching, total_of, update
from mccfr.solvers.sampling.common import (
    NO_PRUNING,
    NODE_LIMIT,
    START,
    STOP,
    Hand,
    add_strategy,
    exploration,
    explores,
    locate_all,
    uniform_like,
)
from mccfr.solvers.sampling.external import bring_forward, visit
from mccfr.trees.compiled import CHANCE, TERMINAL


class Baselines(NamedTuple):
    """Baselines as kernels take them: L cells may be moved by a deal.

    cells  [.] R           flat table, in the dtype of the regrets
    ahead  [B] int64       by block: from a regret cell's index to that of the baseline of the same action
    rate   [1] float64     share by which a baseline moves towards a value
    moved  [L] int64       cells that the deal being played moves
    worth  [L] R           towards what
    moves  [1] int64       how many
    """

    cells: npt.NDArray[np.floating]
    ahead: npt.NDArray[np.int64]
    rate: npt.NDArray[np.float64]
    moved: npt.NDArray[np.int64]
    worth: npt.NDArray[np.floating]
    moves: npt.NDArray[np.int64]


class Steps(NamedTuple):
    """Scratch of a sampled path: every decision on it, at most L with A actions each.

    node, action [L] int32   decision, and what was chosen
    row          [L] int64   first regret cell
    chance       [L] float64 probability with which the action was sampled
    sigma        [L·A] R     strategies, in the dtype of the regrets
    value        [A] R       what actions are worth, for player 0
    updated      [1] int64   table rows updated so far, as in `Worklist`
    seats        [2] int64   who traverses on each deal, as in `Worklist`
    """

    node: npt.NDArray[np.int32]
    action: npt.NDArray[np.int32]
    row: npt.NDArray[np.int64]
    chance: npt.NDArray[np.float64]
    sigma: npt.NDArray[np.floating]
    value: npt.NDArray[np.floating]
    updated: npt.NDArray[np.int64]
    hand: Hand
    seats: npt.NDArray[np.int64]


@part_njit
def _note(baselines, cell, worth):
    """Remember what a baseline is to be moved towards."""
    place = baselines.moves[0]
    baselines.moved[place], baselines.worth[place] = cell, worth
    baselines.moves[0] = place + 1


@part_njit
def _move(baselines):
    """Move the baselines that were noted, in place."""
    cells, rate = baselines.cells, as_element(baselines.cells, baselines.rate[0])
    for place in range(baselines.moves[0]):
        cell = baselines.moved[place]
        cells[cell] += rate * (baselines.worth[place] - cells[cell])
    baselines.moves[0] = 0


@nogil_njit
def external_sampling_with_baselines(tree, tables, deals, limits, discount, rng, work, baselines):
    """Run deals of a batch over general records; arguments and results as `external_sampling_general`.

    baselines Baselines of at least two cells for each node, changed in place.
    """
    nodes, deal = 0, limits[START]
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        locate_all(tables, deals, deal, work.hand)
        for traverser in range(work.seats[0], work.seats[1]):
            tail, touched = visit(tree, tables, traverser, discount, rng, work, NO_PRUNING)
            _value_list(tree, tables, traverser, deals.result[deal], discount, work, tail, baselines)
            nodes += touched
        _move(baselines)
        deal += 1
    return deal - limits[START], nodes


@part_njit
def _value_list(tree, tables, traverser, result, discount, work, tail, baselines):
    """Values from the leaves up, for player 0 at nodes, and the traverser's regret updates."""
    value, sigma = work.value, work.sigma
    sign = as_element(value, 1.0 - 2.0 * traverser)
    for place in range(tail - 1, -1, -1):
        node = work.order[place]
        if tree.kind[node] == TERMINAL:
            value[node] = tree.fixed[node] + tree.showdown[node] * result
            continue
        child = work.child[node]
        if tree.kind[node] == CHANCE:
            value[node] = value[child]
            continue
        first, actions, row = tree.first[node], tree.count[node], work.start[node]
        if tree.player[node] == traverser:
            if discount.lazy:
                bring_forward(tree, tables, discount, work, node)
            for a in range(actions):
                value[first + a] *= sign
                sigma[first + a] *= value[first + a]  # the strategy has served: what is left of it is its sum
            worth = total_of(sigma, first, actions)
            update(tables.regret, row, actions, value, first, worth, discount.weight)
            value[node] = sign * worth
            continue
        cell = row + baselines.ahead[tree.block[node]]
        for a in range(actions):
            sigma[first + a] *= baselines.cells[cell + a]
        expected = total_of(sigma, first, actions)
        value[node] = value[child] + (expected - baselines.cells[cell + child - first])
        _note(baselines, cell + child - first, value[child])


@nogil_njit
def outcome_sampling_with_baselines(tree, tables, deals, limits, discount, rng, path, epsilon, baselines):
    """Run deals of a batch over general records; arguments and results as `outcome_sampling_general`.

    path Steps; baselines Baselines of at least two cells for each decision of a path, changed in place.
    """
    nodes, deal = 0, limits[START]
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        locate_all(tables, deals, deal, path.hand)
        for traverser in range(path.seats[0], path.seats[1]):
            node, length, probability, touched = _walk(tree, tables, traverser, discount, next_word(rng), path, epsilon)
            nodes += touched
            payoff = tree.fixed[node] + tree.showdown[node] * deals.result[deal]
            _value_path(tree, tables, traverser, payoff, probability, length, discount, path, baselines)
        _move(baselines)
        deal += 1
    return deal - limits[START], nodes


@part_njit
def _walk(tree, tables, traverser, discount, word, path, epsilon):
    """Sample one path.  Returns (terminal node, decisions on it, probability of the traverser's, nodes touched)."""
    hand, sigma, width = path.hand, path.sigma, path.value.shape[0]
    node, length, probability, nodes, level = 0, 0, 1.0, 0, np.uint64(0)
    while tree.kind[node] != TERMINAL:
        nodes += tree.touched[node]
        first, actions, block = tree.first[node], tree.count[node], tree.block[node]
        drawn, rounding = random_at(word, level), random_at(~word, level)
        level += np.uint64(1)
        if tree.kind[node] == CHANCE:
            node = first + choose(tree.probability, first, actions, uniform_like(tree.probability, drawn))
            continue
        path.updated[0] += 1
        own, mine, row = tree.player[node] == traverser, length * width, hand.regrets[block] + tree.slot[node]
        regret_matching(tables.regret, row, actions, sigma, mine)
        even = own and explores(drawn, exploration(epsilon))
        action = choose(tables.regret, row, actions, uniform_like(tables.regret, drawn), even)
        chance = np.float64(sigma[mine + action])
        if own:
            chance = epsilon / actions + (1.0 - epsilon) * chance
            probability *= chance
        else:
            add_strategy(tree, tables, hand, node, (sigma, mine), discount.sum_weight / probability, discount, rounding)
        path.node[length], path.action[length], path.row[length], path.chance[length] = node, action, row, chance
        length += 1
        node = first + action
    return node, length, probability, nodes + tree.touched[node]


@part_njit
def _value_path(tree, tables, traverser, payoff, probability, length, discount, path, baselines):
    """Values of the path's decisions for player 0, last one first, and the traverser's regret updates."""
    value, sigma, sign = path.value, path.sigma, 1.0 - 2.0 * traverser
    width, worth = value.shape[0], payoff
    for step in range(length - 1, -1, -1):
        node, action, row, chance = path.node[step], path.action[step], path.row[step], path.chance[step]
        actions, block, mine = tree.count[node], tree.block[node], step * width
        cell = row + baselines.ahead[block]
        for a in range(actions):
            value[a] = baselines.cells[cell + a]
        value[action] += (worth - value[action]) / chance
        for a in range(actions):
            sigma[mine + a] *= value[a]  # the strategy has served
        _note(baselines, cell + action, worth)
        worth = np.float64(total_of(sigma, mine, actions))
        if tree.player[node] != traverser:
            continue
        probability /= chance
        if discount.lazy:
            discount_regrets(
                tables.regret,
                row,
                actions,
                tables.stamp,
                path.hand.regret_stamps[block] + tree.row[node],
                discount.ends,
                discount.positive_factors,
                discount.negative_factors,
            )
        update(tables.regret, row, actions, value, 0, worth, sign * discount.weight / probability)


def new_steps(depth: int, max_actions: int, blocks: int, dtype: npt.DTypeLike) -> Steps:
    """Scratch for paths of at most `depth` decisions with at most `max_actions` actions, regrets of `dtype`."""
    return Steps(
        np.zeros(depth, np.int32),
        np.zeros(depth, np.int32),
        np.zeros(depth, np.int64),
        np.zeros(depth),
        np.zeros(depth * max_actions, dtype),
        np.zeros(max_actions, dtype),
        np.zeros(1, np.int64),
        Hand(*(np.zeros(blocks, np.int64) for _ in Hand._fields)),
        np.array([0, 2]),
    )


def new_baselines(cells: npt.NDArray[np.floating], ahead: npt.NDArray[np.int64], rate: float, moved: int) -> Baselines:
    """Baselines in the flat table `cells`, with room for `moved` of them to be moved by a deal."""
    return Baselines(
        cells,
        ahead,
        np.array([rate]),
        np.zeros(moved, np.int64),
        np.zeros(moved, cells.dtype),
        np.zeros(1, np.int64),
    )
