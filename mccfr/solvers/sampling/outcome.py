"""Outcome-sampling MCCFR (Lanctot, Waugh, Zinkevich & Bowling 2009, section 3.1 and appendix; Lanctot 2013, chapter 4).

One path is sampled for each player and deal.  The traverser explores: with probability epsilon he plays uniformly, else
his current strategy; chance and the opponent play themselves, so only the traverser's own choices need correction, by
1 / (probability of his choices so far).  That weight enters the regrets, with his own reach behind the node, and the
opponent's strategy sums, which are collected at the opponent's nodes on the way down.

Two kernels, equal to the last bit where both apply: over packed betting trees, whose rows are handled as vectors, and
over general records, action by action.

A path is a chain of cache misses, each waiting for the one before.  The packed kernel therefore guesses the paths of
the next deals first, many in step, from the tables as they are, and asks for their rows; then it plays the deals one by
one.  While a row is as it was, so are its strategy and the action drawn; where it has changed, both are made again, and
if the action is another one the rest of the path is too.  Guesses decide how fast it goes and nothing else: what a
traversal draws is a function of one random word and the number of the decision.  Indices are unsigned where it counts:
signed ones are checked for being negative at each access.
"""

import numpy as np

from abstraction.jit import inline_njit, nogil_allocating_njit, nogil_njit, part_njit
from abstraction.prefetch import prefetch_to_write
from mccfr.rng import next_word, random_at
from mccfr.solvers.regret import choose, discount_regrets, regret_matching, update_sampled
from mccfr.solvers.sampling.cells import LANES, is_scaled, prefetch_scale, scale_at
from mccfr.solvers.sampling.common import (
    GUESSED_DEALS,
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
    foresee_row,
    forward_sums_row,
    unchanged_row,
    update_sampled_row,
)
from mccfr.trees.compiled import CHANCE, TERMINAL

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_UPDATE, _DISCOUNT = (
    np.uint64(128),
    np.uint64(192),
)  # numbers, beyond those of a path, of words that rows are rounded by


@nogil_allocating_njit
def outcome_sampling_packed(tree, tables, deals, limits, discount, rng, path, epsilon):  # noqa: C901
    """Run deals of a batch over a packed tree; `tables`, `rng` and `path` are changed in place.

    tree [D] PACKED_NODE; tables TableArrays; deals Deals; limits [3] int64; discount Discount; rng [4] uint64; path
    Path with 8 cells a decision; epsilon float64 in (0, 1].  Returns (iterations run, nodes touched): it stops after
    the first iteration that reaches limits[NODE_LIMIT].
    """
    regret, narrow_sum, wide_sum, wide = tables.regret, tables.narrow_sum, tables.wide_sum, tables.wide
    stamps, scales = tables.stamp, tables.scale
    scaled = is_scaled(regret) or is_scaled(narrow_sum)
    base, width, stamp_width = tables.regret_base, tables.width, tables.rows
    regret_stamp_base, sum_stamp_base = tables.regret_stamp_base, tables.sum_stamp_base
    bucket, results = deals.bucket, deals.result
    guesses = path.guesses
    going, words, lengths, steps, sigma, seen, start, of_scales, to_sum, streams = guesses
    weight, lazy, ends, positive_factors, negative_factors, sum_factors = discount
    blocks, room = np.uint64(to_sum.shape[0]), np.uint64(steps.shape[0] // lengths.shape[0])
    share, ahead, left = exploration(epsilon), rng.copy(), np.zeros(2, np.int64)
    nodes, rows, deal, begun, batch, first = 0, 0, limits[START], limits[START], 0, limits[START]
    to_sum[:] = tables.sum_base - base
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        # Begin the batch to be played next and the one after it: the last long paths of the first are not alone.
        while begun < min(limits[STOP], first + 2 * GUESSED_DEALS):
            half = batch & 1 if begun == first else (batch + 1) & 1
            stop, left[half] = min(begun + GUESSED_DEALS, limits[STOP]), 0
            for word in range(ahead.shape[0]):
                streams[half, word] = ahead[word]
            while begun < stop:
                i = np.uint64(2 * half * GUESSED_DEALS + left[half])
                _locate(start, (i >> _ONE) * blocks, base, width, bucket, begun)
                if scaled:
                    _locate(of_scales[0], (i >> _ONE) * blocks, tables.regret_scale_base, stamp_width, bucket, begun)
                    _locate(of_scales[1], (i >> _ONE) * blocks, tables.sum_scale_base, stamp_width, bucket, begun)
                row = start[(i >> _ONE) * blocks + np.uint64(tree[0].block)] + tree[0].slot
                prefetch_to_write(regret, row)
                for _ in range(2):
                    words[i], lengths[i], going[half, left[half]] = next_word(ahead), 0, i
                    step = steps[i * room]
                    step.node, step.row = 0, row
                    left[half] += 1
                    i += _ONE
                begun += 1
        # Guess both, a decision at a time, until all of the first is guessed.
        while left[batch & 1] > 0:
            for half in range(2):
                left[half] = _guess(tree, tables, guesses, half, left[half], share)
        # Play the first.
        i, stop = np.uint64(2 * (batch & 1) * GUESSED_DEALS), min(first + GUESSED_DEALS, limits[STOP])
        while deal < stop and nodes < limits[NODE_LIMIT]:
            for traverser in range(2):
                root, level, length, wrong = i * room, _ZERO, np.uint64(lengths[i]), False
                node, action, probability = tree[0], 0, 1.0
                while level < length:
                    step = steps[root + level]
                    node, row, mine = tree[np.uint64(step.node)], step.row, np.int64(root + level) * LANES
                    block, actions, action = np.uint64(node.block), node.actions, np.int64(step.action)
                    nodes += node.touched
                    own, hand = node.player == traverser, (i >> _ONE) * blocks + block
                    at = row, scale_at(regret, scales, of_scales[0, hand] + node.row), _ZERO
                    if wrong or not unchanged_row(regret, at, actions, seen, mine):
                        even, u = own & explores(step.word, share), uniform_like(sigma, step.word)
                        action = foresee_row(regret, at, actions, u, even, sigma, seen, mine)
                        wrong |= action != step.action
                        step.action = action
                    if own:
                        probability *= epsilon / actions + (1.0 - epsilon) * sigma[np.uint64(mine + action)]
                    elif wide[block] <= WIDE:
                        share_of, word = weight / probability, random_at(~words[i], level)
                        at = row + to_sum[block], scale_at(narrow_sum, scales, of_scales[1, hand] + node.row), word
                        if lazy:
                            stamp = sum_stamp_base[block] + bucket[deal, block] * stamp_width[block] + node.row
                            forward_sums_row(
                                narrow_sum, wide_sum, wide[block], at, actions, stamps, stamp, ends, sum_factors
                            )
                        add_to_sums(narrow_sum, wide_sum, wide[block], at, actions, sigma, mine, share_of, word)
                    level += _ONE
                    if wrong:  # the row has changed since the guess: the path goes on as it is drawn now
                        child = action - node.folds - node.ends
                        length = level + np.uint64(child >= 0)
                        if child >= 0:
                            below, step = tree[np.uint64(node.first + child)], steps[root + level]
                            step.node = node.first + child
                            step.row = start[(i >> _ONE) * blocks + np.uint64(below.block)] + below.slot
                            step.word = random_at(words[i], level)
                rows += np.int64(length)
                folds = node.folds & (action == 0)
                nodes += node.leaves_touched - node.end_touched if folds else node.end_touched
                payoff = node.fold_value if folds else node.call_value * results[deal]
                # Own reach behind a node turns what its action was worth into what the node is worth.
                worth = (1.0 - 2.0 * traverser) * payoff / probability
                while level > _ZERO:
                    level -= _ONE
                    step = steps[root + level]
                    node, row, action = tree[np.uint64(step.node)], step.row, step.action
                    if node.player != traverser:
                        continue
                    here = worth * sigma[np.uint64(np.int64(root + level) * LANES + action)]
                    block = np.uint64(node.block)
                    scale = scale_at(regret, scales, of_scales[0, (i >> _ONE) * blocks + block] + node.row)
                    if lazy:
                        stamp = regret_stamp_base[block] + bucket[deal, block] * stamp_width[block] + node.row
                        at = row, scale, random_at(~words[i], level + _DISCOUNT)
                        discount_regrets_row(
                            regret, at, node.actions, stamps, stamp, ends, positive_factors, negative_factors
                        )
                    at = row, scale, random_at(~words[i], level + _UPDATE)
                    update_sampled_row(regret, at, node.actions, action, worth, here, weight)
                    worth = here
                i += _ONE
            deal += 1
        if deal == stop:
            first, batch = stop, batch + 1
    if deal < begun:  # what was begun and not played has been given its random words too early
        ahead[:] = streams[batch & 1]
        for _ in range(2 * (deal - first)):
            next_word(ahead)
    rng[:] = ahead
    path.updated[0] += rows
    return deal - limits[START], nodes


@inline_njit
def _locate(start, place, base, width, bucket, deal):
    """start[place + b] = where the rows of a deal's hand begin in block b, in place."""
    for block in range(base.shape[0]):
        start[place + np.uint64(block)] = base[block] + np.int64(bucket[deal, block]) * width[block]


@inline_njit
def _guess(tree, tables, guesses, half, left, share):
    """Guess one decision on each of the `left` paths of a batch that go on, in place; returns how many still do.

    No branch on what was drawn: each wrong prediction would throw away the work begun on other paths.  Paths
    that have ended are dropped.  Rows are asked for in a second loop, which is short, so that more requests are under
    way at once than between the choices.
    """
    regret, narrow_sum, wide_sum, wide = tables.regret, tables.narrow_sum, tables.wide_sum, tables.wide
    scales = tables.scale
    going, words, lengths, steps, sigma, seen, start, of_scales, to_sum, _ = guesses
    blocks, room, kept = np.uint64(to_sum.shape[0]), np.uint64(steps.shape[0] // lengths.shape[0]), 0
    for j in range(left):
        i = np.uint64(going[half, j])
        level, traverser = np.uint64(lengths[i]), np.int64(i & _ONE)
        place = i * room + level
        step, mine = steps[place], np.int64(place) * LANES
        node = tree[np.uint64(step.node)]
        drawn = random_at(words[i], level)
        even, u = (node.player == traverser) & explores(drawn, share), uniform_like(sigma, drawn)
        hand = (i >> _ONE) * blocks
        at = step.row, scale_at(regret, scales, of_scales[0, hand + np.uint64(node.block)] + node.row), _ZERO
        action = foresee_row(regret, at, node.actions, u, even, sigma, seen, mine)
        step.word, step.action = drawn, action
        lengths[i] = np.int64(level) + 1
        child = action - node.folds - node.ends
        steps[place + _ONE].node = node.first + child  # of a path that has ended, nothing
        going[half, kept] = i
        kept += np.int64(child >= 0)
    for j in range(kept):
        i = np.uint64(going[half, j])
        step = steps[i * room + np.uint64(lengths[i])]
        below = tree[np.uint64(step.node)]
        block, hand = np.uint64(below.block), (i >> _ONE) * blocks
        row = start[hand + block] + below.slot
        step.row = row
        prefetch_to_write(regret, row)
        # Own nodes, and blocks without sums, need no second line and ask for one that is at hand.
        which = np.int64(below.player != np.int64(i & _ONE)) * ((1 + np.int64(wide[block])) & 3)
        sums = row + to_sum[block]
        prefetch_one(which, (sigma, narrow_sum, wide_sum), (0, sums, sums))
        prefetch_scale(regret, scales, of_scales[0, hand + block] + below.row)
        prefetch_scale(narrow_sum, scales, of_scales[1, hand + block] + below.row)
    return kept


@nogil_njit
def outcome_sampling_general(tree, tables, deals, limits, discount, rng, path, epsilon):
    """Run deals of a batch over general records; arguments and results as `outcome_sampling_packed`.

    tree TreeArrays; path with as many cells a decision as any has actions.
    """
    nodes, deal = 0, limits[START]
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        locate_all(tables, deals, deal, path.hand)
        for traverser in range(2):
            word = next_word(rng)
            node, length, probability, touched = _walk(tree, tables, traverser, discount, word, path, epsilon)
            nodes += touched
            payoff = tree.fixed[node] + tree.showdown[node] * deals.result[deal]
            _update_path(tables, (1.0 - 2.0 * traverser) * payoff / probability, length, discount, path)
        deal += 1
    return deal - limits[START], nodes


@part_njit
def _walk(tree, tables, traverser, discount, word, path, epsilon):
    """Sample one path.  Returns (terminal node, own decisions on the path, probability of them, nodes touched)."""
    hand, sigma = path.hand, path.sigma
    width = sigma.shape[0] // (path.row.shape[0] + 1)
    node, length, probability, nodes, level = 0, 0, 1.0, 0, _ZERO
    while tree.kind[node] != TERMINAL:
        nodes += tree.touched[node]
        first, actions, block = tree.first[node], tree.count[node], tree.block[node]
        drawn, rounding = random_at(word, level), random_at(~word, level)
        level += _ONE
        if tree.kind[node] == CHANCE:
            node = first + choose(tree.probability, first, actions, uniform_like(tree.probability, drawn))
            continue
        path.updated[0] += 1
        own = tree.player[node] == traverser
        mine = (length if own else path.row.shape[0]) * width
        regret_row = hand.regrets[block] + tree.slot[node]
        regret_matching(tables.regret, regret_row, actions, sigma, mine)
        even = own and explores(drawn, exploration(epsilon))
        action = choose(tables.regret, regret_row, actions, uniform_like(tables.regret, drawn), even)
        if own:
            path.row[length] = regret_row
            path.stamp[length] = hand.regret_stamps[block] + tree.row[node]
            path.actions[length] = actions
            path.action[length] = action
            length += 1
            probability *= epsilon / actions + (1.0 - epsilon) * sigma[mine + action]
        else:
            add_strategy(tree, tables, hand, node, (sigma, mine), discount.weight / probability, discount, rounding)
        node = first + action
    return node, length, probability, nodes + tree.touched[node]


@part_njit
def _update_path(tables, worth, length, discount, path):
    """Regret updates of the traverser's nodes on the path, last one first; `tables` is changed in place."""
    width = path.sigma.shape[0] // (path.row.shape[0] + 1)
    for step in range(length - 1, -1, -1):
        row, actions, action = path.row[step], path.actions[step], path.action[step]
        here = worth * path.sigma[step * width + action]
        if discount.lazy:
            discount_regrets(
                tables.regret,
                row,
                actions,
                tables.stamp,
                path.stamp[step],
                discount.ends,
                discount.positive_factors,
                discount.negative_factors,
            )
        update_sampled(tables.regret, row, actions, action, worth, here, discount.weight)
        worth = here
