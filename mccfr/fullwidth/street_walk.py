"""One player's CFR traversal of a street subtree on a board, all hands at once.

Vector form of Zinkevich et al. 2007 (Johanson et al. 2011): both players' reach goes down as vectors over their hands,
counterfactual values of the traverser's hands come up, and his regrets and strategy sums are updated where he acts.

Rows are updated where they are met if every hand on every board has a row of its own (`in_place`).  Otherwise both
strategies are frozen in tables beforehand and increments are collected in tables: those of a bucket's hands and boards
add up, each with the hand's own deal weight, which is no constant of the row any more.

Constants of a whole row are left out: the chance of its board and, in place, the weight of its hand in regrets.  A
board that stands for others (`suit_symmetry`) counts as often, and its values are those of the renamed hands there.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.jit import part_njit
from mccfr.fullwidth.minimisers import (
    Rows,
    Step,
    Tables,
    current_strategy,
    gain,
    rounding,
    update_average,
    update_regrets,
)
from mccfr.regret import as_element
from mccfr.tree import DECISION, TERMINAL
from mccfr.vector.public_tree import RUN_OUT, Subtrees
from mccfr.vector.range_sums import (
    Ranges,
    Sums,
    range_fold_values,
    range_showdown_values,
    run_totals,
    sum_range,
)
from mccfr.vector.suit_symmetry import BoardCopies


class Field(NamedTuple):
    """The public tree as a traversal takes it.  S streets, T boards, H hands, K tasks.

    subtrees      betting, by street subtree
    ranges        hands by board
    reach         [2, H] float    deal weights
    weight        [S] float64     chance of a board of street s below one board, two hands given
    child_boards  [T, 2] int64    boards of the next street below a board, first and end
    last_boards   [T, 2] int64    last-street boards below a board
    root_boards   [2] int64       boards of the first street
    tasks         [K, 3] int64    the work below the first street: member, first and end of the boards, counted from the
                                  first board below
    copies        boards that are walked, and for which others
    """

    subtrees: Subtrees
    ranges: Ranges
    reach: npt.NDArray[np.floating]
    weight: npt.NDArray[np.float64]
    child_boards: npt.NDArray[np.int64]
    last_boards: npt.NDArray[np.int64]
    root_boards: npt.NDArray[np.int64]
    tasks: npt.NDArray[np.int64]
    copies: BoardCopies


class Views(NamedTuple):
    """The tables that a player's traversal needs, street by street.

    In place: regret, basis, strategy_sum are his own tables, `other` is the other player's basis.
    Else: regret and strategy_sum collect increments, basis and other hold both current strategies.
    """

    regret: tuple[npt.NDArray[np.floating], ...]
    basis: tuple[npt.NDArray[np.floating], ...]
    strategy_sum: tuple[npt.NDArray[np.floating], ...]
    other: tuple[npt.NDArray[np.floating], ...]


class Traversal(NamedTuple):
    """Who traverses, how rows are updated, and the iteration's step."""

    player: int
    in_place: int
    step: Step
    views: Views


class Scratch(NamedTuple):
    """Room for one street subtree of every street.  N members, A cells, W cells a vector, S streets, H hands.

    member_first  [S] int64     first row of a street in what has N rows
    cell_first    [S] int64     first row of a street in sigma
    other_range   [N] int32     row in other_reach that belongs to a member
    own_range     [N] int32     row in own_reach
    other_reach   [N, W]        ranges of the other player: deal weights times his strategy
    own_reach     [N, W]        the traverser's
    value         [N, W]        counterfactual values of the traverser's hands
    sigma         [A, W]        the traverser's strategy
    hand_reach    [2, S, H]     ranges handed down to a street: the traverser's, the other's
    hand_value    [S, H]        values handed up from it
    task_value    [K, H]        values that tasks found
    state         [S, 4] int64  subtree, board, end of boards, member: the stack
    sums          sums of one range
    """

    member_first: npt.NDArray[np.int64]
    cell_first: npt.NDArray[np.int64]
    other_range: npt.NDArray[np.int32]
    own_range: npt.NDArray[np.int32]
    other_reach: npt.NDArray[np.floating]
    own_reach: npt.NDArray[np.floating]
    value: npt.NDArray[np.floating]
    sigma: npt.NDArray[np.floating]
    hand_reach: npt.NDArray[np.floating]
    hand_value: npt.NDArray[np.floating]
    task_value: npt.NDArray[np.floating]
    state: npt.NDArray[np.int64]
    sums: Sums


@part_njit
def clear(out, count):
    """Set the first cells to 0."""
    for k in range(count):
        out[k] = as_element(out, 0.0)


@part_njit
def copy(source, out):
    """Copy a vector cell by cell (assignment of whole arrays brings its error messages into every kernel)."""
    for k in range(source.shape[0]):
        out[k] = source[k]


@part_njit
def is_walked(copies, street, board):
    """Whether a board is walked below one of the street before, and does not leave that to another board."""
    return copies.first[street, board] < copies.first[street, board + 1]


@part_njit
def add_copies(copies, ranges, player, street, board, weight, value, out):
    """Add weight times the values of the player's hands on a board, and on the boards it stands for, to out [H]."""
    first, stop = ranges.first[player, board], ranges.first[player, board + 1]
    for i in range(copies.first[street, board], copies.first[street, board + 1]):
        renamed = copies.hand[copies.renaming[i]]
        for entry in range(first, stop):
            out[renamed[ranges.hand[entry]]] += weight * value[entry - first]


# --- strategies and updates of one decision ---


@part_njit
def _other_strategy(field, traversal, street, board, rows, scratch, place):
    """other_reach[place : place+actions] = the other player's strategy at a decision."""
    if traversal.in_place:
        basis = traversal.views.other[street]
        current_strategy(traversal.step, Tables(basis, basis, basis), rows, scratch.other_reach, place)
        return
    first = field.ranges.first[1 - traversal.player, board]
    for a in range(rows.actions):
        row, out = traversal.views.other[street][rows.slot + a], scratch.other_reach[place + a]
        for k in range(rows.count):
            out[k] = row[field.ranges.bucket[first + k]]


@part_njit
def _own_strategy(field, traversal, street, board, rows, scratch, place, reach):
    """sigma[place : place+actions] = the traverser's strategy at a decision; it enters his average."""
    views = traversal.views
    if traversal.in_place:
        tables = Tables(views.regret[street], views.basis[street], views.strategy_sum[street])
        current_strategy(traversal.step, tables, rows, scratch.sigma, place)
        update_average(traversal.step, tables, rows, scratch.sigma, place, reach)
        return
    first, times = field.ranges.first[traversal.player, board], as_element(reach, field.copies.times[board])
    for a in range(rows.actions):
        row, sums = views.basis[street][rows.slot + a], views.strategy_sum[street][rows.slot + a]
        out = scratch.sigma[place + a]
        for k in range(rows.count):
            bucket = field.ranges.bucket[first + k]
            out[k] = row[bucket]
            sums[bucket] += times * reach[k] * row[bucket]


@part_njit
def _regrets(field, traversal, street, board, rows, scratch, member, child):
    """Update the traverser's regrets at a decision from the values of its actions and its own."""
    views = traversal.views
    total = scratch.value[member]
    if traversal.in_place:
        tables = Tables(views.regret[street], views.basis[street], views.strategy_sum[street])
        update_regrets(traversal.step, tables, rows, scratch.value, child, total)
        return
    first = field.ranges.first[traversal.player, board]
    weights, limit, times = field.reach[traversal.player], rounding(total), as_element(total, field.copies.times[board])
    for a in range(rows.actions):
        row, value = views.regret[street][rows.slot + a], scratch.value[child + a]
        for k in range(rows.count):
            weight = times * weights[field.ranges.hand[first + k]]
            row[field.ranges.bucket[first + k]] += weight * gain(value[k], total[k], limit)


# --- one street subtree on one board ---


@part_njit
def _rows(field, player, subtree, member, board, in_place):
    """The row block of a decision of `player` on a board."""
    subtrees, first = field.subtrees, field.ranges.first[player, board]
    slot = subtrees.slot_first[subtree, player] + subtrees.slot[member]
    column = np.int64(0)
    count = field.ranges.first[player, board + 1] - first
    if in_place and count > 0:
        column = np.int64(field.ranges.bucket[first])
    return Rows(slot, np.int64(subtrees.actions[member]), column, count)


@part_njit
def descend(field, traversal, street, subtree, board, scratch):
    """Carry both ranges, in hand_reach[:, street], down a street subtree on a board, updating averages on the way."""
    subtrees, ranges, player = field.subtrees, field.ranges, traversal.player
    base, top = subtrees.member_first[subtree], scratch.member_first[street]
    for side in range(2):
        who = player if side == 0 else 1 - player
        out = scratch.own_reach[top] if side == 0 else scratch.other_reach[top]
        first = ranges.first[who, board]
        count = ranges.first[who, board + 1] - first
        for k in range(count):
            out[k] = scratch.hand_reach[side, street, ranges.hand[first + k]]
        out[count] = as_element(out, 0.0)
    scratch.own_range[top], scratch.other_range[top] = top, top
    own_ranges, other_ranges = top + 1, top + 1
    for m in range(subtrees.member_first[subtree + 1] - base):
        if subtrees.kind[base + m] != DECISION:
            continue
        child, own, other = top + subtrees.child[base + m], scratch.own_range[top + m], scratch.other_range[top + m]
        if subtrees.player[base + m] == player:
            rows = _rows(field, player, subtree, base + m, board, traversal.in_place)
            place = scratch.cell_first[street] + subtrees.slot[base + m]
            reach = scratch.own_reach[own]
            _own_strategy(field, traversal, street, board, rows, scratch, place, reach)
            for a in range(rows.actions):
                scratch.own_range[child + a], scratch.other_range[child + a] = own, other
                if subtrees.kind[base + subtrees.child[base + m] + a] in (TERMINAL, RUN_OUT):
                    continue
                scratch.own_range[child + a] = own_ranges
                out, sigma = scratch.own_reach[own_ranges], scratch.sigma[place + a]
                for k in range(rows.count):
                    out[k] = reach[k] * sigma[k]
                own_ranges += 1
        else:
            rows = _rows(field, 1 - player, subtree, base + m, board, traversal.in_place)
            _other_strategy(field, traversal, street, board, rows, scratch, other_ranges)
            reach = scratch.other_reach[other]
            for a in range(rows.actions):
                scratch.own_range[child + a], scratch.other_range[child + a] = own, other_ranges
                out = scratch.other_reach[other_ranges]
                for k in range(rows.count):
                    out[k] *= reach[k]
                out[rows.count] = as_element(out, 0.0)
                other_ranges += 1


@part_njit
def _decision(field, traversal, street, subtree, board, member, scratch):
    """Values of a decision from those of its actions; at the traverser's own, his regrets are updated."""
    subtrees, top = field.subtrees, scratch.member_first[street]
    base = subtrees.member_first[subtree]
    child, actions = top + subtrees.child[base + member], subtrees.actions[base + member]
    value, first = scratch.value[top + member], scratch.value[child]
    count = field.ranges.first[traversal.player, board + 1] - field.ranges.first[traversal.player, board]
    if subtrees.player[base + member] != traversal.player:
        for k in range(count):
            value[k] = first[k]
        for a in range(1, actions):
            below = scratch.value[child + a]
            for k in range(count):
                value[k] += below[k]
        return
    place = scratch.cell_first[street] + subtrees.slot[base + member]
    sigma = scratch.sigma[place]
    for k in range(count):
        value[k] = sigma[k] * first[k]
    for a in range(1, actions):
        below, sigma = scratch.value[child + a], scratch.sigma[place + a]
        for k in range(count):
            value[k] += sigma[k] * below[k]
    rows = _rows(field, traversal.player, subtree, base + member, board, traversal.in_place)
    _regrets(field, traversal, street, board, rows, scratch, top + member, child)


@part_njit
def terminals(field, traversal, street, subtree, board, scratch):
    """Values of a street subtree's terminals on a board; the sums of a range serve all that meet it in a row."""
    subtrees, ranges, player, top = field.subtrees, field.ranges, traversal.player, scratch.member_first[street]
    base, summed, run = subtrees.member_first[subtree], -1, -1
    count, total = ranges.first[player, board + 1] - ranges.first[player, board], as_element(scratch.value, 0.0)
    for m in range(subtrees.member_first[subtree + 1] - base - 1, -1, -1):
        if subtrees.kind[base + m] != TERMINAL:
            continue
        here, out = scratch.other_range[top + m], scratch.value[top + m]
        reach = scratch.other_reach[here]
        if here != summed:
            summed, total = here, sum_range(ranges, 1 - player, board, reach, scratch.sums)
        chips = subtrees.showdown[base + m]
        if total == 0.0:
            clear(out, count)
        elif chips == 0.0:
            fixed = subtrees.fixed[base + m]
            chips = -fixed if player == 1 else fixed
            range_fold_values(ranges, player, board, reach, total, scratch.sums, chips, out)
        else:
            if here != run:
                run = here
                run_totals(ranges, 1 - player, board, total, scratch.sums)
            range_showdown_values(ranges, player, board, total, scratch.sums, chips, out)


@part_njit
def ascend(field, traversal, street, subtree, board, scratch):
    """Bring values up a street subtree, those of all ways out given, and add them to hand_value[street]."""
    subtrees, top = field.subtrees, scratch.member_first[street]
    base = subtrees.member_first[subtree]
    for m in range(subtrees.member_first[subtree + 1] - base - 1, -1, -1):
        if subtrees.kind[base + m] == DECISION:
            _decision(field, traversal, street, subtree, board, m, scratch)
    weight = as_element(scratch.value, field.weight[street])
    value, out = scratch.value[top], scratch.hand_value[street]
    add_copies(field.copies, field.ranges, traversal.player, street, board, weight, value, out)
