"""Progress callbacks of this thread while a game is compiled history by history."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

CountCallback = Callable[[str, int, int], None]
"""Called with the name of a game, its histories so far and how many are allowed."""
count_callback: ContextVar[CountCallback | None] = ContextVar("counts_reported", default=None)


@contextmanager
def counts_reported(callback: CountCallback) -> Iterator[None]:
    """Call `callback` every few thousand histories while this thread builds a tree."""
    token = count_callback.set(callback)
    try:
        yield
    finally:
        count_callback.reset(token)
