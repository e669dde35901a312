"""Progress callbacks, set for the current context, while a game is compiled history by history."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

CountCallback = Callable[[str, int, int], None]
"""Called with the game's name, the histories so far, and the number allowed."""
count_callback: ContextVar[CountCallback | None] = ContextVar("counts_reported", default=None)


@contextmanager
def counts_reported(callback: CountCallback) -> Iterator[None]:
    """Call `callback` every few thousand histories of a game compiled within the `with` block.

    callback  function of the game's name, the histories so far, and the number allowed
    """
    token = count_callback.set(callback)
    try:
        yield
    finally:
        count_callback.reset(token)
