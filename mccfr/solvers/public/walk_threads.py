"""The parts of a player's walk of a public tree, shared by threads: see `public_walk`.

Each task leaves its values in a place of its own, and they are added in the order of tasks, so that results do not
depend on how many threads there are, to the last bit.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from mccfr.solvers.public.public_tree import PublicTree
from mccfr.solvers.public.street_walk import Scratch

_RUN_OUT_MEMBERS = 16  # of a tree that takes as long, about, as the run-outs that are done together
_CALLS = 4  # of each thread: a call costs 0.1 ms, as much as many a task, and the last calls are to end together

Call = Callable[[range, range, Scratch], None]
"""Does parts of a walk on boards of the first street, both as ranges, in the scratch of the streets after it."""


def tasks_by_cost(public: PublicTree, threads: int) -> npt.NDArray[np.int64]:
    """[C, 2] first and end of tasks that one call does, `_CALLS` a thread of about the same cost, the dearest first.

    A task's cost are its boards times members.
    """
    trees, tasks = public.trees, public.tasks
    if not len(tasks):
        return np.zeros((0, 2), np.int64)
    below = trees.below[tasks[:, 0]]
    boards = np.diff(public.child_boards[int(public.root_boards[0])])
    cost = np.where(below >= 0, (tasks[:, 2] - tasks[:, 1]) * np.diff(trees.first)[below], _RUN_OUT_MEMBERS * boards)
    middle = np.cumsum(cost) - cost / 2
    first = np.flatnonzero(np.diff((middle * (_CALLS * threads / cost.sum())).astype(np.int64), prepend=-1))
    calls = np.stack([first, np.append(first[1:], len(cost))], axis=1)
    found: npt.NDArray[np.int64] = calls[np.argsort(-np.add.reduceat(cost, first), kind="stable")]
    return found


def walk_parts(call: Call, boards: range, order: npt.NDArray[np.int64], scratches: deque[Scratch]) -> None:
    """Do all parts of a walk, its tasks in as many threads as there are scratches.

    boards  of the first street
    order   [C, 2] as `tasks_by_cost` has it
    """
    tasks = int(order[:, 1].max(initial=0))
    if len(scratches) == 1 or not tasks:
        call(range(tasks + 2), boards, scratches[0])
        return
    for board in boards:
        here = range(board, board + 1)

        def work(first: int, stop: int, here: range = here) -> None:
            scratch = scratches.pop()
            call(range(first + 1, stop + 1), here, scratch)
            scratches.append(scratch)

        call(range(1), here, scratches[0])
        _share(work, order, len(scratches))
        call(range(tasks + 1, tasks + 2), here, scratches[0])


def _share(work: Callable[[int, int], None], order: npt.NDArray[np.int64], threads: int) -> None:
    """Call `work` with each row of order [C, 2], this thread being one of so many; exceptions wait for the others."""
    calls = iter(order.tolist())  # a step of it is one under the interpreter's lock

    def take() -> None:
        for first, stop in calls:
            work(first, stop)

    with ThreadPoolExecutor(threads - 1) as pool:
        others = [pool.submit(take) for _ in range(threads - 1)]
        take()
    for other in others:
        other.result()
