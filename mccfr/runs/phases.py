"""What a session tells its reporter of phases, and of kernels that are compiled in the midst of them."""

from collections.abc import Iterator
from contextlib import contextmanager

from abstraction.compiling import told_of_compiling
from mccfr.runs.report import COMPILING, Reporter


class _NamingCompilation:
    """Passes everything on; each phase once, and as a phase of its own the time in which kernels are compiled."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter, self._phase = reporter, ""
        self.message, self.progress, self.evaluation = reporter.message, reporter.progress, reporter.evaluation

    def phase(self, text: str) -> None:
        """Pass it on if it is another."""
        if text != self._phase:
            self._phase = text
            self._reporter.phase(text)

    def compilation(self, begins: bool) -> None:
        """Name it, or what it has interrupted."""
        self._reporter.phase(COMPILING if begins else self._phase)


@contextmanager
def naming_compilation(reporter: Reporter) -> Iterator[Reporter]:
    """A reporter that tells another one all it is told, and when this process compiles kernels."""
    naming = _NamingCompilation(reporter)
    with told_of_compiling(naming.compilation):
        yield naming
