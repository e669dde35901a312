"""How far an evaluation is, told to whoever has asked for it in this thread."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

StepCallback = Callable[[str, int, int], None]
"""What is counted ("board"), how many are done, and of how many."""

_callback: ContextVar[StepCallback | None] = ContextVar("steps_reported", default=None)


@contextmanager
def steps_reported(callback: StepCallback) -> Iterator[None]:
    """Have `callback` called with each step of the evaluations made in this thread."""
    token = _callback.set(callback)
    try:
        yield
    finally:
        _callback.reset(token)


def report_step(what: str, done: int, total: int) -> None:
    """Say that `done` of `total` steps of an evaluation are over; a `Method` may call it as often as it likes."""
    callback = _callback.get()
    if callback is not None:
        callback(what, done, total)
