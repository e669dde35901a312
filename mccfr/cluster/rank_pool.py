"""The coordinator of a run on several machines: it makes training processes (ranks) train.

It holds only the tables of the first street; ranks hold the rows of their strata (groups of flops). A checkpoint is the
first street and a list of versions: saved rows of a stratum, each written by the rank that trains the stratum.

The loss of a rank ends the training. The run then continues from its last checkpoint with the same bits, on any
remaining machines.
"""

import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cluster import messages
from mccfr.cluster.assignment import LEAST_SECONDS, assign_strata, reassign
from mccfr.cluster.capacity import memory_of_machines
from mccfr.cluster.messages import RankAnswer, version_cells, version_of
from mccfr.cluster.mpi import MpiEngine
from mccfr.cluster.trainer import first_street_shapes, new_order, stratum_store
from mccfr.games.game import Game
from mccfr.runs.directory.run import CHECKPOINTS, LIVE, Run, lock
from mccfr.runs.reporter import Reporter
from mccfr.runs.session import control
from mccfr.runs.session.pools import PoolOpener
from mccfr.runs.session.stalled_workers import SILENT_SECONDS, StalledWorker
from mccfr.runs.session.strata.block_slots import first_specs
from mccfr.runs.session.strata.strata_pool import IntervalPool, Intervals
from mccfr.runs.session.worker import map_tables
from mccfr.solvers.solver import WorkerState
from storage import durable
from storage.block_tables import BLOCKS
from storage.checkpoint import Checkpoint, list_checkpoints
from storage.cleanup import closed_after
from storage.live_tables import LiveTables, create_live

RECORDS = "cluster.jsonl"
"""Journal with a line each time all ranks have paused; shown to users, never read to resume."""
_NAP_SECONDS = 0.0005


class ClusterPool(IntervalPool):
    """Makes MPI processes on several machines (ranks) train a run in place of local workers.

    It has the methods of the pool of workers on one machine (`mccfr.runs.session.worker_pool.Pool`), and sends orders
    to the ranks by `mccfr.cluster.mpi.MpiEngine`.
    """

    def __init__(self, run: Run, game: Game, live: LiveTables, engine: MpiEngine) -> None:
        assert game.strata is not None
        self._run, self._engine, self._strata = run, engine, game.strata
        self.game, self.warning = game, live.warning
        self.tables = map_tables(run.layout(game), live.regions)
        self._intervals = Intervals(run, game, self.tables)
        self._store = stratum_store(run, game)
        self._memory = memory_of_machines(run.config, game, run.layout(game), engine.locations)
        shapes = first_street_shapes(run, game)
        self._order = new_order(run, game)
        self._first = self._order.totals(shapes)
        ranks = len(engine.locations)
        self._waiting: set[int] = set()  # ranks that have not answered the present order
        self._changes = np.zeros(self._intervals.cells, np.int64)
        self._fits, self._saved = True, False  # _saved: a checkpoint contains the strata as they are
        self._since_pause = np.zeros((3, ranks))  # seconds trained, seconds waited and nodes, since the last pause
        self._measured = np.zeros((2, ranks))  # seconds trained, and nodes, since speeds were last compared
        self._answered_at = np.zeros(ranks)
        self._barriers, self._moved, self._noted_bytes = 0, 0, (0, 0)
        self._abandoned = False
        self._ordered_at, self._longest = time.monotonic(), 0.0  # _longest: seconds of an interval

    def go_on(self, checkpoint: Checkpoint | None) -> None:
        """Note where the training processes find the saved rows of their tables.

        They are in a checkpoint, or in separate folders (versions) that it names.

        checkpoint  the newest of the run; None: there is none, and rows begin as zeros
        """
        in_versions = checkpoint is not None and BLOCKS in checkpoint.state
        self._store.go_on(checkpoint if in_versions else None)
        self._order.head[messages.CHECKPOINT] = 0 if checkpoint is None else checkpoint.number
        for stratum, version in self._store.versions.items():
            self._order.versions[stratum] = version_cells(version)

    def extra_state(self) -> "ClusterPool":
        """Return this pool: its `write` saves the tables of later streets for a checkpoint."""
        return self

    def begin(self, states: Sequence[WorkerState]) -> None:
        self._intervals.begin(np.zeros((self._strata.count, control.COLUMNS), np.int64), states)
        self._order.owner[:] = -1
        nodes = self._intervals.rows[:, control.NODES].copy()
        self._nodes_before = nodes
        # Nodes per iteration differ between strata; before the first interval they are unknown.
        loads, even = nodes if nodes.all() else self._strata.shares, [1.0] * len(self._engine.locations)
        owner = assign_strata(loads, even, self._memory)
        # Fall back to the shares, with which the machines were checked for memory.
        self._move(owner if self._memory.holds(owner) else assign_strata(self._strata.shares, even, self._memory))

    def release(self, stop_nodes: int, stop_iterations: int) -> None:
        self._move_by_speed()
        super().release(stop_nodes, stop_iterations)

    def _wait_for_barriers(self, end: float) -> None:
        while not self.resting() and time.monotonic() < end:
            if self._intervals.interval is not None:
                self._take_answers()
            if self._waiting:
                time.sleep(_NAP_SECONDS)
            else:
                self._advance()

    def _take_answers(self) -> None:
        for rank in sorted(self._waiting):
            answer = self._engine.answer(rank)
            # late answers are dropped
            if answer is not None and answer.head[messages.ANSWERED] == self._order.head[messages.EPOCH]:
                self._waiting.remove(rank)
                self._add(rank, answer)

    def _add(self, rank: int, answer: RankAnswer) -> None:
        """Add the answer of training process `rank` to the totals of the present interval.

        It has the counters and random states of its strata (groups of flops), changes of the first street's tables,
        time and nodes. An interval is the training between two exchanges of the first street.
        """
        is_own = self._order.owner == rank
        self._intervals.rows[is_own] = answer.rows[is_own]
        self._changes += answer.changes
        self._fits &= not answer.head[messages.OVERFLOW]
        busy = answer.head[messages.BUSY_NANOSECONDS] * 1e-9
        self._since_pause[0, rank] += busy
        self._since_pause[2, rank] += answer.head[messages.TRAINED_NODES]
        self._answered_at[rank] = now = time.monotonic()
        self._longest = max(self._longest, now - self._ordered_at)

    def _advance(self) -> None:
        """End the interval that the training processes have trained; begin the next one, if any.

        At the end, their changes of the first street's tables are added up. Call it only while all of them are idle.
        """
        intervals = self._intervals
        if intervals.interval is not None:
            self._since_pause[1] += time.monotonic() - self._answered_at
            intervals.end(self._changes[None], fits=self._fits)
            self._barriers += 1
            if intervals.over():
                self._append_record()
        if intervals.over():
            return
        interval = intervals.start()
        self._order.head[messages.NODES] = interval.nodes
        self._order.head[messages.SCALE] = np.float64(interval.scale).view(np.int64)
        for name, totals in self._first.items():
            totals[...] = self.tables[name]
        self._changes[:], self._fits, self._saved = 0, True, False
        self._waiting = set(range(len(self._engine.locations)))
        self._prepare_order(messages.RUN)
        self._ordered_at = time.monotonic()
        self._engine.run(self._order)

    def _prepare_order(self, command: int) -> None:
        """Fill in the next message to the training processes: command, number, states of strata.

        A stratum is a group of flops; its state has counters and the state of its random numbers.

        command  one of `mccfr.cluster.messages`, such as RUN
        """
        self._order.head[messages.COMMAND] = command
        self._order.head[messages.EPOCH] += 1
        self._order.rows[:] = self._intervals.rows

    def write(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Make the training processes save their table rows; return what a checkpoint must name.

        Each stratum (group of flops) is saved in a folder, its version. Returns (fields of the checkpoint's state,
        {name of a version: hash of its manifest}).

        Raises `OSError` if a process's disk fails or is full, and `RuntimeError` for a cell that is NaN or infinite.
        """
        self._prepare_order(messages.WRITE)
        self._order.versions[:] = self._engine.write(self._order)
        versions = enumerate(map(version_of, self._order.versions))
        self._store.versions = {stratum: version for stratum, version in versions if version is not None}
        return self._store.state(), self._store.names()

    def facts(self) -> dict[str, Any]:
        return {}

    def settle(self) -> None:
        """Delete saved rows that no checkpoint names; copy the newest checkpoint to other machines.

        Call it once the checkpoint is complete. Strata (groups of flops) may then be moved between training processes,
        because the checkpoint has their rows as they are now. Copies are made only if `cluster.directory` is set.

        Raises `OSError` if a file cannot be removed, read or copied.
        """
        self._store.settle()
        self._saved = True
        if self._run.config.cluster.directory is not None:
            machines = np.array([place.machine for place in self._engine.locations])
            self._order.copy_at[:] = (machines[self._order.owner] + 1) % (machines.max() + 1)
            self._order.head[messages.CHECKPOINT] = max(list_checkpoints(self._run.path(CHECKPOINTS)))
            self._prepare_order(messages.COPY)
            self._engine.obey(self._order)

    def _move_by_speed(self) -> None:
        """Assign strata anew to ranks by their measured speeds, if that shortens an interval.

        Strata are groups of flops with their table rows; ranks are training processes. Nothing is done in four cases:
        no checkpoint holds the rows as they are now, from which a new rank reads them; a rank has trained for less than
        `LEAST_SECONDS`, or touched no nodes, since speeds were last compared; the gain is small (`reassign`); a machine
        lacks memory for its new strata.
        """
        if not self._saved or self._measured[0].min() < LEAST_SECONDS or not self._measured[1].all():
            return
        speeds = (self._measured[1] / self._measured[0]).tolist()
        nodes_now = self._intervals.rows[:, control.NODES].copy()
        loads, self._nodes_before = nodes_now - self._nodes_before, nodes_now
        self._measured[:] = 0
        owner = reassign(loads, self._order.owner, speeds, self._memory)
        if not self._memory.holds(owner):
            return
        self._moved = int((owner != self._order.owner).sum())
        if self._moved:
            self._move(owner)

    def _move(self, owner: npt.NDArray[np.int64]) -> None:
        """Assign N strata (groups of flops) to training processes, which read the rows of their new strata.

        owner  [N] number of the training process of each stratum

        Raises `OSError` if rows cannot be read, and `RuntimeError` if their checkpoint does not fit the run.
        """
        self._order.moved[:] = owner != self._order.owner
        self._order.owner[:] = owner
        self._prepare_order(messages.READ)
        self._engine.obey(self._order)

    def _append_record(self) -> None:
        """Append a line to `cluster.jsonl`: what each training process did since the line before it.

        Training pauses for a checkpoint, for example; `_advance` calls this when all processes have stopped. Nothing is
        appended if one of them has touched no nodes since the last line. Errors of the disk are ignored.
        """
        if not self._since_pause[2].all():
            return  # the speed of some ranks is unknown
        self._measured += self._since_pause[[0, 2]]
        engine, noted = self._engine, self._noted_bytes
        self._noted_bytes = (engine.sent_bytes, engine.received_bytes)
        trained, waited, nodes = self._since_pause
        record = {
            "nodes_touched": self._intervals.totals()[0],
            "barriers": self._barriers,
            "sent_bytes": engine.sent_bytes - noted[0],
            "received_bytes": engine.received_bytes - noted[1],
            "moved_strata": self._moved,
            "ranks": [
                {
                    "machine": place.machine,
                    "host": place.host,
                    "pid": place.pid,
                    "strata": np.flatnonzero(self._order.owner == rank).tolist(),
                    "nodes_per_second": round(float(nodes[rank] / trained[rank])),
                    "waiting_share": round(float(waited[rank] / (trained[rank] + waited[rank])), 4),
                }
                for rank, place in enumerate(engine.locations)
            ],
            "unix_seconds": round(time.time(), 3),
        }
        self._barriers, self._moved = 0, 0
        self._since_pause[:] = 0
        with contextlib.suppress(OSError):  # of a full disk the checkpoints tell
            self._run.check_lock()
            durable.append_line(self._run.path(RECORDS), json.dumps(record, allow_nan=False))

    def silent(self) -> list[StalledWorker]:
        seconds, reason = time.monotonic() - self._ordered_at, "its machine has not answered the order of an interval"
        if seconds < SILENT_SECONDS + 2 * self._longest:
            return []
        return [StalledWorker(rank, seconds, reason) for rank in sorted(self._waiting)]

    def kill(self) -> None:
        self._abandoned = True  # ranks that do not answer are not waited for

    def close(self) -> None:
        """Wait until the training processes have answered the last order, and make them end.

        After `kill` it does nothing.
        """
        if self._abandoned:
            return
        while self._waiting:
            self._take_answers()
            time.sleep(_NAP_SECONDS)
        self._engine.close()


def restore_copies(run: Run, game: Game, engine: MpiEngine, reporter: Reporter) -> None:
    """Restore damaged or missing files of a run from copies on other machines, before training.

    It does nothing unless `cluster.directory` is set. Each restored file is reported to `reporter`.

    Raises `OSError` if a disk is full or a file is unreadable, and `BlockingIOError` while another process works on the
    run. Raises `ValueError` if another run has replaced it.
    """
    if run.config.cluster.directory is None:
        return
    order = new_order(run, game)
    order.head[messages.COMMAND] = messages.RESTORE
    with lock(run):
        for machine in range(1 + max(location.machine for location in engine.locations)):
            order.head[messages.CHECKPOINT] = machine
            for name in engine.obey(order):
                reporter.message(f"{name} was damaged or missing: restored from its copy on machine {machine}")


def cluster_pool_opener(engine: MpiEngine) -> PoolOpener:
    """Return a function that opens the `ClusterPool` of a run, as a context manager.

    Opening raises `MemoryError` or `OSError` if the first street's tables do not fit in the coordinator's memory.

    engine  carries messages to the training processes, which must have opened the run
    """

    @contextlib.contextmanager
    def open_cluster(run: Run, game: Game, *, force: bool = False) -> Iterator[ClusterPool]:
        tables, specs = run.config.tables, first_specs(run.layout(game))
        with create_live(
            specs, format=tables.format, live_dir=tables.live_dir, link=run.path(LIVE), force=force
        ) as live:
            pool = ClusterPool(run, game, live, engine)
            with closed_after(pool.close):
                yield pool

    return open_cluster
