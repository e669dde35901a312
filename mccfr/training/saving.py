"""What is done with the tables of one moment: a checkpoint, the trend line that goes with it, an evaluation."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.plan import evaluation_bytes
from mccfr.solvers.solver import WorkerState
from mccfr.strategy import Strategy
from mccfr.tables import TableLayout
from mccfr.training.averages import checkpoint_average, snapshots_behind
from mccfr.training.evaluator import Evaluator
from mccfr.training.events import Totals
from mccfr.training.report import Reporter
from mccfr.training.rundir import CHECKPOINTS, EVALUATIONS, JOURNAL, Run
from mccfr.training.trends import TRENDS, Trends
from storage import checkpoint as checkpoints
from storage.space import available_memory_bytes

Arrays = Mapping[str, npt.NDArray[np.generic]]


@dataclass(frozen=True)
class Moment:
    """A consistent state of a run, taken while its workers rest."""

    totals: Totals
    states: list[WorkerState]
    training_seconds: float
    iterations_weight: float | None  # total over the whole run; None: the run began with a version that did not count
    pause_seconds: float  # from the order to rest until a copy of the tables was taken, or was found not to fit


@dataclass(frozen=True)
class Look:
    """What is done with the tables at a stop."""

    commit: bool
    evaluate: bool
    keep: bool  # the checkpoint stays for good
    done: bool  # the session ends here


class Saver:
    """Commits and evaluates; knows the newest checkpoint of the session."""

    def __init__(self, run: Run, game: Game, layout: TableLayout, reporter: Reporter) -> None:
        self._run, self._game, self._layout, self._reporter = run, game, layout, reporter
        self._schedule = run.algorithm.schedule
        self._evaluator = Evaluator(run, game)
        self._trends = Trends(game, run.algorithm, layout.specs)
        self._snapshots: list[dict[str, int]] = []  # what the average strategy of later streets builds on
        self.committed: tuple[int, Totals] | None = None  # number of the newest checkpoint, and its counts
        self.last_commit = time.monotonic()

    def begin(self, restored: checkpoints.Checkpoint | None, arrays: Arrays) -> None:
        """Take note of earlier sessions: kept checkpoints, and the tables that were restored."""
        self._evaluator.find_kept()
        if restored is not None:
            self.committed = (restored.number, Totals(restored.state["nodes_touched"], restored.state["iterations"]))
            self._trends.remember(arrays)
            self._snapshots = snapshots_behind(restored.state, restored.number)

    def save(
        self, arrays: dict[str, npt.NDArray[Any]], moment: Moment, look: Look, *, background: bool
    ) -> dict[str, Any] | None:
        """Commit and evaluate as the look says; returns the evaluation record, if there is one.

        arrays      tables by name; those that an evaluation does not need are dropped from it after the commit
        background  workers train meanwhile: give way to them
        """
        if look.commit:
            began = time.monotonic()
            number = self._commit(arrays, moment, look.keep, background)
            seconds = time.monotonic() - began
            self._note_trends(number, arrays, moment, seconds)
        for name in [name for name in arrays if not self._run.algorithm.is_averaged(name)]:
            del arrays[name]
        return self._evaluate(arrays, moment, look) if look.evaluate else None

    def _commit(self, arrays: Arrays, moment: Moment, kept: bool, background: bool) -> int:
        run, root, totals = self._run, self._run.path(CHECKPOINTS), moment.totals
        number = max(1, checkpoints.next_number(root))
        state: dict[str, Any] = {
            "nodes_touched": totals.nodes,
            "iterations": totals.iterations,
            "iterations_weight": moment.iterations_weight,
            "period": self._schedule.period(totals.nodes),
            "training_seconds": moment.training_seconds,
            "kept": kept,
            "workers": [{"iterations": s.iterations, "nodes": s.nodes, "rng": s.rng} for s in moment.states],
        }
        if run.config.tables.strategy_sums == "preflop":
            state |= {"snapshot": self._snapshot_due(totals), "snapshots": self._snapshots}
        checkpoints.commit(
            root,
            number,
            self._layout.specs,
            arrays,
            state,
            run.identity,
            format=run.config.tables.format,
            keep=run.config.run.keep_checkpoints,
            journal=run.path(JOURNAL),
            spared=[*self._evaluator.kept, *(snapshot["checkpoint"] for snapshot in self._snapshots)],
            compressed=run.config.tables.checkpoint_compression != "none",
            background=background,
        )
        self.committed = (number, totals)
        if kept:
            self._evaluator.kept.append(number)
        self._snapshots = snapshots_behind(state, number)
        self.last_commit = time.monotonic()
        return number

    def _snapshot_due(self, totals: Totals) -> bool:
        """Whether the run has passed a multiple of `tables.snapshot_nodes` since its last snapshot."""
        every = self._run.config.tables.snapshot_nodes
        last = self._snapshots[-1]["nodes_touched"] if self._snapshots else 0
        return every is not None and last // every < totals.nodes // every

    def _note_trends(self, number: int, arrays: Arrays, moment: Moment, commit_seconds: float) -> None:
        weight = self._schedule.weight(moment.totals.nodes)
        record = {
            "checkpoint": number,
            "nodes_touched": moment.totals.nodes,
            "iterations": moment.totals.iterations,
            **self._trends.measure(arrays, moment.iterations_weight, weight),
            "pause_seconds": round(moment.pause_seconds, 4),
            "commit_seconds": round(commit_seconds, 4),
            "unix_seconds": round(time.time(), 3),
        }
        self._run.append(TRENDS, record)

    def _evaluate(self, arrays: Arrays, moment: Moment, look: Look) -> dict[str, Any] | None:
        totals = moment.totals
        needed = evaluation_bytes(self._run.config, self._game, self._layout)
        available = available_memory_bytes()
        if needed > available:
            self._reporter.message(
                f"no evaluation at {totals.nodes:,} nodes: strategies take {needed:,} bytes and {available:,} bytes of "
                "memory are available; evaluate the checkpoint on a larger machine, or less often"
            )
            return None
        number = self.committed[0] if look.commit and self.committed else None
        try:
            strategy = self._average(arrays, totals)
        except OSError as error:  # a snapshot that is damaged or gone: training has no need of it
            self._reporter.message(f"no evaluation at {totals.nodes:,} nodes: {error}")
            return None
        record = self._evaluator.evaluate(strategy)
        record |= {"nodes_touched": totals.nodes, "iterations": totals.iterations, "checkpoint": number}
        self._run.append(EVALUATIONS, record)
        return record

    def _average(self, arrays: Arrays, totals: Totals) -> Strategy:
        """The average strategy of tables by name; where snapshots make it, of the checkpoint that holds the tables."""
        config = self._run.config
        if config.tables.strategy_sums == "all":
            algorithm = self._run.algorithm
            return algorithm.average(self._game, self._layout.specs, arrays, totals.nodes, totals.iterations)
        if self.committed is None or self.committed[1] != totals:
            raise RuntimeError("an average strategy of snapshots was asked for between checkpoints")
        path = checkpoints.checkpoint_path(self._run.path(CHECKPOINTS), self.committed[0])
        return checkpoint_average(self._game, config, checkpoints.open_checkpoint(path))
