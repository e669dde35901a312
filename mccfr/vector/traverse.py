"""One street subtree on one board, all hands at once: the opponent's reach goes down, counterfactual values come up.

`descend` and `ascend` are the two halves; what lies between them (other streets, run-outs) is filled in by the caller,
or by nobody on the last street, where `last_street` runs through all boards without leaving compiled code.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.jit import njit, part_njit
from mccfr.tree import DECISION, TERMINAL
from mccfr.vector.public_tree import PublicTree
from mccfr.vector.showdown import fold_values, no_values, reach_by_card, showdown_values


class Scratch(NamedTuple):
    """Room for a street subtree on a board.  N members, R ranges, A cells of rows, n hands and one, C cards.

    range_of  [N] int32          which of the opponent's ranges belongs to a member
    reach     [R, n] float64     the opponent's ranges: he alone, and chance above the subtree's root, weigh hands
    value     [N, n] float64     counterfactual values of the player's hands, in chips times reach
    own       [A, n] float64     the player's strategy, a row's probabilities by action and hand
    other     [A, n] float64     the opponent's
    sums      [2, C+1] float64   sums by card of `showdown`
    """

    range_of: npt.NDArray[np.int32]
    reach: npt.NDArray[np.float64]
    value: npt.NDArray[np.float64]
    own: npt.NDArray[np.float64]
    other: npt.NDArray[np.float64]
    sums: npt.NDArray[np.float64]


class Task(NamedTuple):
    """Whose values are wanted, how he plays, and where.

    player   his hands are valued, against the other player's ranges
    respond  1: he plays the best action with each hand on each board; 0: he follows his strategy
    subtree  the street subtree walked
    """

    player: int
    respond: int
    subtree: int


def new_scratch(public: PublicTree, street: int) -> Scratch:
    """Scratch for the largest subtree and the longest list of hands of a street."""
    subtrees, hands = public.arrays.subtrees, public.arrays.hands
    here = subtrees.street == street
    members = int(np.diff(subtrees.member_first)[here].max(initial=1))
    cells = int(subtrees.slot_count[here].max(initial=1))
    longest = int(np.diff(hands.first, axis=1).max()) + 1
    return Scratch(
        np.zeros(members, np.int32),
        np.zeros((members, longest)),
        np.zeros((members, longest)),
        np.zeros((cells, longest)),
        np.zeros((cells, longest)),
        np.zeros((2, int(hands.cards[0]) + 1)),
    )


@part_njit
def _load_rows(subtrees, hands, subtree, player, board, probability, out):
    """Copy the rows of a player's hands from probability [bucket, slot] to out [cell, hand]."""
    start, cells = subtrees.slot_first[subtree, player], subtrees.slot_count[subtree, player]
    first = hands.first[player, board]
    for k in range(hands.first[player, board + 1] - first):
        bucket = hands.bucket[first + k]
        for cell in range(cells):
            out[cell, k] = probability[bucket, start + cell]


@part_njit
def _load_range(hands, player, board, reach, out):
    """Copy a player's reach from all hands [H] to his list on a board, with a 0 behind it."""
    first = hands.first[player, board]
    count = hands.first[player, board + 1] - first
    for k in range(count):
        out[k] = reach[hands.hand[first + k]]
    out[count] = 0.0


@njit
def descend(public, scratch, task, board, probability, reach):
    """Load both strategies and carry the opponent's `reach` [H] down the subtree, in place in `scratch`.

    `probability` is a pair of tables [bucket, slot] of the subtree's street: the player's own and the other's.
    """
    subtrees, hands, subtree = public.subtrees, public.hands, task.subtree
    player, other = task.player, 1 - task.player
    _load_rows(subtrees, hands, subtree, player, board, probability[0], scratch.own)
    _load_rows(subtrees, hands, subtree, other, board, probability[1], scratch.other)
    _load_range(hands, other, board, reach, scratch.reach[0])
    scratch.range_of[0] = 0
    ranges = 1
    count = hands.first[other, board + 1] - hands.first[other, board]
    first, stop = subtrees.member_first[subtree], subtrees.member_first[subtree + 1]
    for m in range(stop - first):
        if subtrees.kind[first + m] != DECISION:
            continue
        above = scratch.range_of[m]
        for action in range(subtrees.actions[first + m]):
            child = subtrees.child[first + m] + action
            if subtrees.player[first + m] == player:
                scratch.range_of[child] = above
                continue
            scratch.range_of[child] = ranges
            cell = subtrees.slot[first + m] + action
            for k in range(count):
                scratch.reach[ranges, k] = scratch.reach[above, k] * scratch.other[cell, k]
            scratch.reach[ranges, count] = 0.0
            ranges += 1


@part_njit
def _terminal(public, scratch, task, board, m, total):
    """Values of a fold or of a last-street showdown, from the sums by card of its range."""
    hands, player = public.hands, task.player
    member = public.subtrees.member_first[task.subtree] + m
    fixed, showdown = public.subtrees.fixed[member], public.subtrees.showdown[member]
    out, reach = scratch.value[m], scratch.reach[scratch.range_of[m]]
    if total == 0.0:
        no_values(hands.first[player, board + 1] - hands.first[player, board], out)
    elif showdown == 0.0:
        fold_values(hands, player, board, reach, total, scratch.sums, -fixed if player == 1 else fixed, out)
    else:
        showdown_values(hands, player, board, reach, total, scratch.sums, showdown, out)


@part_njit
def _decision(subtrees, scratch, task, member, m, count):
    """Values of a decision from those of its actions: added up at the opponent's, the best or σ's mean at the own."""
    first, actions = subtrees.child[member], subtrees.actions[member]
    own = subtrees.player[member] == task.player
    cell = subtrees.slot[member]
    if own and not task.respond:
        for k in range(count):
            scratch.value[m, k] = scratch.own[cell, k] * scratch.value[first, k]
    else:
        for k in range(count):
            scratch.value[m, k] = scratch.value[first, k]
    for action in range(1, actions):
        child = first + action
        if not own:
            for k in range(count):
                scratch.value[m, k] += scratch.value[child, k]
        elif task.respond:
            for k in range(count):
                scratch.value[m, k] = max(scratch.value[m, k], scratch.value[child, k])
        else:
            for k in range(count):
                scratch.value[m, k] += scratch.own[cell + action, k] * scratch.value[child, k]


@njit
def ascend(public, scratch, task, board, weight, out):
    """Bring values up to the subtree's root and add weight times them to out [H].

    Values of exits and run-outs must be in `scratch.value` already; those of terminals are computed here.
    """
    subtrees, hands = public.subtrees, public.hands
    first, stop = subtrees.member_first[task.subtree], subtrees.member_first[task.subtree + 1]
    entries = hands.first[task.player, board]
    count = hands.first[task.player, board + 1] - entries
    summed, total = -1, 0.0  # neighbouring terminals often share a range: its sums by card are kept
    for m in range(stop - first - 1, -1, -1):
        member = first + m
        if subtrees.kind[member] == TERMINAL:
            if scratch.range_of[m] != summed:
                summed = scratch.range_of[m]
                total = reach_by_card(hands, 1 - task.player, board, scratch.reach[summed], scratch.sums)
            _terminal(public, scratch, task, board, m, total)
        elif subtrees.kind[member] == DECISION:
            _decision(subtrees, scratch, task, member, m, count)
    for k in range(count):
        out[hands.hand[entries + k]] += weight * scratch.value[0, k]


@njit
def last_street(public, scratch, task, boards, probability, reach, weight, out):
    """Add the values of a last-street subtree, summed over boards[0] .. boards[1]-1 and times weight, to out [H]."""
    for board in range(boards[0], boards[1]):
        descend(public, scratch, task, board, probability, reach)
        ascend(public, scratch, task, board, weight, out)


@njit
def run_out(public, scratch, player, boards, chips, reach, weight, out):
    """Add a showdown's values over the last-street boards[0] .. boards[1]-1, times weight, to out [H]."""
    hands, other, value = public.hands, 1 - player, scratch.value[0]
    for board in range(boards[0], boards[1]):
        _load_range(hands, other, board, reach, scratch.reach[0])
        total = reach_by_card(hands, other, board, scratch.reach[0], scratch.sums)
        if total > 0.0:
            showdown_values(hands, player, board, scratch.reach[0], total, scratch.sums, weight * chips, value)
            first = hands.first[player, board]
            for k in range(hands.first[player, board + 1] - first):
                out[hands.hand[first + k]] += value[k]
