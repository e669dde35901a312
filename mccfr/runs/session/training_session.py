"""A session of a run: starts workers, checks limits and clocks, checkpoints, evaluates and stops.

The tables depend only on node and iteration counts, never on checkpoints, evaluations or the clock. Checkpoints and
evaluations use a copy of the tables while workers train; the workers pause only during the copying. If memory is too
small for a copy, they pause until the work is done.
"""

import signal
import time
from collections.abc import Mapping
from concurrent import futures
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy.typing as npt

from mccfr.common.signals import SignalInterrupt
from mccfr.games.game import Game
from mccfr.runs.directory import journal_records
from mccfr.runs.directory.run import CHECKPOINTS, EVALUATIONS, JOURNAL, LIVE, STOP, Run, lock, save_settings
from mccfr.runs.events import Events, Totals
from mccfr.runs.phases import naming_phases
from mccfr.runs.reporter import TRAINING, Reporter, SessionProgress, compiling_text
from mccfr.runs.session.background import in_background
from mccfr.runs.session.checkpointing import RunState, Saver, Stop
from mccfr.runs.session.errors import (
    AbandonedError,
    abandoned,
    interrupted,
    lost,
    sentence_of,
    unsaved,
    without_directory,
)
from mccfr.runs.session.initial_tables import begin_from_run
from mccfr.runs.session.journals import Journals
from mccfr.runs.session.pools import PoolOpener, open_pool
from mccfr.runs.session.restoring import advising, newest_sound
from mccfr.runs.session.session_progress import Meter, TrainingClock
from mccfr.runs.session.session_signals import Signals
from mccfr.runs.session.worker_pool import Pool
from mccfr.solvers.solver import WorkerState
from mccfr.solvers.warm_start import begin_sampled
from storage import checkpoint as checkpoints
from storage import checkpoint_writer
from storage.block_tables import drop_unnamed
from storage.damage import UnreadableError, reading
from storage.durable import error_text
from storage.free_space import available_memory_bytes
from storage.huge_page_counts import huge_bytes
from storage.live_tables import remove_stale_live, sweep_live
from storage.memory_snapshot import Snapshot
from storage.run_lock import LostDirectoryError

_TICK_SECONDS = 0.1
_LEAVE_SECONDS = 1.0  # time for an evaluation to notice that it is left
REST_SECONDS = 30.0
"""Time for workers to come to rest at the end of a session, beyond two of their batches."""
_COPY_SHARE = 0.8  # largest copy of the tables, as a share of the available memory


@dataclass(frozen=True)
class Outcome:
    """Result of a session: why it ended, its counts, newest checkpoint and evaluation."""

    signal: int | None  # number of the signal that ended it; None: a limit or the required exploitability was reached
    totals: Totals  # of the run since it began
    checkpoint: int | None  # number of the newest; None: a signal came before any training
    evaluation: Mapping[str, Any] | None  # record of the run's last one; None: there is none
    evaluated: bool  # whether this session has made that evaluation
    directory: Path  # directory of the run at the end of the session
    evaluation_due: bool = False  # a signal has left an evaluation to the next session
    at_limit: bool = False  # a limit was reached although a signal came


class Session:
    """Runs one session of a run: `train` calls `run` once, while this process holds the run's lock."""

    def __init__(
        self, run: Run, game: Game, reporter: Reporter, *, force: bool = False, pools: PoolOpener = open_pool
    ) -> None:
        self._run, self._game, self._reporter, self._force = run, game, reporter, force
        self._pools = pools
        self._settings, self._points = run.config.run, run.config.evaluation
        self._events = Events(self._settings, self._points)
        self._signals = Signals()
        if pools is not open_pool:  # ranks of a cluster wait for orders
            self._signals.note()
        self._journals = Journals(run, reporter)
        self._meter = Meter(self._settings, run.algorithm.schedule, reporter, self._journals)
        self._ending_since: float | None = None  # when the workers were first told to rest for good
        self._evaluation: Mapping[str, Any] | None = None
        self._evaluated_now = False
        self._near_enough = False  # whether an evaluation has found no more exploitability than the settings allow
        self._unmeasured = False  # whether the checkpoint that the session begins with lacks a due evaluation
        self._due = False  # whether a signal has left an evaluation to the next session
        self._training = False
        self._clock = TrainingClock()
        self._paused_at: float | None = None  # when the workers were told to pause

    def run(self) -> Outcome:
        """Train from the newest valid checkpoint to a limit or signal, and write a last checkpoint.

        A signal before any training gives no checkpoint. Raises the errors of `train` except `BlockingIOError`.
        """
        with self._signals.handled():
            try:
                return self._begin()
            except SignalInterrupt as stop:
                return self._stopped(stop.number, self._meter.origin, None)
            except AbandonedError:
                raise
            except Exception as error:
                with suppress(Exception):  # an error here must not hide the first one
                    self._event("failed", problem=sentence_of(error))
                raise

    def _begin(self) -> Outcome:
        run = self._run
        self._reporter.phase("looking for checkpoints")
        with reading(run.directory):
            run.path(STOP).unlink(missing_ok=True)
            remove_stale_live(run.path(LIVE))
            for removed in sweep_live(run.config.tables.live_dir):
                self._reporter.message(f"removed the live tables of a process that died: {removed}")
            checkpoint_writer.sweep(run.path(CHECKPOINTS))
            restored = newest_sound(run, self._reporter)
            drop_unnamed(run.directory)
        self._reporter.phase("making the tables")
        self._signals.note()  # incomplete live tables would stay in shared memory
        with self._pools(run, self._game, force=self._force) as pool:
            if self._pools is open_pool:  # nothing to save yet: a signal, also an earlier one, ends the session
                self._signals.interrupt()
            layout = run.layout(self._game)
            if pool.warning is not None:
                self._reporter.message(pool.warning)
            self._saver = Saver(run, pool.game, layout, self._reporter, self._journals)
            states = self._restore(restored, pool)
            self._reporter.phase(self._starting())
            pool.begin(states)
            self._signals.note()
            self._event("started", workers=self._settings.workers, huge_bytes=huge_bytes(pool.tables.values()))
            try:
                return self._loop(pool)
            except AbandonedError as error:
                pool.kill()
                saved = self._saver.committed or (None, Totals())
                self._stopped(self._signals.number or 0, saved[1], saved[0])
                raise abandoned(error, run, Totals(*pool.totals()), self._saver.committed) from None
            except LostDirectoryError as error:
                pool.kill()
                raise without_directory(error, Totals(*pool.totals()), self._saver.committed) from None
            except OSError as error:
                pool.kill()
                raise interrupted(error, run, Totals(*pool.totals()), self._saver.committed) from error
            finally:
                self._signals.closing = True

    def _stopped(self, number: int, totals: Totals, checkpoint: int | None) -> Outcome:
        """Record in journal.jsonl that a signal stopped the session; return the `Outcome`."""
        self._event("stopped", signal=number, nodes_touched=totals.nodes, checkpoint=checkpoint)
        due, limit = self._due and checkpoint is not None, self._events.limit_reached(totals)
        evaluation = self._evaluation, self._evaluated_now
        return Outcome(number, totals, checkpoint, *evaluation, self._run.directory, due, limit)

    def _filled(self, share: float) -> None:
        """Report the share (0 to 1) of a warm start that is done; raise `SignalInterrupt` if a signal came."""
        self._reporter.phase(f"filling the tables, {share:.0%}", share)
        if self._signals.number is not None:
            self._signals.interrupt()

    def _event(self, event: str, **facts: object) -> None:
        """Append an event (started, stopped, finished, failed) with its fields to journal.jsonl."""
        self._journals.append(JOURNAL, {"event": event, **facts, "unix_seconds": round(time.time(), 3)})

    def _starting(self) -> str:
        """Return the reporter's text while workers start, such as "starting 4 workers"."""
        count = self._run.algorithm.traits.processes(self._settings.workers)
        if count == 0:
            return "loading kernels"
        return f"starting {count} worker{'s' * (count > 1)}"

    def _restore(self, restored: checkpoints.Checkpoint | None, pool: Pool) -> list[WorkerState]:
        """Fill the tables, remove journal lines beyond the checkpoint; return workers' states."""
        states, tables = [], pool.tables
        pool.go_on(restored)
        if restored is None:
            run = self._run
            if getattr(run.config.solver, "warm_start", None) is not None:
                self._reporter.phase("filling the tables")
            begin_sampled(run.config, pool.game, tables, self._filled)
            state = begin_from_run(run, pool.game, tables)
        else:
            with advising(self._run, restored.number):
                for name, table in tables.items():
                    restored.read_into(name, table)
            state = restored.state
        if state is not None:
            self._meter.trained_before = float(state["training_seconds"])
            self._meter.origin = Totals(state["nodes_touched"], state["iterations"])
            states = [WorkerState(**worker) for worker in state["workers"]]
        self._saver.begin(restored)
        for name in journal_records.JOURNALS:
            most = inf if name == JOURNAL else self._meter.origin.nodes
            path = self._run.path(name)
            try:
                for sentence in journal_records.restore(path, most):
                    self._reporter.message(sentence)
            except UnreadableError:
                raise
            except OSError as error:  # keep lines of lost work rather than stop training
                self._reporter.message(f"{error_text(error)}: {name} keeps lines of work that was lost")
        if restored is not None and restored.state.get("measured"):
            evaluates = self._points.every_checkpoint or self._points.at_nodes or self._points.at_iterations
            self._unmeasured = bool(evaluates) and not self._evaluated(self._meter.origin)
        if restored is not None and self._evaluated(self._meter.origin):
            self._near_enough = self._is_near_enough(self._evaluation or {})
        return states

    def _loop(self, pool: Pool) -> Outcome:
        self._await_workers(pool)
        seen, unmeasured = self._meter.origin if self._meter.origin.nodes else None, self._unmeasured
        while True:
            room = None  # frees the copy of the last checkpoint before memory for the next is allocated
            if not unmeasured and not self._done(pool):
                room = self._train_to_next_event(pool)
            self._refuse_losses(pool)
            totals = Totals(*pool.totals())
            regular = self._saver.is_checkpoint_time() or self._events.checkpoint_between(seen, totals)
            if regular and self._signals.number is None and (request := self._run.path(STOP)).exists():
                request.unlink()
                self._signals.number = signal.SIGTERM
            done = self._done(pool)
            point = self._events.evaluation_between(seen, totals)
            keep = point and self._points.keep
            commit = keep or regular or done
            commit = commit or (point and pool.extra_state() is not None)
            commit = commit and (self._saver.committed is None or self._saver.committed[1] != totals)
            due = bool(
                self._due
                or unmeasured
                or point
                or (commit and self._points.every_checkpoint)
                or (done and self._points.at_end and not self._is_measured(totals))
            )
            evaluate = due and self._signals.number is None  # otherwise the next session evaluates
            self._due = due and not evaluate
            seen, unmeasured = totals, False
            if (commit or evaluate) and not self._stopped_before_training(totals):
                self._save_at(pool, Stop(commit, evaluate, keep, done, due), room)
            if done:
                self._signals.closing = True
                return self._end(pool, totals)

    def _stopped_before_training(self, totals: Totals) -> bool:
        """Return whether a signal ended the session before any training, so that nothing must be saved."""
        return self._signals.number is not None and totals == Totals(0, 0) and self._saver.committed is None

    def _done(self, pool: Pool) -> bool:
        """Return whether workers rest and a signal, limit, low exploitability or lost worker ends training."""
        ends = self._interrupted() or bool(pool.losses()) or self._events.limit_reached(Totals(*pool.totals()))
        return not self._training and ends

    def _await_workers(self, pool: Pool) -> None:
        """Wait until the workers are started; a signal ends them at once, because nothing is trained yet."""
        starting = self._starting()
        while not pool.resting():
            pool.wait(_TICK_SECONDS)
            self._reporter.phase(compiling_text(seconds) if (seconds := pool.compiling()) else starting)
            self._tick(pool)
            if pool.losses():
                self._refuse_losses(pool, saved=False)
            if self._signals.number is not None:
                pool.kill()

    def _refuse_losses(self, pool: Pool, *, saved: bool = True) -> None:
        """Raise `RuntimeError` for lost workers unless tables can be `saved` or a signal came before training."""
        if self._signals.number is not None and not self._training and self._clock.seconds == 0.0:
            return  # they were ended before training
        if pool.losses() and not (saved and pool.can_save()):
            raise lost(pool.losses(), self._run, None)

    def _must_end(self, pool: Pool) -> bool:
        """Return whether a signal, time limit, low exploitability or lost worker ends training."""
        ends = self._interrupted() or bool(pool.losses())
        if ends and self._ending_since is None:
            self._ending_since = time.monotonic()
        return ends

    def _end_late(self, pool: Pool) -> None:
        """End workers that pause too late (`REST_SECONDS`); without a signal, spare those that compute."""
        if self._ending_since is not None and self._paused_at is not None:
            since = max(self._ending_since, self._paused_at)
            for sentence in pool.end_late(since, REST_SECONDS, spare_computing=self._signals.number is None):
                self._reporter.message(sentence)

    def _watch(self, pool: Pool) -> None:
        """Report workers that have stopped making progress, and those that make progress again."""
        before, self._meter.silent = self._meter.silent, pool.silent()
        known, now = ({silence.worker for silence in silences} for silences in (before, self._meter.silent))
        for silence in self._meter.silent:
            if silence.worker not in known:
                self._reporter.message(
                    f"worker {silence.worker} has given no sign for {silence.seconds:.0f} s: {silence.why}; the run "
                    "waits for it"
                )
        for worker in sorted(known - now - set(pool.losses())):
            self._reporter.message(f"worker {worker} makes progress again")
        if known != now:
            self._meter.write(self._progress(pool))

    def _evaluated(self, totals: Totals) -> bool:
        """Return whether the run's last evaluation was at the node count of `totals`; keep its record."""
        self._evaluation = next(self._run.backwards(EVALUATIONS), None)
        return self._evaluation is not None and self._evaluation["nodes_touched"] == totals.nodes

    def _is_measured(self, totals: Totals) -> bool:
        """Return whether the last evaluation was at `totals`' node count; False if unreadable."""
        try:
            return self._evaluated(totals)
        except UnreadableError:
            return False

    def _release(self, pool: Pool) -> None:
        stop = self._events.next_stop(Totals(*pool.totals()))
        pool.release(stop.nodes, stop.iterations)
        self._training, self._paused_at = True, None
        self._clock.start()

    def _train_to_next_event(self, pool: Pool) -> Snapshot | None:
        """Let the workers train until a limit, evaluation or checkpoint is due, or a signal comes.

        Returns memory, not yet filled, for a copy of the tables if a checkpoint is due by the clock. Returns None
        otherwise, and if memory is too small or a copy of no use.
        """
        if not self._training:
            self._release(pool)
        self._reporter.phase(TRAINING)
        room = None
        while not pool.resting():
            pool.wait(_TICK_SECONDS)
            self._tick(pool)
            if self._paused_at is None and (self._must_end(pool) or self._saver.is_checkpoint_time()):
                if not self._must_end(pool):
                    room = self._snapshot_memory(pool, list(pool.tables))
                    if room is not None:
                        room.populate()
                self._pause(pool)
            if self._must_end(pool):
                self._end_late(pool)
        self._training = False
        self._clock.stop()
        self._reporter.progress(self._progress(pool))  # no time left is shown during the following work
        return room

    def _pause(self, pool: Pool) -> None:
        self._paused_at = time.monotonic()
        pool.pause()

    def _interrupted(self) -> bool:
        """Return whether a signal, the time limit, or the required exploitability ends training."""
        limit = self._settings.seconds
        time_up = limit is not None and self._clock.seconds >= limit
        return self._signals.number is not None or time_up or self._near_enough

    def _pot_share(self, record: Mapping[str, Any]) -> dict[str, float]:
        """Return {"exploitability_pot": share}; {} if unknown, a lower bound, or without a goal."""
        has_goal, chips = self._settings.goal is not None, record.get("exploitability_chips")
        if not has_goal or chips is None or record.get("bound") == "lower":
            return {}
        return {"exploitability_pot": chips / self._game.pot_chips}

    def _is_near_enough(self, record: Mapping[str, Any]) -> bool:
        """Return whether an evaluation has reached the exploitability at which the run ends."""
        return any(share <= (self._settings.goal or 0) for share in self._pot_share(record).values())

    def _snapshot_memory(self, pool: Pool, names: list[str]) -> Snapshot | None:
        """Return memory for a copy of the tables `names`; None if it is too small or of no use.

        A copy is of no use without worker processes, or if tables are partly on disk or evaluated in place.
        """
        tables = pool.tables
        size = sum(tables[name].nbytes for name in names)
        if self._settings.workers == 0 or pool.extra_state() is not None or self._saver.evaluates_in_place:
            return None
        if size > _COPY_SHARE * available_memory_bytes():
            return None
        try:
            return Snapshot({name: tables[name] for name in names})
        except OSError:  # the system limits allocations
            return None

    def _save_at(self, pool: Pool, stop: Stop, snapshot: Snapshot | None) -> None:
        """Checkpoint and evaluate as `stop` requires; workers train meanwhile if a copy fits.

        They rest at the end of the session, and if the evaluation may show the exploitability that ends the run.
        """
        began = self._paused_at or time.monotonic()
        names = [name for name in pool.tables if stop.commit or self._run.algorithm.averages.takes(name)]
        may_end_here = stop.evaluate and self._settings.goal is not None
        if stop.done or may_end_here:  # the tables that reach the goal must be saved
            snapshot = None
        elif snapshot is None:
            snapshot = self._snapshot_memory(pool, names)
        if snapshot is not None:
            snapshot.take(pool.tables)
        seconds = self._meter.trained_before + pool.busy_seconds()
        pause = time.monotonic() - began
        now = RunState(Totals(*pool.totals()), pool.states(), seconds, pool.extra_state(), pause)
        arrays = {name: pool.tables[name] for name in names}
        if snapshot is not None:
            self._release(pool)
            arrays = snapshot.arrays
        for record in self._save(pool, arrays, now, stop):
            self._evaluation, self._evaluated_now = record, True
            self._near_enough = self._near_enough or self._is_near_enough(record)
            for share in self._pot_share(record).values():
                self._meter.measured(record["iterations"], share)
            self._reporter.evaluation(record | self._pot_share(record))

    def _save(self, pool: Pool, arrays: dict[str, npt.NDArray[Any]], now: RunState, stop: Stop) -> list[dict[str, Any]]:
        """Save tables in another thread, and handle signals and the clock meanwhile; return the evaluations.

        A signal ends the evaluation, which is left to the next session. A checkpoint is awaited, even if the
        evaluation of an earlier call still runs. After a second signal the thread is not awaited.
        """
        background = self._training
        job = in_background(lambda: self._saver.save(arrays, now, stop, background=background))
        while True:
            rests = pool.resting()
            if rests:
                self._clock.stop()
            if job in futures.wait([job], _TICK_SECONDS if rests else 0.0).done:
                break
            if stop.evaluate and self._signals.number is not None and self._saver.leave_evaluation():
                self._due = True
                self._signals.closing = stop.done  # the checkpoint is written: nothing can be lost
                if job not in futures.wait([job], _LEAVE_SECONDS).done:
                    return []  # it is in a long step, which is not awaited
            if not background:
                continue
            if not rests:
                pool.wait(_TICK_SECONDS)
            self._tick(pool)
            if self._paused_at is None and self._must_end(pool):
                self._pause(pool)
            if self._must_end(pool):
                self._end_late(pool)
        return job.result()

    def _tick(self, pool: Pool) -> None:
        """Report workers that stall or recover; pass progress to the reporter and, every 5 s, metrics.jsonl."""
        self._watch(pool)
        self._meter.report(self._progress(pool))

    def _progress(self, pool: Pool) -> SessionProgress:
        return self._meter.progress(pool, self._clock, goes_on=self._clock.runs and self._paused_at is None)

    def _end(self, pool: Pool, totals: Totals) -> Outcome:
        saved = self._saver.committed
        if (saved is None or saved[1] != totals) and not self._stopped_before_training(totals):
            raise unsaved(self._saver.failure, self._run, totals, saved)
        number = saved[0] if saved else None
        self._meter.write(self._progress(pool))
        if pool.died():
            raise lost(pool.losses(), self._run, number)
        if self._signals.number is not None:
            outcome = self._stopped(self._signals.number, totals, number)
        else:
            self._event("finished", signal=None, nodes_touched=totals.nodes, checkpoint=number)
            evaluation = self._evaluation, self._evaluated_now
            outcome = Outcome(None, totals, number, *evaluation, self._run.directory)
        unwritten = self._journals.unwritten_lines()
        if unwritten is not None:
            self._reporter.message(unwritten)
        return outcome


def train(run: Run, game: Game, reporter: Reporter, *, force: bool = False, pools: PoolOpener = open_pool) -> Outcome:
    """Train a run in one session, from its newest valid checkpoint to a limit or signal.

    force  do not check memory
    pools  opens the pool of workers: on this machine, or on several

    Raises `MemoryError` or `OSError` if the tables do not fit in memory. Raises `RuntimeError` if all checkpoints are
    damaged, a worker died, or the disk fails in training or at the last checkpoint. Raises `AbandonedError` after a
    second signal, and `BlockingIOError` while another process works on the run.
    """
    with lock(run) as locked_run:
        assert locked_run.lock is not None
        try:
            save_settings(locked_run)
        except OSError as error:  # a full disk: training does not need it
            reporter.message(f"{error_text(error)}: later sessions do not know this session's limits and workers")
        with naming_phases(reporter, locked_run.lock.note) as naming:
            outcome = Session(locked_run, game, naming, force=force, pools=pools).run()
        return replace(outcome, directory=locked_run.lock.directory.current_path())
