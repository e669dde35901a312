"""Measures the training time of a session."""

import time


class TrainingClock:
    """Total time from each release of the workers until all of them pause."""

    def __init__(self) -> None:
        self._before = 0.0
        self._began: float | None = None

    @property
    def runs(self) -> bool:
        """True while workers train."""
        return self._began is not None

    @property
    def seconds(self) -> float:
        """Training time so far, in seconds."""
        return self._before + (0.0 if self._began is None else time.monotonic() - self._began)

    def start(self) -> None:
        """Start the clock when the workers are released; no effect if it runs."""
        if self._began is None:
            self._began = time.monotonic()

    def stop(self) -> None:
        """Stop the clock when all workers have paused; no effect if it is stopped."""
        self._before, self._began = self.seconds, None
