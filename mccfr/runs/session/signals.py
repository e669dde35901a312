"""Signals of a session: the first leaves a note, which the loop heeds; a second one ends everything at once."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mccfr.evaluation.units import signals_to
from mccfr.runs.session.failures import AbandonedError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
_SAME_SIGNAL_SECONDS = 0.1  # a signal that follows another so soon is the same wish, sent twice


class Signals:
    """What has been sent to this process.

    number   the first signal, or None
    closing  nothing is to be saved any more: signals do nothing
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self.closing = False
        self._at = 0.0

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Inside, a first signal is noted and a second raises `AbandonedError`; after it all is as it was before."""
        with signals_to(self._note, SIGNALS):
            yield

    def _note(self, number: int, _: FrameType | None) -> None:
        now = time.monotonic()
        if self.number is None:
            self.number, self._at = number, now
        elif not self.closing and now - self._at > _SAME_SIGNAL_SECONDS:
            self.closing = True
            raise AbandonedError(f"stopped by signal {self.number} and then by signal {number}")
