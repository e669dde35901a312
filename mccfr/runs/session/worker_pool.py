"""Pools of workers that train a run's tables: worker processes, or this process itself.

A pool owns the live tables, which the caller fills before `begin` starts the workers on them. All pools take the same
orders. `release` makes the workers train until the run's totals reach a limit. `resting` returns whether all have
reached it or have obeyed `pause`. While they rest, `states` and the tables are consistent.

A worker is *lost* if it dies, or is ended because it does not answer; the others continue. Its published counts stay in
`totals` and `states`. The tables also contain part of its last batch, an error like those of lock-free updates.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from mccfr.common.package import search_path
from mccfr.config.plugins import permissions
from mccfr.config.run_tables import Config
from mccfr.config.table_base import first_refused
from mccfr.games.game import Game
from mccfr.runs.directory.run import LOG, Run
from mccfr.runs.session import control
from mccfr.runs.session.shared_deck import share_buckets
from mccfr.runs.session.stalled_workers import StalledWorker, StallWatch
from mccfr.runs.session.worker import map_tables, publish, read_state
from mccfr.solvers.solver import Share, WorkerState
from mccfr.tables.table_layout import TableSet
from storage import free_space
from storage.checkpoint import Checkpoint
from storage.deferred_signals import signals_blocked, signals_deferred
from storage.durable import naming
from storage.live_tables import LiveTables
from storage.mapping import create_cells, regions_to_json

_SLICE_SECONDS = 0.05
_END_SECONDS = 10.0
_KILL_SECONDS = 5.0
_LOW_MEMORY_SHARE = 0.05  # of all memory; a kill with less left is probably the out-of-memory killer's


class ExtraState(Protocol):
    """Part of a run's state that a checkpoint needs besides the tables in this machine's memory.

    A pool has it if its tables are partly elsewhere: on disk (out of core) or on other machines.
    """

    def write(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Write this part to disk; return (fields of the checkpoint, {name: content hash}).

        The names are those of directories that the checkpoint needs, such as versions of blocks of table rows. The
        hashes are of their manifests.

        Raises `OSError` if the disk fails or is full.
        """

    def facts(self) -> dict[str, Any]:
        """Return {field: value} on this part, such as bytes moved, for a line of `trends.jsonl`."""

    def settle(self) -> None:
        """Remove data on disk that no checkpoint names; called after a checkpoint's commit."""


class Pool(Protocol):
    """Interface of the workers that train a run's tables; a session gives it orders.

    The defaults are those of a pool whose tables are all in memory, and whose workers are never lost.

    tables   the live tables: those in training, shared with the workers
    game     the game, with the workers' shared data in shared memory
    warning  a sentence on a problem with the location of the tables, or None
    """

    tables: TableSet
    game: Game
    warning: str | None

    @classmethod
    def problem(cls, config: Config) -> str | None:
        """Return a sentence on why the pool cannot train a configuration, or None."""
        needed = "left out unless tables.memory_budget is set, such as tables.memory_budget = '16GB'"
        blocks, length = config.run.blocks, config.run.cycle_iterations
        return first_refused(
            config, [("run.blocks", blocks is None, needed), ("run.cycle_iterations", length is None, needed)]
        )

    def go_on(self, checkpoint: Checkpoint | None) -> None:
        """Restore a checkpoint's data besides tables (None: a new run); call it before `begin`."""

    def extra_state(self) -> ExtraState | None:
        """Return the part of a checkpoint besides the tables, or None if all tables are in memory.

        Call it only while workers rest.
        """
        return None

    def begin(self, states: Sequence[WorkerState]) -> None:
        """Start the workers on the tables; they rest until released.

        states  each worker's counters and random state to continue from; empty: a new run
        """

    def release(self, stop_nodes: int, stop_iterations: int) -> None:
        """Order the workers to train until the run's totals reach a limit, without waiting for them.

        Training ends at the first limit reached.  Workers finish their batch of iterations, or with `run.strata` their
        interval, so totals may be larger.  Some pools train, or begin later intervals, only while the caller calls
        `wait`, so call it until `resting` returns True.

        stop_nodes       total nodes of the run since it began, over all workers
        stop_iterations  total iterations of the run since it began, over all workers
        """

    def pause(self) -> None:
        """Make workers pause, each after its batch of iterations.

        With `run.strata` they pause together, when an interval or, out of core, a block of tables is trained.
        """

    def wait(self, seconds: float) -> None:
        """Wait for about `seconds` at most; return early when all workers rest, or one is found dead."""

    def resting(self) -> bool:
        """Return whether all workers rest, except lost ones."""

    def totals(self) -> tuple[int, int]:
        """Return (nodes, iterations) of the run since it began; exact while all workers rest."""

    def busy_seconds(self) -> float:
        """Return the seconds that the busiest worker has trained in this session; with strata, with all waits."""

    def states(self) -> list[WorkerState]:
        """Return all workers' counters and random states, for a checkpoint; only while all rest.

        If an earlier session had more workers, the states of all its workers are included.
        """

    def losses(self) -> dict[int, str]:
        """Return {index of a lost worker: sentence on its loss}."""
        return {}

    def died(self) -> bool:
        """Return whether a worker has died that this process did not end."""
        return False

    def can_save(self) -> bool:
        """Return whether the tables can be saved although workers are lost."""
        return True

    def silent(self) -> list[StalledWorker]:
        """Return a `StalledWorker` (index, seconds, reason) for each worker without progress for long.

        Long is `SILENT_SECONDS` plus twice the time of the longest batch (on several machines: interval).
        """
        return []

    def compiling(self) -> int:
        """Return the estimated seconds of a compilation in progress in a worker; 0: none."""
        return 0

    def end_late(self, ordered_at: float, seconds: float, *, spare_computing: bool) -> list[str]:
        """End the workers that still do not rest some time after an order to rest.

        The time is `seconds` plus that of two of the worker's batches.

        ordered_at       time of the order, by the monotonic clock
        spare_computing  do not end workers that compute

        Returns a sentence for each worker that this call has ended; they count as lost.
        """
        return []

    def kill(self) -> None:
        """End all workers at once, without waiting for the ends of their batches."""
        self.pause()

    def close(self) -> None:
        """End the workers after their present batches; kill those whose batches last too long."""
        self.pause()


class InlinePool(Pool):
    """Pool for `run.workers = 0`: `wait` trains in this process, in short time slices."""

    def __init__(self, run: Run, game: Game, live: LiveTables) -> None:
        self.game, self.warning = game, live.warning
        self.tables = map_tables(run.layout(game), live.regions)
        self._algorithm, self._stop = run.algorithm, (0, 0)

    def begin(self, states: Sequence[WorkerState]) -> None:
        share = Share(state=states[0]) if states else Share()
        self._solver = self._algorithm.solver(self.game, self.tables, share)
        self._solver.warm_up()
        self._idle = list(states[1:])

    def release(self, stop_nodes: int, stop_iterations: int) -> None:
        self._stop = (stop_nodes, stop_iterations)

    def pause(self) -> None:
        self._stop = (0, 0)

    def wait(self, seconds: float) -> None:
        end = time.monotonic() + min(seconds, _SLICE_SECONDS)
        while not self.resting() and time.monotonic() < end:
            nodes, iterations = self.totals()
            self._solver.run(nodes, self._stop[0] - nodes, self._stop[1] - iterations)

    def resting(self) -> bool:
        nodes, iterations = self.totals()
        return nodes >= self._stop[0] or iterations >= self._stop[1]

    def totals(self) -> tuple[int, int]:
        states = self.states()
        return sum(state.nodes for state in states), sum(state.iterations for state in states)

    def busy_seconds(self) -> float:
        return self._solver.busy_seconds

    def states(self) -> list[WorkerState]:
        return [self._solver.state, *self._idle]


class ProcessPool(Pool):
    """Pool of worker processes that train all tables together, in shared memory and without locks.

    Each worker has its own random streams. An algorithm that runs in one process has one worker, which uses threads.
    """

    _program = "mccfr.runs.session.worker"

    def __init__(self, run: Run, game: Game, live: LiveTables) -> None:
        self._run, self._log = run, run.path(LOG)
        self._live, self.warning = live, live.warning
        self.tables = map_tables(run.layout(game), live.regions)
        self.game, self._buckets = share_buckets(game, live.directory, run.algorithm)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lost: dict[int, str] = {}
        self._ended: set[int] = set()  # lost workers that were ended here

    def begin(self, states: Sequence[WorkerState]) -> None:
        run = self._run
        workers = run.algorithm.traits.processes(run.config.run.workers)
        if workers > 1:  # compile once, not in every worker
            run.algorithm.solver(self.game, self.tables).warm_up()
        # States of an earlier session with more workers are kept, so that no deal repeats.
        self._idle = list(states[workers:])
        self._make_cells(1 + workers)
        orders = self._cells[0]
        orders[control.BASE_NODES] = sum(state.nodes for state in self._idle)
        orders[control.BASE_ITERATIONS] = sum(state.iterations for state in self._idle)
        for worker, row in enumerate(self._cells[1:]):
            publish(row, states[worker] if worker < len(states) else WorkerState())
        # One worker discounts all tables at period ends; if it is lost, they may be partly discounted.
        self._sweeper = 0 if run.algorithm.traits.sweeps else None
        self._begin_workers(workers)

    def _make_cells(self, rows: int) -> None:
        """Create the int64 cells [rows, columns] shared with workers, with the order to pause.

        rows  number of rows: one for this process (the coordinator), and the others for workers or strata
        """
        self._block = create_cells(self._live.directory / "control", (rows, control.COLUMNS))
        self._cells = self._block.cells
        self._cells[0, control.COMMAND] = control.PAUSE
        self._cells[0, control.EPOCH] = 1

    def _order(self, command: int) -> None:
        self._ordered_at = time.monotonic()
        self._cells[0, control.COMMAND] = command
        self._cells[0, control.EPOCH] += 1

    def release(self, stop_nodes: int, stop_iterations: int) -> None:
        self._cells[0, control.STOP_NODES] = stop_nodes
        self._cells[0, control.STOP_ITERATIONS] = stop_iterations
        self._order(control.RUN)

    def pause(self) -> None:
        self._order(control.PAUSE)

    def wait(self, seconds: float) -> None:
        # Short sleeps at first, for short pauses; then longer ones, to leave the processors to the workers.
        began = now = time.monotonic()
        while not self.resting() and now < began + seconds:
            if self._find_dead():
                return
            time.sleep(min(0.02, max(0.0005, (now - self._ordered_at) / 20)))
            now = time.monotonic()

    def losses(self) -> dict[int, str]:
        return self._lost

    def died(self) -> bool:
        return bool(self._lost.keys() - self._ended)

    def can_save(self) -> bool:
        # A single worker's run must stay reproducible to the bit.
        return not self._lost or (len(self._processes) > 1 and self._sweeper not in self._lost)

    def silent(self) -> list[StalledWorker]:
        return self._watch.silent()

    def compiling(self) -> int:
        return int(self._cells[1:, control.COMPILING].max())

    def end_late(self, ordered_at: float, seconds: float, *, spare_computing: bool) -> list[str]:
        sentences, now = [], time.monotonic()
        stuck = {silence.worker for silence in self.silent() if not silence.computes}
        for worker in range(len(self._processes)):
            rests = self._cells[1 + worker, control.RESTING_SINCE] == self._cells[0, control.EPOCH]
            if worker in self._lost or rests or now - ordered_at < self._watch.patience(worker, seconds):
                continue
            if spare_computing and worker not in stuck:
                continue
            self._end(worker)
            self._ended.add(worker)
            self._lost[worker] = f"worker {worker} did not rest within {now - ordered_at:.0f} s and was ended"
            sentences.append(self._lost[worker])
        return sentences

    def resting(self) -> bool:
        rests = self._cells[1:, control.RESTING_SINCE] == self._cells[0, control.EPOCH]
        return all(rest or worker in self._lost for worker, rest in enumerate(rests.tolist()))

    def totals(self) -> tuple[int, int]:
        orders, workers = self._cells[0], self._cells[1:]
        nodes = orders[control.BASE_NODES] + workers[:, control.NODES].sum()
        return int(nodes), int(orders[control.BASE_ITERATIONS] + workers[:, control.ITERATIONS].sum())

    def busy_seconds(self) -> float:
        return float(self._cells[1:, control.BUSY_NANOSECONDS].max()) * 1e-9

    def states(self) -> list[WorkerState]:
        return [*(read_state(row) for row in self._cells[1:]), *self._idle]

    def _begin_workers(self, workers: int) -> None:
        """Start the worker processes, and a watch for workers that make no progress.

        Their rows of the shared cells must hold the counters and random states to continue from. If one cannot be
        started, those already started are killed, and the error is passed on.
        """
        self._ordered_at = time.monotonic()
        self._kills_before = free_space.killed_for_memory()
        try:
            self._start(workers)
        except BaseException:
            self.kill()
            raise
        stats, lost = [Path(f"/proc/{process.pid}/stat") for process in self._processes], self._lost
        # Capture `lost`, not the pool: a reference cycle would delay freeing the pool's memory.
        self._watch = StallWatch(self._cells[1:], stats, lambda worker: worker not in lost)

    def _assignment(self) -> dict[str, object]:
        """Return the fields of the JSON assignment file: run, places of shared memory, settings."""
        run, live = self._run, self._live
        return {
            "run": str(run.directory),  # a path through this process's descriptor, valid if the run is moved
            "abstraction": None if run.abstraction_path is None else str(run.abstraction_path.resolve()),
            "code": permissions(),
            "regions": regions_to_json(live.regions),
            "workers": run.config.run.workers,  # of this session; the run's config may have another number
            "cells": str(live.directory / "control"),
            "shape": self._cells.shape,
            "coordinator": os.getpid(),
        }

    def _start(self, workers: int) -> None:
        assignment = self._live.directory / "assignment.json"
        with naming(assignment):
            assignment.write_text(json.dumps(self._assignment()))
        environment = {**os.environ, "PYTHONPATH": search_path()}
        command = [sys.executable, "-P", "-m", self._program, str(assignment)]
        with naming(Path(sys.executable)), self._log.open("ab") as log:
            for worker in range(workers):
                # Job-wide signals are for the coordinator, so workers block them from the start. A handler's exception
                # must not lose a process: other threads take signals that this one blocks, and the handler runs here.
                with signals_deferred(), signals_blocked():
                    process = subprocess.Popen(
                        [*command, str(worker)],
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        env=environment,
                        start_new_session=True,  # a terminal must not stop or continue workers
                    )
                    self._processes.append(process)

    def _find_dead(self) -> bool:
        """Record the workers that have died; return whether any has since the last call."""
        before = len(self._lost)
        for worker, process in enumerate(self._processes):
            code = process.poll()
            if code is not None and worker not in self._lost:
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
                memory = self._memory_text() if -code == signal.SIGKILL else ""
                self._lost[worker] = f"worker {worker} died ({how}{memory}; its output is in {self._log})"
        return len(self._lost) > before

    def _memory_text(self) -> str:
        """Return a text if the system probably killed a worker for want of memory; else ""."""
        available, total = free_space.available_memory_bytes(), free_space.total_memory_bytes()
        if free_space.killed_for_memory() > self._kills_before:
            return f": the system has killed processes for want of memory, and {available:,} bytes are available now"
        if available < _LOW_MEMORY_SHARE * total:
            return f", probably for want of memory: {available:,} bytes are available"
        return ""

    def _end(self, worker: int) -> None:
        process = self._processes[worker]
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process that waits for a broken disk does not die
            process.wait(_KILL_SECONDS)

    def kill(self) -> None:
        for worker, process in enumerate(self._processes):
            process.kill()
            if worker not in self._lost:
                self._ended.add(worker)
                self._lost[worker] = f"worker {worker} was ended"
        for worker in range(len(self._processes)):
            self._end(worker)

    def close(self) -> None:
        if not self._processes:
            return
        self._order(control.QUIT)
        end = time.monotonic() + _END_SECONDS
        for worker, process in enumerate(self._processes):
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._end(worker)
