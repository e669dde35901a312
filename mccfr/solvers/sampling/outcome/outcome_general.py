"""Kernel of outcome-sampling MCCFR over general tree records; read `outcome_packed` first.

`outcome_packed` describes the algorithm and is the kernel for betting trees of two players.  General records may have
chance nodes, more than eight actions and more than two players.  With more than two players, a player's strategy is
averaged at every other player's path.  An addition is divided by the probability of all sampled actions but the
averaged player's own.  So its mean is in proportion to that player's reach.

Source of the algorithm: Lanctot, Waugh, Zinkevich & Bowling 2009, "Monte Carlo Sampling for Regret Minimization in
Extensive Games".
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import nogil_njit, part_njit
from mccfr.common.rng import next_word, random_at
from mccfr.solvers.regret import add_strategy, choose, regret_matching, update_sampled
from mccfr.solvers.sampling.outcome.paths import (
    PATH_PLACE,
    PATH_STEP,
    Paths,
    exploration,
    explores,
    new_paths,
    uniform_like,
)
from mccfr.solvers.sampling.row_lookup import NODE_LIMIT, START, STOP, locate
from mccfr.solvers.sampling.seats import SeatArrays, begin_deal, begin_traversal, new_seats, won_chips
from mccfr.trees.compiled import CHANCE, TERMINAL, CompiledTree

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class SeatPaths(NamedTuple):
    """Scratch arrays of outcome sampling over N general records, for P players: P paths for each deal.

    A general record describes one node of the tree, of any kind.

    paths    Paths            path P·d + p is player p's path of deal d
    payoffs  [N, P] float64   payoffs of three and more players in chips; [0, P] with two players or with pots
    sampled  [P] float64      probability of each opponent's sampled actions on the path
    updated  [1] int64        number of decisions visited so far: the same array as `paths.updated`
    seats    SeatArrays       pots of three and more players in betting trees; else None
    """

    paths: Paths
    payoffs: npt.NDArray[np.float64]
    sampled: npt.NDArray[np.float64]
    updated: npt.NDArray[np.int64]
    seats: SeatArrays | None


def new_seat_paths(deals: int, depth: int, max_actions: int, tree: CompiledTree, dtype: npt.DTypeLike) -> SeatPaths:
    """Return scratch arrays for outcome sampling of groups of `deals` deals over general records.

    depth        most decisions on a path
    max_actions  most actions of a decision
    tree         CompiledTree
    dtype        float dtype of the regrets
    """
    players = tree.players
    payoffs = np.zeros((0, players)) if tree.payoffs is None else tree.payoffs
    paths = new_paths(deals, depth, max_actions, len(tree.row_slots), dtype)._replace(
        place=np.zeros(players * deals, PATH_PLACE), step=np.zeros(players * deals * depth, PATH_STEP)
    )
    return SeatPaths(paths, payoffs, np.ones(players), paths.updated, new_seats(tree, 1))


@nogil_njit
def outcome_sampling_general(tree, tables, deals, limits, weight, rng, seat_paths, epsilon):
    """Run outcome sampling on deals over general records; return (iterations run, nodes touched).

    tree        TreeArrays
    tables      TableArrays, changed in place
    deals       Deals: each deal's bucket by block and showdown result
    limits      [3] int64: index of the first deal, end of the deals, and number of nodes touched that ends the run
    weight      discount weight of the updates
    rng         [4] uint64, state of the generator, changed in place
    seat_paths  SeatPaths with as many cells of strategy as any decision has actions, changed in place
    epsilon     float64 in (0, 1], probability that the traverser explores, which means that it plays uniformly

    Deals are played in groups; the last group is the one that reaches the number of nodes.  An iteration is one deal.
    """
    paths, payoffs, seats = seat_paths.paths, seat_paths.payoffs, seat_paths.seats
    players = payoffs.shape[1]
    nodes, deal, together = 0, limits[START], paths.place.shape[0] // players
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        stop, logged = min(deal + together, limits[STOP]), np.int64(0)  # a literal 0 would have another numba type
        for j in range(stop - deal):
            locate(tables, deals, deal + j, paths.hand)
            begin_deal(seats, deals.strength, deal + j)
            for traverser in range(players):
                begin_traversal(seats, traverser)
                path = players * j + traverser
                node, logged, touched = _walk(tree, tables, weight, next_word(rng), seat_paths, (path, logged), epsilon)
                nodes += touched
                path_place = paths.place[path]
                if seats is not None:
                    path_place.value = won_chips(seats, seats.first[node], traverser) / path_place.probability
                elif players > 2:
                    path_place.value = payoffs[node, traverser] / path_place.probability
                else:
                    payoff = tree.fixed[node] + tree.showdown[node] * deals.result[deal + j]
                    path_place.value = (1.0 - 2.0 * traverser) * payoff / path_place.probability
        _update_paths(tables.regret, logged, weight, paths)
        deal = stop
    return deal - limits[START], nodes


@part_njit
def _walk(tree, tables, weight, word, seat_paths, which, epsilon):
    """Sample one path and return (terminal node, decisions recorded so far, nodes touched).

    word     64 random bits of the path
    which    (number of the path in its group of deals, P·deal + traverser of P players; decisions recorded before)
    epsilon  probability that the traverser plays uniformly instead of its strategy

    Records the traverser's decisions in `paths.step` and adds to the strategy sums of the other players.
    """
    paths, sampled = seat_paths.paths, seat_paths.sampled
    (path, logged), hand, sigma = which, paths.hand, paths.sigma
    node, probability, nodes, level, traverser = 0, 1.0, 0, _ZERO, path % sampled.shape[0]
    sampled[:] = 1.0
    while tree.kind[node] != TERMINAL:
        nodes += tree.touched[node]
        first, actions, block = tree.first[node], tree.count[node], tree.block[node]
        random, rounding = random_at(word, level), random_at(~word, level)
        level += _ONE
        if tree.kind[node] == CHANCE:
            node = first + choose(tree.probability, first, actions, uniform_like(tree.probability, random))
            continue
        paths.updated[0] += 1
        own, row = tree.player[node] == traverser, hand.regrets[block] + tree.slot[node]
        regret_matching(tables.regret, row, actions, sigma, 0)
        even = own and explores(random, exploration(epsilon))
        action = choose(tables.regret, row, actions, uniform_like(tables.regret, random), even)
        if own:
            step, probability_taken = paths.step[logged], np.float64(sigma[action])
            step.row, step.taken, step.path, step.action, step.actions = row, probability_taken, path, action, actions
            logged += 1
            probability *= epsilon / actions + (1.0 - epsilon) * probability_taken
        else:
            player, others = tree.player[node], probability
            for each in range(sampled.shape[0]):
                if each != player:
                    others *= sampled[each]
            add_strategy(tree, tables, hand, node, (sigma, 0), weight / others, rounding)
            sampled[player] *= np.float64(sigma[action])
        node = first + action
    paths.place[path].probability = probability
    return node, logged, nodes + tree.touched[node]


@part_njit
def _update_paths(regret, logged, weight, paths):
    """Update regrets at the traverser's decisions on a group's paths, from the last to the first.

    regret  flat table of regrets
    logged  number of these decisions, which are the first in `paths.step`
    weight  discount weight of the updates
    paths   Paths with the decisions, and the values at the ends of the paths
    """
    for place_in_log in range(logged - 1, -1, -1):
        step = paths.step[place_in_log]
        path_place = paths.place[step.path]
        value, node_value = path_place.value, path_place.value * step.taken
        update_sampled(regret, step.row, step.actions, step.action, value, node_value, weight)
        path_place.value = node_value
