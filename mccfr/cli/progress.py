"""How a run is shown while it goes on: a live display on a terminal, plain lines otherwise; always on stderr."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mccfr.cli.options import duration_text
from mccfr.training.report import Progress, Reporter

_LINE_SECONDS = 10.0


def evaluation_text(record: Mapping[str, Any]) -> str:
    """One line for people."""
    where = "" if record["nodes_touched"] is None else f"at {record['nodes_touched']:,} nodes: "
    if record["method"] == "head-to-head":
        low, high = record["ci95_chips"]
        return (
            f"{where}{record['value_chips']:+.4g} chips a hand against {record['against']} (95 %: {low:+.4g} to "
            f"{high:+.4g}; {record['boards']:,} boards, {duration_text(record['seconds'])})"
        )
    mbb = record["exploitability_mbb"]
    size = f"{record['exploitability_chips']:.6g} chips" + ("" if mbb is None else f" = {mbb:.6g} mbb/g")
    return (
        f"{where}exploitability {size}, value for player 0 {record['value_chips']:.6g} "
        f"chips ({record['method']}, {duration_text(record['seconds'])})"
    )


def progress_text(progress: Progress) -> str:
    """One line for people."""
    parts = [
        f"{progress.nodes:,} nodes",
        f"{progress.nodes_per_second / 1e6:.1f} M nodes/s",
        f"{progress.iterations:,} iterations",
        f"period {progress.period:,}",
    ]
    if progress.share_done is not None and progress.seconds_left is not None:
        parts.append(f"{progress.share_done:.0%}, {duration_text(max(0.0, progress.seconds_left))} left")
    return " · ".join(parts)


class PlainReporter:
    """Lines on stderr: every ten seconds, and whenever there is something to say."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def message(self, text: str) -> None:
        """Print it."""
        print(f"mccfr: {text}", file=sys.stderr, flush=True)

    def progress(self, progress: Progress) -> None:
        """Print it if the last line is long enough ago."""
        if time.monotonic() - self._last >= _LINE_SECONDS:
            self._last = time.monotonic()
            print(progress_text(progress), file=sys.stderr, flush=True)

    def evaluation(self, record: Mapping[str, Any]) -> None:
        """Print it."""
        print(evaluation_text(record), file=sys.stderr, flush=True)


class LiveReporter:
    """A progress bar at the bottom of the terminal; messages and evaluations scroll above it."""

    def __init__(self, bar: Any, task: Any) -> None:
        self._bar, self._task = bar, task
        self._exploitability = ""

    def message(self, text: str) -> None:
        """Print it above the bar."""
        self._print(f"mccfr: {text}")

    def _print(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def progress(self, progress: Progress) -> None:
        """Move the bar."""
        done = None if progress.share_done is None else min(1.0, progress.share_done)
        text = progress_text(progress) + self._exploitability
        self._bar.update(self._task, completed=done or 0.0, total=None if done is None else 1.0, text=text)

    def evaluation(self, record: Mapping[str, Any]) -> None:
        """Print it above the bar, and keep the last exploitability beside it."""
        mbb = record["exploitability_mbb"]
        if record["method"] == "head-to-head":
            self._exploitability = f" · {record['value_chips']:+.4g} chips against {record['against']}"
        else:
            short = f"{record['exploitability_chips']:.4g} chips" if mbb is None else f"{mbb:.4g} mbb/g"
            self._exploitability = f" · exploitability {short}"
        self._print(evaluation_text(record))


@contextmanager
def reporter() -> Iterator[Reporter]:
    """The reporter that suits stderr."""
    if not sys.stderr.isatty():
        yield PlainReporter()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(bar_width=20), TextColumn("{task.fields[text]}", markup=False))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield LiveReporter(bar, bar.add_task("", total=None, text="starting"))
