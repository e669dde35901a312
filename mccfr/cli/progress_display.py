"""Shows the progress of a run on stderr: a progress bar on a terminal, else lines."""

import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from mccfr.runs.reporter import COMPILING, TRAINING, Reporter, SessionProgress, duration_text
from storage.deferred_signals import signals_deferred

_LINE_SECONDS = 10.0
_LATE_SECONDS = 2.0  # shorter phases are not printed


def evaluation_text(record: Mapping[str, Any]) -> str:
    """Return an evaluation as one line of text, with the nodes touched if they are known.

    record  fields of the evaluation, as in a line of evaluations.jsonl
    """
    from mccfr.evaluation.methods.registry import record_text

    where = "" if record["nodes_touched"] is None else f"at {record['nodes_touched']:,} nodes: "
    return where + record_text(record, duration_text(record["seconds"]))


def progress_text(progress: SessionProgress, phase: str = TRAINING) -> str:
    """Return a run's nodes, speed, iterations, period and share done as one line of text.

    A period is a stretch of training: regrets and strategy sums are weighted or discounted by period. If the run has a
    limit, the text also has the time left, if known.

    phase  text for the activity of the run, such as "evaluating"; the line begins with it unless it is "training"
    """
    parts = [
        *([] if phase == TRAINING else [phase]),
        f"{progress.nodes:,} nodes",
        f"{progress.nodes_per_second / 1e6:.1f} M nodes/s",
        f"{progress.iterations:,} iterations",
        f"period {progress.period:,}",
    ]
    if progress.share_done is not None:
        left = "" if progress.seconds_left is None else f", {duration_text(progress.seconds_left)} left"
        parts.append(f"{progress.share_done:.0%}{left}")
    return " · ".join(parts)


def _without_numbers(text: str) -> str:
    return re.sub(r"[\d,]+", "", text)


def _print(text: str) -> None:
    """Print a line on stderr; a closed terminal or pipe raises no error."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


class DelayedLine:
    """Prints a line on stderr two seconds late, unless another text replaces it before.

    So phases shorter than two seconds are not printed.
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None
        self.text = ""  # callers may change it until it is printed
        self.compiling = False  # whether a line on compiling was printed

    def say(self, text: str | None) -> None:
        """Print the text in two seconds unless another call, also with None, replaces it before."""
        with signals_deferred():  # a handler's exception would leave the timer's lock taken
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            if text is not None:
                self.text = text
                self._timer = threading.Timer(_LATE_SECONDS, self._print)
                self._timer.daemon = True
                self._timer.start()

    def _print(self) -> None:
        self.compiling |= self.text.startswith(COMPILING)
        _print(self.text)


class HistoryCounts:
    """Prints the number of histories (action sequences) found so far while a game tree is built."""

    def __init__(self) -> None:
        self._name, self._next = "", 0.0

    def __call__(self, name: str, histories: int, allowed: int) -> None:
        """Print the count two seconds after a game's first call, then every ten seconds.

        name       name of the game
        histories  number of histories, the action sequences from the root, found so far
        allowed    largest number of histories; building the tree fails beyond it
        """
        now = time.monotonic()
        if name != self._name:
            self._name, self._next = name, now + _LATE_SECONDS
        elif now >= self._next:
            self._next = now + _LINE_SECONDS
            text = f"mccfr: {name}: {histories:,} histories so far, at most {allowed:,} are allowed"
            print(text, file=sys.stderr, flush=True)


class PlainReporter:
    """Prints the progress of a run as lines on stderr.

    Messages appear at once, counts of nodes and iterations every ten seconds. An activity, such as evaluating, is named
    if it lasts two seconds.
    """

    def __init__(self) -> None:
        self._last = self._counted = time.monotonic()
        self._phase, self._late = TRAINING, DelayedLine()

    def phase(self, text: str, share: float | None = None) -> None:
        """Print what the run does now, such as "evaluating", if it lasts two seconds.

        A text that differs from the last one by numbers only is printed every ten seconds. Compilation is printed once,
        training never.

        text   the activity, such as "evaluating" or "writing checkpoint 3"
        share  not used
        """
        counts_on, self._phase = _without_numbers(text) == _without_numbers(self._phase), text
        compiling = text.startswith(COMPILING)
        if not counts_on:
            self._counted = time.monotonic()
            self._late.say(None if text == TRAINING or (compiling and self._late.compiling) else text)
        elif compiling:
            self._late.text = text
        elif time.monotonic() - max(self._counted, self._last) >= _LINE_SECONDS:  # lines of counters name it too
            self._last = time.monotonic()
            _print(text)
        else:
            self._late.text = text

    def close(self) -> None:
        """Cancel the line that waits to be printed, if any."""
        self._late.say(None)

    def message(self, text: str) -> None:
        """Print the text."""
        _print(f"mccfr: {text}")

    def progress(self, progress: SessionProgress) -> None:
        """Print nodes, speed and iterations, at most every ten seconds, and not while compiling."""
        if time.monotonic() - self._last >= _LINE_SECONDS and not self._phase.startswith(COMPILING):
            self._last = time.monotonic()
            _print(progress_text(progress, self._phase))

    def evaluation(self, record: Mapping[str, Any]) -> None:
        """Print the evaluation as one line."""
        _print(evaluation_text(record))


class LiveReporter:
    """Shows a progress bar at the bottom of the terminal; messages and evaluations scroll above it."""

    def __init__(self, bar: Any, task: Any) -> None:
        self._bar, self._task = bar, task
        self._exploitability, self._phase = "", TRAINING
        self._progress: SessionProgress | None = None

    def message(self, text: str) -> None:
        """Print the text above the bar."""
        self._print(f"mccfr: {text}")

    def _print(self, text: str) -> None:
        with suppress(OSError):  # a closed terminal raises no error
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def phase(self, text: str, share: float | None = None) -> None:
        """Show the run's activity beside the bar, and during compilation the time since it began.

        text   the activity, such as "evaluating"
        share  share of the activity that is done, 0 to 1. The bar shows it until training begins, later the share of
               the whole run; None: unknown
        """
        self._phase = text
        self._bar.update(self._task, began=time.monotonic() if text.startswith(COMPILING) else None)
        if self._progress is None:
            self._bar.update(self._task, completed=share or 0.0, total=None if share is None else 1.0, text=text)
        else:
            self.progress(self._progress)

    def progress(self, progress: SessionProgress) -> None:
        """Update the bar to the share of the run that is done, and nodes and speed beside it."""
        self._progress, done = progress, progress.share_done
        text = progress_text(progress, self._phase) + self._exploitability
        self._bar.update(self._task, completed=done or 0.0, total=None if done is None else 1.0, text=text)

    def evaluation(self, record: Mapping[str, Any]) -> None:
        """Print the evaluation above the bar, and keep its exploitability beside it.

        Winnings against another strategy are not kept there, because they mean little without their 95 % interval.
        """
        from mccfr.evaluation.methods.registry import find_method

        method = find_method(record["method"])
        self._exploitability = "" if method.meets else f" · {method.short(record)}"
        self._print(evaluation_text(record))


@contextmanager
def reporter() -> Iterator[Reporter]:
    """Yield a `LiveReporter` with a progress bar if stderr is a terminal, else a `PlainReporter`."""
    if not sys.stderr.isatty():
        plain = PlainReporter()
        try:
            yield plain
        finally:
            plain.close()
        return
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class CompilingClock(ProgressColumn):
        """Shows the time since a compilation began."""

        def render(self, task: Any) -> Text:
            began = task.fields["began"]
            return Text("" if began is None else duration_text(int(time.monotonic() - began)))

    columns = (BarColumn(bar_width=20), TextColumn("{task.fields[text]}", markup=False), CompilingClock())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield LiveReporter(bar, bar.add_task("", total=None, text="starting", began=None))
