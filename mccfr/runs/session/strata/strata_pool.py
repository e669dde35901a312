"""Pools that train by strata, in intervals between barriers at which the first street is added up.

A stratum is a group of second-street boards (flops) with buckets of its own from that street on; one worker at a time
trains it. In an interval each worker changes its own copy of the first street's tables. At the barrier, when all
workers rest, the changes of all copies are added to the run's tables.

Workers pause only at barriers, so limits, checkpoints and signals take effect at the next barrier and do not change the
barriers. Training depends only on the states of the strata and the tables. If a worker dies within an interval, the
session returns to its last checkpoint, because its tables are inconsistent.
"""

import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.runs.directory.run import Run
from mccfr.runs.session import control
from mccfr.runs.session.worker import publish, read_state
from mccfr.runs.session.worker_pool import Pool, ProcessPool
from mccfr.solvers.sampling.sampled import SampledAlgorithm
from mccfr.solvers.solver import WorkerState
from mccfr.solvers.strata_training import Barrier, Interval, first_states, first_street_names
from mccfr.tables.table_layout import TableSet
from storage.live_tables import LiveTables
from storage.mapping import create_cells

_NAP_SECONDS = 0.0005


class Intervals:
    """State of a run's strata, which are trained interval by interval; a pool uses it.

    A stratum is a group of flops. An interval is the training between two barriers, at which all workers rest. Each
    stratum has a quota in it: a number of iterations.

    rows      [N, columns] int64 counters, random states and quotas of the N strata, read and written by workers
    interval  the present interval; None at a barrier
    cells     number of cells in all tables of the first street together
    """

    def __init__(self, run: Run, game: Game, tables: TableSet) -> None:
        algorithm = run.algorithm
        assert isinstance(algorithm, SampledAlgorithm) and game.strata is not None
        self._algorithm, self._strata = algorithm, game.strata.count
        totals: dict[str, Any] = {name: tables[name] for name in first_street_names(game)}
        self._barrier = Barrier(game, algorithm, totals)
        self.cells = self._barrier.parts.cells
        self.interval: Interval | None = None
        self._stop, self._goes_on = (0, 0), False
        self.rows = np.zeros((self._strata, control.COLUMNS), np.int64)  # until `begin`

    def begin(self, rows: npt.NDArray[np.int64], states: Sequence[WorkerState]) -> None:
        """Use `rows` from now on, and write the state of each stratum into its row.

        A stratum is a group of flops.

        rows    [N, columns] int64, shared with the workers
        states  counters and random states of the N strata; empty: a new run
        """
        states = states or first_states(self._algorithm, self._strata)
        self.rows, self._rounding_left = rows, [state.due for state in states]
        for row, state in zip(rows, states, strict=True):
            publish(row, state)

    def release(self, stop_nodes: int, stop_iterations: int) -> None:
        """Let training go on by intervals until the run's total nodes or iterations reach these counts."""
        self._stop, self._goes_on = (stop_nodes, stop_iterations), True

    def pause(self) -> None:
        """Let training rest at the end of the present interval."""
        self._goes_on = False

    def ready(self) -> bool:
        """Return whether the next interval can begin now; table rows may still be loading."""
        return True

    def over(self) -> bool:
        """Return whether no interval is to follow: after `pause`, or at a limit of `release`."""
        nodes, iterations = self.totals()
        return not self._goes_on or nodes >= self._stop[0] or iterations >= self._stop[1]

    def start(self) -> Interval:
        """Begin and return an interval; write each stratum's number of iterations in it into `rows`.

        A stratum is a group of flops. Call it only at a barrier.
        """
        states = self.states()
        self.interval, quotas = self._barrier.begin(states)
        self._rounding_left = [state.due for state in states]
        self.rows[:, control.QUOTA] = quotas
        return self.interval

    def end(self, changes: npt.NDArray[np.int64], *, fits: bool) -> None:
        """End the interval: add the workers' changes to the tables of the first street.

        changes  [W, cells] int64 change of each cell by each of W workers, times the interval's scale (a power of two)
        fits     whether all changes fit in 64 bits

        Raises `RuntimeError` unless they fit.
        """
        assert self.interval is not None
        nodes, _ = self.totals()
        if not fits:
            raise RuntimeError(
                f"a row of the first street changed by more between {self.interval.nodes:,} and {nodes:,} nodes than "
                "64 bits hold: nothing was added; payoffs are too large, or solver.epsilon too small, for run.strata"
            )
        self._add(self.interval, changes.sum(axis=0))
        self.interval = None

    def _add(self, interval: Interval, changes: npt.NDArray[np.int64]) -> None:
        """Add changes to the tables of the first street.

        interval  the interval that ends, with its scale (a power of two)
        changes   [cells] int64 change of each cell by all workers together, times the scale
        """
        self._barrier.add(interval, changes)

    def totals(self) -> tuple[int, int]:
        """Return the run's (nodes, iterations); they are consistent while all workers rest."""
        return int(self.rows[:, control.NODES].sum()), int(self.rows[:, control.ITERATIONS].sum())

    def states(self) -> list[WorkerState]:
        """Return [N] counters and random states of all strata (groups of flops) to continue from."""
        return [replace(read_state(row), due=due) for row, due in zip(self.rows, self._rounding_left, strict=True)]


class IntervalPool(Pool):
    """Base class of pools that train strata interval by interval, on one machine or on several.

    A stratum is a group of flops. An interval is the training between two barriers, at which all workers rest.
    """

    _intervals: Intervals
    _trained_seconds = 0.0

    def release(self, stop_nodes: int, stop_iterations: int) -> None:
        self._intervals.release(stop_nodes, stop_iterations)

    def wait(self, seconds: float) -> None:
        counts, began = self._intervals.interval is not None or not self._intervals.over(), time.monotonic()
        try:
            self._wait_for_barriers(began + seconds)
        finally:
            self._trained_seconds += (time.monotonic() - began) * counts

    @abstractmethod
    def _wait_for_barriers(self, end: float) -> None:
        """Begin one interval after the other until all workers rest, or until the time `end`.

        end  seconds of the monotonic clock
        """

    def busy_seconds(self) -> float:
        """Return the seconds of training in this session, with the waits at barriers and for blocks on disk."""
        return self._trained_seconds

    def pause(self) -> None:
        self._intervals.pause()

    def resting(self) -> bool:
        return self._intervals.interval is None and self._intervals.over()

    def totals(self) -> tuple[int, int]:
        return self._intervals.totals()

    def states(self) -> list[WorkerState]:
        return self._intervals.states()


class StrataPool(IntervalPool, ProcessPool):
    """Pool of worker processes on one machine, which train by strata.

    A stratum is a group of flops, which one worker at a time trains. Each worker trains some of the strata, and has its
    own copy of the first street's tables. There are at most as many workers as strata.
    """

    _program = "mccfr.runs.session.strata.strata_worker"

    def __init__(self, run: Run, game: Game, live: LiveTables) -> None:
        super().__init__(run, game, live)
        self._intervals = self._make_intervals()

    def _make_intervals(self) -> Intervals:
        return Intervals(self._run, self.game, self.tables)

    def begin(self, states: Sequence[WorkerState]) -> None:
        assert self.game.strata is not None
        strata = self.game.strata.count
        self._workers = min(max(1, self._run.config.run.workers), strata)
        self._make_cells(1 + self._workers + strata)
        self._intervals.begin(self._cells[1 + self._workers :], states)
        shape = (self._workers, self._intervals.cells)
        self._changes = create_cells(self._live.directory / "changes", shape)
        self._begin_workers(self._workers)

    def _assignment(self) -> dict[str, object]:
        return {**super()._assignment(), "workers": self._workers, "changes": self._intervals.cells}

    def release(self, stop_nodes: int, stop_iterations: int) -> None:
        super().release(stop_nodes, stop_iterations)
        self._advance()

    def _advance(self) -> None:
        """End the interval that the workers have trained, if any, and begin the next one if it is due.

        Call it only while all workers rest. Raises `RuntimeError` if a change does not fit in 64 bits.
        """
        intervals = self._intervals
        if intervals.interval is not None:
            overflow = self._cells[1 : 1 + self._workers, control.OVERFLOW].any()
            intervals.end(self._changes.cells, fits=not overflow)
        if not intervals.over() and intervals.ready():
            interval = intervals.start()
            self._cells[0, control.BASE_NODES] = interval.nodes
            self._cells[0, control.INTERVAL_SCALE] = np.float64(interval.scale).view(np.int64)
            self._place()
            self._order(control.RUN)

    def _place(self) -> None:
        """Tell workers which block of table rows trains now, and its frame of memory.

        The out-of-core pool overrides this; here all rows are in memory, and nothing is done.
        """

    def _wait_for_barriers(self, end: float) -> None:
        while not self.resting() and time.monotonic() < end:
            if self._find_dead():
                return
            if self._all_rest():
                self._advance()
            if not self._all_rest() or self._intervals.interval is None:
                time.sleep(_NAP_SECONDS)

    def _all_rest(self) -> bool:
        rests = self._cells[1 : 1 + self._workers, control.RESTING_SINCE] == self._cells[0, control.EPOCH]
        return all(rest or worker in self._lost for worker, rest in enumerate(rests.tolist()))

    def resting(self) -> bool:
        return self._all_rest() and (super().resting() or bool(self._lost))

    def can_save(self) -> bool:
        # An incomplete interval has changed tables between barriers.
        return not self._lost
