"""How long the workers of a session have trained."""

import time


class TrainingClock:
    """Seconds from each release of the workers until all of them rest, added up."""

    def __init__(self) -> None:
        self._before = 0.0
        self._began: float | None = None

    @property
    def runs(self) -> bool:
        """Whether workers train."""
        return self._began is not None

    @property
    def seconds(self) -> float:
        """Seconds trained so far."""
        return self._before + (0.0 if self._began is None else time.monotonic() - self._began)

    def start(self) -> None:
        """Note that the workers are released; nothing happens where it runs already."""
        if self._began is None:
            self._began = time.monotonic()

    def stop(self) -> None:
        """Note that all workers rest; nothing happens the second time."""
        self._before, self._began = self.seconds, None
