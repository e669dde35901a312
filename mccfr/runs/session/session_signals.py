"""Signals during training: the first ends it with a checkpoint, the second at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from mccfr.common.signals import SignalInterrupt, signals_to
from mccfr.runs.session.errors import AbandonedError


class Signals:
    """Receives signals during training; the session asks this object whether to end.

    number   number of the first signal, such as 15 for SIGTERM; None: none came
    closing  True if nothing is left to save: further signals are ignored
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self.closing = False
        self._raises = True

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Receive the signals that come during the `with` block.

        At first, and after a call of `interrupt`, the first signal raises `SignalInterrupt`. After a call of `note` the
        first signal only sets `number`. A second signal raises `AbandonedError`, unless `closing`.
        """
        with signals_to(self._receive):
            yield

    def interrupt(self) -> None:
        """Make signals raise `SignalInterrupt` from now on; a signal already recorded raises it at once.

        Call it only while there is nothing to save.
        """
        self._raises = True
        if self.number is not None:
            self._interrupt(self.number)

    def note(self) -> None:
        """Make signals only set `number` from now on, which the training loop checks."""
        self._raises = False

    def _interrupt(self, number: int) -> None:
        self.closing = True  # the clean-up must not be interrupted
        raise SignalInterrupt(number)

    def _receive(self, number: int) -> None:
        if self.number is None:
            self.number = number
            if self._raises:
                self._interrupt(number)
        elif not self.closing:
            self.closing = True
            raise AbandonedError(f"stopped by signal {self.number} and then by signal {number}")
