"""External-sampling MCCFR (Lanctot, Waugh, Zinkevich & Bowling 2009, section 3.2).

An iteration is one deal and one traversal for each player with that deal.  At the traverser's nodes every action is
walked and regrets are updated; at the opponent's nodes one action is sampled from his current strategy and that strategy
is added to his strategy sum, with no reach factor: the sampling supplies it.  A traversal is a breadth-first worklist:
the forward pass computes strategies and pushes children, asking for each child's row when it is pushed, so that many
cache misses are under way at once; the backward pass computes values and updates regrets.

Two kernels, equal to the last bit where both apply: over packed betting trees, and over general records.
"""

from abstraction.jit import njit
from mccfr.regret import add_sums, choose, discount_regrets, discount_sums, regret_matching
from mccfr.rng import uniform
from mccfr.sampling.common import NODE_LIMIT, START, STOP, place_hand, prefetch
from mccfr.tree import CHANCE, MAX_PACKED_ACTIONS, TERMINAL


@njit
def external_sampling_packed(tree, tables, deals, limits, discount, rng, work):
    """Run deals of a batch over a packed tree; `tables`, `rng` and `work` are changed in place.

    tree [D] PACKED_NODE; tables TableArrays; deals Deals; limits [3] int64; discount Discount; rng [4] uint64; work
    Worklist for D nodes and MAX_PACKED_ACTIONS·D cells.  Returns (iterations run, nodes touched): it stops after the first
    iteration that reaches limits[NODE_LIMIT].
    """
    nodes, deal = 0, limits[START]
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        place_hand(tables, deals.bucket, deal, work.hand)
        for traverser in range(2):
            sign = 1.0 - 2.0 * traverser
            result = sign * deals.result[deal]
            nodes += _forward_packed(tree, tables, traverser, sign, result, discount, rng, work)
        deal += 1
    return deal - limits[START], nodes


@njit
def _forward_packed(tree, tables, traverser, sign, result, discount, rng, work):
    """One traversal: forward, then backward over the worklist.  Returns the nodes touched."""
    nodes = 0
    order, start, child, hand = work.order, work.start, work.child, work.hand
    order[0] = 0
    tail = 1
    place = 0
    while place < tail:
        node = tree[order[place]]
        block, actions = node.block, node.actions
        row = hand.regrets[block] + node.slot
        sigma = place * MAX_PACKED_ACTIONS
        regret_matching(tables.regret, row, actions, work.sigma, sigma)
        nodes += node.touched
        start[place] = row
        child[place] = tail
        endings = node.folds + node.ends
        if node.player == traverser:
            nodes += node.leaves_touched
            first, stop = 0, actions - endings
        else:
            action = choose(work.sigma, sigma, actions, uniform(rng))
            sums = hand.sums[block] + node.slot
            if discount.lazy:
                discount_sums(tables, block, sums, actions, hand.sum_stamps[block] + node.row, discount)
            add_sums(tables, block, sums, actions, work.sigma, sigma, discount.weight)
            first = action - endings
            stop = first + 1
            if first < 0:  # the hand ends here
                stop = first
                child[place] = -1
                if node.folds and action == 0:
                    nodes += node.leaves_touched - node.end_touched
                    work.value[place] = sign * node.fold_value
                else:
                    nodes += node.end_touched
                    work.value[place] = result * node.call_value
        for k in range(first, stop):
            index = node.first + k
            below = tree[index]
            order[tail] = index
            prefetch(tables.regret, hand.regrets[below.block] + below.slot)
            tail += 1
        place += 1
    _backward_packed(tree, tables, traverser, sign, result, discount, work, tail)
    return nodes


@njit
def _backward_packed(tree, tables, traverser, sign, result, discount, work, tail):
    """Values from the leaves up, and the traverser's regret updates."""
    value, sigma, hand = work.value, work.sigma, work.hand
    for place in range(tail - 1, -1, -1):
        node = tree[work.order[place]]
        child = work.child[place]
        if node.player != traverser:
            if child >= 0:
                value[place] = value[child]
            continue
        actions, row, mine = node.actions, work.start[place], place * MAX_PACKED_ACTIONS
        endings = node.folds + node.ends
        fold, call = sign * node.fold_value, result * node.call_value
        total = 0.0
        for a in range(actions):
            here = value[child + a - endings] if a >= endings else (fold if a < node.folds else call)
            total += sigma[mine + a] * here
        value[place] = total
        if discount.lazy:
            discount_regrets(tables, row, actions, hand.regret_stamps[node.block] + node.row, discount)
        for a in range(actions):
            here = value[child + a - endings] if a >= endings else (fold if a < node.folds else call)
            tables.regret[row + a] += discount.weight * (here - total)


@njit
def external_sampling_general(tree, tables, deals, limits, discount, rng, work):
    """Run deals of a batch over general records; arguments and results as `external_sampling_packed`.

    tree TreeArrays with N nodes; work for N nodes and N cells (a strategy is kept with the children it leads to).
    """
    nodes, deal = 0, limits[START]
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        place_hand(tables, deals.bucket, deal, work.hand)
        for traverser in range(2):
            tail, touched = _forward_general(tree, tables, traverser, discount, rng, work)
            _backward_general(tree, tables, traverser, deals.result[deal], discount, work, tail)
            nodes += touched
        deal += 1
    return deal - limits[START], nodes


@njit
def _forward_general(tree, tables, traverser, discount, rng, work):
    """Visit nodes: strategies, strategy sums, sampled choices.  Returns (length of the worklist, nodes touched)."""
    order, sigma, hand = work.order, work.sigma, work.hand
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
        row = hand.regrets[block] + tree.slot[node]
        regret_matching(tables.regret, row, actions, sigma, first)
        work.start[node] = row
        work.child[node] = first
        if tree.player[node] == traverser:
            for a in range(actions):
                order[tail] = first + a
                tail += 1
        else:
            sums = hand.sums[block] + tree.slot[node]
            if discount.lazy:
                discount_sums(tables, block, sums, actions, hand.sum_stamps[block] + tree.row[node], discount)
            add_sums(tables, block, sums, actions, sigma, first, discount.weight)
            chosen = first + choose(sigma, first, actions, uniform(rng))
            order[tail] = chosen
            work.child[node] = chosen
            tail += 1
    return tail, nodes


@njit
def _backward_general(tree, tables, traverser, result, discount, work, tail):
    """Values from the leaves up, and the traverser's regret updates."""
    value, sigma, hand = work.value, work.sigma, work.hand
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
        total = 0.0
        for a in range(actions):
            total += sigma[child + a] * value[child + a]
        value[node] = total
        if discount.lazy:
            stamp = hand.regret_stamps[tree.block[node]] + tree.row[node]
            discount_regrets(tables, row, actions, stamp, discount)
        for a in range(actions):
            tables.regret[row + a] += discount.weight * (value[child + a] - total)
