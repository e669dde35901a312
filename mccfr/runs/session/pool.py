"""Who does the work of a run, and on which tables: worker processes, or this process itself.

A pool owns the live tables.  They are there from the start, to be filled by whoever
restores a run; `begin` sets the workers to them.  All kinds obey the same few orders: `release` lets the workers train
until the run's totals reach a limit; `resting` says whether all have got there (or have obeyed `pause`); while they
rest, `states` and the tables are consistent.

A worker that dies, or is ended because it does not answer, is *lost*: the others' orders go on without it.  What it
had published stays in `totals` and `states`; the tables also hold the part of a batch that it had begun, which is as
good as what workers without locks do to each other.
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

import numpy as np

import mccfr
from mccfr.config.outside import permissions
from mccfr.config.table import first_refused
from mccfr.config.tables import Config
from mccfr.games.game import Game
from mccfr.runs.directory.run import LOG, Run
from mccfr.runs.session import control
from mccfr.runs.session.shared_deck import share_buckets
from mccfr.runs.session.watch import Silence, Watch, process_stat
from mccfr.runs.session.worker import map_tables, publish, read_state
from mccfr.signals import signals_blocked
from mccfr.solvers.solver import Share, WorkerState
from mccfr.tables.layout import TableSet
from storage import space
from storage.checkpoint import Checkpoint
from storage.durable import naming
from storage.live import LiveTables
from storage.mapping import create_cells, regions_to_json

_SLICE_SECONDS = 0.05
_END_SECONDS = 10.0
_KILL_SECONDS = 5.0
_LOW_MEMORY_SHARE = 0.05  # of all memory: with less left, a kill out of nowhere is probably the system's


class ExtraState(Protocol):
    """What a checkpoint holds beside the tables: all that is not in memory."""

    def write(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Bring it to disk; returns what the checkpoint's state says of it, and its parents: {name: content hash}."""

    def facts(self) -> dict[str, Any]:
        """What a line of `trends.jsonl` says of it."""

    def settle(self) -> None:
        """The checkpoint is there: remove what no checkpoint names any more."""


class Pool(Protocol):
    """The orders that every kind of pool takes.

    tables   the live tables
    game     what is played, with what workers share of it in shared memory
    warning  a sentence about where the tables lie, if anything is wrong with the place
    """

    tables: TableSet
    game: Game
    warning: str | None

    def go_on(self, checkpoint: Checkpoint | None) -> None:
        """Take what a checkpoint holds beside the tables, before `begin`; None: the run begins."""

    def extra_state(self) -> ExtraState | None:
        """What a checkpoint of this moment must hold beside the tables; only while all rest.  None: nothing."""

    def begin(self, states: Sequence[WorkerState]) -> None:
        """Set workers to the tables, going on from their states (none: from the start); they rest until released."""

    def release(self, stop_nodes: int, stop_iterations: int) -> None:
        """Train until the totals reach either number."""

    def pause(self) -> None:
        """Rest at the next iteration boundary."""

    def wait(self, seconds: float) -> None:
        """Let at most so much time pass; return early when all rest, or when one is found dead."""

    def resting(self) -> bool:
        """Whether every worker rests that is not lost."""

    def totals(self) -> tuple[int, int]:
        """(nodes, iterations) of the run so far; exact while all rest."""

    def busy_seconds(self) -> float:
        """Training time of this session: that of the busiest worker."""

    def iterations_weight(self) -> float:
        """Total weight of the iterations of this session; exact while all rest."""

    def states(self) -> list[WorkerState]:
        """Every worker's state, those that sit out included; only while all rest."""

    def losses(self) -> dict[int, str]:
        """What became of lost workers, by their numbers."""

    def died(self) -> bool:
        """Whether a worker was lost that nobody here has ended."""

    def can_save(self) -> bool:
        """Whether the tables are worth a checkpoint although workers are lost."""

    def silent(self) -> list[Silence]:
        """Workers that have given no sign for long."""

    def end_late(self, ordered_at: float, seconds: float, *, spare: bool) -> list[str]:
        """End the workers that still do not rest `seconds`, and two of their batches, after the moment `ordered_at`.

        `spare` leaves alone those that compute.  Returns a sentence for each; they are lost.
        """

    def kill(self) -> None:
        """End all workers at once, whatever they do."""

    def close(self) -> None:
        """End the workers."""


class AllInMemory:
    """What pools say whose tables are whole in memory, so that nothing else belongs to a checkpoint."""

    @classmethod
    def problem(cls, config: Config) -> str | None:
        """Why the pool of a configuration cannot train it, in a sentence; None: it can."""
        needed = "left out unless tables.resident is set, such as tables.resident = '16GB'"
        blocks, length = config.run.blocks, config.run.cycle_iterations
        return first_refused(
            config, [("run.blocks", blocks is None, needed), ("run.cycle_iterations", length is None, needed)]
        )

    def go_on(self, checkpoint: Checkpoint | None) -> None:
        pass

    def extra_state(self) -> ExtraState | None:
        return None


class NobodyLost:
    """What pools say that go on with all who train or not at all."""

    def losses(self) -> dict[int, str]:
        return {}

    def died(self) -> bool:
        return False

    def can_save(self) -> bool:
        return True

    def end_late(self, ordered_at: float, seconds: float, *, spare: bool) -> list[str]:
        return []


class InlinePool(AllInMemory, NobodyLost):
    """`workers = 0`: the coordinator's own process does the work, in slices."""

    def __init__(self, run: Run, game: Game, live: LiveTables) -> None:
        self.game, self.warning = game, live.warning
        self.tables = map_tables(run.layout(game), live.regions)
        self._algorithm, self._weight = run.algorithm, 0.0
        self._stop = (0, 0)

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
            done, _ = self._solver.run(nodes, self._stop[0] - nodes, self._stop[1] - iterations)
            self._weight += self._algorithm.schedule.weight(nodes) * done

    def resting(self) -> bool:
        nodes, iterations = self.totals()
        return nodes >= self._stop[0] or iterations >= self._stop[1]

    def totals(self) -> tuple[int, int]:
        states = self.states()
        return sum(state.nodes for state in states), sum(state.iterations for state in states)

    def busy_seconds(self) -> float:
        return self._solver.busy_seconds

    def iterations_weight(self) -> float:
        return self._weight

    def states(self) -> list[WorkerState]:
        return [self._solver.state, *self._idle]

    def silent(self) -> list[Silence]:
        return []

    def kill(self) -> None:
        self.pause()

    def close(self) -> None:
        self.pause()


class ProcessPool(AllInMemory):
    """Worker processes on tables in shared memory, each with its own streams of deals and actions, by control cells."""

    _program = "mccfr.runs.session.worker"

    def __init__(self, run: Run, game: Game, live: LiveTables) -> None:
        self._run, self._log = run, run.path(LOG)
        self._live, self.warning = live, live.warning
        self.tables = map_tables(run.layout(game), live.regions)
        self.game, self._buckets = share_buckets(game, live.directory, run.algorithm)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lost: dict[int, str] = {}
        self._ended: set[int] = set()  # those of the lost that were ended here

    def begin(self, states: Sequence[WorkerState]) -> None:
        run = self._run
        workers = run.algorithm.traits.processes(run.config.run.workers)
        if workers > 1:  # compile once, not in every worker
            run.algorithm.solver(self.game, self.tables).warm_up()
        # Of an earlier session with more workers: kept, so that no deal comes twice.
        self._idle = list(states[workers:])
        self._make_cells(1 + workers)
        orders = self._cells[0]
        orders[control.BASE_NODES] = sum(state.nodes for state in self._idle)
        orders[control.BASE_ITERATIONS] = sum(state.iterations for state in self._idle)
        for worker, row in enumerate(self._cells[1:]):
            publish(row, states[worker] if worker < len(states) else WorkerState())
        # One worker sweeps all tables at the ends of periods there: when it is lost, they may be swept in part.
        self._sweeper = 0 if run.algorithm.traits.sweeps else None
        self._begin_workers(workers)

    def _make_cells(self, rows: int) -> None:
        """Make the control block, with the order to rest in it."""
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
        # Short naps at first, so that a pause takes no time; longer ones later: the processors are the workers'.
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
        # A single worker's run is repeatable to the bit, and would not be any more.
        return not self._lost or (len(self._processes) > 1 and self._sweeper not in self._lost)

    def silent(self) -> list[Silence]:
        return self._watch.silent()

    def end_late(self, ordered_at: float, seconds: float, *, spare: bool) -> list[str]:
        sentences, now = [], time.monotonic()
        stuck = {silence.worker for silence in self.silent() if not silence.computes}
        for worker in range(len(self._processes)):
            rests = self._cells[1 + worker, control.RESTING_SINCE] == self._cells[0, control.EPOCH]
            if worker in self._lost or rests or now - ordered_at < self._watch.patience(worker, seconds):
                continue
            if spare and worker not in stuck:
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

    def iterations_weight(self) -> float:
        return float(self._cells[1:, control.WEIGHT].copy().view(np.float64).sum())

    def states(self) -> list[WorkerState]:
        return [*(read_state(row) for row in self._cells[1:]), *self._idle]

    def _begin_workers(self, workers: int) -> None:
        """Start the workers, whose rows are ready, and watch them."""
        self._ordered_at = time.monotonic()
        self._kills_before = space.killed_for_memory()
        try:
            self._start(workers)
        except BaseException:
            self.kill()
            raise
        pids, lost = [process.pid for process in self._processes], self._lost
        # Holding `lost` and not the pool, so that the pool's memory goes with it and does not wait for a collector.
        self._watch = Watch(self._cells[1:], map(process_stat, pids), lambda worker: worker not in lost)

    def _assignment(self) -> dict[str, object]:
        """What workers must know."""
        run, live = self._run, self._live
        return {
            "run": str(run.directory),  # through this process's descriptor, wherever it is moved
            "abstraction": None if run.abstraction_path is None else str(run.abstraction_path.resolve()),
            "code": permissions(),
            "regions": regions_to_json(live.regions),
            "workers": run.config.run.workers,  # of this session: the run's own config may say another number
            "cells": str(live.directory / "control"),
            "shape": self._cells.shape,
            "coordinator": os.getpid(),
        }

    def _start(self, workers: int) -> None:
        assignment = self._live.directory / "assignment.json"
        with naming(assignment):
            assignment.write_text(json.dumps(self._assignment()))
        root = str(Path(mccfr.__file__).resolve().parent.parent)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
        command = [sys.executable, "-P", "-m", self._program, str(assignment)]
        with naming(Path(sys.executable)), self._log.open("ab") as log:
            for worker in range(workers):
                # Signals to all processes of a job are for the coordinator: workers block them from their first moment.
                with signals_blocked():
                    process = subprocess.Popen(
                        [*command, str(worker)],
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        env=environment,
                        start_new_session=True,  # else a terminal stops and continues workers, too
                    )
                    self._processes.append(process)

    def _find_dead(self) -> bool:
        """Note the workers that have died; whether there are new ones."""
        before = len(self._lost)
        for worker, process in enumerate(self._processes):
            code = process.poll()
            if code is not None and worker not in self._lost:
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
                memory = self._memory_text() if -code == signal.SIGKILL else ""
                self._lost[worker] = f"worker {worker} died ({how}{memory}; its last words are in {self._log})"
        return len(self._lost) > before

    def _memory_text(self) -> str:
        """Why a kill was probably the system's, for want of memory; nothing where there is no sign of that."""
        available, total = space.available_memory_bytes(), space.total_memory_bytes()
        if space.killed_for_memory() > self._kills_before:
            return f": the system has killed processes for want of memory, and {available:,} bytes are available now"
        if available < _LOW_MEMORY_SHARE * total:
            return f", probably for want of memory: {available:,} bytes are available"
        return ""

    def _end(self, worker: int) -> None:
        process = self._processes[worker]
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # one that waits for a broken disk cannot even die
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
