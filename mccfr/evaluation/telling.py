"""How far an evaluation is, told to whoever has asked for it in this thread."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Told = Callable[[str, int, int], None]
"""What is counted ("board"), how many are done, and of how many."""

_told: ContextVar[Told | None] = ContextVar("told_of_steps", default=None)


@contextmanager
def told_of_steps(callback: Told) -> Iterator[None]:
    """Have `callback` called with each step of the evaluations made in this thread."""
    token = _told.set(callback)
    try:
        yield
    finally:
        _told.reset(token)


def tell_step(what: str, done: int, total: int) -> None:
    """Say that `done` of `total` steps of an evaluation are over; a `Method` may call it as often as it likes."""
    callback = _told.get()
    if callback is not None:
        callback(what, done, total)
