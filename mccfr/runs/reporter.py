"""Interface to report a run's progress; the library itself prints nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

TRAINING, EVALUATING = "training", "evaluating"
COMPILING = "compiling kernels, once per version of the program"
"""Phases; others contain a number, such as "writing checkpoint 3"."""


@dataclass(frozen=True)
class SessionProgress:
    """Progress of a run's training.

    Nodes and iterations are totals of the run; times and speeds are those of this session. A session is one process
    that trains the run.

    nodes             nodes touched
    period            number, from 1, of the present period (a fixed number of nodes), by which training may discount
    training_seconds  training time of this session
    """

    nodes: int
    iterations: int
    period: int
    training_seconds: float
    nodes_per_second: float
    iterations_per_second: float
    share_done: float | None  # of the limit that is reached first, at most 1; None without a limit
    seconds_left: float | None  # of training; None while workers pause or without a limit


class Reporter(Protocol):
    """Receives the messages, phases, progress and evaluations of long work such as training."""

    def message(self, text: str) -> None:
        """Report one sentence that stays visible, such as a warning."""

    def phase(self, text: str, share: float | None = None) -> None:
        """Report the work that begins now, such as "training"; any thread may call it.

        share  share of this work that is done, 0 to 1; None: unknown
        """

    def progress(self, progress: SessionProgress) -> None:
        """Report counts, speeds and time left; called several times a second."""

    def evaluation(self, record: Mapping[str, Any]) -> None:
        """Report a finished evaluation.

        record  fields of its line in evaluations.jsonl. `exploitability_pot`, a share of the pot, is added if the run
                ends at an exploitability and the evaluation's is no lower bound
        """


class Silent:
    """Reporter that ignores everything it receives."""

    def message(self, text: str) -> None:
        """Receive a sentence; this reporter ignores it."""

    def phase(self, text: str, share: float | None = None) -> None:
        """Receive the phase that begins; this reporter ignores it."""

    def progress(self, progress: SessionProgress) -> None:
        """Receive counts and speeds; this reporter ignores them."""

    def evaluation(self, record: Mapping[str, Any]) -> None:
        """Receive an evaluation; this reporter ignores it."""


def compiling_text(seconds: int) -> str:
    """Return the text of the phase in which kernels are compiled, with the estimated seconds."""
    return f"{COMPILING}: about {seconds} s"


def duration_text(seconds: float) -> str:
    """Return a duration as text for people: 45 s, 3 min 20 s, 5 h 10 min, 3 d 4 h."""
    whole = round(seconds)
    for size, unit, smaller, small_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            remainder = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {remainder} {small_unit}" if remainder else "")
    return f"{seconds:.3g} s"
