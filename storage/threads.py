"""Work spread over threads, for libraries that let other threads run meanwhile: copying, compressing, writing."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

MAX_THREADS = 8  # copying fills the memory bus, and writing the disk, with fewer
_LOOK_AHEAD = 2  # items of each thread that are under way or done and not yet taken
_LITTLE_BYTES = 1 << 20  # less is read and summed before threads have started
_NICENESS = 5  # of background threads: a quarter of a busy processor, all of an idle one

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_threads() -> int:
    """Threads that are worth starting here."""
    return min(MAX_THREADS, len(os.sched_getaffinity(0)))


def _step_back() -> None:
    """Lower this thread's priority; on Linux, priorities are those of threads."""
    thread = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS))


def ordered(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    size_bytes: int | None = None,
    background: bool = False,
    threads: int | None = None,
) -> Iterator[Result]:
    """Yield work(item) for every item, in order; several are worked on at a time, and only a few ahead.

    Args:
        work:       called in other threads, or in this one where there is little to do
        items:      taken as results are taken
        size_bytes: what all items together hold, where they are no more work than reading it; None: much
        background: give way to whoever else wants the processors
        threads:    None: as many as there are processors, which is for work that computes

    Raises:
        Whatever `work` raises, at the item's place; what is under way is waited for, the rest is not begun.
    """
    if size_bytes is not None and size_bytes < _LITTLE_BYTES:
        yield from map(work, items)
        return
    threads = threads or available_threads()
    with ThreadPoolExecutor(threads, initializer=_step_back if background else None) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > _LOOK_AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
