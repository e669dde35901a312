"""Detects kernel compilation, and provides a clock that excludes it.

A kernel is a function that numba compiles when it is first called, once for each version of the program; later
processes load it.  With compilation, a command that takes a second takes half a minute, which measured times must not
include.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from abstraction.kernels.jit import watch_compiling

_SECONDS = {"train": 8, "value": 5, "list_hands": 2}
"""Seconds to compile the largest kernels with all that they call, on one core of 2023; others take about 1 s."""


class _Watch:
    """Adds up the time that this process spends on compiling kernels (functions compiled by numba).

    It calls `callbacks` with the estimated seconds when a compilation begins, and with None when it ends.  A kernel's
    compilation includes those of kernels it calls, for which `callbacks` are not called.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.spent, self._began = 0.0, 0.0
        self.callbacks: list[Callable[[int | None], None]] = []

    def on_start(self, event: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            self._began = time.perf_counter()
            name = "" if event is None else event.data["dispatcher"].py_func.__name__
            self._tell(_SECONDS.get(name, 1))

    def on_end(self, _: object) -> None:
        if self.depth == 1:
            self.spent += time.perf_counter() - self._began
            self._tell(None)
        self.depth -= 1

    def seconds(self) -> float:
        """Return the seconds spent on compiling so far, including a compilation in progress."""
        began, spent = self._began, self.spent
        return spent + (time.perf_counter() - began if self.depth else 0.0)

    def _tell(self, seconds: int | None) -> None:
        for callback in list(self.callbacks):
            callback(seconds)


_watch = _Watch()
watch_compiling(_watch.on_start, _watch.on_end)


def working_seconds() -> float:
    """Return the seconds of a clock that stops while this process compiles functions with numba.

    Only differences of two times have a meaning.
    """
    return time.perf_counter() - _watch.seconds()


@contextmanager
def told_of_compiling(callback: Callable[[int | None], None]) -> Iterator[None]:
    """Within a `with` block, call `callback` when numba's compilation of functions begins and ends.

    It is called in the compiling thread.  Its argument is the estimated time in seconds when it begins, and None when
    it ends.
    """
    _watch.callbacks.append(callback)
    try:
        yield
    finally:
        _watch.callbacks.remove(callback)
