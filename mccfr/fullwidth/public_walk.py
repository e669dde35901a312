"""A player's CFR traversal of a whole public tree: streets nested by an explicit stack, in compiled code.

The betting of a street is walked once for each board (`street_walk`).  Below the first street, the work is cut into
tasks - an exit of the first street on some of its boards, or a run-out - that threads may share; each leaves its values
in a place of its own, and they are added in the order of tasks, so results do not depend on who did what.
"""

from typing import NamedTuple

import numpy as np

from abstraction.jit import nogil_njit, part_njit
from mccfr.fullwidth.minimisers import Step
from mccfr.fullwidth.street_walk import Traversal, add_copies, ascend, clear, copy, descend, is_walked, terminals
from mccfr.regret import as_element
from mccfr.vector.public_tree import EXIT, RUN_OUT
from mccfr.vector.range_sums import range_showdown_values, run_totals, sum_range

_SUBTREE, _BOARD, _STOP, _MEMBER = 0, 1, 2, 3  # columns of `Scratch.state`
_NOT_BEGUN = -2  # instead of a member: the way down is still to come


class Scope(NamedTuple):
    """What a call of `traverse` does; see there."""

    first_player: int
    last_player: int
    first_board: int
    stop_board: int
    first_part: int
    stop_part: int


@part_njit
def _hand_down(ranges, player, board, place, scratch, reach, value):
    """Fill reach [2, H] with both ranges in row `place` of a street's scratch, 0 for hands not listed; clear value."""
    for side in range(2):
        out = reach[side]
        clear(out, out.shape[0])
        who = player if side == 0 else 1 - player
        row = scratch.own_reach[scratch.own_range[place]]
        if side == 1:
            row = scratch.other_reach[scratch.other_range[place]]
        first = ranges.first[who, board]
        for k in range(ranges.first[who, board + 1] - first):
            out[ranges.hand[first + k]] = row[k]
    clear(value, value.shape[0])


@part_njit
def _hand_up(ranges, player, board, found, out):
    """Take over the values found [H] for a member: out [n], in the order of the board's list."""
    first = ranges.first[player, board]
    for k in range(ranges.first[player, board + 1] - first):
        out[k] = found[ranges.hand[first + k]]


@part_njit
def _run_out(field, traversal, street, first_board, stop_board, chips, scratch):
    """Add a showdown's values over last-street boards, the range in hand_reach[1, street], to hand_value[street]."""
    ranges, player, top = field.ranges, traversal.player, scratch.member_first[-1]
    weight = 1.0
    for later in range(street, field.weight.shape[0]):
        weight *= field.weight[later]
    reach, value, hand_value = scratch.other_reach[top], scratch.value[top], scratch.hand_value[street]
    one = as_element(value, 1.0)
    for board in range(first_board, stop_board):
        if not is_walked(field.copies, street, board):
            continue
        first = ranges.first[1 - player, board]
        count = ranges.first[1 - player, board + 1] - first
        for k in range(count):
            reach[k] = scratch.hand_reach[1, street, ranges.hand[first + k]]
        reach[count] = as_element(reach, 0.0)
        total = sum_range(ranges, 1 - player, board, reach, scratch.sums)
        if total == 0.0:
            continue
        run_totals(ranges, 1 - player, board, total, scratch.sums)
        range_showdown_values(ranges, player, board, total, scratch.sums, weight * chips, value)
        add_copies(field.copies, ranges, player, street, board, one, value, hand_value)


@part_njit
def _next_way_out(subtrees, subtree, member):
    """The first exit or run-out of a subtree behind `member`, or -1."""
    base = subtrees.member_first[subtree]
    for m in range(member + 1, subtrees.member_first[subtree + 1] - base):
        if subtrees.kind[base + m] == EXIT or subtrees.kind[base + m] == RUN_OUT:
            return m
    return -1


@part_njit
def _enter(scratch, level, subtree, first, stop):
    """Put a subtree and its boards on the stack."""
    state = scratch.state[level]
    state[_SUBTREE], state[_BOARD], state[_STOP], state[_MEMBER] = subtree, first, stop, _NOT_BEGUN


@part_njit
def walk(field, traversal, street, subtree, boards, scratch):
    """Traverse a subtree on boards[0] .. boards[1]-1, all later streets included.

    Both ranges are in hand_reach[:, street]; values are added to hand_value[street].
    """
    level, subtrees = street, field.subtrees
    _enter(scratch, level, subtree, boards[0], boards[1])
    while True:
        state = scratch.state[level]
        if state[_BOARD] < state[_STOP]:
            if not is_walked(field.copies, level, state[_BOARD]):
                state[_BOARD] += 1
                continue
            if state[_MEMBER] == _NOT_BEGUN:
                descend(field, traversal, level, state[_SUBTREE], state[_BOARD], scratch)
                state[_MEMBER] = -1
            member = _next_way_out(subtrees, state[_SUBTREE], state[_MEMBER])
            if member >= 0:
                state[_MEMBER] = member
                index, board = subtrees.member_first[state[_SUBTREE]] + member, state[_BOARD]
                place = scratch.member_first[level] + member
                level += 1
                reach, value = scratch.hand_reach[:, level], scratch.hand_value[level]
                _hand_down(field.ranges, traversal.player, board, place, scratch, reach, value)
                below = np.int64(subtrees.below[index])
                first, stop = field.child_boards[board, 0], field.child_boards[board, 1]
                if subtrees.kind[index] == RUN_OUT:
                    chips = subtrees.showdown[index]
                    first, stop = field.last_boards[board, 0], field.last_boards[board, 1]
                    _run_out(field, traversal, level, first, stop, chips, scratch)
                    stop = first  # nothing is left to walk
                _enter(scratch, level, below, first, stop)
                continue
            terminals(field, traversal, level, state[_SUBTREE], state[_BOARD], scratch)
            ascend(field, traversal, level, state[_SUBTREE], state[_BOARD], scratch)
            state[_BOARD] += 1
            state[_MEMBER] = _NOT_BEGUN
            continue
        if level == street:
            return
        level -= 1
        state = scratch.state[level]
        out = scratch.value[scratch.member_first[level] + state[_MEMBER]]
        _hand_up(field.ranges, traversal.player, state[_BOARD], scratch.hand_value[level + 1], out)


@part_njit
def _task(field, traversal, board, root, task, scratch):
    """Work below the first street: one of its exits on some of the boards, or a run-out; root.task_value[task]."""
    subtrees, member = field.subtrees, field.tasks[task, 0]
    place, reach, value = root.member_first[0] + member, scratch.hand_reach[:, 1], scratch.hand_value[1]
    _hand_down(field.ranges, traversal.player, board, place, root, reach, value)
    if subtrees.kind[member] == EXIT:
        start, subtree = field.child_boards[board, 0], np.int64(subtrees.below[member])
        boards = (start + field.tasks[task, 1], start + field.tasks[task, 2])
        walk(field, traversal, np.int64(1), subtree, boards, scratch)
    else:
        start = field.last_boards[board, 0]
        first, stop = start + field.tasks[task, 1], start + field.tasks[task, 2]
        _run_out(field, traversal, np.int64(1), first, stop, subtrees.showdown[member], scratch)
    copy(scratch.hand_value[1], root.task_value[task])


@part_njit
def _collect(field, traversal, board, root):
    """Bring what tasks found to the ways out of the first street."""
    tasks, task = field.tasks, 0
    while task < tasks.shape[0]:
        member, found = tasks[task, 0], root.task_value[task]
        task += 1
        while task < tasks.shape[0] and tasks[task, 0] == member:
            for hand in range(found.shape[0]):
                found[hand] += root.task_value[task, hand]
            task += 1
        _hand_up(field.ranges, traversal.player, board, found, root.value[root.member_first[0] + member])


@nogil_njit
def traverse(field, views, in_place, steps, scope, root, scratch):
    """Traversals, or part of one, for each row of steps [n, 6], which are those of `Step`.

    views     a pair: those of player 0's and of player 1's traversal
    in_place  as in `Traversal`
    scope     who traverses, on which boards of the first street, which parts; each first and end.  Parts: 0 the way
              down the first street, then K tasks, then the way up.  Several threads may do tasks, each in a scratch
    root      scratch of the first street
    """
    first_street = np.int64(0)
    for i in range(steps.shape[0]):
        row = steps[i]
        step = Step(np.int64(row[0]), np.int64(row[1]), row[2], row[3], row[4], row[5])
        for player in range(scope.first_player, scope.last_player + 1):
            traversal = Traversal(player, in_place, step, views[player])
            for board in range(scope.first_board, scope.stop_board):
                if not is_walked(field.copies, first_street, board):
                    continue
                for part in range(scope.first_part, scope.stop_part):
                    if part == 0:
                        copy(field.reach[player], root.hand_reach[0, 0])
                        copy(field.reach[1 - player], root.hand_reach[1, 0])
                        descend(field, traversal, first_street, first_street, board, root)
                    elif part <= field.tasks.shape[0]:
                        _task(field, traversal, board, root, part - 1, scratch)
                    else:
                        _collect(field, traversal, board, root)
                        terminals(field, traversal, first_street, first_street, board, root)
                        ascend(field, traversal, first_street, first_street, board, root)
