"""Writes checkpoints, lines in `trends.jsonl` and evaluations, from tables that do not change."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.runs.directory.run import CHECKPOINTS, EVALUATIONS, JOURNAL, Run
from mccfr.runs.directory.state import open_run_checkpoint
from mccfr.runs.directory.trends import TRENDS, never_reached_per_street
from mccfr.runs.events import Totals
from mccfr.runs.phases import naming_steps
from mccfr.runs.reporter import EVALUATING, Reporter
from mccfr.runs.results.average_strategies import checkpoint_average, sums_average
from mccfr.runs.results.checkpoint_evaluator import Evaluator
from mccfr.runs.session.journals import Journals, disk_problem
from mccfr.runs.session.run_plan import evaluation_bytes
from mccfr.runs.session.worker_pool import ExtraState
from mccfr.solvers.registry import user_code
from mccfr.solvers.solver import WorkerState
from mccfr.tables.axis_metadata import table_attributes
from mccfr.tables.int16_cells import saturated
from mccfr.tables.strategy import Strategy
from mccfr.tables.table_layout import TableLayout, TableSet
from storage import checkpoint as checkpoints
from storage import checkpoint_writer, durable
from storage.free_space import available_memory_bytes
from storage.table_formats import NotFiniteError, check_finite

RETRY_SECONDS, LEAST_RETRY_SECONDS, MOST_RETRY_SECONDS = 60.0, 1.0, 600.0
"""Delay after a failed checkpoint: `checkpoint_seconds`, but at most the first and at least the second number. It
doubles after each further failure, up to the third.
"""
FINAL_WAITS_SECONDS = (5.0, 10.0, 20.0, 40.0, 45.0)
"""Delays between attempts at the last checkpoint of a session: two minutes in total."""
_RETRY_SHARE = 10  # a delay is at least this many times the duration of the attempt

Arrays = Mapping[str, npt.NDArray[np.generic]]


@dataclass(frozen=True)
class RunState:
    """Counts and workers' states of a run while all workers rest; a checkpoint adds the tables.

    A worker's state has its counts and the state of its random number generator. `training_seconds` are those of the
    whole run.
    """

    totals: Totals
    states: list[WorkerState]
    training_seconds: float
    extra_state: ExtraState | None  # what its checkpoint holds beside the tables
    pause_seconds: float  # from the order to rest until a copy of the tables was taken, or was found not to fit


@dataclass(frozen=True)
class Stop:
    """Actions to take when the workers have stopped: checkpoint, evaluation, end of training.

    Workers stop, for example, at limits, evaluation points, due checkpoints and signals.
    """

    commit: bool  # a checkpoint is written
    evaluate: bool
    keep: bool  # the checkpoint is kept permanently
    done: bool  # the session ends here
    due: bool = False  # an evaluation is due; if `evaluate` is False, the next session makes it


class GrowingDelay:
    """Exponential backoff: the delay doubles after each consecutive failure, up to a limit.

    Created with the delay after the first failure and the limit, both in seconds.
    """

    def __init__(self, first_seconds: float, most_seconds: float) -> None:
        self._first, self._most = first_seconds, most_seconds
        self._failures = 0

    def after_failure(self) -> float:
        """Count a failure, and return the seconds until the next attempt."""
        self._failures += 1
        return min(self._most, self._first * 2.0 ** min(self._failures - 1, 64))

    def after_success(self) -> None:
        """Reset to the first delay."""
        self._failures = 0


class _LeftError(Exception):
    """Raised inside a running evaluation to end it, because a signal ends the training."""


def _worker_fields(state: WorkerState) -> dict[str, Any]:
    """Return {field: value} of a worker's state, for a checkpoint.

    The fields are `iterations`, `nodes` and `rng`, the random state. Two more are added unless they are 0: `due`, a
    stratum's remainder from rounding its iterations, and `ends`, the number of period ends at which the worker has
    discounted the tables.

    state  state of a worker; in a run with strata, of one stratum (a group of boards)
    """
    fields = {"iterations": state.iterations, "nodes": state.nodes, "rng": state.rng}
    more = {"due": state.due, "ends": state.ends}
    return {**fields, **{name: count for name, count in more.items() if count}}


class Saver:
    """Writes the checkpoints of a run in training, and evaluates its strategies.

    The session calls `save` in a thread of its own.

    committed           (number, counts) of the newest checkpoint; None: there is none
    failure             sentence on why the last attempt at a checkpoint failed; None: it succeeded, or none was made
    evaluates_in_place  whether all evaluations read the tables in training, so that no copy of them is of use
    """

    def __init__(self, run: Run, game: Game, layout: TableLayout, reporter: Reporter, journals: Journals) -> None:
        self._run, self._game, self._layout, self._reporter = run, game, layout, reporter
        self._journals = journals
        self._schedule = run.algorithm.schedule
        self._notes = table_attributes(game)
        self._evaluator = Evaluator(run, game)
        self.evaluates_in_place = self._evaluator.in_place
        self.committed: tuple[int, Totals] | None = None
        self.failure: str | None = None
        self._evaluating = self._left = False
        every = run.config.run.checkpoint_seconds
        self._delay = GrowingDelay(max(LEAST_RETRY_SECONDS, min(every, RETRY_SECONDS)), MOST_RETRY_SECONDS)
        self._next_checkpoint_at = time.monotonic() + every

    def is_checkpoint_time(self) -> bool:
        """Return whether a checkpoint is due by the clock.

        It is due `run.checkpoint_seconds` after the last one or the start; after a failure, at the end of a delay.
        """
        return time.monotonic() >= self._next_checkpoint_at

    def begin(self, restored: checkpoints.Checkpoint | None) -> None:
        """Find permanent checkpoints of earlier training; set `committed` to the restored one.

        restored  checkpoint from which training resumes; None: a new run
        """
        self._evaluator.find_permanent_checkpoints()
        if restored is not None:
            self.committed = (restored.number, Totals(restored.state["nodes_touched"], restored.state["iterations"]))

    def save(
        self, arrays: dict[str, npt.NDArray[Any]], now: RunState, stop: Stop, *, background: bool
    ) -> list[dict[str, Any]]:
        """Write a checkpoint and evaluate, as far as `stop` requires; return the evaluation records.

        arrays      {name: table}; before the evaluation, tables that it does not need are removed from it
        now         counts and workers' states that belong to the tables
        background  True: compress and write with low priority, because workers train meanwhile

        If the disk fails, no error is raised: `failure` tells the reason, and a later call tries again. If an
        evaluation is not possible, for example for want of memory, the reporter receives the reason.

        Raises `RuntimeError` for a NaN or infinite number in a table, which it names; nothing is then committed or
        evaluated.
        """
        try:
            return self._save(arrays, now, stop, background)
        except NotFiniteError as error:
            number = self.committed[0] if self.committed else None
            code = user_code(self._run.config)
            raise RuntimeError(not_finite_text(self._layout, error, number, code)) from error

    def _save(
        self, arrays: dict[str, npt.NDArray[Any]], now: RunState, stop: Stop, background: bool
    ) -> list[dict[str, Any]]:
        if not stop.commit:  # a commit checks the cells itself
            for spec in self._layout.specs:
                if spec.name in arrays:
                    check_finite(spec, arrays[spec.name], [0] * len(spec.shape))
        if stop.commit:
            began = time.monotonic()
            number = self._persevere(arrays, now, stop, background)
            if number is not None:
                self._note_trends(number, arrays, now, time.monotonic() - began)
        averages = self._run.algorithm.averages
        for name in [name for name in arrays if not averages.takes(name)]:
            del arrays[name]
        return self._evaluate(arrays, now) if stop.evaluate else []

    def _persevere(self, arrays: Arrays, now: RunState, stop: Stop, background: bool) -> int | None:
        """Write a checkpoint; return its number, or None if the disk fails.

        After None, the next attempt is due after a delay. Exception: the last checkpoint before training ends is tried
        six times within this call, over two minutes; after None it is not tried again.
        """
        for wait in (*(FINAL_WAITS_SECONDS if stop.done else ()), None):
            began = time.monotonic()
            try:
                number = self._commit(arrays, now, stop, background)
            except OSError as error:
                if (complete := self._committed_despite_error(now, stop.keep, error)) is not None:
                    return complete
                spent = time.monotonic() - began
                delay = max(self._delay.after_failure(), _RETRY_SHARE * spent) if wait is None else wait
                self._next_checkpoint_at = time.monotonic() + delay
                self.failure = disk_problem(error, self._run.path(CHECKPOINTS), *self._needed_bytes())
                end = "" if stop.done and wait is None else f"; trying again in {delay:.0f} s"
                self._reporter.message(f"no checkpoint at {now.totals.nodes:,} nodes: {self.failure}{end}")
                if wait is not None:
                    time.sleep(wait)
            else:
                return number
        return None

    def _committed_despite_error(self, now: RunState, kept: bool, error: OSError) -> int | None:
        """Return the new checkpoint's number if it is complete on disk despite `error`, else None.

        Writing may fail in a step after the checkpoint itself, such as its line in the journal. A complete one counts
        as committed; its line is added to the journal if it is missing.

        now   counts that the checkpoint must have
        kept  whether it is to be kept permanently
        """
        root = self._run.path(CHECKPOINTS)
        try:
            number = max(checkpoints.list_checkpoints(root), default=0)
            if number <= (self.committed[0] if self.committed else 0):
                return None
            durable.fsync_dir(root)
            checkpoint = open_run_checkpoint(self._run, number)
            recorded = next((record for record in self._run.backwards(JOURNAL) if "manifest" in record), {})
        except (OSError, ValueError):
            return None
        if Totals(checkpoint.state["nodes_touched"], checkpoint.state["iterations"]) != now.totals:
            return None
        if recorded.get("checkpoint") != number:
            line = {"checkpoint": number, "manifest": checkpoint.content_hash, "unix_seconds": time.time()}
            self._journals.append(JOURNAL, line)
        problem = disk_problem(error, root, *self._needed_bytes())
        self._reporter.message(f"checkpoint {number} is complete, but the step after it failed: {problem}")
        if now.extra_state is not None:
            with suppress(OSError):  # old versions are removed at the next checkpoint
                now.extra_state.settle()
        self._note_commit(number, now.totals, kept)
        return number

    def _needed_bytes(self) -> tuple[int, str]:
        """Return the bytes of a checkpoint on disk, and a word that qualifies them in messages.

        "about ": the number is the size of the newest checkpoint. "at most ": there is none, and it is the size of the
        tables.
        """
        if self.committed is not None:
            with suppress(OSError, ValueError):
                path = checkpoints.checkpoint_path(self._run.path(CHECKPOINTS), self.committed[0])
                return sum(file.length_bytes for file in checkpoints.open_checkpoint(path).files.values()), "about "
        return self._layout.nbytes, "at most "

    def _commit(self, arrays: Arrays, now: RunState, stop: Stop, background: bool) -> int:
        run, root, totals = self._run, self._run.path(CHECKPOINTS), now.totals
        number = max(1, checkpoints.next_number(root))
        self._reporter.phase(f"writing checkpoint {number}")
        state: dict[str, Any] = {
            "nodes_touched": totals.nodes,
            "iterations": totals.iterations,
            "period": self._schedule.period(totals.nodes),
            "training_seconds": now.training_seconds,
            "kept": stop.keep,
            "measured": stop.due,
            "workers": [_worker_fields(state) for state in now.states],
        }
        fields, parents = ({}, {}) if now.extra_state is None else now.extra_state.write()
        checkpoint_writer.commit(
            root,
            number,
            [spec for spec in self._layout.specs if spec.name in arrays],
            arrays,
            state | fields,
            run.identity,
            format=run.config.tables.format,
            keep=run.config.run.keep_checkpoints,
            journal=run.path(JOURNAL),
            parents=parents,
            spared=self._evaluator.kept,
            compressed=run.config.tables.checkpoint_compression != "none",
            background=background,
            notes=self._notes,
            lock=run.lock,
        )
        if now.extra_state is not None:
            now.extra_state.settle()
        self._note_commit(number, totals, stop.keep)
        return number

    def _note_commit(self, number: int, totals: Totals, kept: bool) -> None:
        self.committed, self.failure = (number, totals), None
        self._delay.after_success()
        if kept:
            self._evaluator.kept.append(number)
        self._next_checkpoint_at = time.monotonic() + self._run.config.run.checkpoint_seconds

    def _note_trends(self, number: int, arrays: Arrays, now: RunState, commit_seconds: float) -> None:
        record = {
            "checkpoint": number,
            "nodes_touched": now.totals.nodes,
            "iterations": now.totals.iterations,
            "never_reached_per_street": never_reached_per_street(self._game, TableSet(arrays, self._layout.specs)),
            "saturated_rows": saturated(arrays, self._layout.specs),
            **({} if now.extra_state is None else now.extra_state.facts()),
            "pause_seconds": round(now.pause_seconds, 4),
            "commit_seconds": round(commit_seconds, 4),
            "unix_seconds": round(time.time(), 3),
        }
        self._journals.append(TRENDS, record)

    def _evaluate(self, arrays: Arrays, now: RunState) -> list[dict[str, Any]]:
        totals = now.totals
        self._reporter.phase(EVALUATING)
        needed = evaluation_bytes(self._run.config, self._game, self._layout)
        available = available_memory_bytes()
        if needed > available:
            self._reporter.message(
                f"no evaluation at {totals.nodes:,} nodes: strategies take {needed:,} bytes and {available:,} bytes of "
                "memory are available; evaluate the checkpoint on a larger machine, or less often"
            )
            return []
        number = self.committed[0] if self.committed and self.committed[1] == totals else None
        if now.extra_state is not None and number is None:
            self._reporter.message(f"no evaluation at {totals.nodes:,} nodes: its checkpoint could not be written")
            return []
        self._evaluating = True
        try:
            strategy = self._average(arrays, totals, None if now.extra_state is None else number)
            with naming_steps(self._reporter, self._stop_if_left):
                records = self._evaluator.evaluate(strategy)
                self._add_averages(records, arrays, totals)
        except OSError as error:  # a checkpoint of the evaluation is damaged or missing; training does not need it
            self._reporter.message(f"no evaluation at {totals.nodes:,} nodes: {error}")
            return []
        except _LeftError:
            return []
        finally:
            self._evaluating = False
        if self._left:
            return []
        for record in records:
            record |= {"nodes_touched": totals.nodes, "iterations": totals.iterations, "checkpoint": number}
            self._journals.append(EVALUATIONS, record)
        return records

    def leave_evaluation(self) -> bool:
        """Make a running evaluation end at its next step, without a record; return whether one was running."""
        self._left = self._left or self._evaluating
        return self._evaluating

    def _stop_if_left(self) -> None:
        if self._left:
            raise _LeftError

    def _add_averages(self, records: list[dict[str, Any]], arrays: Arrays, totals: Totals) -> None:
        """Add fields of the algorithm to evaluation records, in place.

        These are figures that only this algorithm computes. An algorithm with several average strategies adds
        `average`, the name of the evaluated one. It also adds `other_averages`, {name of another: its figures by the
        same method}.

        arrays  {name: table} of the run
        totals  counts to which the tables belong
        """
        averages, tables = self._run.algorithm.averages, TableSet(arrays, self._layout.specs)
        counts = totals.nodes, totals.iterations
        others = {
            name: self._evaluator.measure_average(averages.strategy(self._game, tables, *counts, name))
            for name in averages.names[1:]
        }
        for record in records:
            record.update(averages.figures(tables))
            if averages.names:
                of_method = {name: measured.get(record["method"]) for name, measured in others.items()}
                record.update({"average": averages.names[0], "other_averages": of_method})

    def _average(self, arrays: Arrays, totals: Totals, number: int | None) -> Strategy:
        """Return the average strategy to evaluate.

        arrays  {name: table} of the run
        totals  counts to which the tables belong
        number  checkpoint to read it from; None: compute it from `arrays`
        """
        if number is not None:
            return checkpoint_average(self._game, self._run.config, open_run_checkpoint(self._run, number))
        averages, tables = self._run.algorithm.averages, TableSet(arrays, self._layout.specs)
        if averages.of_sums:
            return sums_average(self._game, tables)
        return averages.strategy(self._game, tables, totals.nodes, totals.iterations)


def _advice(dtype: str) -> str:
    return ", or keep regrets in float64 (tables.regret_dtype; solver.dtype under cfr)" if dtype == "float32" else ""


def not_finite_text(
    layout: TableLayout, error: NotFiniteError, checkpoint: int | None, user_code: str | None = None
) -> str:
    """Return a sentence on a NaN or infinite cell: table, newest checkpoint, and possible cause.

    layout      layout of the run's tables
    error       error with the name of the table
    checkpoint  number of the newest checkpoint, which stays; None: there is none
    user_code   name of the user's code that may have caused it; None: the run uses none
    """
    kept = f"checkpoint {checkpoint} stays" if checkpoint is not None else "there is no checkpoint"
    dtype = next(spec.dtype for spec in layout.specs if spec.name == error.name)
    cause = f"{user_code} may have caused it, or " if user_code is not None else ""
    return (
        f"{error}: nothing of it is committed, and {kept}; {cause}payoffs times weights have "
        f"grown beyond {dtype}: start a new run with smaller payoffs{_advice(dtype)}"
    )
