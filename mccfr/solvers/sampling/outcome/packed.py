"""Outcome-sampling MCCFR (Lanctot, Waugh, Zinkevich & Bowling 2009, section 3.1 and appendix; Lanctot 2013, chapter 4).

One path is sampled for each player and deal.  The traverser explores: with probability epsilon he plays uniformly, else
his current strategy; chance and the opponent play themselves, so only the traverser's own choices need correction, by
1 / (probability of his choices so far).  That weight enters the regrets, with his own reach behind the node, and the
opponent's strategy sums, which are collected at the opponent's nodes on the way down.

This is the kernel over packed betting trees, whose rows are handled as vectors; `general` beside it goes over general
records, action by action, and both are equal to the last bit where both apply.

Deals are played in groups, of 32 but in the smallest games (`deals_together`).  All paths of a group are drawn from the
regrets as they were before it, and then all their regret updates are added: so no path sees what another one of its
group, or the other player's of its own deal, has learnt.  Groups begin at multiples of their length, counted in
iterations of the run, so that what is learnt does not depend on where a run was stopped (`SampledSolver.run`).

They are what makes this kernel fast.  A path is a chain of cache misses, each waiting for the one before; paths of a
group go down in step, a decision at a time, and every row is asked for one round before it is read.  Nothing in a round
branches on what is drawn, because each wrong prediction would throw away the work begun on other paths: a path that has
ended is dropped by not counting it, and decisions of the traverser and of the opponent are in lists of their own.
Indices are unsigned where it counts: signed ones are checked for being negative at each access.
"""

import numpy as np

from abstraction.kernels.jit import inline_njit, nogil_njit
from abstraction.kernels.prefetch import prefetch_to_write
from mccfr.rng import next_word, random_at
from mccfr.solvers.sampling.common import NODE_LIMIT, START, STOP
from mccfr.solvers.sampling.outcome.paths import exploration, explores, prefetch_one, uniform_like
from mccfr.solvers.sampling.rows import add_row, match_and_choose_row, update_sampled_row

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@nogil_njit
def outcome_sampling_packed(tree, tables, deals, limits, weight, rng, paths, epsilon):
    """Run deals of a batch over a packed tree, in groups; `tables`, `rng` and `paths` are changed in place.

    tree [D] PACKED_NODE; tables TableArrays; deals Deals; limits [3] int64; weight of updates; rng [4] uint64; paths
    Paths with 8 cells a strategy; epsilon float64 in (0, 1].  Returns (iterations run, nodes touched): it stops after
    the first group that reaches limits[NODE_LIMIT].
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
            kept, touched = _own_decisions(tree, tables.regret, own, level, logged, paths, epsilon, share)
            nodes += touched
            logged += own
            kept, touched = _opponents_decisions(tree, tables, others, level, kept, paths, weight)
            nodes += touched
            own, others = _go_on(tree, tables, kept, paths)
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
    """Put the paths of a group of deals at the root, in place."""
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
    """One decision on each of the `own` paths where the traverser acts, in place; they are logged from `logged` on.

    Returns (paths of these that go on, nodes touched).
    """
    places, steps, sigma, going, kept, nodes = paths.place, paths.step, paths.sigma, paths.going, 0, 0
    for j in range(own):
        i = np.uint64(going[0, j])
        place = places[i]
        node, row, drawn = tree[np.uint64(place.node)], place.row, random_at(place.word, level)
        uniform, even = uniform_like(sigma, drawn), explores(drawn, share)
        action = match_and_choose_row(regret, row, node.actions, uniform, even, sigma, 0)
        taken = np.float64(sigma[np.uint64(action)])
        step = steps[np.uint64(logged + j)]
        step.row, step.taken, step.path, step.action, step.actions = row, taken, i, action, node.actions
        place.probability *= epsilon / node.actions + (1.0 - epsilon) * taken
        place.action = action
        nodes += node.touched
        going[2, kept] = i
        kept += np.int64(action >= node.folds + node.ends)
    return kept, nodes


@inline_njit
def _opponents_decisions(tree, tables, others, level, kept, paths, weight):
    """One decision on each of the `others` paths where the opponent acts; its strategy sums, in place.

    Returns (paths that go on, `kept` of them before, nodes touched).
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
        going[2, kept] = i
        kept += np.int64(action >= node.folds + node.ends)
    return kept, nodes


@inline_njit
def _go_on(tree, tables, kept, paths):
    """Put `kept` paths at their next decisions and ask for the rows there, in place; returns (own, opponents').

    A loop of its own, which is short, so that more requests are under way at once than between the choices.
    """
    regret, strategy_sum, places, going = tables.regret, tables.strategy_sum, paths.place, paths.going
    start, to_sum, sigma = paths.start, paths.to_sum, paths.sigma
    blocks, own, others = np.uint64(to_sum.shape[0]), 0, 0
    for j in range(kept):
        i = np.uint64(going[2, j])
        place = places[i]
        node = tree[np.uint64(place.node)]
        place.node = node.first + place.action - node.folds - node.ends
        below = tree[np.uint64(place.node)]
        block, mine = np.uint64(below.block), np.int64(below.player == np.int64(i & _ONE))
        row = start[(i >> _ONE) * blocks + block] + below.slot
        place.row = row
        prefetch_to_write(regret, row)
        # Own nodes, and blocks without sums, need no second line and ask for one that is at hand.
        sums = row + to_sum[block]
        prefetch_one((1 - mine) * np.int64(sums >= 0), (sigma, strategy_sum), (0, sums))
        going[0, own], going[1, others] = i, i
        own, others = own + mine, others + 1 - mine
    return own, others


@inline_njit
def _learn(regret, logged, paths, weight):
    """Regret updates of a group's own decisions, the last one logged first, in place."""
    for place_in_log in range(logged - 1, -1, -1):
        step = paths.step[np.uint64(place_in_log)]
        place = paths.place[np.uint64(step.path)]
        here = place.value * step.taken
        update_sampled_row(regret, step.row, step.actions, step.action, (place.value, here), weight)
        place.value = here  # own reach behind a node turns what its action was worth into what the node is worth
