"""What a session tells of phases: to its reporter, to whoever asks for its status, and when kernels are compiled."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from abstraction.kernels.compiling import told_of_compiling, working_seconds
from mccfr.evaluation.steps import steps_reported
from mccfr.runs.reporter import COMPILING, EVALUATING, Reporter, duration_text
from storage.held_directory import shown

_SURE_SECONDS = 2.0  # of work on a part of a build before the time left is worth telling


class _Naming:
    """Passes everything on; each phase once, and as phases of their own the time in which kernels are compiled.

    note  is given every phase as one line
    """

    def __init__(self, reporter: Reporter, note: Callable[[str], None]) -> None:
        self._reporter, self._note, self._phase = reporter, note, ""
        self.progress, self.evaluation = reporter.progress, reporter.evaluation

    def message(self, text: str) -> None:
        """Pass it on, with the names of directories in place of paths through open ones."""
        self._reporter.message(shown(text))

    def phase(self, text: str, share: float | None = None) -> None:
        """Pass it on if it is another, as `message` does."""
        text = shown(text)
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
def naming_steps(reporter: Reporter, check: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Report the steps of an evaluation that is made in this thread: "evaluating board 120 of 1,000".

    check  called at each step first; what it raises ends the evaluation
    """

    def report(what: str, done: int, total: int) -> None:
        check()
        reporter.phase(f"{EVALUATING} {what} {done:,} of {total:,}", done / total)

    with steps_reported(report):
        yield


class _Stages:
    """Tells a reporter of the stages of a build and their parts, as `abstraction.build.Progress` has them.

    What comes before the first share above 0 - compiling, tables made once - says nothing of how fast a part goes on,
    nor does compiling later: time left is reckoned from what was done between, once that means something.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter, self._stage, self._began = reporter, "", dict[str, float]()
        self._first: tuple[float, float] | None = None  # working seconds and share when the first was told

    def __call__(self, stage: str, share: float) -> None:
        if stage != self._stage:
            self._stage, self._first = stage, None
        now, working = time.monotonic(), working_seconds()
        spent = now - self._began.setdefault(stage, now)
        if share >= 1 and "," not in stage:
            self._reporter.message(f"built {stage} in {duration_text(spent)}")
            return
        text = f"building {stage}"
        if self._first is not None:
            worked, done = working - self._first[0], share - self._first[1]
            text += f", {share:.0%}"
            if worked >= _SURE_SECONDS and done > 0:
                text += f", about {duration_text(worked / done * (1 - share))} left"
        elif share > 0:
            self._first = working, share
        self._reporter.phase(text, share)


@contextmanager
def naming_stages(reporter: Reporter) -> Iterator[Callable[[str, float], None]]:
    """What is told of a build: the name of a stage or a part of one, and the share of it that is done."""
    with naming_phases(reporter) as phases:
        yield _Stages(phases)
