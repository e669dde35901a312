"""Divides ranges of boards or points among threads, for kernels that release the interpreter lock.

Chunks have a fixed size for any number of workers, and each chunk writes to its own memory.  So results do not depend
on the number of threads or on the order in which they finish.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

Result = TypeVar("Result")


def checked_range(start: int, stop: int | None, count: int, noun: str) -> tuple[int, int]:
    """Return the range (start, stop) of `count` items after checking it; stop None becomes `count`.

    Raises `ValueError`, which calls the items `noun`, if the range leaves 0 to `count` or `stop` is below `start`.
    """
    end = count if stop is None else stop
    if not 0 <= start <= end <= count:
        raise ValueError(f"{noun} {start} to {stop} were asked for: ranges lie within 0 to {count}, start first")
    return start, end


def kernel_array(array: NDArray[Any], shape: tuple[int, ...], dtype: DTypeLike, noun: str) -> NDArray[Any]:
    """Return an array as a plain NumPy array for kernels (functions compiled by numba), after checking it.

    shape, dtype  required shape and dtype
    noun          name of the array in messages

    Raises `ValueError` unless the array has them, is in C order and writable. numba would compile every kernel a second
    time for a read-only array, so inputs must be writable too.  To map a file, use mode "c" (copy on write) instead of
    "r".
    """
    plain = np.asarray(array)
    if plain.shape != shape or plain.dtype != np.dtype(dtype):
        raise ValueError(f"{noun} has shape {plain.shape} and dtype {plain.dtype}: {shape} {np.dtype(dtype)} is needed")
    if not (plain.flags.c_contiguous and plain.flags.writeable):
        raise ValueError(f"{noun} is read-only or not in C order: pass a writable copy, or map its file with mode 'c'")
    return plain


def run_ranges(
    work: Callable[[int, int], Result], start: int, stop: int, chunk: int, workers: int = 1
) -> Iterator[Result]:
    """Call work(first, last) for consecutive chunks of [start, stop), and yield the results in that order.

    chunk  number of items in a chunk; the last one may have fewer

    At most `workers` threads run at a time, and at most 2 · `workers` results wait to be used, so memory stays small.
    The first exception stops the iteration; its chunk is not repeated.
    Raises `ValueError` if `workers` is less than 1.
    """
    if workers < 1:
        raise ValueError(f"workers is {workers}: at least one is needed")
    pieces = [(first, min(first + chunk, stop)) for first in range(start, stop, chunk)]
    if workers == 1 or len(pieces) < 2:
        yield from (work(*piece) for piece in pieces)
        return
    with ThreadPoolExecutor(min(workers, len(pieces))) as pool:
        pending: deque[Future[Result]] = deque()
        try:
            for piece in pieces:
                pending.append(pool.submit(work, *piece))
                if len(pending) > 2 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
