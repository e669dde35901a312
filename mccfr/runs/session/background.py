"""A piece of work in a thread that nobody has to wait for: the process may end while it is under way."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from mccfr.signals import UNAWAITED

Result = TypeVar("Result")


class Job(Generic[Result]):
    """Runs `work` in a daemon thread from now on."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._value: list[Result] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name=UNAWAITED)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value.append(self._work())
        except BaseException as error:  # `result` raises it where it is waited for
            self._error = error

    def done(self, seconds: float = 0.0) -> bool:
        """Whether it is over; waits for that at most so long."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> Result:
        """What `work` has returned or raised, once it is over."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value[0]
