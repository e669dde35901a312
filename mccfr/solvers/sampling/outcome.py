"""Outcome-sampling MCCFR (Lanctot, Waugh, Zinkevich & Bowling 2009, section 3.1 and appendix; Lanctot 2013, chapter 4).

One path is sampled for each player and deal.  The traverser explores: with probability epsilon he plays uniformly, else
his current strategy; chance and the opponent play themselves, so only the traverser's own choices need correction, by
1 / (probability of his choices so far).  That weight enters the regrets, with his own reach behind the node, and the
opponent's strategy sums, which are collected at the opponent's nodes on the way down.

Two kernels, equal to the last bit where both apply: over packed betting trees, whose rows are handled as vectors, and
over general records, action by action.

Deals are played in groups, of 32 but in the smallest games (`deals_together`).  All paths of a group are drawn from the
regrets as they were before it, and then all their regret updates are added: so no path sees what another one of its
group, or the other player's of its own deal, has learnt.  Groups begin at multiples of their length, counted in
iterations of the run, so that what is learnt does not depend on where a run was stopped (`SampledSolver.run`).

It is what makes the packed kernel fast.  A path is a chain of cache misses, each waiting for the one before; paths of a
group go down in step, a decision at a time, and every row is asked for one round before it is read.  Nothing in a round
branches on what is drawn, because each wrong prediction would throw away the work begun on other paths: a path that has
ended is dropped by not counting it, and decisions of the traverser and of the opponent are in lists of their own.
Indices are unsigned where it counts: signed ones are checked for being negative at each access.
"""

import numpy as np

from abstraction.kernels.jit import inline_njit, nogil_njit, part_njit
from abstraction.kernels.prefetch import prefetch_to_write
from mccfr.rng import next_word, random_at
from mccfr.solvers.regret import choose, discount_regrets, regret_matching, update_sampled
from mccfr.solvers.sampling.cells import is_scaled, prefetch_scale, scale_at
from mccfr.solvers.sampling.common import (
    NODE_LIMIT,
    START,
    STOP,
    WIDE,
    add_strategy,
    exploration,
    explores,
    locate_all,
    prefetch_one,
    uniform_like,
)
from mccfr.solvers.sampling.rows import (
    add_to_sums,
    discount_regrets_row,
    forward_sums_row,
    match_and_choose_row,
    update_sampled_row,
)
from mccfr.trees.compiled import CHANCE, TERMINAL

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_UPDATE, _DISCOUNT = (
    np.uint64(128),
    np.uint64(192),
)  # numbers, beyond those of a path, of words that rows are rounded by


@nogil_njit
def outcome_sampling_packed(tree, tables, deals, limits, discount, rng, paths, epsilon):
    """Run deals of a batch over a packed tree, in groups; `tables`, `rng` and `paths` are changed in place.

    tree [D] PACKED_NODE; tables TableArrays; deals Deals; limits [3] int64; discount Discount; rng [4] uint64; paths
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
            kept, touched = _own_decisions(tree, tables, own, level, logged, paths, epsilon, share)
            nodes += touched
            logged += own
            kept, touched = _opponents_decisions(tree, tables, deals, deal, others, level, kept, paths, discount)
            nodes += touched
            own, others = _go_on(tree, tables, kept, paths)
            level += _ONE
        for i in range(2 * (stop - deal)):
            place = paths.place[np.uint64(i)]
            node = tree[np.uint64(place.node)]
            folds = node.folds & (place.action == 0)
            nodes += node.leaves_touched - node.end_touched if folds else node.end_touched
            payoff = node.fold_value if folds else node.call_value * deals.result[deal + (i >> 1)]
            place.worth = (1.0 - 2.0 * (i & 1)) * payoff / place.probability
        _learn(tree, tables, deals, deal, logged, paths, discount)
        deal = stop
    return deal - limits[START], nodes


@inline_njit
def _begin(tree, tables, deals, deal, stop, rng, paths):
    """Put the paths of a group of deals at the root, in place."""
    bucket, start, of_scales = deals.bucket, paths.start, paths.scales
    blocks, root = np.uint64(paths.to_sum.shape[0]), tree[0]
    for j in range(stop - deal):
        first = np.uint64(j) * blocks
        _locate(start, first, tables.regret_base, tables.width, bucket, deal + j)
        if is_scaled(tables.regret) or is_scaled(tables.narrow_sum):
            _locate(of_scales[0], first, tables.regret_scale_base, tables.rows, bucket, deal + j)
            _locate(of_scales[1], first, tables.sum_scale_base, tables.rows, bucket, deal + j)
        row = start[first + np.uint64(root.block)] + root.slot
        prefetch_to_write(tables.regret, row)
        for traverser in range(2):
            place = paths.place[np.uint64(2 * j + traverser)]
            place.row, place.word, place.probability, place.node = row, next_word(rng), 1.0, 0
        paths.going[0, j], paths.going[1, j] = 2 * j + root.player, 2 * j + 1 - root.player


@inline_njit
def _locate(start, place, base, width, bucket, deal):
    """start[place + b] = where the rows of a deal's hand begin in block b, in place."""
    for block in range(base.shape[0]):
        start[place + np.uint64(block)] = base[block] + np.int64(bucket[deal, block]) * width[block]


@inline_njit
def _own_decisions(tree, tables, own, level, logged, paths, epsilon, share):
    """One decision on each of the `own` paths where the traverser acts, in place; they are logged from `logged` on.

    Returns (paths of these that go on, nodes touched).
    """
    regret, scales, places, steps, sigma = tables.regret, tables.scale, paths.place, paths.step, paths.sigma
    going, of_scales, blocks, kept, nodes = paths.going, paths.scales, np.uint64(paths.to_sum.shape[0]), 0, 0
    for j in range(own):
        i = np.uint64(going[0, j])
        place = places[i]
        node, row, drawn = tree[np.uint64(place.node)], place.row, random_at(place.word, level)
        hand = (i >> _ONE) * blocks + np.uint64(node.block)
        at = row, scale_at(regret, scales, of_scales[0, hand] + node.row), _ZERO
        action = match_and_choose_row(
            regret, at, node.actions, uniform_like(sigma, drawn), explores(drawn, share), sigma
        )
        taken = np.float64(sigma[np.uint64(action)])
        step = steps[np.uint64(logged + j)]
        step.row, step.taken, step.node = row, taken, place.node
        step.path, step.action, step.level = i, action, level
        place.probability *= epsilon / node.actions + (1.0 - epsilon) * taken
        place.action = action
        nodes += node.touched
        going[2, kept] = i
        kept += np.int64(action >= node.folds + node.ends)
    return kept, nodes


@inline_njit
def _opponents_decisions(tree, tables, deals, deal, others, level, kept, paths, discount):
    """One decision on each of the `others` paths where the opponent acts; its strategy sums, in place.

    Returns (paths that go on, `kept` of them before, nodes touched).
    """
    regret, narrow_sum, wide_sum, wide = tables.regret, tables.narrow_sum, tables.wide_sum, tables.wide
    scales, stamps, places, sigma, to_sum = tables.scale, tables.stamp, paths.place, paths.sigma, paths.to_sum
    going, of_scales, blocks, nodes = paths.going, paths.scales, np.uint64(to_sum.shape[0]), 0
    _, sum_weight, lazy, ends, _, _, sum_factors = discount
    for j in range(others):
        i = np.uint64(going[1, j])
        place = places[i]
        node, row, drawn = tree[np.uint64(place.node)], place.row, random_at(place.word, level)
        actions, block = node.actions, np.uint64(node.block)
        hand = (i >> _ONE) * blocks + block
        at = row, scale_at(regret, scales, of_scales[0, hand] + node.row), _ZERO
        action = match_and_choose_row(regret, at, actions, uniform_like(sigma, drawn), False, sigma)
        if wide[block] <= WIDE:
            share_of, word = sum_weight / place.probability, random_at(~place.word, level)
            at = row + to_sum[block], scale_at(narrow_sum, scales, of_scales[1, hand] + node.row), word
            if lazy:
                bucket = deals.bucket[deal + np.int64(i >> _ONE), block]
                stamp = tables.sum_stamp_base[block] + bucket * tables.rows[block] + node.row
                forward_sums_row(narrow_sum, wide_sum, wide[block], at, actions, stamps, stamp, ends, sum_factors)
            add_to_sums(narrow_sum, wide_sum, wide[block], at, actions, sigma, 0, share_of, word)
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
    regret, narrow_sum, wide_sum, wide = tables.regret, tables.narrow_sum, tables.wide_sum, tables.wide
    scales, places, going, start, to_sum = tables.scale, paths.place, paths.going, paths.start, paths.to_sum
    blocks, sigma, of_scales, own, others = np.uint64(to_sum.shape[0]), paths.sigma, paths.scales, 0, 0
    for j in range(kept):
        i = np.uint64(going[2, j])
        place = places[i]
        node = tree[np.uint64(place.node)]
        place.node = node.first + place.action - node.folds - node.ends
        below = tree[np.uint64(place.node)]
        block, mine = np.uint64(below.block), np.int64(below.player == np.int64(i & _ONE))
        hand = (i >> _ONE) * blocks + block
        row = start[hand] + below.slot
        place.row = row
        prefetch_to_write(regret, row)
        # Own nodes, and blocks without sums, need no second line and ask for one that is at hand.
        which, sums = (1 - mine) * ((1 + np.int64(wide[block])) & 3), row + to_sum[block]
        prefetch_one(which, (sigma, narrow_sum, wide_sum), (0, sums, sums))
        prefetch_scale(regret, scales, of_scales[0, hand] + below.row)
        prefetch_scale(narrow_sum, scales, of_scales[1, hand] + below.row)
        going[0, own], going[1, others] = i, i
        own, others = own + mine, others + 1 - mine
    return own, others


@inline_njit
def _learn(tree, tables, deals, deal, logged, paths, discount):
    """Regret updates of a group's own decisions, the last one logged first, in place."""
    regret, stamps, scales = tables.regret, tables.stamp, tables.scale
    places, steps, of_scales, blocks = paths.place, paths.step, paths.scales, np.uint64(paths.to_sum.shape[0])
    weight, _, lazy, ends, positive_factors, negative_factors, _ = discount
    for place_in_log in range(logged - 1, -1, -1):
        step = steps[np.uint64(place_in_log)]
        i, node, level = np.uint64(step.path), tree[np.uint64(step.node)], np.uint64(step.level)
        place, block = places[i], np.uint64(node.block)
        worth, word = place.worth, ~place.word
        here = worth * step.taken
        scale = scale_at(regret, scales, of_scales[0, (i >> _ONE) * blocks + block] + node.row)
        if lazy:
            bucket = deals.bucket[deal + np.int64(i >> _ONE), block]
            stamp = tables.regret_stamp_base[block] + bucket * tables.rows[block] + node.row
            at = step.row, scale, random_at(word, level + _DISCOUNT)
            discount_regrets_row(regret, at, node.actions, stamps, stamp, ends, positive_factors, negative_factors)
        at = step.row, scale, random_at(word, level + _UPDATE)
        update_sampled_row(regret, at, node.actions, step.action, worth, here, weight)
        place.worth = here  # own reach behind a node turns what its action was worth into what the node is worth


@nogil_njit
def outcome_sampling_general(tree, tables, deals, limits, discount, rng, paths, epsilon):
    """Run deals of a batch over general records; arguments and results as `outcome_sampling_packed`.

    tree TreeArrays; paths with as many cells a strategy as any decision has actions.
    """
    nodes, deal, together = 0, limits[START], paths.place.shape[0] // 2
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        stop, logged = min(deal + together, limits[STOP]), 0
        for j in range(stop - deal):
            locate_all(tables, deals, deal + j, paths.hand)
            for traverser in range(2):
                node, logged, touched = _walk(
                    tree, tables, discount, next_word(rng), paths, (2 * j + traverser, logged), epsilon
                )
                nodes += touched
                place = paths.place[2 * j + traverser]
                payoff = tree.fixed[node] + tree.showdown[node] * deals.result[deal + j]
                place.worth = (1.0 - 2.0 * traverser) * payoff / place.probability
        _update_paths(tree, tables, deals, deal, logged, discount, paths)
        deal = stop
    return deal - limits[START], nodes


@part_njit
def _walk(tree, tables, discount, word, paths, which, epsilon):
    """Sample one path.  Returns (terminal node, decisions logged so far, nodes touched).

    which  (number of the path in its group, decisions logged before)
    """
    (path, logged), hand, sigma = which, paths.hand, paths.sigma
    node, probability, nodes, level, traverser = 0, 1.0, 0, _ZERO, path & 1
    while tree.kind[node] != TERMINAL:
        nodes += tree.touched[node]
        first, actions, block = tree.first[node], tree.count[node], tree.block[node]
        drawn, rounding = random_at(word, level), random_at(~word, level)
        level += _ONE
        if tree.kind[node] == CHANCE:
            node = first + choose(tree.probability, first, actions, uniform_like(tree.probability, drawn))
            continue
        paths.updated[0] += 1
        own, row = tree.player[node] == traverser, hand.regrets[block] + tree.slot[node]
        regret_matching(tables.regret, row, actions, sigma, 0)
        even = own and explores(drawn, exploration(epsilon))
        action = choose(tables.regret, row, actions, uniform_like(tables.regret, drawn), even)
        if own:
            step, taken = paths.step[logged], np.float64(sigma[action])
            step.row, step.taken, step.node, step.path, step.action = row, taken, node, path, action
            logged += 1
            probability *= epsilon / actions + (1.0 - epsilon) * taken
        else:
            add_strategy(tree, tables, hand, node, (sigma, 0), discount.sum_weight / probability, discount, rounding)
        node = first + action
    paths.place[path].probability = probability
    return node, logged, nodes + tree.touched[node]


@part_njit
def _update_paths(tree, tables, deals, deal, logged, discount, paths):
    """Regret updates of a group's own decisions, the last one logged first; `tables` is changed in place."""
    for place_in_log in range(logged - 1, -1, -1):
        step = paths.step[place_in_log]
        place, node = paths.place[step.path], step.node
        actions, block = tree.count[node], tree.block[node]
        worth = place.worth
        here = worth * step.taken
        if discount.lazy:
            bucket = np.int64(deals.bucket[deal + step.path // 2, block])
            discount_regrets(
                tables.regret,
                step.row,
                actions,
                tables.stamp,
                tables.regret_stamp_base[block] + bucket * tables.rows[block] + tree.row[node],
                discount.ends,
                discount.positive_factors,
                discount.negative_factors,
            )
        update_sampled(tables.regret, step.row, actions, step.action, worth, here, discount.weight)
        place.worth = here
