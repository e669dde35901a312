"""One player's walk of a whole public tree, to train or to evaluate strategies.

The streets are nested by an explicit stack.  The betting of a street is walked once for each board (`street_walk`).
The work below the first street is cut into tasks for threads (`walk_threads`).  A task is an exit of the first street,
which leads to the next one, on some boards, or some run-outs: all-ins before the last street.  Each task writes its
values to its own array.  They are added in the order of tasks, so results do not depend on the threads.

These arguments are the same in all kernels here:

public     PublicTree
traversal  Traversal: the traverser, its tables and the opponent's
step       Step of the iteration; None: strategies are fixed, and only values are computed
street     number of a street, from 0
tree       number of a street tree: the betting of one street after one betting line of earlier streets
board      number of a board among those of all streets
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
    """Arguments of `train` and `value`: the players and boards to walk, and the kind of walk.

    first_player  first traverser; the players take turns from it to `last_player`
    last_player   last traverser
    first_board   first board of the first street to walk
    stop_board    end of these boards
    respond_from  first street on which the traverser's best response deviates; before it, it follows the strategy
    in_place      True; or None for False, so that kernels contain no code for it. In training: table rows are updated
                  when they are visited. With fixed strategies: tables hold strategy sums, not probabilities
    rule          in training, `Step.rule` of all iterations: NORMAL_HEDGE or a user's rule; None: regret matching
    predicts      in training, `Step.predicts` of all iterations: OPTIMISTIC or PREDICTIVE; None: no prediction
    fixed         in `train`, True: strategies are fixed and only values are computed; False: training. `value` always
                  takes strategies as fixed
    """

    first_player: int
    last_player: int
    first_board: int
    stop_board: int
    respond_from: int = 0
    in_place: bool | None = None
    rule: int | None = None
    predicts: int | None = None
    fixed: bool = False


def step_rows(steps: Sequence[Step], iteration: int) -> npt.NDArray[np.float64]:
    """Return [n, 5] float64 the parameters of n iterations of CFR, for `train`.

    Columns: factor of positive regrets, of negative regrets, of old strategy sums; weight of the new strategy; number
    of the iteration.

    steps      Step of each of the n iterations, which has the first four columns
    iteration  number of the first iteration, from 1
    """
    factors = np.array([(s.positive, s.negative, s.keep, s.weight) for s in steps], np.float64).reshape(-1, 4)
    return np.column_stack([factors, np.arange(iteration, iteration + len(steps))])


@part_njit
def _spread_cells(cells, column, hand, out):
    """Set out[hand[i]] = cells[column[i]] for each i; return whether any of these cells is positive.

    cells   [W] range by column of a board: a hand, or hands that share a bucket
    column  [n] int32 column of each hand
    hand    [n] int32 number of each hand
    out     [H] range by number of the hand
    """
    alive = False
    for i in range(hand.shape[0]):
        cell = cells[np.uint32(column[i])]
        out[np.uint32(hand[i])] = cell
        alive |= cell > 0
    return alive


@part_njit
def _hand_down(ranges, player, board, place, scratch, handed, street, sides):
    """Copy the ranges at a node to handed.reach[:, street], by number of the hand; others get 0.

    ranges   Ranges: hands and columns of each board
    player   the traverser; its range goes to handed.reach[0], the opponent's to handed.reach[1]
    board    board of the node
    place    index of the node in the arrays `own.row` and `opponent.row` of `scratch`
    scratch  StreetScratch with the ranges
    handed   StreetExchange that passes ranges and values between streets; its value[street] is set to 0
    street   street to which the ranges are handed: the one after the node's
    sides    first range to copy: 0, both are copied; 1, only the opponent's

    Returns whether the opponent's range has a positive cell.
    """
    alive = False
    for side in range(sides, 2):
        out = handed.reach[side, street]
        clear(out, out.shape[0])
        who = player if side == 0 else 1 - player
        row = scratch.own.reach[scratch.own.row[place]]
        if side == 1:
            row = scratch.opponent.reach[scratch.opponent.row[place]]
        every = ranges.every
        first, stop = every.first[who, board], every.first[who, board + 1]
        alive = _spread_cells(row, every.column[first:stop], every.hand[first:stop], out)
    for kind in range(handed.value.shape[1]):
        clear(handed.value[street, kind], handed.value.shape[2])
    return alive


@part_njit
def _hand_up(ranges, player, board, found, out):
    """Copy values of a player's hands to the order of their columns on a board.

    ranges  Ranges: hands and columns of each board
    found   [V, H] V values of each hand by number of the hand
    out     [V, W] by column: a hand of the board, or hands that share a bucket (the first hand's value is taken)
    """
    hand = ranges.hand[ranges.first[player, board] : ranges.first[player, board + 1]]
    for kind in range(found.shape[0]):
        take_cells(found[kind], hand, out[kind])


@part_njit
def _next_exit(trees, tree, member):
    """Return the first exit (node that leads to the next street) of a street tree after `member`, or -1.

    trees   StreetTrees
    member  node, counted from the root of the street tree, like the result; -1: search all nodes
    """
    base = trees.first[tree]
    for m in range(member + 1, trees.first[tree + 1] - base):
        if trees.kind[base + m] == AT_EXIT:
            return m
    return -1


@inline_njit
def _enter(scratch, level, tree, first, stop):
    """Put a street tree and its boards first to stop-1 on the stack, in row `level` of `scratch.state`.

    scratch  StreetScratch
    level    street of the tree
    """
    state = scratch.state[level]
    state[_TREE], state[_BOARD], state[_STOP], state[_MEMBER] = tree, first, stop, _NOT_BEGUN


@inline_njit
def _walk(public, traversal, step, street, tree, boards, scratch):
    """Traverse a street tree on boards[0] to boards[1]-1, with all later streets.

    street   street of the tree and of the boards
    scratch  this thread's StreetScratch

    It reads the ranges scratch.by_hand.reach[:, street] [2, H] of H hands.  It adds the values of the traverser's hands
    to scratch.by_hand.value[street] [V, H].  V counts the values of a hand: of the strategy, of a best response, or
    both.
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
                sides = first_side(traversal, step)
                alive = _hand_down(public.ranges, traversal.player, board, place, scratch, handed, level, sides)
                below = np.int64(trees.below[index])
                first, stop = public.boards.below[board, 0], public.boards.below[board, 1]
                if not alive and (step is None or traversal.fixed):
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
    """Do one task of `public.tasks`: an exit of the first street on some of its boards, or some run-outs.

    An exit is a node that leads to the next street; a run-out is an all-in before the last street.

    board    board of the first street
    root     StreetScratch of the first street, shared by all threads
    task     number of the task
    scratch  this thread's StreetScratch of the later streets

    An exit's values, V for each of the traverser's H hands, go to root.by_hand.task[task] [V, H].  Those of a run-out
    go to its row in root.value.  V counts the values of a hand: of the strategy, of a best response, or both.
    """
    trees, first_tree, member = public.trees, np.int64(0), public.tasks[task, 0]  # of street 0 as well
    if trees.kind[member] == AT_EXIT:
        place = root.member_first[0] + member
        values, sides = scratch.by_hand.value[1], first_side(traversal, step)
        _hand_down(public.ranges, traversal.player, board, place, root, scratch.by_hand, np.int64(1), sides)
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
    """Add up the values of the tasks of each first-street exit and write the sums to root.value.

    An exit is a node that leads to the next street.

    board  board of the first street
    root   StreetScratch of the first street; its by_hand.task [K, V, H] has the values of K tasks, and the sums replace
           those of each exit's first task. V values (of the strategy, of a best response, or both) of each of the
           traverser's H hands
    """
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
    """Run this thread's part of a traversal for each player and first-street board of `scope`.

    views      (Views of player 0's tables, Views of player 1's)
    iteration  seed for rounding 16-bit cells
    scope      Scope: traversers, boards and kind of the walk
    root       StreetScratch of the first street, shared by all threads
    scratch    this thread's StreetScratch of the later streets
    crew       WalkThread: this thread's part of the tasks; one thread, the leader, alone walks the first street
    """
    first_street = np.int64(0)
    for player in range(scope.first_player, scope.last_player + 1):
        other = views[1 - player]
        mine, tables, respond_from = views[player], (other.basis, other.narrow), scope.respond_from
        traversal = Traversal(player, scope.in_place, mine, *tables, iteration, respond_from, scope.fixed)
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
    """Run the traversals of `scope` once for each row of steps [n, 5], to train or to evaluate.

    views    tables (Views) of player 0 and of player 1, which training changes
    steps    float64 from `step_rows`; with `scope.fixed` one row, whose numbers are not used
    scope    Scope: traversers, boards, and `fixed`: strategies are fixed and only values are computed
    root     StreetScratch of the first street; values of the traverser's hands are added to its by_hand.value[0] [V, H]
    scratch  this thread's StreetScratch of the later streets
    crew     this thread's WalkThread

    V counts the values of a hand: of the strategy, of a best response, or both.  All threads call this with the same
    arguments, except the last two.
    """
    begin_walks(crew)
    for i in range(steps.shape[0]):
        row = steps[i]
        step = Step(scope.rule, scope.predicts, row[0], row[1], row[2], row[3])
        _traverse(public, views, step, np.int64(row[4]), scope, root, scratch, crew)


@nogil_njit
def value(public, views, scope, root, scratch, crew):
    """Compute the values of the traverser's hands with fixed strategies that are given as probabilities.

    Its compiled code is smaller than that of `train`: `step` is None here, so numba drops the code for training.

    views    tables (Views) of player 0 and of player 1; their `basis` holds probabilities. The traverser's `regret`,
             unless empty, receives 1 for the best action of each hand and 0 for the others
    scope    Scope: traversers, boards, first street of best responses
    root     StreetScratch of the first street; values are added to its by_hand.value[0] [V, H]. V = 2 values of each of
             the H hands are those of the strategy and of a best response; V = 1 is the latter
    scratch  this thread's StreetScratch of the later streets
    crew     this thread's WalkThread

    All threads call this with the same arguments, except the last two.
    """
    begin_walks(crew)
    _traverse(public, views, None, np.int64(0), scope, root, scratch, crew)
