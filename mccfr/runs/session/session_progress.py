"""Measures the progress of training, and passes it to the reporter and to metrics.jsonl."""

import time
from collections.abc import Sequence
from itertools import pairwise
from math import log

from mccfr.config.run_tables import RunSettings
from mccfr.runs.directory.run import METRICS
from mccfr.runs.events import Totals
from mccfr.runs.reporter import Reporter, SessionProgress
from mccfr.runs.session.journals import Journals
from mccfr.runs.session.stalled_workers import StalledWorker
from mccfr.runs.session.worker_pool import Pool
from mccfr.tables.linear_discounting import Schedule

_METRICS_SECONDS = 5.0


class TrainingClock:
    """Clock of a session's training time: it runs while workers train, not while they pause."""

    def __init__(self) -> None:
        self._before = 0.0
        self._began: float | None = None

    @property
    def runs(self) -> bool:
        """True while workers train."""
        return self._began is not None

    @property
    def seconds(self) -> float:
        """Training time so far, in seconds."""
        return self._before + (0.0 if self._began is None else time.monotonic() - self._began)

    def start(self) -> None:
        """Start the clock when the workers begin or go on to train; no effect if it runs."""
        if self._began is None:
            self._began = time.monotonic()

    def stop(self) -> None:
        """Stop the clock when all workers have paused; no effect if it is stopped."""
        self._before, self._began = self.seconds, None


class Meter:
    """Measures and reports the speed and progress of a session, from the counts of its workers.

    A session is one process that trains a run, with its worker processes.

    origin          nodes and iterations of the run at the start of this session
    trained_before  training seconds of earlier sessions
    silent          workers that have made no progress for long, for metrics.jsonl
    """

    def __init__(self, settings: RunSettings, schedule: Schedule, reporter: Reporter, journals: Journals) -> None:
        self._settings, self._schedule = settings, schedule
        self._reporter, self._journals = reporter, journals
        self.origin, self.trained_before = Totals(), 0.0
        self.silent: Sequence[StalledWorker] = ()
        self._last_metrics = time.monotonic()
        self._found = list[tuple[int, float]]()  # iterations, and exploitability as a share of the pot

    def measured(self, iterations: int, pot_share: float) -> None:
        """Record an evaluation, to estimate when the run reaches its goal, an exploitability.

        iterations  iterations of the run at the evaluation
        pot_share   exploitability found, as a share of the pot
        """
        self._found.append((iterations, pot_share))

    def _iterations_to_go_to(self) -> float | None:
        """Return the estimated iterations at which the required exploitability is reached, or None.

        Assumes that exploitability falls as a power of the iterations. The power is fitted to the last two successive
        evaluations of this session between which it fell. Without such a pair, or without a goal, the result is None.
        """
        goal, measured = self._settings.goal, [point for point in self._found if min(point) > 0]
        for (first, before), (last, after) in reversed(list(pairwise(measured))):
            if goal is not None and last > first and after < before:
                return float(last * max(1.0, after / goal) ** (log(last / first) / log(before / after)))
        return None

    def progress(self, pool: Pool, clock: TrainingClock, *, goes_on: bool) -> SessionProgress:
        """Return the counts, speeds, share done and seconds left of the run, for the reporter.

        Share and seconds are for the limit that is reached first; they are None without a limit or a speed.

        pool     source of the counts and of the seconds of training
        clock    clock of this session's training time
        goes_on  True: workers train and were not told to pause, so the seconds left are estimated; False: they are None
        """
        totals, seconds = Totals(*pool.totals()), max(pool.busy_seconds(), 1e-9)
        nodes_per_second = (totals.nodes - self.origin.nodes) / seconds
        iterations_per_second = (totals.iterations - self.origin.iterations) / seconds
        ends: float | None = self._settings.iterations
        if self._settings.goal is not None:
            ends = self._iterations_to_go_to()
        ahead = [
            ((limit - count) / rate, count / limit)
            for count, limit, rate in (
                (totals.nodes, self._settings.nodes, nodes_per_second),
                (totals.iterations, ends, iterations_per_second),
                (clock.seconds, self._settings.seconds, 1.0),
            )
            if limit and rate > 0
        ]
        left, share = min(ahead, default=(None, None))
        return SessionProgress(
            totals.nodes,
            totals.iterations,
            self._schedule.period(totals.nodes),
            seconds,
            nodes_per_second,
            iterations_per_second,
            None if share is None else min(1.0, share),
            max(0.0, left) if left is not None and goes_on else None,
        )

    def report(self, progress: SessionProgress) -> None:
        """Pass progress to the reporter, and every five seconds to metrics.jsonl as a line."""
        self._reporter.progress(progress)
        if time.monotonic() - self._last_metrics >= _METRICS_SECONDS:
            self.write(progress)

    def write(self, progress: SessionProgress) -> None:
        """Append counts, speeds, training seconds and silent workers as a line to metrics.jsonl."""
        self._last_metrics = time.monotonic()
        record = {
            "nodes_touched": progress.nodes,
            "iterations": progress.iterations,
            "period": progress.period,
            "nodes_per_second": round(progress.nodes_per_second),
            "iterations_per_second": round(progress.iterations_per_second, 1),
            "training_seconds": round(self.trained_before + progress.training_seconds, 3),
            "silent_workers": [silence.record() for silence in self.silent],
            "unix_seconds": round(time.time(), 3),
        }
        self._journals.append(METRICS, record)
