"""Shares walks of a public tree among threads, each in one kernel call for many walks (`public_walk`).

A walk is one player's traversal of the tree from one first-street board.  Its work below the first street is cut into
tasks.  Threads draw consecutive numbers; a number stands for a share of tasks in one of the walks.  One thread, the
leader, does the work before and after the tasks of a walk.  A thread may draw a number of the next walk before the
current one ends.

Each task writes its values to its own array, and they are added in the order of tasks.  So results are the same to the
last bit for any number of threads.  Tasks that add to the same table cells form one share and run in their order.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import by_reference, inline_njit, intrinsic, part_njit, types
from mccfr.solvers.public.public_tree import PublicTree
from mccfr.solvers.public.street_arrays import StreetScratch
from mccfr.trees.street_trees import AT_EXIT

_RUN_OUT_MEMBERS = 16  # cost of one task of run-outs, in members of a tree
_DRAWN, _BEGUN, _DONE = 0, 8, 16  # indices of shared counters, each on its own cache line
_COUNTERS = 24
_LEFT = -1  # value of the counter of begun walks once the leader has ended
_NUMBER, _WALK = 0, 1  # indices in `WalkThread.mine`
_LOOKS = 200  # reads of a counter before the thread yields the processor, some 10 µs


@by_reference
class WalkThread(NamedTuple):
    """State of one of the threads that share walks; C shares, runs of tasks that one thread does.

    leads   bool          True for the leader, which does the first street before and after the tasks of a walk
    shares  [C, 2] int64  first task of each share, and end of its tasks
    common  [24] int64    counters of numbers drawn, walks begun and shares done; one array for all threads
    mine    [2] int64     the number drawn (C·walk + share) and the thread's current walk, from 0
    """

    leads: bool
    shares: npt.NDArray[np.int64]
    common: npt.NDArray[np.int64]
    mine: npt.NDArray[np.int64]


Work = Callable[[WalkThread, StreetScratch], Any]
"""Type of the function that each thread runs: it calls a kernel for all walks.

Its arguments are the thread's state and its scratch of the streets after the first.
"""


def shares_by_cost(public: PublicTree, *, rows_apart: bool = True) -> npt.NDArray[np.int64]:
    """Return [C, 2] first task and end of each share of `public.tasks`, the most expensive share first.

    rows_apart  whether no two boards have a table row in common; else all boards of an exit form one share, because
                buckets may occur on several of them

    A share is a run of consecutive tasks that one thread does.  A task is some boards below an exit of the first street
    (a node that leads to the next street), or some run-outs (all-ins).  The cost of an exit's task is the number of its
    boards times the nodes of the street tree below.  A task of run-outs costs 16 for each board of the next street, or
    0 if their results are precomputed.
    """
    trees, tasks = public.trees, public.tasks
    if not len(tasks):
        return np.zeros((0, 2), np.int64)
    member, below = tasks[:, 0], trees.below[tasks[:, 0]]
    root = int(public.boards.root[0])
    run_out = 0 if public.balances.first[root] >= 0 else _RUN_OUT_MEMBERS * np.diff(public.boards.below[root])
    cost = np.where(below >= 0, (tasks[:, 2] - tasks[:, 1]) * np.diff(trees.first)[below], run_out)
    with_last = np.zeros(len(tasks), bool)
    with_last[1:] = (trees.kind[member[1:]] == AT_EXIT) & (member[1:] == member[:-1]) & (not rows_apart)
    first = np.flatnonzero(~with_last)
    shares = np.stack([first, np.append(first[1:], len(tasks))], axis=1)
    ordered: npt.NDArray[np.int64] = shares[np.argsort(-np.add.reduceat(cost, first), kind="stable")]
    return ordered


def alone(public: PublicTree) -> WalkThread:
    """Return the WalkThread for a walk in one thread, which leads and does the tasks in their order."""
    tasks = np.arange(len(public.tasks))
    return _crew(np.stack([tasks, tasks + 1], axis=1), 1)[0]


def _crew(shares: npt.NDArray[np.int64], threads: int) -> list[WalkThread]:
    common = np.zeros(_COUNTERS, np.int64)
    return [WalkThread(thread == 0, shares, common, np.zeros(2, np.int64)) for thread in range(threads)]


def walk_together(work: Work, shares: npt.NDArray[np.int64], scratches: Sequence[StreetScratch]) -> None:
    """Call `work` in as many threads as there are scratches; the calling thread leads and uses the first.

    work       function of a thread's WalkThread and StreetScratch
    shares     [C, 2] first task and end of each share (a run of tasks that one thread does)
    scratches  each thread's scratch of the streets after the first

    An exception from `work` in any thread is raised once all threads have ended.
    """
    leader, *others = _crew(shares, len(scratches))
    if not others:
        work(leader, scratches[0])
        return
    with ThreadPoolExecutor(len(others)) as pool:
        try:
            futures = [pool.submit(work, *each) for each in zip(others, scratches[1:], strict=True)]
            work(leader, scratches[0])
        finally:
            leader.common[_BEGUN] = _LEFT
    for each in futures:
        each.result()


# --- kernels ---


def _cell(context, builder, array_type, array, index):
    """Emit a pointer to cell `index` of a one-dimensional array."""
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


@intrinsic
def _take_number(typing_context, counters, index):
    """Add 1 to counters[index] (int64) in one atomic step, and return the number before.

    The order of memory accesses is that of acquire and release.
    """

    def codegen(context, builder, signature, arguments):
        cell = _cell(context, builder, signature.args[0], *arguments)
        return builder.atomic_rmw("add", cell, cell.type.pointee(1), "acq_rel")

    return types.int64(counters, types.int64), codegen


@intrinsic
def _look(typing_context, counters, index):
    """Return counters[index] (int64) by an atomic read with acquire order."""

    def codegen(context, builder, signature, arguments):
        return builder.load_atomic(_cell(context, builder, signature.args[0], *arguments), "acquire", 8)

    return types.int64(counters, types.int64), codegen


@intrinsic
def _let_others_run(typing_context):
    """Let the system run another thread on this processor (sched_yield)."""

    def codegen(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.IntType(32), [])
        names = builder.module.globals
        builder.call(names.get("sched_yield") or ir.Function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), codegen


@part_njit
def _wait(common, counter, least):
    """Wait until a counter is at least `least`; return True, or False if the leader ends before.

    common   counters that all threads share; the leader is the thread that walks the first street
    counter  index of the counter
    """
    looks = 0
    while True:
        value = _look(common, counter)
        if value >= least:
            return True
        if value == _LEFT:
            return False
        looks += 1
        if looks > _LOOKS:
            _let_others_run()


@inline_njit
def begin_walks(crew):
    """Start a thread's part of the walks: set its walk to 0 and draw the number of its first share.

    A share is a run of tasks that one thread does.

    crew  WalkThread: state of this thread
    """
    crew.mine[_WALK] = 0
    crew.mine[_NUMBER] = _take_number(crew.common, _DRAWN)


@inline_njit
def begin_tasks(crew):
    """Allow all threads to start the tasks of the present walk; called by the leader.

    A walk is one player's traversal from one first-street board.

    crew  WalkThread: state of this thread
    """
    _take_number(crew.common, _BEGUN)


@inline_njit
def drawn_share(crew):
    """Return the share that the thread has drawn, an index in `crew.shares`; -1 if it is of a later walk.

    A share is a run of tasks that one thread does; a walk is one player's traversal from one first-street board.

    Waits until the leader has begun the tasks of this walk; also returns -1 if the leader has ended instead.

    crew  WalkThread: state of this thread
    """
    shares, walk = crew.shares.shape[0], crew.mine[_WALK]
    if crew.mine[_NUMBER] >= (walk + 1) * shares or not _wait(crew.common, _BEGUN, walk + 1):
        return np.int64(-1)
    return crew.mine[_NUMBER] - walk * shares


@inline_njit
def end_share(crew):
    """Count the thread's share (run of tasks) as done and draw the number of its next share.

    crew  WalkThread: state of this thread
    """
    _take_number(crew.common, _DONE)
    crew.mine[_NUMBER] = _take_number(crew.common, _DRAWN)


@inline_njit
def end_tasks(crew):
    """Move the thread on to the next walk; the leader first waits until this walk's tasks are done.

    A walk is one player's traversal from one first-street board.

    crew  WalkThread: state of this thread
    """
    crew.mine[_WALK] += 1
    if crew.leads:
        _wait(crew.common, _DONE, crew.mine[_WALK] * crew.shares.shape[0])
