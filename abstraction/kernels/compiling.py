"""Whether kernels are being compiled, and a clock that stands still meanwhile.

A kernel is compiled when it is first called, in the midst of whatever called it, once for each version of the program;
what takes a second then takes half a minute.  Measured times and shares must not count that.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from abstraction.kernels.jit import watch_compiling


class _Watch:
    """Adds up the time in which kernels were compiled; numba compiles one at a time, and one inside another."""

    def __init__(self) -> None:
        self.depth = 0
        self.spent, self._began = 0.0, 0.0
        self.callbacks: list[Callable[[bool], None]] = []

    def on_start(self, _: object) -> None:
        self.depth += 1
        if self.depth == 1:
            self._began = time.perf_counter()
            self._tell(True)

    def on_end(self, _: object) -> None:
        if self.depth == 1:
            self.spent += time.perf_counter() - self._began
            self._tell(False)
        self.depth -= 1

    def seconds(self) -> float:
        """Seconds spent so far, those of a compilation under way included."""
        began, spent = self._began, self.spent
        return spent + (time.perf_counter() - began if self.depth else 0.0)

    def _tell(self, begins: bool) -> None:
        for callback in list(self.callbacks):
            callback(begins)


_watch = _Watch()
watch_compiling(_watch.on_start, _watch.on_end)


def compiling() -> bool:
    """Whether this process is compiling a kernel, in any thread."""
    return _watch.depth > 0


def working_seconds() -> float:
    """Seconds by a clock that stands still while this process compiles kernels; only differences mean anything."""
    return time.perf_counter() - _watch.seconds()


@contextmanager
def told_of_compiling(callback: Callable[[bool], None]) -> Iterator[None]:
    """Have `callback` called, in the thread that compiles, with True when that begins and with False when it ends."""
    _watch.callbacks.append(callback)
    try:
        yield
    finally:
        _watch.callbacks.remove(callback)
