"""Runs work in a daemon thread, which does not keep the process alive."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from mccfr.common.signals import UNAWAITED

Result = TypeVar("Result")


class Job(Generic[Result]):
    """Runs `work` in a daemon thread, started on creation."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._value: list[Result] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name=UNAWAITED)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value.append(self._work())
        except BaseException as error:  # `result` raises it
            self._error = error

    def done(self, seconds: float = 0.0) -> bool:
        """Return whether the work is finished, after waiting for at most `seconds`."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> Result:
        """Wait for the work, and return its result or raise its exception."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value[0]
