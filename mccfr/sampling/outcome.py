"""Outcome-sampling MCCFR (Lanctot, Waugh, Zinkevich & Bowling 2009, section 3.1 and appendix; Lanctot 2013, chapter 4).

One path is sampled for each player and deal.  The traverser explores: with probability epsilon he plays uniformly, else
his current strategy; chance and the opponent play themselves, so only the traverser's own choices need correction, by
1 / (probability of his choices so far).  That weight enters the regrets, with his own reach behind the node, and the
opponent's strategy sums, which are collected at the opponent's nodes on the way down.

Two kernels, equal to the last bit where both apply: over packed betting trees, and over general records.
"""

from abstraction.jit import njit
from mccfr.regret import add_sums, choose, discount_regrets, discount_sums, regret_matching
from mccfr.rng import uniform
from mccfr.sampling.common import NODE_LIMIT, START, STOP, place_hand
from mccfr.tree import CHANCE, MAX_PACKED_ACTIONS, TERMINAL


@njit
def _explore(sigma, place, actions, epsilon, rng):
    """The traverser's action: uniform with probability epsilon, else from his strategy; one random number."""
    u = uniform(rng)
    if u < epsilon:
        return min(int(u / epsilon * actions), actions - 1)
    return choose(sigma, place, actions, (u - epsilon) / (1.0 - epsilon))


@njit
def _update_path(tables, weighted_payoff, length, discount, path):
    """Regret updates of the traverser's nodes on the path, last one first; `tables` is changed in place.

    The payoff times 1/q times own reach behind the node is what the sampled action is worth; times sigma of that action,
    what the node is worth.
    """
    behind = weighted_payoff
    width = path.sigma.shape[0] // (path.row.shape[0] + 1)
    for step in range(length - 1, -1, -1):
        row, actions, action = path.row[step], path.actions[step], path.action[step]
        here = behind * path.sigma[step * width + action]
        if discount.lazy:
            discount_regrets(tables, row, actions, path.stamp[step], discount)
        for a in range(actions):
            tables.regret[row + a] -= discount.weight * here
        tables.regret[row + action] += discount.weight * behind
        behind = here


@njit
def _own_node(path, length, row, stamp, actions, epsilon, rng):
    """Sample the traverser's action at a node whose strategy is in place, and note it.  Returns (action, 1/q)."""
    sigma = length * (path.sigma.shape[0] // (path.row.shape[0] + 1))
    action = _explore(path.sigma, sigma, actions, epsilon, rng)
    path.row[length] = row
    path.stamp[length] = stamp
    path.actions[length] = actions
    path.action[length] = action
    return action, 1.0 / (epsilon / actions + (1.0 - epsilon) * path.sigma[sigma + action])


@njit
def _opponent_node(tables, block, sums, stamp, actions, weight, discount, path):
    """Add the opponent's strategy, which is in the last cells of path.sigma, to his sums with weight 1/q."""
    sigma = path.sigma.shape[0] - path.sigma.shape[0] // (path.row.shape[0] + 1)
    if discount.lazy:
        discount_sums(tables, block, sums, actions, stamp, discount)
    add_sums(tables, block, sums, actions, path.sigma, sigma, discount.weight * weight)


@njit
def outcome_sampling_packed(tree, tables, deals, limits, discount, rng, path, epsilon):
    """Run deals of a batch over a packed tree; `tables`, `rng` and `path` are changed in place.

    tree [D] PACKED_NODE; tables TableArrays; deals Deals; limits [3] int64; discount Discount; rng [4] uint64; path
    Path with MAX_PACKED_ACTIONS actions; epsilon float64 in (0, 1].  Returns (iterations run, nodes touched): it stops
    after the first iteration that reaches limits[NODE_LIMIT].
    """
    nodes, deal, hand = 0, limits[START], path.hand
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        place_hand(tables, deals.bucket, deal, hand)
        for traverser in range(2):
            sign = 1.0 - 2.0 * traverser
            index, length, weight = 0, 0, 1.0
            while True:
                node = tree[index]
                block, actions = node.block, node.actions
                row = hand.regrets[block] + node.slot
                nodes += node.touched
                own = node.player == traverser
                sigma = (length if own else path.row.shape[0]) * MAX_PACKED_ACTIONS
                regret_matching(tables.regret, row, actions, path.sigma, sigma)
                if own:
                    stamp = hand.regret_stamps[block] + node.row
                    action, correction = _own_node(path, length, row, stamp, actions, epsilon, rng)
                    weight *= correction
                    length += 1
                else:
                    sums, stamp = hand.sums[block] + node.slot, hand.sum_stamps[block] + node.row
                    _opponent_node(tables, block, sums, stamp, actions, weight, discount, path)
                    action = choose(path.sigma, sigma, actions, uniform(rng))
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
            _update_path(tables, weight * payoff, length, discount, path)
        deal += 1
    return deal - limits[START], nodes


@njit
def outcome_sampling_general(tree, tables, deals, limits, discount, rng, path, epsilon):
    """Run deals of a batch over general records; arguments and results as `outcome_sampling_packed`, tree TreeArrays."""
    nodes, deal, hand = 0, limits[START], path.hand
    width = path.sigma.shape[0] // (path.row.shape[0] + 1)
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        place_hand(tables, deals.bucket, deal, hand)
        for traverser in range(2):
            node, length, weight = 0, 0, 1.0
            while tree.kind[node] != TERMINAL:
                nodes += tree.touched[node]
                first, actions, block = tree.first[node], tree.count[node], tree.block[node]
                if tree.kind[node] == CHANCE:
                    node = first + choose(tree.probability, first, actions, uniform(rng))
                    continue
                row = hand.regrets[block] + tree.slot[node]
                own = tree.player[node] == traverser
                sigma = (length if own else path.row.shape[0]) * width
                regret_matching(tables.regret, row, actions, path.sigma, sigma)
                if own:
                    stamp = hand.regret_stamps[block] + tree.row[node]
                    action, correction = _own_node(path, length, row, stamp, actions, epsilon, rng)
                    weight *= correction
                    length += 1
                else:
                    sums, stamp = hand.sums[block] + tree.slot[node], hand.sum_stamps[block] + tree.row[node]
                    _opponent_node(tables, block, sums, stamp, actions, weight, discount, path)
                    action = choose(path.sigma, sigma, actions, uniform(rng))
                node = first + action
            nodes += tree.touched[node]
            payoff = tree.fixed[node] + tree.showdown[node] * deals.result[deal]
            _update_path(tables, weight * payoff * (1.0 - 2.0 * traverser), length, discount, path)
        deal += 1
    return deal - limits[START], nodes
