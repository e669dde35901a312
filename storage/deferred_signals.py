"""Delays the signals that end the program during work that they must not interrupt.

The module imports only the standard library, because handlers are set before other imports.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""The signals that end the program."""
Handler = Callable[[int, FrameType | None], object] | signal.Handlers


def in_main_thread() -> bool:
    """Return whether this is the main thread, in which Python runs all signal handlers."""
    return threading.current_thread() is threading.main_thread()


def exchange_handlers(handler: Handler) -> dict[int, Any]:
    """Set the handler of SIGHUP, SIGINT, SIGTERM and SIGUSR1; an ignored SIGHUP stays ignored.

    Returns {signal number: previous handler} of those that were set. Raises `ValueError` outside of the main thread.
    """
    numbers = [each for each in SIGNALS if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in numbers}


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Delay SIGHUP (unless ignored), SIGINT, SIGTERM and SIGUSR1 in a `with` block.

    At its end, the previous handler is called for the first signal that arrived, and further ones are dropped. If the
    block raises, all are dropped. It does nothing outside of the main thread.
    """
    if not in_main_thread():
        yield
        return
    received: list[tuple[int, FrameType | None]] = []
    before = exchange_handlers(lambda *what: received.append(what))
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
    for number, frame in received[:1]:
        if callable(handler := before[number]):
            handler(number, frame)


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Block SIGHUP, SIGINT, SIGTERM and SIGUSR1 for this thread in a `with` block.

    Processes that are started in the block begin with these signals blocked.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
