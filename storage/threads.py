"""Distributes work over threads, for calls that release the GIL: copying, compressing, writing."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

MAX_THREADS = 8  # fewer already saturate the memory bus or disk
_LOOK_AHEAD = 2  # items per thread that are submitted and not yet consumed
_LITTLE_BYTES = 1 << 20  # smaller work finishes before threads have started
_NICENESS = 5  # of background threads: a quarter of a busy processor, all of an idle one

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_threads() -> int:
    """Return the number of processors that this process may use, at most `MAX_THREADS`."""
    return min(MAX_THREADS, len(os.sched_getaffinity(0)))


def _step_back() -> None:
    """Lower this thread's priority; on Linux, priorities belong to threads."""
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
    """Yield work(item) for every item, in order; several run at once, and only a few ahead.

    Args:
        work:       called in other threads, or in this one if there is little to do
        items:      consumed as results are consumed
        size_bytes: total bytes of the items, if the work is proportional to them; None: large
        background: run at low priority
        threads:    None: one per processor, for work that computes

    Raises:
        Any exception of `work`, at the item's place. Running items are waited for; the rest are cancelled.
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
