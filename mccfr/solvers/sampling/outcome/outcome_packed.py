"""Outcome-sampling MCCFR (Lanctot, Waugh, Zinkevich & Bowling 2009; Lanctot 2013, chapter 4).

Section 3.1 and the appendix of the paper of 2009 describe the algorithm.  One path is sampled for each player and deal.
The traverser plays uniformly with probability epsilon, else its current strategy.  Chance and the opponent play their
own probabilities.  So only the traverser's choices need a correction, by 1 / (probability of its choices so far).  This
weight enters the regrets, with the traverser's own reach behind the node.  It also enters the opponent's strategy sums,
which are updated on the way down.

This kernel handles packed betting trees, with rows as vectors.  `outcome_general` handles general records, action by
action; both give the same bits on betting trees.

Deals are played in groups of 32, or fewer in the smallest games (`deals_together`).  All paths of a group are drawn
from the regrets before the group; then all its regret updates are added.  Groups begin at multiples of their length, so
the result does not depend on where a run was stopped.

Groups make this kernel fast, because a single path is a chain of cache misses.  All paths go down together, one
decision a round, and each row is prefetched one round before it is read.  Nothing in a round branches on a draw: a
wrong prediction would discard the work begun on other paths.  Ended paths are dropped by not counting them, and the
traverser's and the opponent's decisions are in separate lists.
"""

import numpy as np

from abstraction.kernels.jit import inline_njit, nogil_njit
from abstraction.kernels.prefetch import prefetch_to_write
from mccfr.common.rng import next_word, random_at
from mccfr.solvers.sampling.outcome.paths import exploration, explores, prefetch_one, uniform_like
from mccfr.solvers.sampling.packed_rows import add_row, match_and_choose_row, update_sampled_row
from mccfr.solvers.sampling.row_lookup import NODE_LIMIT, START, STOP

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@nogil_njit
def outcome_sampling_packed(tree, tables, deals, limits, weight, rng, paths, epsilon):
    """Run outcome sampling on deals over a packed tree, in groups; return (iterations run, nodes touched).

    tree     [D] PACKED_NODE: a record of each decision, with its terminals
    tables   TableArrays, changed in place
    deals    Deals: each deal's bucket by block and showdown result
    limits   [3] int64: index of the first deal, end of the deals, and number of nodes; the group that reaches it is the
             last
    weight   discount weight of the updates
    rng      [4] uint64, state of the generator, changed in place
    paths    Paths with 8 cells of strategy, the most actions of a decision; changed in place
    epsilon  float64 in (0, 1], probability that the traverser plays uniformly instead of its strategy
    """
    nodes, deal, share, together = 0, limits[START], exploration(epsilon), paths.place.shape[0] // 2
    for block in range(paths.to_sum.shape[0]):
        paths.to_sum[block] = tables.sum_base[block] - tables.regret_base[block]
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        stop = min(deal + together, limits[STOP])
        _begin(tree, tables, deals, deal, stop, rng, paths)
        own, others, level, logged = stop - deal, stop - deal, _ZERO, 0
        while own + others > 0:
            paths.updated[0] += own + others
            count, touched = _own_decisions(tree, tables.regret, own, level, logged, paths, epsilon, share)
            nodes += touched
            logged += own
            count, touched = _opponents_decisions(tree, tables, others, level, count, paths, weight)
            nodes += touched
            own, others = _go_on(tree, tables, count, paths)
            level += _ONE
        for i in range(2 * (stop - deal)):
            place = paths.place[np.uint64(i)]
            node = tree[np.uint64(place.node)]
            folds = node.folds & (place.action == 0)
            nodes += node.leaves_touched - node.end_touched if folds else node.end_touched
            payoff = node.fold_value if folds else node.call_value * deals.result[deal + (i >> 1)]
            place.value = (1.0 - 2.0 * (i & 1)) * payoff / place.probability
        _learn(tables.regret, logged, paths, weight)
        deal = stop
    return deal - limits[START], nodes


@inline_njit
def _begin(tree, tables, deals, deal, stop, rng, paths):
    """Put the paths of the deals `deal` to stop-1 at the root of the tree, in place.

    tree    [D] PACKED_NODE
    tables  TableArrays
    deals   Deals: each deal's bucket by block (street and player)
    rng     [4] uint64, state of the generator, changed in place
    paths   Paths; `place`, `start` and `going` are set
    """
    bucket, start, root = deals.bucket, paths.start, tree[0]
    base, width, blocks = tables.regret_base, tables.width, paths.to_sum.shape[0]
    for j in range(stop - deal):
        first = np.uint64(j) * np.uint64(blocks)
        for block in range(blocks):
            start[first + np.uint64(block)] = base[block] + np.int64(bucket[deal + j, block]) * width[block]
        row = start[first + np.uint64(root.block)] + root.slot
        prefetch_to_write(tables.regret, row)
        for traverser in range(2):
            place = paths.place[np.uint64(2 * j + traverser)]
            place.row, place.word, place.probability, place.node = row, next_word(rng), 1.0, 0
        paths.going[0, j], paths.going[1, j] = 2 * j + root.player, 2 * j + 1 - root.player


@inline_njit
def _own_decisions(tree, regret, own, level, logged, paths, epsilon, share):
    """Sample one decision on each of the `own` paths where the traverser acts, in place.

    tree     [D] PACKED_NODE
    regret   flat table of regrets
    own      number of these paths; paths.going[0] has their numbers
    level    number of decisions on each of these paths before this one
    logged   number of decisions that are already in `paths.step`; those sampled here follow them
    epsilon  probability that the traverser plays uniformly instead of its strategy
    share    epsilon as a limit of random bits (uint64), from `exploration`

    Returns (number of these paths that go on, nodes touched).
    """
    places, steps, sigma, going, count, nodes = paths.place, paths.step, paths.sigma, paths.going, 0, 0
    for j in range(own):
        i = np.uint64(going[0, j])
        place = places[i]
        node, row, drawn = tree[np.uint64(place.node)], place.row, random_at(place.word, level)
        uniform, even = uniform_like(sigma, drawn), explores(drawn, share)
        action = match_and_choose_row(regret, row, node.actions, uniform, even, sigma, 0)
        probability_taken = np.float64(sigma[np.uint64(action)])
        step = steps[np.uint64(logged + j)]
        step.row, step.taken, step.path, step.action, step.actions = row, probability_taken, i, action, node.actions
        place.probability *= epsilon / node.actions + (1.0 - epsilon) * probability_taken
        place.action = action
        nodes += node.touched
        going[2, count] = i
        count += np.int64(action >= node.folds + node.ends)
    return count, nodes


@inline_njit
def _opponents_decisions(tree, tables, others, level, count, paths, weight):
    """Sample one decision on each of the `others` paths where the opponent acts.

    tree    [D] PACKED_NODE
    tables  TableArrays; the opponent's strategy sums are changed in place
    others  number of these paths; paths.going[1] has their numbers
    level   number of decisions on each of these paths before this one
    count   number of paths that are already in `paths.going[2]`; those of these paths that go on are added
    weight  discount weight of the updates

    Returns (number of paths in `paths.going[2]` now, nodes touched).
    """
    regret, strategy_sum, places, sigma = tables.regret, tables.strategy_sum, paths.place, paths.sigma
    to_sum, going, nodes = paths.to_sum, paths.going, 0
    for j in range(others):
        i = np.uint64(going[1, j])
        place = places[i]
        node, row, drawn = tree[np.uint64(place.node)], place.row, random_at(place.word, level)
        actions, sums = node.actions, row + to_sum[np.uint64(node.block)]
        action = match_and_choose_row(regret, row, actions, uniform_like(sigma, drawn), False, sigma, 0)
        if sums >= 0:
            share, word = weight / place.probability, random_at(~place.word, level)
            add_row(strategy_sum, sums, actions, sigma, 0, share, word)
        place.action = action
        nodes += node.touched
        going[2, count] = i
        count += np.int64(action >= node.folds + node.ends)
    return count, nodes


@inline_njit
def _go_on(tree, tables, count, paths):
    """Move the first `count` paths of paths.going[2] to their next decisions and prefetch the rows there.

    tree    [D] PACKED_NODE
    tables  TableArrays
    paths   Paths; going[0] and going[1] receive the paths where the traverser and where the opponent acts

    Returns (number of paths where the traverser acts, number where the opponent acts).  A short loop of its own keeps
    more prefetches in flight than one that also samples.
    """
    regret, strategy_sum, places, going = tables.regret, tables.strategy_sum, paths.place, paths.going
    start, to_sum, sigma = paths.start, paths.to_sum, paths.sigma
    blocks, own, others = np.uint64(to_sum.shape[0]), 0, 0
    for j in range(count):
        i = np.uint64(going[2, j])
        place = places[i]
        node = tree[np.uint64(place.node)]
        place.node = node.first + place.action - node.folds - node.ends
        below = tree[np.uint64(place.node)]
        block, mine = np.uint64(below.block), np.int64(below.player == np.int64(i & _ONE))
        row = start[(i >> _ONE) * blocks + block] + below.slot
        place.row = row
        prefetch_to_write(regret, row)
        # The traverser's nodes, and blocks without sums, need no second line: prefetch one that is already cached.
        sums = row + to_sum[block]
        prefetch_one((1 - mine) * np.int64(sums >= 0), (sigma, strategy_sum), (0, sums))
        going[0, own], going[1, others] = i, i
        own, others = own + mine, others + 1 - mine
    return own, others


@inline_njit
def _learn(regret, logged, paths, weight):
    """Update regrets at the traverser's decisions on a group's paths, from the last to the first.

    regret  flat table of regrets
    logged  number of these decisions, which are the first in `paths.step`
    paths   Paths with the decisions, and the values at the ends of the paths
    weight  discount weight of the updates
    """
    for place_in_log in range(logged - 1, -1, -1):
        step = paths.step[np.uint64(place_in_log)]
        place = paths.place[np.uint64(step.path)]
        node_value = place.value * step.taken
        update_sampled_row(regret, step.row, step.actions, step.action, (place.value, node_value), weight)
        place.value = node_value  # value of the node: value of the action times its probability
