"""What a session tells of phases: to its reporter, to whoever asks for its status, and when kernels are compiled."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from abstraction.kernels.compiling import told_of_compiling
from mccfr.evaluation.steps import steps_reported
from mccfr.runs.reporter import COMPILING, EVALUATING, Reporter


class _Naming:
    """Passes everything on; each phase once, and as phases of their own the time in which kernels are compiled.

    note  is given every phase as one line
    """

    def __init__(self, reporter: Reporter, note: Callable[[str], None]) -> None:
        self._reporter, self._note, self._phase = reporter, note, ""
        self.message, self.progress, self.evaluation = reporter.message, reporter.progress, reporter.evaluation

    def phase(self, text: str, share: float | None = None) -> None:
        """Pass it on if it is another."""
        if text != self._phase:
            self._phase = text
            self._note(text)
            self._reporter.phase(text, share)

    def compilation(self, begins: bool) -> None:
        """Name it, or what it has interrupted."""
        text = COMPILING if begins else self._phase
        self._note(text)
        self._reporter.phase(text)


@contextmanager
def naming_phases(reporter: Reporter, note: Callable[[str], None] = lambda _: None) -> Iterator[Reporter]:
    """A reporter that tells another one all it is told, and when this process compiles kernels.

    note  is given every phase as one line; any thread may call it
    """
    naming = _Naming(reporter, note)
    with told_of_compiling(naming.compilation):
        yield naming


@contextmanager
def naming_steps(reporter: Reporter) -> Iterator[None]:
    """Name the steps of an evaluation that is made in this thread: "evaluating board 120 of 1,000"."""

    def report(what: str, done: int, total: int) -> None:
        reporter.phase(f"{EVALUATING} {what} {done:,} of {total:,}", done / total)

    with steps_reported(report):
        yield
