"""How the building of an abstraction is shown: a bar on a terminal, plain lines otherwise; always on stderr."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from abstraction.kernels.compiling import told_of_compiling, working_seconds
from mccfr.cli.options import duration_text
from mccfr.cli.progress import LateLine, bar_on_stderr
from mccfr.runs.reporter import COMPILING

_LINE_SECONDS = 5.0
_SURE_SECONDS = 2.0  # of work on a stage before the time left is worth telling


class StageTime:
    """How long a stage has taken and will take.

    What comes before the first share above 0 - compiling, tables made once - says nothing of how fast a stage goes on,
    nor does compiling later: time left is reckoned from what was done between, and None until that means something.
    """

    def __init__(self) -> None:
        self._stage: str | None = None
        self._began: dict[str, float] = {}
        self._first: tuple[float, float] | None = None  # working seconds and share when the first was told

    def note(self, stage: str, share: float) -> tuple[float, float | None]:
        """(seconds that the stage has taken, seconds left or None) at a share of it."""
        if stage != self._stage:
            self._stage, self._first = stage, None
        now, working = time.monotonic(), working_seconds()
        spent = now - self._began.setdefault(stage, now)
        if self._first is None:
            if share > 0:
                self._first = working, share
            return spent, None
        worked, done = working - self._first[0], share - self._first[1]
        if worked < _SURE_SECONDS or done <= 0 or share >= 1:
            return spent, None
        return spent, worked / done * (1 - share)


def stage_text(stage: str, share: float, spent: float, left: float | None) -> str:
    """One line for people."""
    stage = f"building {stage}"
    if share <= 0:
        return f"{stage}: begun"
    if share >= 1:
        return f"{stage}: done after {duration_text(spent)}"
    return f"{stage}: {share:.0%} after {duration_text(spent)}" + (
        "" if left is None else f", about {duration_text(left)} left"
    )


class PlainStages:
    """Lines on stderr: where a stage begins, every few seconds, and where one that took so long ends."""

    def __init__(self) -> None:
        self._time, self._last = StageTime(), 0.0
        self.late = LateLine()

    def __call__(self, stage: str, share: float) -> None:
        """Take note of the share done."""
        spent, left = self._time.note(stage, share)
        now = time.monotonic()
        if share <= 0 or (spent if share >= 1 else now - self._last) >= _LINE_SECONDS:
            self._last = now
            print(stage_text(stage, share, spent, left), file=sys.stderr, flush=True)

    def compilation(self, begins: bool) -> None:
        """Say so if it takes long."""
        self.late.say(COMPILING if begins else None)


class LiveStages:
    """A bar at the bottom of the terminal."""

    def __init__(self, bar: Any, task: Any) -> None:
        self._bar, self._task, self._time, self._text = bar, task, StageTime(), ""

    def __call__(self, stage: str, share: float) -> None:
        """Move the bar."""
        self._text = stage_text(stage, share, *self._time.note(stage, share))
        self._bar.update(self._task, completed=share, total=1.0, text=self._text)

    def compilation(self, begins: bool) -> None:
        """Name it beside the bar, which does not move meanwhile."""
        self._bar.update(self._task, text=f"{self._text} · {COMPILING}" if begins else self._text)


@contextmanager
def stage_reporter() -> Iterator[Callable[[str, float], None]]:
    """What suits stderr: to be called with the name of a stage and the share of it that is done."""
    if not sys.stderr.isatty():
        stages = PlainStages()
        try:
            with told_of_compiling(stages.compilation):
                yield stages
        finally:
            stages.late.say(None)
        return
    with bar_on_stderr() as (bar, task):
        live = LiveStages(bar, task)
        with told_of_compiling(live.compilation):
            yield live
