"""Delays between repeated attempts."""


class GrowingDelay:
    """Exponential backoff: the delay doubles after each consecutive failure, up to a limit."""

    def __init__(self, first_seconds: float, most_seconds: float) -> None:
        self._first, self._most = first_seconds, most_seconds
        self._failures = 0

    def after_failure(self) -> float:
        """Return the seconds until the next attempt."""
        self._failures += 1
        return min(self._most, self._first * 2.0 ** min(self._failures - 1, 64))

    def after_success(self) -> None:
        """Reset to the first delay."""
        self._failures = 0
