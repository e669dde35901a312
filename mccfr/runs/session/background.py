"""Runs work in a daemon thread, which does not keep the process alive."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from mccfr.common.signals import UNAWAITED

Result = TypeVar("Result")


def in_background(work: Callable[[], Result]) -> Future[Result]:
    """Start `work` in a daemon thread; return a future that receives its result or exception."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # `Future.result` raises it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name=UNAWAITED).start()
    return future
