"""Ranges of boards or points shared out among threads: for kernels that release the interpreter lock.

A range is cut into chunks of a fixed size, whatever the number of workers, and each chunk writes to places of its own,
so results do not depend on how many threads there are or in which order they finish.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

Result = TypeVar("Result")


def checked_range(start: int, stop: int | None, count: int, what: str) -> tuple[int, int]:
    """The range [start, stop) of `count` things named `what`, stop = None meaning all; ValueError if it leaves them."""
    end = count if stop is None else stop
    if not 0 <= start <= end <= count:
        raise ValueError(f"{what} {start} to {stop} were asked for: ranges lie within 0 to {count}, start first")
    return start, end


def kernel_array(array: NDArray[Any], shape: tuple[int, ...], dtype: DTypeLike, what: str) -> NDArray[Any]:
    """The array as a plain one for kernels; ValueError unless it has that shape and dtype, C order, and is writable.

    A read-only array would have every kernel compiled a second time, so even inputs must be writable: map a file with
    mode "c" (copy on write) rather than "r".
    """
    plain = np.asarray(array)
    if plain.shape != shape or plain.dtype != np.dtype(dtype):
        raise ValueError(f"{what} has shape {plain.shape} and dtype {plain.dtype}: {shape} {np.dtype(dtype)} is needed")
    if not (plain.flags.c_contiguous and plain.flags.writeable):
        raise ValueError(f"{what} is read-only or not in C order: pass a writable copy, or map its file with mode 'c'")
    return plain


def run_ranges(
    work: Callable[[int, int], Result], start: int, stop: int, chunk: int, workers: int = 1
) -> Iterator[Result]:
    """Call work(first, last) for consecutive chunks of [start, stop), and yield the results in that order.

    `workers` threads at most run at a time.  Stops at the first exception, whose chunk is not made up for.  Raises
    ValueError if `workers` is less than 1.
    """
    if workers < 1:
        raise ValueError(f"workers is {workers}: at least one is needed")
    pieces = [(first, min(first + chunk, stop)) for first in range(start, stop, chunk)]
    if workers == 1 or len(pieces) < 2:
        yield from (work(*piece) for piece in pieces)
        return
    with ThreadPoolExecutor(min(workers, len(pieces))) as pool:
        futures = [pool.submit(work, *piece) for piece in pieces]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()
