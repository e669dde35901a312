"""Signals of a session: the first ends it with a checkpoint, a second request ends it at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from mccfr.runs.session.failures import AbandonedError
from mccfr.signals import SignalInterrupt, signals_to


class Signals:
    """The signals that were sent to a session's process.

    number   the first signal, or None
    closing  nothing is to be saved any more: signals do nothing
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self.closing = False
        self._raises = True

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Inside, signals go to this object: the first raises `SignalInterrupt` or is noted, as was said last, and a
        second request raises `AbandonedError`."""
        with signals_to(self._heed):
            yield

    def interrupt(self) -> None:
        """From now on there is nothing to save: a signal raises `SignalInterrupt`, also one that was noted."""
        self._raises = True
        if self.number is not None:
            self._interrupt(self.number)

    def note(self) -> None:
        """From now on a signal is noted, and whoever trains looks at `number`."""
        self._raises = False

    def _interrupt(self, number: int) -> None:
        self.closing = True  # what is made must go: nothing may interrupt that
        raise SignalInterrupt(number)

    def _heed(self, number: int) -> None:
        if self.number is None:
            self.number = number
            if self._raises:
                self._interrupt(number)
        elif not self.closing:
            self.closing = True
            raise AbandonedError(f"stopped by signal {self.number} and then by signal {number}")
