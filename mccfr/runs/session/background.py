"""Runs work in a daemon thread, which does not keep the process alive."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from mccfr.common.signals import UNAWAITED

Result = TypeVar("Result")


def in_background(work: Callable[[], Result]) -> Future[Result]:
    """Start `work` in a daemon thread; the future has its result or exception."""
    found: Future[Result] = Future()

    def run() -> None:
        try:
            found.set_result(work())
        except BaseException as error:  # `Future.result` raises it
            found.set_exception(error)

    threading.Thread(target=run, daemon=True, name=UNAWAITED).start()
    return found
