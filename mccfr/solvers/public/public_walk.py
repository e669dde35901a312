"""One player's walk of a whole public tree, to train or to evaluate strategies.

The streets are nested by an explicit stack.  The betting of a street is walked once for each board (`street_walk`).
The work below the first street is cut into tasks for threads (`walk_threads`): an exit of the first street on some of
its boards, or some of its run-outs.  Each task writes its values to its own array.  They are added in the order of
tasks, so results do not depend on the threads.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import inline_njit, nogil_njit, part_njit
from mccfr.solvers.minimisers import Step
from mccfr.solvers.public.street_arrays import BettingRound, Traversal
from mccfr.solvers.public.street_walk import ascend, clear, copy, descend, first_side, is_walked, run_outs, take_cells
from mccfr.solvers.public.walk_threads import begin_tasks, begin_walks, drawn_share, end_share, end_tasks
from mccfr.trees.street_trees import AT_EXIT

_TREE, _BOARD, _STOP, _MEMBER = 0, 1, 2, 3  # columns of `StreetScratch.state`
_NOT_BEGUN = -2  # in place of a member: the ranges were not carried down yet


class Scope(NamedTuple):
    """Players and boards of a call of `train` or `value`: first and last player, first board and end.

    respond_from  street from which best responses are taken; before it RESPOND follows the strategy
    in_place      True or None, for which kernels contain no code: in `train`, whether rows are updated when they are
                  visited; in `value`, whether views hold strategy sums
    rule          in `train`, `Step.rule` of all iterations
    predicts      in `train`, `Step.predicts` of all iterations
    """

    first_player: int
    last_player: int
    first_board: int
    stop_board: int
    respond_from: int = 0
    in_place: bool | None = None
    rule: int | None = None
    predicts: int | None = None


def step_rows(steps: Sequence[Step], iteration: int) -> npt.NDArray[np.float64]:
    """Return [n, 5] steps for `train`: each step's factors and its iteration, counted from `iteration`."""
    factors = np.array([(s.positive, s.negative, s.keep, s.weight) for s in steps], np.float64).reshape(-1, 4)
    return np.column_stack([factors, np.arange(iteration, iteration + len(steps))])


@part_njit
def _spread_cells(cells, column, hand, out):
    """Set out[hand[i]] = cells[column[i]]; return whether any of them is positive."""
    alive = False
    for i in range(hand.shape[0]):
        cell = cells[np.uint32(column[i])]
        out[np.uint32(hand[i])] = cell
        alive |= cell > 0
    return alive


@part_njit
def _hand_down(ranges, player, board, place, scratch, reach, values, sides):
    """Fill reach [2, H] with both ranges at row `place` of a street's scratch; unlisted hands get 0.

    sides  from `first_side`

    Clears values [V, H] and returns whether the opponent's range is not empty.
    """
    alive = False
    for side in range(sides, 2):
        out = reach[side]
        clear(out, out.shape[0])
        who = player if side == 0 else 1 - player
        row = scratch.own.reach[scratch.own.row[place]]
        if side == 1:
            row = scratch.opponent.reach[scratch.opponent.row[place]]
        every = ranges.every
        first, stop = every.first[who, board], every.first[who, board + 1]
        alive = _spread_cells(row, every.column[first:stop], every.hand[first:stop], out)
    for kind in range(values.shape[0]):
        clear(values[kind], values.shape[1])
    return alive


@part_njit
def _hand_up(ranges, player, board, found, out):
    """Copy values [V, H] to out [V, n], in the order of the board's list."""
    hand = ranges.hand[ranges.first[player, board] : ranges.first[player, board + 1]]
    for kind in range(found.shape[0]):
        take_cells(found[kind], hand, out[kind])


@part_njit
def _next_exit(trees, tree, member):
    """Return the first exit of a tree after `member`, or -1."""
    base = trees.first[tree]
    for m in range(member + 1, trees.first[tree + 1] - base):
        if trees.kind[base + m] == AT_EXIT:
            return m
    return -1


@inline_njit
def _enter(scratch, level, tree, first, stop):
    """Put a street tree and its boards on the stack."""
    state = scratch.state[level]
    state[_TREE], state[_BOARD], state[_STOP], state[_MEMBER] = tree, first, stop, _NOT_BEGUN


@inline_njit
def _walk(public, traversal, step, street, tree, boards, scratch):
    """Traverse a street tree on boards[0] to boards[1]-1, with all later streets.

    Both ranges are in by_hand.reach[:, street]; values are added to by_hand.value[street].
    """
    level, trees, last, handed = street, public.trees, public.boards.weight.shape[0] - 1, scratch.by_hand
    _enter(scratch, level, tree, boards[0], boards[1])
    while True:
        state = scratch.state[level]
        if state[_BOARD] < state[_STOP]:
            if not is_walked(public.copies, level, state[_BOARD]):
                state[_BOARD] += 1
                continue
            here = BettingRound(level, state[_TREE], state[_BOARD])
            if state[_MEMBER] == _NOT_BEGUN:
                descend(public, traversal, step, here, scratch)
                if level < last:
                    begin, stop = np.int64(0), trees.first[here.tree + 1] - trees.first[here.tree]
                    run_outs(public, traversal.player, here, begin, stop, scratch, scratch.lanes)
                state[_MEMBER] = -1
            member = _next_exit(trees, state[_TREE], state[_MEMBER]) if level < last else -1
            if member >= 0:
                state[_MEMBER] = member
                index, board = trees.first[state[_TREE]] + member, state[_BOARD]
                place = scratch.member_first[level] + member
                level += 1
                reach, values = handed.reach[:, level], handed.value[level]
                sides = first_side(traversal, step)
                alive = _hand_down(public.ranges, traversal.player, board, place, scratch, reach, values, sides)
                below = np.int64(trees.below[index])
                first, stop = public.boards.below[board, 0], public.boards.below[board, 1]
                if not alive and step is None:
                    stop = first  # in training the walk continues, for the traverser's average
                _enter(scratch, level, below, first, stop)
                continue
            ascend(public, traversal, step, here, scratch)
            state[_BOARD] += 1
            state[_MEMBER] = _NOT_BEGUN
            continue
        if level == street:
            return
        level -= 1
        state = scratch.state[level]
        out = scratch.value[:, scratch.member_first[level] + state[_MEMBER]]
        _hand_up(public.ranges, traversal.player, state[_BOARD], handed.value[level + 1], out)


@inline_njit
def _task(public, traversal, step, board, root, task, scratch):
    """Do one task below the first street: an exit on some of its boards, or some run-outs.

    An exit's values go to root.by_hand.task[task], those of run-outs to their place in root.value.
    """
    trees, first_tree, member = public.trees, np.int64(0), public.tasks[task, 0]  # of street 0 as well
    if trees.kind[member] == AT_EXIT:
        place = root.member_first[0] + member
        reach, values = scratch.by_hand.reach[:, 1], scratch.by_hand.value[1]
        _hand_down(public.ranges, traversal.player, board, place, root, reach, values, first_side(traversal, step))
        start, tree = public.boards.below[board, 0], np.int64(trees.below[member])
        boards = (start + public.tasks[task, 1], start + public.tasks[task, 2])
        _walk(public, traversal, step, np.int64(1), tree, boards, scratch)
        for kind in range(values.shape[0]):
            copy(values[kind], root.by_hand.task[task, kind])
    else:
        first, stop = public.tasks[task, 1], public.tasks[task, 2]
        here = BettingRound(first_tree, first_tree, board)
        run_outs(public, traversal.player, here, first, stop, root, scratch.lanes)


@inline_njit
def _collect(public, traversal, board, root):
    """Add up the values of tasks at the exits of the first street."""
    tasks, task = public.tasks, 0
    while task < tasks.shape[0]:
        member, found = tasks[task, 0], root.by_hand.task[task]
        task += 1
        if public.trees.kind[member] != AT_EXIT:
            continue
        while task < tasks.shape[0] and tasks[task, 0] == member:
            for kind in range(found.shape[0]):
                for hand in range(found.shape[1]):
                    found[kind, hand] += root.by_hand.task[task, kind, hand]
            task += 1
        _hand_up(public.ranges, traversal.player, board, found, root.value[:, root.member_first[0] + member])


@inline_njit
def _traverse(public, views, step, iteration, scope, root, scratch, crew):
    """Run this thread's part of a traversal of each player in the scope; see `train`."""
    first_street = np.int64(0)
    for player in range(scope.first_player, scope.last_player + 1):
        other = views[1 - player]
        mine, respond_from = views[player], scope.respond_from
        traversal = Traversal(player, scope.in_place, mine, other.basis, other.narrow, iteration, respond_from)
        for board in range(scope.first_board, scope.stop_board):
            if not is_walked(public.copies, first_street, board):
                continue
            if crew.leads:
                copy(public.reach[player], root.by_hand.reach[0, 0])
                copy(public.reach[1 - player], root.by_hand.reach[1, 0])
                descend(public, traversal, step, BettingRound(first_street, first_street, board), root)
                begin_tasks(crew)
            while True:
                share = drawn_share(crew)
                if share < 0:
                    break
                for task in range(crew.shares[share, 0], crew.shares[share, 1]):
                    _task(public, traversal, step, board, root, task, scratch)
                end_share(crew)
            end_tasks(crew)
            if crew.leads:
                _collect(public, traversal, board, root)
                ascend(public, traversal, step, BettingRound(first_street, first_street, board), root)


@nogil_njit
def train(public, views, steps, scope, root, scratch, crew):
    """Run the traversals for each row of steps [n, 5] from `step_rows`.

    views    Views of player 0 and of player 1
    scope    Scope: traversers and first-street boards
    root     scratch of the first street; values of the traverser's hands are added to its by_hand.value[0]
    scratch  this thread's scratch of the other streets
    crew     this thread's Crew

    All threads call this with the same arguments, except the last two.
    """
    begin_walks(crew)
    for i in range(steps.shape[0]):
        row = steps[i]
        step = Step(scope.rule, scope.predicts, row[0], row[1], row[2], row[3])
        _traverse(public, views, step, np.int64(row[4]), scope, root, scratch, crew)


@nogil_njit
def value(public, views, scope, root, scratch, crew):
    """Compute the values of the traverser's hands with fixed strategies, its own and a best response.

    The arguments are those of `train`.  `Views` describes the tables that are filled on the way.
    """
    begin_walks(crew)
    _traverse(public, views, None, np.int64(0), scope, root, scratch, crew)
