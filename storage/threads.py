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
    """Return the number of threads to use: the processors that this process may use, at most 8."""
    return min(MAX_THREADS, len(os.sched_getaffinity(0)))


def _step_back() -> None:
    """Lower the priority of this thread only, so that its work delays other programs less."""
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
    """Yield work(item) for every item, in order of the items, computed in several threads.

    Only a few results are computed ahead of the one that the caller takes.

    Args:
        work:       function of an item, called in other threads, or in this one if there is little to do
        items:      may be an iterator; only a few items are taken ahead of the results
        size_bytes: bytes that the work processes in all; below 1 MiB no threads are started. None: start threads
        background: run at low priority
        threads:    number of threads; None: one per processor, at most 8, for work that computes

    Raises:
        Any exception of `work`, in place of the item's result. Running items are waited for; the rest are cancelled.
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
