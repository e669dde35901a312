"""Reports progress while a game is compiled, by a callback that is set for the current context."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

CountCallback = Callable[[str, int, int], None]
"""Function of the game's name, the number of histories so far, and the largest number allowed."""
count_callback: ContextVar[CountCallback | None] = ContextVar("counts_reported", default=None)


@contextmanager
def counts_reported(callback: CountCallback) -> Iterator[None]:
    """Call `callback` every few thousand histories of a game compiled within the `with` block.

    A history is a node of the tree: the sequence of actions and chance outcomes from the root.

    callback  function of the game's name, the number of histories so far, and the largest number allowed
    """
    token = count_callback.set(callback)
    try:
        yield
    finally:
        count_callback.reset(token)
