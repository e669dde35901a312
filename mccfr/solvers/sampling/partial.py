"""Traversals that walk some of the traverser's actions: more than outcome sampling's one, fewer than all.

Which ones, is the rule of an algorithm: `average_strategy`, `robust`, `targeted`.  Where actions are drawn, each is
worth its value divided by the probability of having been drawn, and nothing where it was not; a regret's update is
divided by the probability q with which the traverser's own draws have led to its node, and so is what is added to the
opponent's strategy sums there (Gibson et al. 2012, algorithm 1).  With every action drawn for certain, this is external
sampling over general records, bit for bit.

Over general records only.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.jit import nogil_njit, part_njit
from mccfr.rng import second_word, uniform
from mccfr.solvers.regret import choose, regret_matching, total_of, update
from mccfr.solvers.sampling.average_strategy import draw_by_average
from mccfr.solvers.sampling.common import NARROW, NODE_LIMIT, START, STOP, add_strategy, forward_sums, locate_all
from mccfr.solvers.sampling.external import bring_forward
from mccfr.solvers.sampling.robust import draw_evenly
from mccfr.solvers.sampling.targeted import draw_target, is_close
from mccfr.trees.compiled import CHANCE, TERMINAL

ALL, BY_AVERAGE, EVENLY = 0, 1, 2
"""Values of `Rule.draws`: the traverser's actions that are walked on a street that is targeted."""


class Rule(NamedTuple):
    """What a traverser walks: T sets of streets, S streets.

    draws    int64        ALL, BY_AVERAGE or EVENLY
    most     int64        EVENLY: actions at a decision
    epsilon, tau, beta    float64, BY_AVERAGE; beta times the weight of new additions to sums
    close    float64      chips, times the weight: where the two highest regrets differ by less, as on a targeted street
    targets  [T, S] uint8 1: streets that a traversal is for; set 0 has all of them
    ends     [T] float64  sums of the shares of traversals up to each set
    """

    draws: int
    most: int
    epsilon: float
    tau: float
    beta: float
    close: float
    targets: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.float64]


class Draws(NamedTuple):
    """Scratch for N nodes, beside a `Worklist`.

    chance  [N] float64  probability with which the action that leads to a node was drawn; 0: it was not
    reach   [N] float64  of a node visited: product of the chances on the way to it
    """

    chance: npt.NDArray[np.float64]
    reach: npt.NDArray[np.float64]


def whole_rule(
    streets: int, draws: int = ALL, *, most: int = 1, epsilon: float = 1.0, tau: float = 1.0, beta: float = 1.0
) -> Rule:
    """A rule whose traversals are for all streets."""
    return Rule(draws, most, epsilon, tau, beta, 0.0, np.ones((1, streets), np.uint8), np.ones(1))


def new_draws(nodes: int) -> Draws:
    """Scratch for so many nodes."""
    return Draws(np.zeros(nodes), np.zeros(nodes))


@nogil_njit
def partial_sampling(tree, tables, deals, limits, discount, rng, work, draws, rule):
    """Run deals of a batch over general records; arguments and results as `external_sampling_general`.

    draws Draws for N nodes, changed in place; rule Rule.
    """
    nodes, deal = 0, limits[START]
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        locate_all(tables, deals, deal, work.hand)
        for traverser in range(work.seats[0], work.seats[1]):
            tail, touched = _visit(tree, tables, traverser, discount, rng, work, draws, rule)
            _update_regrets(tree, tables, traverser, deals.result[deal], discount, work, draws, tail)
            nodes += touched
        deal += 1
    return deal - limits[START], nodes


@part_njit
def _visit(tree, tables, traverser, discount, rng, work, draws, rule):
    """Visit nodes: strategies, strategy sums, draws.  Returns (length of the worklist, nodes touched)."""
    order, sigma, chance, reach = work.order, work.sigma, draws.chance, draws.reach
    target = draw_target(rule.ends, rng)
    order[0], reach[0] = 0, 1.0
    tail, place, nodes = 1, 0, 0
    while place < tail:
        node = order[place]
        place += 1
        nodes += tree.touched[node]
        kind, first, actions = tree.kind[node], tree.first[node], tree.count[node]
        if kind == TERMINAL:
            continue
        if kind == CHANCE:
            chosen = first + choose(tree.probability, first, actions, uniform(rng))
        else:
            row = work.hand.regrets[tree.block[node]] + tree.slot[node]
            work.start[node] = row
            work.updated[0] += 1
            regret_matching(tables.regret, row, actions, sigma, first)
            if tree.player[node] == traverser:
                street = tree.block[node] // 2
                if rule.targets[target, street] != 0 or _is_close_here(tree, tables, discount, work, rule, node):
                    _draw(tree, tables, discount, rng, work, chance, rule, node)
                    work.child[node] = -1
                    for child in range(first, first + actions):
                        if chance[child] > 0:
                            order[tail], reach[child] = child, reach[node] * chance[child]
                            tail += 1
                    continue
            elif target == 0:
                weight = discount.sum_weight / reach[node]
                add_strategy(tree, tables, work.hand, node, (sigma, first), weight, discount, second_word(rng))
            chosen = first + choose(tables.regret, row, actions, uniform(rng))
        work.child[node] = chosen
        order[tail], reach[chosen] = chosen, reach[node]
        tail += 1
    return tail, nodes


@part_njit
def _is_close_here(tree, tables, discount, work, rule, node):
    """Whether a decision on a street that is not targeted is walked all the same."""
    if rule.close <= 0:
        return False
    if discount.lazy:
        bring_forward(tree, tables, discount, work, node)
    return is_close(tables.regret, work.start[node], tree.count[node], rule.close * discount.weight)


@part_njit
def _draw(tree, tables, discount, rng, work, chance, rule, node):
    """Draw the traverser's actions at a decision by the rule."""
    first, actions = tree.first[node], tree.count[node]
    if rule.draws == EVENLY:
        draw_evenly(actions, rule.most, rng, chance, first)
        return
    if rule.draws != BY_AVERAGE:
        chance[first : first + actions] = 1.0
        return
    block = tree.block[node]
    row, form = work.hand.sums[block] + tree.slot[node], tables.wide[block]
    if discount.lazy:
        stamp, sums = work.hand.sum_stamps[block] + tree.row[node], (tables.narrow_sum, tables.wide_sum)
        word = second_word(rng)
        forward_sums(*sums, form, row, actions, tables.stamp, stamp, discount.ends, discount.sum_factors, word)
    beta = rule.beta * discount.sum_weight
    if form == NARROW:
        draw_by_average(tables.narrow_sum, row, actions, rule.epsilon, rule.tau, beta, rng, chance, first)
    else:
        draw_by_average(tables.wide_sum, row, actions, rule.epsilon, rule.tau, beta, rng, chance, first)


@part_njit
def _update_regrets(tree, tables, traverser, result, discount, work, draws, tail):
    """Values for the traverser from the leaves up, and updates where he has walked more than one action."""
    value, sigma, chance = work.value, work.sigma, draws.chance
    sign = 1.0 - 2.0 * traverser
    for place in range(tail - 1, -1, -1):
        node = work.order[place]
        if tree.kind[node] == TERMINAL:
            value[node] = sign * (tree.fixed[node] + tree.showdown[node] * result)
            continue
        if work.child[node] >= 0:
            value[node] = value[work.child[node]]
            continue
        first, actions = tree.first[node], tree.count[node]
        if discount.lazy:
            bring_forward(tree, tables, discount, work, node)
        for child in range(first, first + actions):
            value[child] = value[child] / chance[child] if chance[child] > 0 else 0.0
            sigma[child] *= value[child]  # the strategy has served: what is left of it is its sum
        value[node] = total_of(sigma, first, actions)
        weight = discount.weight / draws.reach[node]
        update(tables.regret, work.start[node], actions, value, first, value[node], weight)
