"""Reports the phases of long work such as training, including the compilation of kernels."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from abstraction.kernels.compiling import told_of_compiling, working_seconds
from mccfr.evaluation.evaluation_progress import steps_reported
from mccfr.runs.reporter import EVALUATING, Reporter, compiling_text, duration_text
from storage.open_directory import shown

_SURE_SECONDS = 2.0  # working time on a stage before an estimate of the time left


class _Naming:
    """Forwards to another reporter; leaves out repeated phases and adds the compilation of kernels.

    note  function that is called with the text of every phase that is forwarded, and of every compilation
    """

    def __init__(self, reporter: Reporter, note: Callable[[str], None]) -> None:
        self._reporter, self._note, self._phase = reporter, note, ""
        self.progress, self.evaluation = reporter.progress, reporter.evaluation

    def message(self, text: str) -> None:
        """Forward a message to the other reporter.

        Paths of open directories (/proc/PID/fd/N) are replaced by the real paths.
        """
        self._reporter.message(shown(text))

    def phase(self, text: str, share: float | None = None) -> None:
        """Forward a phase to the other reporter unless it repeats the last one.

        Paths of open directories (/proc/PID/fd/N) are replaced by the real paths.
        """
        text = shown(text)
        if text != self._phase:
            self._phase = text
            self._note(text)
            self._reporter.phase(text, share)

    def compilation(self, seconds: int | None) -> None:
        """Report the phase of compiling kernels; at its end, report the interrupted phase again.

        seconds  estimated duration; None: the compilation has ended
        """
        text = self._phase if seconds is None else compiling_text(seconds)
        self._note(text)
        self._reporter.phase(text)


@contextmanager
def naming_phases(reporter: Reporter, note: Callable[[str], None] = lambda _: None) -> Iterator[Reporter]:
    """Yield a reporter that forwards to `reporter`, and reports when this process compiles kernels.

    note  function that is called with the text of every phase, by any thread
    """
    naming = _Naming(reporter, note)
    with told_of_compiling(naming.compilation):
        yield naming


@contextmanager
def naming_steps(reporter: Reporter, check: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Report to `reporter` the steps of evaluations in this thread, during the `with` block.

    A report is a phase such as "evaluating board 120 of 1,000".

    check  called before each report; its exceptions end the evaluation
    """

    def report(what: str, done: int, total: int) -> None:
        check()
        reporter.phase(f"{EVALUATING} {what} {done:,} of {total:,}", done / total)

    with steps_reported(report):
        yield


class _Stages:
    """Reports the progress of an abstraction's build: a stage or a part of it, and the share done.

    Shares are from 0 to 1. A report also has an estimate of the time left, after `_SURE_SECONDS` of work. The estimate
    counts the work since the first share above 0, without compilation. The end of a stage (share 1) is reported as a
    message with its duration. The name of a part contains a comma; its end is reported as a phase, without a message.
    """

    def __init__(self, reporter: Reporter) -> None:
        self._reporter, self._stage, self._began = reporter, "", dict[str, float]()
        self._first: tuple[float, float] | None = None  # working seconds and share at the first report above 0

    def __call__(self, stage: str, share: float) -> None:
        if stage != self._stage:
            self._stage, self._first = stage, None
        now, working = time.monotonic(), working_seconds()
        spent = now - self._began.setdefault(stage, now)
        if share >= 1 and "," not in stage:
            self._reporter.message(f"built {stage} in {duration_text(spent)}")
            del self._began[stage]  # another abstraction may have a stage of the same name
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
    """Yield a function that reports the progress of an abstraction's build to `reporter`.

    Its arguments are a name and the share done, from 0 to 1. The name is that of a stage, such as "turn", or of a part
    of it, such as "turn, clustering".
    """
    with naming_phases(reporter) as phases:
        yield _Stages(phases)
