"""A session of a run: release the workers, watch limits and clocks, checkpoint, evaluate, stop.

What happens to the tables depends on node and iteration counts alone; checkpoints, evaluations and the clock only look.
Workers go on training while a checkpoint is written or an evaluation computed from a copy of the tables, and rest only
while the copy is made (so that no row is separated from its stamp); where memory is too short for a copy they rest
until all is done.
"""

import signal
import time
from collections.abc import Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.solvers.solver import WorkerState
from mccfr.training.events import Events, Totals
from mccfr.training.pool import InlinePool, Pool, ProcessPool
from mccfr.training.report import Progress, Reporter
from mccfr.training.rundir import CHECKPOINTS, EVALUATIONS, LIVE, METRICS, Run, lock
from mccfr.training.saving import Look, Moment, Saver
from mccfr.training.shared_deck import share_buckets
from mccfr.training.trends import TRENDS
from mccfr.training.worker import map_tables, table_views
from storage import checkpoint as checkpoints
from storage import durable
from storage.live import create_live, remove_stale_live
from storage.mapping import ControlBlock
from storage.snapshot import Snapshot
from storage.space import available_memory_bytes

_TICK_SECONDS = 0.1
_METRICS_SECONDS = 5.0
_COPY_SHARE = 0.8  # of the available memory: what a copy of the tables may take while workers go on
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)

Arrays = Mapping[str, npt.NDArray[np.generic]]


@dataclass(frozen=True)
class Outcome:
    """How a session ended."""

    signal: int | None  # the signal that stopped it; None: a limit was reached
    totals: Totals
    checkpoint: int
    evaluation: Mapping[str, Any] | None  # the last one of the run
    evaluated: bool  # whether it is this session's


class Session:
    """From `solve` or `resume` to the last checkpoint.  The caller holds the run's lock."""

    def __init__(self, run: Run, game: Game, reporter: Reporter, *, force: bool = False) -> None:
        self._run, self._game, self._reporter, self._force = run, game, reporter, force
        self._settings, self._points = run.config.run, run.config.evaluation
        self._events = Events(self._settings, self._points, run.config.tables.snapshot_nodes)
        self._schedule = run.algorithm.schedule
        self._layout = run.layout(game)
        self._buckets: ControlBlock | None = None
        self._signal: int | None = None
        self._evaluation: Mapping[str, Any] | None = None
        self._evaluated_now = False
        self._trained_before = 0.0  # training seconds of earlier sessions
        self._weight_before: float | None = 0.0  # of the iterations of earlier sessions
        self._origin = Totals()  # where this session began
        self._training = False
        self._clock = 0.0  # wall seconds of this session in which workers were released
        self._released_at = self._last_metrics = time.monotonic()
        self._paused_at: float | None = None  # when the workers were told to rest

    def conduct(self) -> Outcome:
        """Run from the newest sound checkpoint to a limit or a signal; ends with a checkpoint.

        Raises `MemoryError` or `OSError` where the live tables find no room, `RuntimeError` where a worker died.
        """
        with self._signals_noted():
            return self._conduct()

    def _conduct(self) -> Outcome:
        run, tables = self._run, self._run.config.tables
        remove_stale_live(run.path(LIVE))
        checkpoints.sweep(run.path(CHECKPOINTS))
        restored, problems = checkpoints.newest_valid(run.path(CHECKPOINTS), run.identity)
        for problem in problems:
            self._reporter.message(f"damaged checkpoint passed over: {problem}")
        with create_live(
            self._layout.specs,
            format=tables.format,
            live_dir=tables.live_dir,
            link=run.path(LIVE),
            force=self._force,
        ) as live:
            if live.warning:
                self._reporter.message(live.warning)
            arrays, mappings = map_tables(self._layout, live.regions)
            views = table_views(mappings)
            if self._settings.workers:
                self._game, self._buckets = share_buckets(self._game, live.directory)
            self._saver = Saver(run, self._game, self._layout, self._reporter)
            states = self._restore(restored, views)
            pool: Pool
            if self._settings.workers == 0:
                pool = InlinePool(self._game, run, arrays, views, states)
            else:
                count = run.algorithm.processes(self._settings.workers)
                if count > 1:  # compile once, not in every worker
                    run.algorithm.solver(self._game, arrays, views).warm_up()
                pool = ProcessPool(run, live, count, states)
            run.event("started", workers=self._settings.workers)
            try:
                return self._loop(pool, views)
            finally:
                pool.close()

    def _restore(self, restored: checkpoints.Checkpoint | None, views: Arrays) -> list[WorkerState]:
        """Fill the live tables from a checkpoint, drop records of work that was lost, return the workers' states."""
        states = []
        if restored is not None:
            for name, view in views.items():
                restored.read_into(name, view)
            state = restored.state
            self._trained_before = float(state["training_seconds"])
            self._origin = Totals(state["nodes_touched"], state["iterations"])
            self._weight_before = state.get("iterations_weight")
            states = [WorkerState(s["iterations"], s["nodes"], s["rng"]) for s in state["workers"]]
        self._saver.begin(restored, views)
        for name in (EVALUATIONS, METRICS, TRENDS):
            records = self._run.read(name)
            kept = [record["nodes_touched"] <= self._origin.nodes for record in records]
            if not all(kept):
                lines = durable.read_lines(self._run.path(name))
                text = "".join(f"{line}\n" for line, keep in zip(lines, kept, strict=True) if keep)
                durable.replace_file(self._run.path(name), text.encode())
        return states

    @contextmanager
    def _signals_noted(self) -> Iterator[None]:
        """From the first moment to the last, signals only leave a note."""

        def note(number: int, _: FrameType | None) -> None:
            self._signal = number

        before = {number: signal.signal(number, note) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _loop(self, pool: Pool, views: Arrays) -> Outcome:
        while not pool.resting():
            pool.wait(_TICK_SECONDS)  # until the workers are there
        seen = self._origin if self._origin.nodes else None
        while True:
            room = None if self._done(pool) else self._train_to_next_event(pool, views)
            totals, done = Totals(*pool.totals()), self._done(pool)
            point = self._events.evaluation_between(seen, totals)
            keep = point and self._points.keep
            commit = keep or self._checkpoint_called() or self._events.checkpoint_between(seen, totals) or done
            commit = commit and (self._saver.committed is None or self._saver.committed[1] != totals)
            look = (
                point
                or (commit and self._points.every_checkpoint)
                or (done and self._points.at_end and not self._evaluated(totals))
            )
            seen = totals
            if commit or look:
                self._look(pool, views, Look(commit, look, keep, done), room)
            if done:
                return self._end(pool, totals)

    def _done(self, pool: Pool) -> bool:
        """Whether the session is over, once the workers rest."""
        limit = self._settings.seconds
        time_up = limit is not None and self._clock >= limit
        return not self._training and (
            self._signal is not None or time_up or self._events.limit_reached(Totals(*pool.totals()))
        )

    def _evaluated(self, totals: Totals) -> bool:
        """Whether the last line of evaluations.jsonl speaks of these counts."""
        records = self._run.read(EVALUATIONS)
        self._evaluation = records[-1] if records else None
        return bool(records) and records[-1]["nodes_touched"] == totals.nodes

    def _release(self, pool: Pool) -> None:
        stop = self._events.next_stop(Totals(*pool.totals()))
        pool.release(stop.nodes, stop.iterations)
        self._training, self._released_at, self._paused_at = True, time.monotonic(), None

    def _train_to_next_event(self, pool: Pool, views: Arrays) -> Snapshot | None:
        """Let the workers run until they have reached the next event, or the clock or a signal calls.

        Returns room for a copy of the tables where the clock has called for a checkpoint, got while they still ran.
        """
        if not self._training:
            self._release(pool)
        room = None
        while not pool.resting():
            pool.wait(_TICK_SECONDS)
            self._tick(pool)
            if self._paused_at is None and (self._interrupted() or self._checkpoint_called()):
                if not self._interrupted():
                    room = self._room(views, list(views))
                    if room is not None:
                        room.populate()
                self._pause(pool)
        self._training = False
        self._clock += time.monotonic() - self._released_at
        return room

    def _pause(self, pool: Pool) -> None:
        self._paused_at = time.monotonic()
        pool.pause()

    def _interrupted(self) -> bool:
        """Whether the workers must rest for good: a signal, or the session's time is up."""
        limit = self._settings.seconds
        clock = self._clock + (time.monotonic() - self._released_at if self._training else 0.0)
        return self._signal is not None or (limit is not None and clock >= limit)

    def _checkpoint_called(self) -> bool:
        """Whether the clock calls for a checkpoint."""
        return time.monotonic() - self._saver.last_commit >= self._settings.checkpoint_seconds

    def _room(self, views: Arrays, names: list[str]) -> Snapshot | None:
        """Memory for a copy of some tables; None where there is too little, or nobody who could train meanwhile."""
        size = sum(views[name].nbytes for name in names)
        if self._settings.workers == 0 or size > _COPY_SHARE * available_memory_bytes():
            return None
        try:
            return Snapshot({name: views[name] for name in names})
        except OSError:  # the system does not let a process ask for more than it has
            return None

    def _look(self, pool: Pool, views: Arrays, look: Look, room: Snapshot | None) -> None:
        """Checkpoint and evaluate what the resting workers have left; they go on meanwhile if a copy fits."""
        began = self._paused_at or time.monotonic()
        names = [name for name in views if look.commit or self._run.algorithm.is_averaged(name)]
        if look.done:
            room = None
        elif room is None:
            room = self._room(views, names)
        if room is not None:
            room.take(views)
        weight = None if self._weight_before is None else self._weight_before + pool.iterations_weight()
        seconds = self._trained_before + pool.busy_seconds()
        pause = time.monotonic() - began
        moment = Moment(Totals(*pool.totals()), pool.states(), seconds, weight, pause)
        if room is None:
            record = self._saver.save({name: views[name] for name in names}, moment, look, background=False)
        else:
            self._release(pool)
            record = self._save_meanwhile(pool, room, moment, look)
        if record is not None:
            self._evaluation, self._evaluated_now = record, True
            self._reporter.evaluation(record)

    def _save_meanwhile(self, pool: Pool, room: Snapshot, moment: Moment, look: Look) -> dict[str, Any] | None:
        """Save a copy in another thread while the workers train; signals and the clock are heeded as ever."""
        with futures.ThreadPoolExecutor(1) as executor:
            job = executor.submit(self._saver.save, room.arrays, moment, look, background=True)
            while not job.done():
                if pool.resting():
                    futures.wait([job], _TICK_SECONDS)
                else:
                    pool.wait(_TICK_SECONDS)
                self._tick(pool)
                if self._paused_at is None and self._interrupted():
                    self._pause(pool)
            return job.result()

    def _tick(self, pool: Pool) -> None:
        """Tell the reporter where the run stands, and every few seconds the metrics file."""
        progress = self._progress(pool)
        self._reporter.progress(progress)
        if time.monotonic() - self._last_metrics >= _METRICS_SECONDS:
            self._write_metrics(progress)

    def _write_metrics(self, progress: Progress) -> None:
        self._last_metrics = time.monotonic()
        record = {
            "nodes_touched": progress.nodes,
            "iterations": progress.iterations,
            "period": progress.period,
            "nodes_per_second": round(progress.nodes_per_second),
            "iterations_per_second": round(progress.iterations_per_second, 1),
            "training_seconds": round(self._trained_before + progress.training_seconds, 3),
            "unix_seconds": round(time.time(), 3),
        }
        self._run.append(METRICS, record)

    def _progress(self, pool: Pool) -> Progress:
        totals, seconds = Totals(*pool.totals()), max(pool.busy_seconds(), 1e-9)
        nodes_per_second = (totals.nodes - self._origin.nodes) / seconds
        iterations_per_second = (totals.iterations - self._origin.iterations) / seconds
        clock = self._clock + (time.monotonic() - self._released_at if self._training else 0.0)
        ahead = [
            ((limit - count) / rate, count / limit)
            for count, limit, rate in (
                (totals.nodes, self._settings.nodes, nodes_per_second),
                (totals.iterations, self._settings.iterations, iterations_per_second),
                (clock, self._settings.seconds, 1.0),
            )
            if limit and rate > 0
        ]
        left, share = min(ahead, default=(None, None))
        return Progress(
            totals.nodes,
            totals.iterations,
            self._schedule.period(totals.nodes),
            seconds,
            nodes_per_second,
            iterations_per_second,
            share,
            left,
        )

    def _end(self, pool: Pool, totals: Totals) -> Outcome:
        if self._saver.committed is None:
            raise RuntimeError("the session ended without a checkpoint")
        self._write_metrics(self._progress(pool))
        number = self._saver.committed[0]
        event = "finished" if self._signal is None else "stopped"
        self._run.event(event, signal=self._signal, nodes_touched=totals.nodes, checkpoint=number)
        return Outcome(self._signal, totals, number, self._evaluation, self._evaluated_now)


def train(run: Run, game: Game, reporter: Reporter, *, force: bool = False) -> Outcome:
    """Continue a run from its newest sound checkpoint until a limit of its settings or a signal; takes the lock.

    `force`: although the tables take more memory than they should.  Raises as `Session.conduct`, and `BlockingIOError`
    while another process works on the run.
    """
    with lock(run):
        return Session(run, game, reporter, force=force).conduct()
