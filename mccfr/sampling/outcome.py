"""Outcome-sampling MCCFR (Lanctot, Waugh, Zinkevich & Bowling 2009, section 3.1 and appendix; Lanctot 2013, chapter 4).

One path is sampled for each player and deal.  The traverser explores: with probability epsilon he plays uniformly, else
his current strategy; chance and the opponent play themselves, so only the traverser's own choices need correction, by
1 / (probability of his choices so far).  That weight enters the regrets, with his own reach behind the node, and the
opponent's strategy sums, which are collected at the opponent's nodes on the way down.

Two kernels, equal to the last bit where both apply: over packed betting trees, whose rows are handled as vectors, and
over general records, action by action.
"""

from abstraction.jit import njit
from mccfr.regret import (
    add,
    choose,
    discount_regrets,
    discount_sums,
    last_possible,
    regret_matching,
    update_sampled,
)
from mccfr.rng import uniform
from mccfr.sampling.common import NODE_LIMIT, START, STOP, locate
from mccfr.sampling.rows import LANES, add_row, choose_row, regret_matching_row, update_sampled_row
from mccfr.tree import CHANCE, TERMINAL


@njit
def outcome_sampling_packed(tree, tables, deals, limits, discount, rng, path, epsilon):
    """Run deals of a batch over a packed tree; `tables`, `rng` and `path` are changed in place.

    tree [D] PACKED_NODE; tables TableArrays; deals Deals; limits [3] int64; discount Discount; rng [4] uint64; path
    Path with 8 cells a decision; epsilon float64 in (0, 1].  Returns (iterations run, nodes touched): it stops after
    the first iteration that reaches limits[NODE_LIMIT].
    """
    regret, narrow_sum, wide_sum, wide, stamps = (
        tables.regret,
        tables.narrow_sum,
        tables.wide_sum,
        tables.wide,
        tables.stamp,
    )
    path_row, path_stamp, path_actions, path_action = path.row, path.stamp, path.actions, path.action
    sigma, hand = path.sigma, path.hand
    regrets, sums, regret_stamps, sum_stamps = hand.regrets, hand.sums, hand.regret_stamps, hand.sum_stamps
    ends, positive_factors, negative_factors, sum_factors = (
        discount.ends,
        discount.positive_factors,
        discount.negative_factors,
        discount.sum_factors,
    )
    weight, lazy, opponents = discount.weight, discount.lazy, path_row.shape[0] * LANES
    nodes, deal = 0, limits[START]
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        locate(tables.regret_base, tables.width, deals.bucket, deal, regrets)
        locate(tables.sum_base, tables.width, deals.bucket, deal, sums)
        if lazy:
            locate(tables.regret_stamp_base, tables.rows, deals.bucket, deal, regret_stamps)
            locate(tables.sum_stamp_base, tables.rows, deals.bucket, deal, sum_stamps)
        for traverser in range(2):
            sign = 1.0 - 2.0 * traverser
            index, length, correction = 0, 0, 1.0
            while True:
                node = tree[index]
                block, actions = node.block, node.actions
                nodes += node.touched
                u = uniform(rng)
                own = node.player == traverser
                mine = length * LANES if own else opponents
                regret_matching_row(regret, regrets[block] + node.slot, actions, sigma, mine)
                if own and u < epsilon:
                    action = min(int(u / epsilon * actions), actions - 1)
                else:
                    action = choose_row(sigma, mine, (u - epsilon) / (1.0 - epsilon) if own else u)
                    if action >= actions:
                        action = last_possible(sigma, mine, actions)
                if own:
                    path_row[length] = regrets[block] + node.slot
                    path_stamp[length] = regret_stamps[block] + node.row
                    path_actions[length] = actions
                    path_action[length] = action
                    length += 1
                    correction /= epsilon / actions + (1.0 - epsilon) * sigma[mine + action]
                else:
                    row, stamp = sums[block] + node.slot, sum_stamps[block] + node.row
                    if wide[block]:
                        if lazy:
                            discount_sums(wide_sum, row, actions, stamps, stamp, ends, sum_factors)
                        add_row(wide_sum, row, actions, sigma, mine, weight * correction)
                    else:
                        if lazy:
                            discount_sums(narrow_sum, row, actions, stamps, stamp, ends, sum_factors)
                        add_row(narrow_sum, row, actions, sigma, mine, weight * correction)
                k = action - node.folds - node.ends
                if k < 0:
                    break
                index = node.first + k
            if node.folds and action == 0:
                nodes += node.leaves_touched - node.end_touched
                payoff = sign * node.fold_value
            else:
                nodes += node.end_touched
                payoff = sign * node.call_value * deals.result[deal]
            # Own reach behind a node turns what its action was worth into what the node is worth.
            worth = correction * payoff
            for step in range(length - 1, -1, -1):
                row, actions, action = path_row[step], path_actions[step], path_action[step]
                here = worth * sigma[step * LANES + action]
                if lazy:
                    discount_regrets(
                        regret, row, actions, stamps, path_stamp[step], ends, positive_factors, negative_factors
                    )
                update_sampled_row(regret, row, actions, action, worth, here, weight)
                worth = here
        deal += 1
    return deal - limits[START], nodes


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
            node, length, correction, touched = _walk(tree, tables, traverser, discount, rng, path, epsilon)
            nodes += touched
            payoff = tree.fixed[node] + tree.showdown[node] * deals.result[deal]
            _update_path(tables, correction * payoff * (1.0 - 2.0 * traverser), length, discount, path)
        deal += 1
    return deal - limits[START], nodes


@njit
def _walk(tree, tables, traverser, discount, rng, path, epsilon):
    """Sample one path.  Returns (terminal node, own decisions on the path, 1/q of them, nodes touched)."""
    hand, sigma = path.hand, path.sigma
    width = sigma.shape[0] // (path.row.shape[0] + 1)
    node, length, correction, nodes = 0, 0, 1.0, 0
    while tree.kind[node] != TERMINAL:
        nodes += tree.touched[node]
        first, actions, block = tree.first[node], tree.count[node], tree.block[node]
        u = uniform(rng)
        if tree.kind[node] == CHANCE:
            node = first + choose(tree.probability, first, actions, u)
            continue
        own = tree.player[node] == traverser
        mine = (length if own else path.row.shape[0]) * width
        regret_matching(tables.regret, hand.regrets[block] + tree.slot[node], actions, sigma, mine)
        if own and u < epsilon:
            action = min(int(u / epsilon * actions), actions - 1)
        else:
            action = choose(sigma, mine, actions, (u - epsilon) / (1.0 - epsilon) if own else u)
        if own:
            path.row[length] = hand.regrets[block] + tree.slot[node]
            path.stamp[length] = hand.regret_stamps[block] + tree.row[node]
            path.actions[length] = actions
            path.action[length] = action
            length += 1
            correction /= epsilon / actions + (1.0 - epsilon) * sigma[mine + action]
        else:
            row, stamp = hand.sums[block] + tree.slot[node], hand.sum_stamps[block] + tree.row[node]
            if tables.wide[block]:
                if discount.lazy:
                    discount_sums(
                        tables.wide_sum, row, actions, tables.stamp, stamp, discount.ends, discount.sum_factors
                    )
                add(tables.wide_sum, row, actions, sigma, mine, discount.weight * correction)
            else:
                if discount.lazy:
                    discount_sums(
                        tables.narrow_sum, row, actions, tables.stamp, stamp, discount.ends, discount.sum_factors
                    )
                add(tables.narrow_sum, row, actions, sigma, mine, discount.weight * correction)
        node = first + action
    return node, length, correction, nodes + tree.touched[node]


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
