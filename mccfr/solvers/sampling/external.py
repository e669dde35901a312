"""External-sampling MCCFR (Lanctot, Waugh, Zinkevich & Bowling 2009, section 3.2).

An iteration is one deal and one traversal for each player with that deal.  At the traverser's nodes every action is
walked and regrets are updated; at the opponent's nodes one action is sampled from his current strategy and that
strategy is added to his strategy sum, with no reach factor: the sampling supplies it.  A traversal is a breadth-first
worklist: the forward pass computes strategies and pushes children, asking for each child's row when it is pushed, so
that many cache misses are under way at once; the backward pass computes values and updates regrets.  Over packed trees
each node is told where its value goes when it is pushed, and an opponent's hands that place on to the child he takes;
so the backward pass meets the traverser's decisions alone.

Two kernels, equal to the last bit where both apply: over packed betting trees, whose rows are handled as vectors, and
over general records, action by action.  The former takes arrays out of their tuples once, at the top, and has unsigned
indices: signed ones are checked for being negative at each access.  It branches on what was drawn: where that is
predicted rightly, the next rows are asked for before this one has come.

With sampled pruning the traverser skips actions of very negative regret on 95 % of his traversals, but never on the
last street and never where the action ends the hand.  An action is skipped only while others are played, so that its
probability is 0 and the node's value stays exact (the published rule leaves it out of the value also where the strategy
falls back on uniform play).  The value of a skipped child is nan.  Without the argument `pruning` none of this is
compiled into a kernel.
"""

import numpy as np

from abstraction.kernels.jit import nogil_njit, part_njit
from abstraction.kernels.prefetch import prefetch_to_write
from mccfr.rng import random_at, second_word, uniform
from mccfr.solvers.regret import choose, discount_regrets, regret_matching, total_of, update, update_explored
from mccfr.solvers.sampling.cells import LANES, cell_number, is_scaled, prefetch_scale, scale_at
from mccfr.solvers.sampling.common import (
    NARROW,
    NO_PRUNING,
    NODE_LIMIT,
    PRUNED_SHARE,
    START,
    STOP,
    WIDE,
    add_strategy,
    locate,
    locate_all,
)
from mccfr.solvers.sampling.rows import (
    add_to_sums,
    choose_row,
    discount_regrets_row,
    forward_sums_row,
    regret_matching_row,
    update_explored_row,
    update_row,
)
from mccfr.trees.compiled import CHANCE, TERMINAL

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_EARLY, _LATE = (
    np.uint64(1 << 32),
    np.uint64(1 << 33),
)  # numbers, beyond those of places, of the words that discounts are rounded by


@nogil_njit
def external_sampling_packed(tree, tables, deals, limits, discount, rng, work, pruning=NO_PRUNING):  # noqa: C901
    """Run deals of a batch over a packed tree; `tables`, `rng` and `work` are changed in place.

    tree [D] PACKED_NODE; tables TableArrays; deals Deals; limits [3] int64; discount Discount; rng [4] uint64; work
    PackedWorklist for D nodes; pruning Pruning.  Returns (iterations run, nodes touched): it stops after the first
    iteration that reaches limits[NODE_LIMIT].
    """
    regret, narrow_sum, wide_sum, wide = tables.regret, tables.narrow_sum, tables.wide_sum, tables.wide
    stamps, scales = tables.stamp, tables.scale
    order, start, slot, own, first_value, value, sigma, _, hand, _ = work
    regrets, sums, regret_stamps, sum_stamps, regret_scales, sum_scales = hand
    weight, sum_weight, lazy, ends, positive_factors, negative_factors, sum_factors = discount
    hopeless, floor, first_floor = -pruning.below * weight, -pruning.floor * weight, -pruning.first_floor * weight
    nodes, rows, deal, last_street = 0, 0, limits[START], regrets.shape[0] // 2 - 1
    spare = sigma.shape[0] - LANES  # the opponent's strategies, each of which serves at once
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        locate(tables.regret_base, tables.width, deals.bucket, deal, regrets)
        locate(tables.sum_base, tables.width, deals.bucket, deal, sums)
        if lazy:
            locate(tables.regret_stamp_base, tables.rows, deals.bucket, deal, regret_stamps)
            locate(tables.sum_stamp_base, tables.rows, deals.bucket, deal, sum_stamps)
        if is_scaled(regret) or is_scaled(narrow_sum):
            locate(tables.regret_scale_base, tables.rows, deals.bucket, deal, regret_scales)
            locate(tables.sum_scale_base, tables.rows, deals.bucket, deal, sum_scales)
        for traverser in range(work.seats[0], work.seats[1]):
            sign = 1.0 - 2.0 * traverser
            result = sign * deals.result[deal]
            prunes = pruning.active != 0 and uniform(rng) < PRUNED_SHARE
            # Forward: strategies, strategy sums, choices; children are pushed.
            order[0], slot[0], start[0] = 0, 0, regrets[tree[0].block] + tree[0].slot
            tail, place, owned, values = _ONE, _ZERO, _ZERO, _ONE
            while place < tail:
                node = tree[np.uint64(order[place])]
                block, actions = np.uint64(node.block), node.actions
                scale = scale_at(regret, scales, regret_scales[block] + node.row)
                at = start[place], scale, random_at(~second_word(rng), place + _EARLY)
                nodes += node.touched
                endings, mine = np.int64(node.folds) + np.int64(node.ends), spare
                skips = prunes and node.player == traverser and node.block // 2 < last_street
                # Children first .. stop-1 are pushed; action and goes: of the first one, where its value goes.
                if node.player == traverser:
                    mine = np.int64(owned) * LANES
                    regret_matching_row(regret, at, actions, sigma, mine)
                    nodes += node.leaves_touched
                    if skips and lazy:  # regrets as they are by now
                        stamp = regret_stamps[block] + node.row
                        discount_regrets_row(
                            regret, at, actions, stamps, stamp, ends, positive_factors, negative_factors
                        )
                    own[owned], first_value[owned] = place, values
                    action, goes, first = endings, values, np.uint64(node.first)
                    stop = first + np.uint64(actions - endings)
                    owned += _ONE
                    values += stop - first
                else:
                    regret_matching_row(regret, at, actions, sigma, mine)
                    if wide[block] <= WIDE:
                        word = second_word(rng)
                        row = sums[block] + node.slot, scale_at(narrow_sum, scales, sum_scales[block] + node.row), word
                        if lazy:
                            stamp = sum_stamps[block] + node.row
                            forward_sums_row(
                                narrow_sum, wide_sum, wide[block], row, actions, stamps, stamp, ends, sum_factors
                            )
                        add_to_sums(narrow_sum, wide_sum, wide[block], row, actions, sigma, mine, sum_weight, word)
                    action, goes = choose_row(regret, at, actions, uniform(rng), False), np.uint64(slot[place])
                    first = np.uint64(node.first + action - endings)
                    stop = first + _ONE
                    if action < endings:  # the hand ends here
                        stop = first
                        if node.folds and action == 0:
                            nodes += node.leaves_touched - node.end_touched
                            value[goes] = sign * node.fold_value
                        else:
                            nodes += node.end_touched
                            value[goes] = result * node.call_value
                while first != stop:
                    if skips and sigma[np.uint64(mine + action)] == 0 and cell_number(regret, at, action) < hopeless:
                        value[goes] = np.nan
                    else:
                        below = tree[first]
                        block = np.uint64(below.block)
                        order[tail], slot[tail], start[tail] = first, goes, regrets[block] + below.slot
                        prefetch_to_write(regret, start[tail])
                        prefetch_scale(regret, scales, regret_scales[block] + below.row)
                        if below.player != traverser:
                            if wide[block] == NARROW:
                                prefetch_to_write(narrow_sum, sums[block] + below.slot)
                                prefetch_scale(narrow_sum, scales, sum_scales[block] + below.row)
                            elif wide[block] == WIDE:
                                prefetch_to_write(wide_sum, sums[block] + below.slot)
                        tail += _ONE
                    first += _ONE
                    goes += _ONE
                    action += 1
                place += _ONE
            rows += np.int64(tail)
            # Backward: values from the leaves up, and the traverser's regrets.
            while owned > _ZERO:
                owned -= _ONE
                place, mine = np.uint64(own[owned]), np.int64(owned) * LANES
                node, goes, first = tree[np.uint64(order[place])], np.uint64(slot[place]), first_value[owned]
                block = np.uint64(node.block)
                word, scale = ~second_word(rng), scale_at(regret, scales, regret_scales[block] + node.row)
                if lazy:
                    stamp = regret_stamps[block] + node.row
                    row = start[place], scale, random_at(word, place + _LATE)
                    discount_regrets_row(
                        regret, row, node.actions, stamps, stamp, ends, positive_factors, negative_factors
                    )
                endings = (node.folds, sign * node.fold_value, node.ends, result * node.call_value)
                row = start[place], scale, random_at(word, place)
                if pruning.active:
                    least = floor if node.block > 1 else first_floor
                    value[goes] = update_explored_row(
                        regret, row, node.actions, sigma, mine, value, first, endings, weight, least
                    )
                else:
                    value[goes] = update_row(regret, row, node.actions, sigma, mine, value, first, endings, weight)
        deal += 1
    work.updated[0] += rows
    return deal - limits[START], nodes


@nogil_njit
def external_sampling_general(tree, tables, deals, limits, discount, rng, work, pruning=NO_PRUNING):
    """Run deals of a batch over general records; arguments and results as `external_sampling_packed`.

    tree TreeArrays with N nodes; work for N nodes and N cells (a strategy is kept with the children it leads to).
    """
    nodes, deal = 0, limits[START]
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        locate_all(tables, deals, deal, work.hand)
        for traverser in range(work.seats[0], work.seats[1]):
            tail, touched = visit(tree, tables, traverser, discount, rng, work, pruning)
            _backward(tree, tables, traverser, deals.result[deal], discount, work, tail, pruning)
            nodes += touched
        deal += 1
    return deal - limits[START], nodes


@part_njit
def visit(tree, tables, traverser, discount, rng, work, pruning):
    """Visit nodes: strategies, strategy sums, sampled choices.  Returns (length of the worklist, nodes touched)."""
    order, sigma, hand, value = work.order, work.sigma, work.hand, work.value
    prunes, last_street = pruning.active != 0 and uniform(rng) < PRUNED_SHARE, hand.regrets.shape[0] // 2 - 1
    hopeless = -pruning.below * discount.weight
    order[0] = 0
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
            order[tail] = chosen
            work.child[node] = chosen
            tail += 1
            continue
        block = tree.block[node]
        work.start[node] = hand.regrets[block] + tree.slot[node]
        work.child[node] = first
        work.updated[0] += 1
        regret_matching(tables.regret, work.start[node], actions, sigma, first)
        if tree.player[node] == traverser:
            skips = prunes and block // 2 < last_street
            if skips and discount.lazy:  # regrets as they are by now
                bring_forward(tree, tables, discount, work, node)
            for a in range(actions):
                child = first + a
                hopeless_here = sigma[child] == 0 and tables.regret[work.start[node] + a] < hopeless
                if skips and hopeless_here and tree.kind[child] != TERMINAL:
                    value[child] = np.nan
                    continue
                order[tail] = child
                tail += 1
        else:
            add_strategy(tree, tables, hand, node, (sigma, first), discount.sum_weight, discount, second_word(rng))
            chosen = first + choose(tables.regret, work.start[node], actions, uniform(rng))
            order[tail] = chosen
            work.child[node] = chosen
            tail += 1
    return tail, nodes


@part_njit
def bring_forward(tree, tables, discount, work, node):
    """Discount the regret row of a decision up to now."""
    discount_regrets(
        tables.regret,
        work.start[node],
        tree.count[node],
        tables.stamp,
        work.hand.regret_stamps[tree.block[node]] + tree.row[node],
        discount.ends,
        discount.positive_factors,
        discount.negative_factors,
    )


@part_njit
def _backward(tree, tables, traverser, result, discount, work, tail, pruning):
    """Values from the leaves up, and the traverser's regret updates."""
    value, sigma, weight = work.value, work.sigma, discount.weight
    sign = 1.0 - 2.0 * traverser
    for place in range(tail - 1, -1, -1):
        node = work.order[place]
        if tree.kind[node] == TERMINAL:
            value[node] = sign * (tree.fixed[node] + tree.showdown[node] * result)
            continue
        child = work.child[node]
        if tree.player[node] != traverser:  # a chance node has no player
            value[node] = value[child]
            continue
        actions, row = tree.count[node], work.start[node]
        if discount.lazy:
            bring_forward(tree, tables, discount, work, node)
        for a in range(actions):
            sigma[child + a] *= value[child + a]  # the strategy has served: what is left of it is its sum
            if pruning.active and np.isnan(value[child + a]):
                sigma[child + a] = 0
        value[node] = total_of(sigma, child, actions)
        if pruning.active:
            floor = -weight * (pruning.floor if tree.block[node] > 1 else pruning.first_floor)
            update_explored(tables.regret, row, actions, value, child, value[node], weight, floor)
        else:
            update(tables.regret, row, actions, value, child, value[node], weight)
