"""External-sampling MCCFR (Lanctot, Waugh, Zinkevich & Bowling 2009, section 3.2).

An iteration is one deal and one traversal for each player with that deal.  At the traverser's nodes every action is
walked and regrets are updated.  At the opponent's nodes one action is sampled from its current strategy, which is added
to its strategy sum.  The sum needs no reach factor: sampling supplies it.

With three and more players all but the traverser are its opponents.  An addition is divided by the probability of the
sampled actions of the players other than the one to act.  So its mean is in proportion to the player's own reach, and
the average strategy is the average of what was played.  The number of players is a constant in compiled code; code for
more than two is not compiled for two.

A traversal is a breadth-first worklist.  The forward pass computes strategies, pushes children and prefetches their
rows.  The backward pass computes values and updates regrets.  Each pushed node has the index where its value goes.  An
opponent's node passes this index on to its sampled child, so the backward pass visits only the traverser's decisions.

This kernel handles packed betting trees, one record for each decision with its terminals, and rows as vectors.
`external_general` handles general records, action by action; both give the same bits on betting trees.  Indices are
unsigned, because numba checks signed ones for being negative.  The kernel branches on draws: a right prediction starts
the next prefetches early.

With sampled pruning the traverser skips actions of very negative regret on 95 % of its traversals.  It never does so on
the last street or if the action ends the hand.  An action is skipped only if its probability is 0, so the node's value
stays exact.  (The published rule also skips it under uniform play without positive regrets.)  The value of a skipped
child is nan.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import inline_njit, nogil_njit
from abstraction.kernels.prefetch import prefetch_to_write
from mccfr.common.rng import second_word, uniform
from mccfr.solvers.sampling.packed_rows import (
    LANES,
    add_row,
    match_and_choose_row,
    regret_matching_row,
    update_explored_row,
    update_row,
)
from mccfr.solvers.sampling.row_lookup import NODE_LIMIT, START, STOP, HandRows, locate, new_hand
from mccfr.solvers.sampling.seats import (
    SeatArrays,
    add_sampled,
    begin_deal,
    begin_traversal,
    inherit,
    new_seats,
    others_sampled,
    won_chips,
)
from mccfr.trees.compiled import CompiledTree

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Pruning(NamedTuple):
    """Parameters of sampled pruning.

    Source: Brown & Sandholm 2019, "Superhuman AI for multiplayer poker", supplement.  Let w be the present discount
    weight, by which updates are multiplied.

    active       int64    1: the traverser skips actions on most traversals, and regrets have a floor; 0: neither
    below        float64  chips; an action of probability 0 may be skipped while its regret is less than -below·w.
                          Actions on the last street, or that end the hand, are never skipped
    floor        float64  chips, a number larger than `below`; updates keep regrets at -floor·w or above, so that
                          skipped actions can return
    first_floor  float64  the same floor for the first street.  It is infinite (none) if groups of boards (strata) are
                          trained apart; the floor is then applied to the sum of their tables
    """

    active: int
    below: float
    floor: float
    first_floor: float


NO_PRUNING = Pruning(0, 0.0, 0.0, 0.0)
PRUNED_SHARE = 0.95
"""Probability that a traversal prunes, once pruning is active."""


class PackedWorklist(NamedTuple):
    """Scratch arrays of external sampling over a packed tree: D decisions, R the regrets' dtype.

    order    [D] int32    decisions in the order visited
    start    [D] int64    first cell of each decision's row in the flat regret table
    slot     [D] int32    index in `value` for each decision's value
    own      [D] int32    indices in `order` of the traverser's decisions
    first    [D] int32    index in `value` of the first child of each of these; the other children follow
    value    [D] R        chips for the traverser: at the root, then at children of its decisions
    sigma    [8·(D+1)] R  current strategies at the traverser's decisions; the last 8 cells are for one of the opponent
    updated  [1] int64    number of decisions visited so far: regrets at the traverser's are updated, sums at the
                          opponent's
    hand     HandRows     indices in the flat tables at which the cells of the current deal's buckets begin
    seats    SeatArrays   pots and probabilities of three and more players, D+1 rows; None for two
    """

    order: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    slot: npt.NDArray[np.int32]
    own: npt.NDArray[np.int32]
    first: npt.NDArray[np.int32]
    value: npt.NDArray[np.floating]
    sigma: npt.NDArray[np.floating]
    updated: npt.NDArray[np.int64]
    hand: HandRows
    seats: SeatArrays | None


def new_packed_worklist(tree: CompiledTree, dtype: npt.DTypeLike) -> PackedWorklist:
    """Return a PackedWorklist for the decisions of a betting tree and regrets of `dtype`."""
    decisions, blocks = len(tree.decisions), len(tree.row_slots)
    start = np.zeros(decisions, np.int64)
    order, slot, own, first = (np.zeros(decisions, np.int32) for _ in range(4))
    value, sigma = np.zeros(decisions, dtype), np.zeros((decisions + 1) * LANES, dtype)
    shared = np.zeros(1, np.int64), new_hand(blocks), new_seats(tree, decisions + 1)
    return PackedWorklist(order, start, slot, own, first, value, sigma, *shared)


@inline_njit
def _fold(node, seats, traverser):
    """Return the traverser's chips if a decision's first action ends the hand, else 0.

    With two players only a fold counts: `_call` returns the chips of a check or call.

    node   PACKED_NODE: record of the decision
    seats  SeatArrays; None for two players
    """
    if seats is None:
        return (1.0 - 2.0 * traverser) * node.fold_value
    return won_chips(seats, node.fold_pot, traverser) if node.folds else 0.0


@inline_njit
def _call(node, seats, traverser, result):
    """Return the traverser's chips if a decision's check or call ends the hand, else 0.

    With three and more players this holds for the second action, if the first ends the hand too.

    node    PACKED_NODE: record of the decision
    seats   SeatArrays; None for two players
    result  showdown of two players: 1 if the traverser wins, -1 if the opponent wins, 0 for a tie
    """
    if seats is None:
        return result * node.call_value
    return won_chips(seats, node.call_pot, traverser) if node.ends else 0.0


@nogil_njit
def external_sampling_packed(tree, tables, deals, limits, weight, rng, work, pruning=NO_PRUNING):
    """Run external sampling on deals over a packed tree; return (iterations run, nodes touched).

    `tables`, `rng` and `work` are changed in place.  `tree` is [D] PACKED_NODE, `weight` the updates' discount weight.
    `limits` [3] int64 is (index of the first deal, end, number of nodes; the iteration that reaches it is the last).
    """
    (regret, strategy_sum), (regrets, sums) = tables[:2], work.hand
    (order, start, slot, own, first_value, value, sigma), seats = work[:7], work.seats
    players = 2 if seats is None else len(seats.players)
    prune_below, floor, first_floor = -pruning.below * weight, -pruning.floor * weight, -pruning.first_floor * weight
    nodes, rows, deal, last_street = 0, 0, limits[START], regrets.shape[0] // players - 1
    spare = sigma.shape[0] - LANES  # cells for the opponent's strategy, which is used at once
    while deal < limits[STOP] and nodes < limits[NODE_LIMIT]:
        locate(tables, deals, deal, work.hand)
        turns = begin_deal(seats, deals.strength, deal)
        for traverser in range(turns[0], turns[1]):
            result = begin_traversal(seats, traverser) * deals.result[deal]
            prunes = pruning.active != 0 and uniform(rng) < PRUNED_SHARE
            # Forward: strategies, strategy sums, choices; children are pushed.
            order[0], slot[0], start[0] = 0, 0, regrets[tree[0].block] + tree[0].slot
            tail, position, owned, values, sampled = _ONE, _ZERO, _ZERO, _ONE, 0
            while position < tail:
                node, row = tree[np.uint64(order[position])], start[position]
                block, actions = np.uint64(node.block), node.actions
                nodes += node.touched
                terminals, mine = np.int64(node.folds) + np.int64(node.ends), spare
                skips = prunes and node.player == traverser and node.block // players < last_street
                # Children first .. stop-1 are pushed; `action` leads to the first, whose value goes to `goes`.
                if node.player == traverser:
                    mine = np.int64(owned) * LANES
                    regret_matching_row(regret, row, actions, sigma, mine)
                    nodes += node.leaves_touched
                    own[owned], first_value[owned] = position, values
                    action, goes, first = terminals, values, np.uint64(node.first)
                    stop = first + np.uint64(actions - terminals)
                    owned += _ONE
                    values += stop - first
                else:
                    word, goes = second_word(rng), np.uint64(slot[position])
                    action = match_and_choose_row(regret, row, actions, uniform(rng), False, sigma, mine)
                    if sums[block] >= 0:
                        added, part = sums[block] + node.slot, weight / others_sampled(seats, position, node.player)
                        add_row(strategy_sum, added, actions, sigma, mine, part, word)
                    first = np.uint64(node.first + action - terminals)
                    stop = first + _ONE
                    if action < terminals:  # the hand ends here
                        stop, folds = first, node.folds and action == 0
                        nodes += node.leaves_touched - node.end_touched if folds else node.end_touched
                        value[goes] = _fold(node, seats, traverser) if folds else _call(node, seats, traverser, result)
                    else:
                        sampled = add_sampled(seats, sampled, position, node.player, sigma[np.uint64(mine + action)])
                while first != stop:
                    if skips and sigma[np.uint64(mine + action)] == 0 and regret[np.uint64(row + action)] < prune_below:
                        value[goes] = np.nan
                    else:
                        below = tree[first]
                        block = np.uint64(below.block)
                        order[tail], slot[tail], start[tail] = first, goes, regrets[block] + below.slot
                        inherit(seats, tail, position)
                        prefetch_to_write(regret, start[tail])
                        if below.player != traverser and sums[block] >= 0:
                            prefetch_to_write(strategy_sum, sums[block] + below.slot)
                        tail += _ONE
                    first += _ONE
                    goes += _ONE
                    action += 1
                position += _ONE
            rows += np.int64(tail)
            # Backward: values from the leaves up, and the traverser's regrets.
            while owned > _ZERO:
                owned -= _ONE
                position = np.uint64(own[owned])
                node, row = tree[np.uint64(order[position])], start[position]
                actions, goes = node.actions, np.uint64(slot[position])
                endings = node.folds, _fold(node, seats, traverser), node.ends, _call(node, seats, traverser, result)
                strategy, children = (sigma, np.int64(owned) * LANES), (value, first_value[owned])
                if pruning.active:
                    floored = weight, floor if node.block >= players else first_floor
                    value[goes] = update_explored_row(regret, row, actions, strategy, children, endings, floored)
                else:
                    value[goes] = update_row(regret, row, actions, strategy, children, endings, weight)
        deal += 1
    work.updated[0] += rows
    return deal - limits[START], nodes
