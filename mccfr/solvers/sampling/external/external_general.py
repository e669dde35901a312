"""Kernel of external-sampling MCCFR over general tree records; read `external_packed` first.

Source: Lanctot, Waugh, Zinkevich & Bowling 2009, "Monte Carlo Sampling for Regret Minimization in Extensive Games",
section 3.2.  `external_sampling_packed` in `external_packed` is the kernel for betting trees, and its module describes
the algorithm.  General records, one for each node of any tree, may also have chance nodes and more than eight actions.
Read `external_sampling_general` here, then `visit` (the way down) and `_backward` (the way up).

With more than two players, a player's strategy is averaged at every other player's traversal.  The traversal reaches an
infoset of player j by the sampled actions of j and of the others.  An addition is divided by the probability of the
others' actions, so its mean is in proportion to j's own reach: the average is that of what j played.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import nogil_njit, part_njit
from mccfr.common.rng import second_word, uniform
from mccfr.solvers.regret import add_strategy, choose, regret_matching, total_of, update, update_explored
from mccfr.solvers.sampling.external.external_packed import NO_PRUNING, PRUNED_SHARE
from mccfr.solvers.sampling.row_lookup import NODE_LIMIT, START, STOP, HandRows, locate, new_hand
from mccfr.solvers.sampling.seats import SeatArrays, begin_deal, begin_traversal, new_seats, won_chips
from mccfr.trees.compiled import CHANCE, TERMINAL, CompiledTree


class Worklist(NamedTuple):
    """Scratch arrays of external sampling: N general records, P players, R the dtype of the regrets.

    A general record describes one node of the tree, of any kind.

    order    [N] int32        nodes in the order visited
    start    [N] int64        first cell of each decision's row in the flat regret table
    child    [N] int32        the sampled child, or the first of several
    value    [N] R            chips for the traverser; nan at the child of a pruned action
    sigma    [N] R            current strategies; each action's probability is at the index of its child
    updated  [1] int64        number of decisions visited so far: regrets at the traverser's are updated, sums at the
                              opponent's
    hand     HandRows         indices in the flat tables at which the cells of the current deal's buckets begin
    payoffs  [N, P] float64   payoffs of three and more players in chips; [0, P] with two players or with pots
    sampled  [N, P] float64   probability of each player's sampled actions before a node; [0, 2] with two players
    seats    SeatArrays       pots of three and more players in betting trees; else None
    """

    order: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    child: npt.NDArray[np.int32]
    value: npt.NDArray[np.floating]
    sigma: npt.NDArray[np.floating]
    updated: npt.NDArray[np.int64]
    hand: HandRows
    payoffs: npt.NDArray[np.float64]
    sampled: npt.NDArray[np.float64]
    seats: SeatArrays | None


def new_worklist(tree: CompiledTree, dtype: npt.DTypeLike) -> Worklist:
    """Return a Worklist: scratch arrays for traversals, with a cell for each node of a tree.

    tree   any tree: also with chance nodes, and with three and more players
    dtype  dtype of the regrets, which values and strategies in the arrays have too
    """
    nodes, blocks, players = len(tree.parent), len(tree.row_slots), tree.players
    paid = np.zeros((0, players)) if tree.payoffs is None else tree.payoffs
    sampled = np.ones((nodes if players > 2 else 0, players))
    order, start, child = np.zeros(nodes, np.int32), np.zeros(nodes, np.int64), np.zeros(nodes, np.int32)
    shared = np.zeros(1, np.int64), new_hand(blocks), paid, sampled, new_seats(tree, 1)
    return Worklist(order, start, child, np.zeros(nodes, dtype), np.zeros(nodes, dtype), *shared)


@nogil_njit
def external_sampling_general(tree, tables, deals, limits, weight, rng, work, pruning=NO_PRUNING):
    """Run external sampling on deals over general records; return (iterations run, nodes touched).

    tree     TreeArrays with N nodes
    tables   TableArrays, changed in place
    deals    Deals: each deal's bucket by block and showdown result
    limits   [3] int64: index of the first deal, end of the deals, and number of nodes touched that ends the run
    weight   discount weight of the updates
    rng      [4] uint64, state of the generator, changed in place
    work     Worklist for N nodes, changed in place
    pruning  Pruning: whether actions are skipped, and below which regret

    An iteration is one deal.  The last iteration is the one that reaches the number of nodes.
    """
    nodes, deal = 0, limits[START]
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        locate(tables, deals, deal, work.hand)
        begin_deal(work.seats, deals.strength, deal)
        for traverser in range(work.payoffs.shape[1]):
            begin_traversal(work.seats, traverser)
            tail, touched = visit(tree, tables, traverser, weight, rng, work, pruning)
            _backward(tree, tables, traverser, deals.result[deal], weight, work, tail, pruning)
            nodes += touched
        deal += 1
    return deal - limits[START], nodes


@part_njit
def visit(tree, tables, traverser, weight, rng, work, pruning):
    """Run the forward pass of a player's traversal, from the root to the terminals.

    It computes current strategies, updates strategy sums and samples the actions of others and chance.

    tree     TreeArrays
    tables   TableArrays; strategy sums are changed in place
    weight   discount weight of the updates
    rng      [4] uint64, state of the generator
    work     Worklist, changed in place
    pruning  Pruning: whether actions are skipped, and below which regret

    Returns (length of the worklist `work.order`, nodes touched).
    """
    order, sigma, hand, value = work.order, work.sigma, work.hand, work.value
    players = work.payoffs.shape[1]
    prunes, last_street = pruning.active != 0 and uniform(rng) < PRUNED_SHARE, hand.regrets.shape[0] // players - 1
    prune_below = -pruning.below * weight
    order[0] = 0
    tail, position, nodes = 1, 0, 0
    while position < tail:
        node = order[position]
        position += 1
        nodes += tree.touched[node]
        kind, first, actions = tree.kind[node], tree.first[node], tree.count[node]
        if kind == TERMINAL:
            continue
        if kind == CHANCE:
            chosen = first + choose(tree.probability, first, actions, uniform(rng))
            order[tail] = chosen
            work.child[node] = chosen
            tail += 1
            follow(work, node, chosen, traverser, 1.0)
            continue
        block = tree.block[node]
        work.start[node] = hand.regrets[block] + tree.slot[node]
        work.child[node] = first
        work.updated[0] += 1
        regret_matching(tables.regret, work.start[node], actions, sigma, first)
        if tree.player[node] == traverser:
            skips = prunes and block // players < last_street
            for a in range(actions):
                child = first + a
                skipped = sigma[child] == 0 and tables.regret[work.start[node] + a] < prune_below
                if skips and skipped and tree.kind[child] != TERMINAL:
                    value[child] = np.nan
                    continue
                order[tail] = child
                tail += 1
                follow(work, node, child, traverser, 1.0)
        else:
            part = weight / others_sampled(work, node, tree.player[node])
            add_strategy(tree, tables, hand, node, (sigma, first), part, second_word(rng))
            chosen = first + choose(tables.regret, work.start[node], actions, uniform(rng))
            order[tail] = chosen
            work.child[node] = chosen
            tail += 1
            follow(work, node, chosen, tree.player[node], np.float64(sigma[chosen]))
    return tail, nodes


@part_njit
def follow(work, node, child, player, probability):
    """Set each player's probability of sampled actions before `child`, to which an action at `node` leads.

    work         Worklist; its row `sampled[child]` is set
    player       player who acts; at chance nodes any player
    probability  of the action; 1 at chance nodes and at the traverser's decisions

    Nothing is done with two players.
    """
    if work.payoffs.shape[1] > 2:
        for each in range(work.payoffs.shape[1]):
            work.sampled[child, each] = work.sampled[node, each]
        work.sampled[child, player] *= probability


@part_njit
def others_sampled(work, node, player):
    """Return the probability of the other players' sampled actions on the way to `node`.

    It is the product over all players but `player`; chance does not count.  With two players the other one is the
    traverser, for whom no action is sampled.  So it is then 1.

    work    Worklist of the traversal
    player  player to act at `node`, who is not the traverser
    """
    probability = 1.0
    if work.payoffs.shape[1] > 2:
        for each in range(work.payoffs.shape[1]):
            if each != player:
                probability *= work.sampled[node, each]
    return probability


@part_njit
def _backward(tree, tables, traverser, result, weight, work, tail, pruning):
    """Run the backward pass of a traversal: values from the leaves up, and the traverser's regret updates.

    tree     TreeArrays
    tables   TableArrays; regrets are changed in place
    result   showdown of two players in this deal: 1 if player 0 wins, -1 if player 1 wins, 0 for a tie
    weight   discount weight of the updates
    work     Worklist after `visit`
    tail     length of the worklist `work.order`
    pruning  Pruning, as in `visit`
    """
    value, sigma, seats = work.value, work.sigma, work.payoffs.shape[1] > 2
    sign = 1.0 - 2.0 * traverser
    for position in range(tail - 1, -1, -1):
        node = work.order[position]
        if tree.kind[node] == TERMINAL:
            if work.seats is not None:
                value[node] = won_chips(work.seats, work.seats.first[node], traverser)
            elif seats:
                value[node] = work.payoffs[node, traverser]
            else:
                value[node] = sign * (tree.fixed[node] + tree.showdown[node] * result)
            continue
        child = work.child[node]
        if tree.player[node] != traverser:  # a chance node has no player
            value[node] = value[child]
            continue
        actions, row = tree.count[node], work.start[node]
        for a in range(actions):
            sigma[child + a] *= value[child + a]  # the strategy is not needed any more
            if pruning.active and np.isnan(value[child + a]):
                sigma[child + a] = 0
        value[node] = total_of(sigma, child, actions)
        if pruning.active:
            floor = -weight * (pruning.floor if tree.block[node] >= work.payoffs.shape[1] else pruning.first_floor)
            update_explored(tables.regret, row, actions, value, child, value[node], weight, floor)
        else:
            update(tables.regret, row, actions, value, child, value[node], weight)
