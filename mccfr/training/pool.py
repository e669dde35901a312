"""Who does the work of a run: worker processes, or this process itself.  Both obey the same few orders.

`release` lets the workers train until the run's totals reach a limit; `resting` says whether all have got there (or
have obeyed `pause`); while they rest, `states` and the tables are consistent.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

import mccfr
from mccfr.games.game import Game
from mccfr.solvers.solver import Views, WorkerState
from mccfr.tables import TableArrays
from mccfr.training import control
from mccfr.training.rundir import LOG, Run
from mccfr.training.worker import publish, read_state
from storage.live import LiveTables
from storage.mapping import create_cells, regions_to_json

_SLICE_SECONDS = 0.05
_END_SECONDS = 10.0


class Pool(Protocol):
    """The orders that both kinds of pool take."""

    def release(self, stop_nodes: int, stop_iterations: int) -> None:
        """Train until the totals reach either number."""

    def pause(self) -> None:
        """Rest at the next iteration boundary."""

    def wait(self, seconds: float) -> None:
        """Let at most so much time pass; return early when all rest.  Raises `RuntimeError` if a worker died."""

    def resting(self) -> bool:
        """Whether every worker rests."""

    def totals(self) -> tuple[int, int]:
        """(nodes, iterations) of the run so far; exact while all rest."""

    def busy_seconds(self) -> float:
        """Training time of this session: that of the busiest worker."""

    def iterations_weight(self) -> float:
        """Total weight of the iterations of this session; exact while all rest."""

    def states(self) -> list[WorkerState]:
        """Every worker's state, those that sit out included; only while all rest."""

    def close(self) -> None:
        """End the workers."""


class InlinePool:
    """`workers = 0`: the coordinator's own process does the work, in slices."""

    def __init__(self, game: Game, run: Run, tables: TableArrays, views: Views, states: Sequence[WorkerState]) -> None:
        own = states[0] if states else WorkerState()
        self._solver = run.algorithm.solver(game, tables, views, 0, own)
        self._solver.warm_up()
        self._schedule, self._weight = run.algorithm.schedule, 0.0
        self._idle = list(states[1:])
        self._stop = (0, 0)

    def release(self, stop_nodes: int, stop_iterations: int) -> None:
        self._stop = (stop_nodes, stop_iterations)

    def pause(self) -> None:
        self._stop = (0, 0)

    def wait(self, seconds: float) -> None:
        end = time.monotonic() + min(seconds, _SLICE_SECONDS)
        while not self.resting() and time.monotonic() < end:
            nodes, iterations = self.totals()
            done, _ = self._solver.run(nodes, self._stop[0] - nodes, self._stop[1] - iterations)
            self._weight += self._schedule.weight(nodes) * done

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

    def close(self) -> None:
        self.pause()


class ProcessPool:
    """Worker processes on the shared tables, each with its own streams of deals and actions."""

    def __init__(self, run: Run, live: LiveTables, workers: int, states: Sequence[WorkerState]) -> None:
        self._idle = list(
            states[workers:]
        )  # of an earlier session with more workers: kept, so that no deal comes twice
        shape = (1 + workers, control.COLUMNS)
        self._block = create_cells(live.directory / "control", shape)
        self._cells = self._block.cells
        orders = self._cells[0]
        orders[control.COMMAND] = control.PAUSE
        orders[control.EPOCH] = 1
        orders[control.BASE_NODES] = sum(state.nodes for state in self._idle)
        orders[control.BASE_ITERATIONS] = sum(state.iterations for state in self._idle)
        for row, state in zip(self._cells[1:], states, strict=False):
            if state.rng:
                publish(row, state)
        self._ordered_at = time.monotonic()
        self._processes = self._start(run, live, workers, shape)

    def _start(self, run: Run, live: LiveTables, workers: int, shape: tuple[int, int]) -> list[subprocess.Popen[bytes]]:
        assignment = live.directory / "assignment.json"
        document = {
            "run": str(run.directory.resolve()),
            "regions": regions_to_json(live.regions),
            "cells": str(live.directory / "control"),
            "shape": shape,
            "coordinator": os.getpid(),
        }
        assignment.write_text(json.dumps(document))
        root = str(Path(mccfr.__file__).resolve().parent.parent)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
        command = [sys.executable, "-P", "-m", "mccfr.training.worker", str(assignment)]
        self._log = run.path(LOG)
        with self._log.open("ab") as log:
            return [
                subprocess.Popen(
                    [*command, str(worker)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    start_new_session=True,  # the terminal's Ctrl-C is the coordinator's business
                )
                for worker in range(workers)
            ]

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
            self._check_alive()
            time.sleep(min(0.02, max(0.0005, (now - self._ordered_at) / 20)))
            now = time.monotonic()

    def _check_alive(self) -> None:
        for worker, process in enumerate(self._processes):
            code = process.poll()
            if code is not None:
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
                raise RuntimeError(
                    f"worker {worker} died ({how}; its last words are in {self._log}): the run is stopped, and "
                    "what was trained since the last checkpoint is dropped; continue with `mccfr resume`"
                )

    def resting(self) -> bool:
        return bool(np.all(self._cells[1:, control.RESTING_SINCE] == self._cells[0, control.EPOCH]))

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

    def close(self) -> None:
        self._order(control.QUIT)
        end = time.monotonic() + _END_SECONDS
        for process in self._processes:
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
