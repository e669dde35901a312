"""Outcome-sampling MCCFR (Lanctot, Waugh, Zinkevich & Bowling 2009, section 3.1 and appendix; Lanctot 2013, chapter 4).

One path is sampled for each player and deal.  The traverser explores: with probability epsilon he plays uniformly, else
his current strategy; chance and the opponent play themselves, so only the traverser's own choices need correction, by
1 / (probability of his choices so far).  That weight enters the regrets, with his own reach behind the node, and the
opponent's strategy sums, which are collected at the opponent's nodes on the way down.

Two kernels, equal to the last bit where both apply: over packed betting trees, whose rows are handled as vectors, and
over general records, action by action.

A path is a chain of cache misses, each waiting for the one before.  The packed kernel therefore guesses the paths of
the next deals first, all in step, from the tables as they are, and asks for their rows; then it plays the deals one by
one, and where a row has changed in between so that another action is drawn, guesses the rest of that path again.
Guesses decide how fast it goes and nothing else: what a traversal draws is a function of one random word and the number
of the decision.  Indices are unsigned where it counts: signed ones are checked for being negative at each access.
"""

import numpy as np

from abstraction.jit import njit
from abstraction.prefetch import prefetch_to_write
from mccfr.regret import (
    add,
    choose,
    discount_regrets,
    discount_sums,
    regret_matching,
    update_sampled,
)
from mccfr.rng import next_word
from mccfr.sampling.common import (
    GUESSED_DEALS,
    NARROW,
    NODE_LIMIT,
    START,
    STOP,
    WIDE,
    exploration,
    explores,
    locate,
    prefetch_one,
    random_at,
    uniform_like,
)
from mccfr.sampling.rows import LANES, add_row, choose_row, regret_matching_row, update_sampled_row
from mccfr.tree import CHANCE, TERMINAL

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@njit
def outcome_sampling_packed(tree, tables, deals, limits, discount, rng, path, epsilon):
    """Run deals of a batch over a packed tree; `tables`, `rng` and `path` are changed in place.

    tree [D] PACKED_NODE; tables TableArrays; deals Deals; limits [3] int64; discount Discount; rng [4] uint64; path
    Path with 8 cells a decision; epsilon float64 in (0, 1].  Returns (iterations run, nodes touched): it stops after
    the first iteration that reaches limits[NODE_LIMIT].
    """
    ahead, batch = rng.copy(), np.zeros(3, np.int64)
    nodes, deal = 0, limits[START]
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        batch[START], batch[STOP] = deal, min(deal + GUESSED_DEALS, limits[STOP])
        batch[NODE_LIMIT] = limits[NODE_LIMIT] - nodes
        ahead[:] = rng
        _locate_all(tables, deals.bucket, batch, path.guesses)
        _guess(tree, tables, batch, ahead, path.guesses, exploration(epsilon))
        played, touched = _play(tree, tables, deals, batch, discount, path, epsilon)
        for _ in range(2 * played):
            next_word(rng)  # the words of the traversals that were played, which `ahead` has given out
        deal += played
        nodes += touched
    return deal - limits[START], nodes


@njit
def _locate_all(tables, bucket, batch, guesses):
    """Where the rows of all hands of a batch begin, in place."""
    start, base, width, blocks = guesses.start, tables.regret_base, tables.width, tables.width.shape[0]
    guesses.to_sum[:] = tables.sum_base - base
    for k in range(batch[STOP] - batch[START]):
        for block in range(blocks):
            start[k * blocks + block] = base[block] + np.int64(bucket[batch[START] + k, block]) * width[block]


@njit
def _guess(tree, tables, batch, rng, guesses, share):
    """Guess the paths of a batch of deals, two for each, all in step, and ask for every row; `guesses` in place."""
    regret, narrow_sum, wide_sum, wide = tables.regret, tables.narrow_sum, tables.wide_sum, tables.wide
    word, length, steps, going = guesses.word, guesses.length, guesses.step, guesses.going
    start, to_sum, blocks = guesses.start, guesses.to_sum, np.uint64(guesses.to_sum.shape[0])
    room = np.uint64(steps.shape[0] // word.shape[0])
    paths, level, root = 2 * (batch[STOP] - batch[START]), _ZERO, np.uint64(tree[0].block)
    for i in range(paths):
        word[i], going[i] = next_word(rng), i
        step = steps[np.uint64(i) * room]
        step.node, step.row = 0, start[(np.uint64(i) >> _ONE) * blocks + root] + tree[0].slot
        prefetch_to_write(regret, step.row)
    while paths > 0:
        kept = 0
        for j in range(paths):
            i = np.uint64(going[j])
            traverser = np.int64(i & _ONE)
            step = steps[i * room + level]
            node = tree[np.uint64(step.node)]
            drawn = random_at(word[i], level)
            even = (node.player == traverser) & explores(drawn, share)
            action = choose_row(regret, step.row, node.actions, uniform_like(regret, drawn), even)
            step.word, step.action = drawn, action
            length[i] = np.int64(level) + 1
            # No branch on what was drawn: each wrong prediction would throw away the work begun on other paths.  A
            # path that has ended is given the root as its next node, and dropped.
            child = action - node.folds - node.ends
            goes_on = np.int64(child >= 0)
            index = (node.first + child) * goes_on
            below = tree[np.uint64(index)]
            block = np.uint64(below.block)
            row = start[(i >> _ONE) * blocks + block] + below.slot
            step = steps[i * room + level + _ONE]
            step.node, step.row = index, row
            prefetch_to_write(regret, row)
            # Own nodes, and blocks without sums, ask for the regrets once more.
            which = np.int64(below.player != traverser) * ((1 + np.int64(wide[block])) & 3)
            prefetch_one(which, (regret, narrow_sum, wide_sum), (row, row + to_sum[block], row + to_sum[block]))
            going[kept] = i
            kept += goes_on
        paths = kept
        level += _ONE


@njit
def _guess_again(tree, regret, guesses, i, level, action, share):
    """Guess the rest of path i, whose action at decision `level` is `action`, in place; returns its length."""
    steps, start, blocks = guesses.step, guesses.start, np.uint64(guesses.to_sum.shape[0])
    at, traverser = i * np.uint64(steps.shape[0] // guesses.word.shape[0]) + level, np.int64(i & _ONE)
    while True:
        step = steps[at]
        step.action = action
        node = tree[np.uint64(step.node)]
        child = action - node.folds - node.ends
        at += _ONE
        level += _ONE
        if child < 0:
            return level
        index = node.first + child
        node = tree[np.uint64(index)]
        step = steps[at]
        step.node, step.row = index, start[(i >> _ONE) * blocks + np.uint64(node.block)] + node.slot
        step.word = random_at(guesses.word[i], level)
        even = (node.player == traverser) & explores(step.word, share)
        action = choose_row(regret, step.row, node.actions, uniform_like(regret, step.word), even)


@njit
def _play(tree, tables, deals, batch, discount, path, epsilon):
    """Play the deals of a batch whose paths are guessed, up to its limit; returns (deals played, nodes touched)."""
    regret, narrow_sum, wide_sum, wide, stamps = (
        tables.regret,
        tables.narrow_sum,
        tables.wide_sum,
        tables.wide,
        tables.stamp,
    )
    sigma, guesses, bucket, results = path.sigma, path.guesses, deals.bucket, deals.result
    steps, lengths, to_sum = guesses.step, guesses.length, guesses.to_sum
    room = np.uint64(steps.shape[0] // lengths.shape[0])
    regret_stamp_base, sum_stamp_base, stamp_width = tables.regret_stamp_base, tables.sum_stamp_base, tables.rows
    weight, lazy, ends, positive_factors, negative_factors, sum_factors = discount
    share = exploration(epsilon)
    nodes, rows, i, deal = 0, 0, _ZERO, batch[START]
    while deal < batch[STOP] and nodes < batch[NODE_LIMIT]:
        for traverser in range(2):
            first, length, level = i * room, np.uint64(lengths[i]), _ZERO
            node, action, probability = tree[0], 0, 1.0
            while level < length:
                step = steps[first + level]
                node, row, mine = tree[np.uint64(step.node)], step.row, np.int64(level) * LANES
                block, actions = np.uint64(node.block), node.actions
                nodes += node.touched
                own = node.player == traverser
                even = own & explores(step.word, share)
                action = choose_row(regret, row, actions, uniform_like(regret, step.word), even)
                regret_matching_row(regret, row, actions, sigma, mine)
                if own:
                    probability *= epsilon / actions + (1.0 - epsilon) * sigma[np.uint64(mine + action)]
                elif wide[block] <= WIDE:
                    row += to_sum[block]
                    stamp = _ZERO
                    if lazy:
                        stamp = np.uint64(sum_stamp_base[block] + bucket[deal, block] * stamp_width[block] + node.row)
                    if wide[block] == NARROW:
                        if lazy:
                            discount_sums(narrow_sum, row, actions, stamps, stamp, ends, sum_factors)
                        add_row(narrow_sum, row, actions, sigma, mine, weight / probability)
                    else:
                        if lazy:
                            discount_sums(wide_sum, row, actions, stamps, stamp, ends, sum_factors)
                        add_row(wide_sum, row, actions, sigma, mine, weight / probability)
                if action != step.action:  # the row has changed since the guess
                    length = _guess_again(tree, regret, guesses, i, level, action, share)
                level += _ONE
            rows += np.int64(length)
            folds = node.folds & (action == 0)
            nodes += node.leaves_touched - node.end_touched if folds else node.end_touched
            payoff = node.fold_value if folds else node.call_value * results[deal]
            # Own reach behind a node turns what its action was worth into what the node is worth.
            worth = (1.0 - 2.0 * traverser) * payoff / probability
            while level > _ZERO:
                level -= _ONE
                step = steps[first + level]
                node, row, action = tree[np.uint64(step.node)], step.row, step.action
                if node.player != traverser:
                    continue
                here = worth * sigma[np.uint64(np.int64(level) * LANES + action)]
                if lazy:
                    block = np.uint64(node.block)
                    stamp = regret_stamp_base[block] + bucket[deal, block] * stamp_width[block] + node.row
                    discount_regrets(regret, row, node.actions, stamps, stamp, ends, positive_factors, negative_factors)
                update_sampled_row(regret, row, node.actions, action, worth, here, weight)
                worth = here
            i += _ONE
        deal += 1
    path.updated[0] += rows
    return deal - batch[START], nodes


@njit
def outcome_sampling_general(tree, tables, deals, limits, discount, rng, path, epsilon):
    """Run deals of a batch over general records; arguments and results as `outcome_sampling_packed`.

    tree TreeArrays; path with as many cells a decision as any has actions.
    """
    nodes, deal, hand = 0, limits[START], path.hand
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        locate(tables.regret_base, tables.width, deals.bucket, deal, hand.regrets)
        locate(tables.sum_base, tables.width, deals.bucket, deal, hand.sums)
        locate(tables.regret_stamp_base, tables.rows, deals.bucket, deal, hand.regret_stamps)
        locate(tables.sum_stamp_base, tables.rows, deals.bucket, deal, hand.sum_stamps)
        for traverser in range(2):
            word = next_word(rng)
            node, length, probability, touched = _walk(tree, tables, traverser, discount, word, path, epsilon)
            nodes += touched
            payoff = tree.fixed[node] + tree.showdown[node] * deals.result[deal]
            _update_path(tables, (1.0 - 2.0 * traverser) * payoff / probability, length, discount, path)
        deal += 1
    return deal - limits[START], nodes


@njit
def _walk(tree, tables, traverser, discount, word, path, epsilon):
    """Sample one path.  Returns (terminal node, own decisions on the path, probability of them, nodes touched)."""
    hand, sigma = path.hand, path.sigma
    width = sigma.shape[0] // (path.row.shape[0] + 1)
    node, length, probability, nodes, level = 0, 0, 1.0, 0, _ZERO
    while tree.kind[node] != TERMINAL:
        nodes += tree.touched[node]
        first, actions, block = tree.first[node], tree.count[node], tree.block[node]
        drawn = random_at(word, level)
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
        elif tables.wide[block] <= WIDE:
            row, stamp = hand.sums[block] + tree.slot[node], hand.sum_stamps[block] + tree.row[node]
            weight = discount.weight / probability
            if tables.wide[block] == NARROW:
                if discount.lazy:
                    discount_sums(
                        tables.narrow_sum, row, actions, tables.stamp, stamp, discount.ends, discount.sum_factors
                    )
                add(tables.narrow_sum, row, actions, sigma, mine, weight)
            else:
                if discount.lazy:
                    discount_sums(
                        tables.wide_sum, row, actions, tables.stamp, stamp, discount.ends, discount.sum_factors
                    )
                add(tables.wide_sum, row, actions, sigma, mine, weight)
        node = first + action
    return node, length, probability, nodes + tree.touched[node]


@njit
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
