"""Who is told how a run goes on: the library itself prints nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

TRAINING, EVALUATING = "training", "evaluating"
COMPILING = "compiling kernels, once a version"
"""Phases; others carry a number: "writing checkpoint 3"."""


@dataclass(frozen=True)
class SessionProgress:
    """What a run has done so far; rates are over the training time of this session."""

    nodes: int
    iterations: int
    period: int
    training_seconds: float
    nodes_per_second: float
    iterations_per_second: float
    share_done: float | None  # of the nearest limit, at most 1; None without one
    seconds_left: float | None  # of training; None while workers rest or there is no limit


class Reporter(Protocol):
    """Takes what a session has to tell."""

    def message(self, text: str) -> None:
        """Say one sentence worth keeping."""

    def phase(self, text: str, share: float | None = None) -> None:
        """Take note of what is done from now on, in a few words; workers may train meanwhile.  Any thread may call.

        `share` says how much of it is done, where it is counted ("evaluating board 120 of 1,000").
        """

    def progress(self, progress: SessionProgress) -> None:
        """Take note of counters; called several times a second."""

    def evaluation(self, record: Mapping[str, Any]) -> None:
        """Take note of a line of evaluations.jsonl."""


class Silent:
    """A reporter that keeps nothing."""

    def message(self, text: str) -> None:
        """Ignore it."""

    def phase(self, text: str, share: float | None = None) -> None:
        """Ignore it."""

    def progress(self, progress: SessionProgress) -> None:
        """Ignore it."""

    def evaluation(self, record: Mapping[str, Any]) -> None:
        """Ignore it."""


def duration_text(seconds: float) -> str:
    """A length of time for people: 45 s, 3 min 20 s, 5 h 10 min, 3 d 4 h."""
    whole = round(seconds)
    for size, unit, smaller, small_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {rest} {small_unit}" if rest else "")
    return f"{seconds:.3g} s"
