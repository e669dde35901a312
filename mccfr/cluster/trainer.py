"""One of a run's training processes (ranks): trains its strata in turn in private tables.

A stratum is a group of flops with the table rows that belong to them.

The tables have the shape of the whole run's, so kernels and bucket numbers are the same as on one machine. They reserve
address space; memory is allocated only where a rank writes, for its strata's rows and a copy of the first street.

Ranks save rows as versions, folders in the run directory (`storage.block_tables`). Each rank writes its own strata, and
reads the strata that it takes over from another rank or a checkpoint.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cluster import messages
from mccfr.cluster.messages import Order, RankAnswer, version_cells, version_of
from mccfr.games.game import Game
from mccfr.runs.directory.run import Run
from mccfr.runs.directory.state import open_run_checkpoint
from mccfr.runs.session import control
from mccfr.runs.session.strata.strata_worker import train_strata
from mccfr.solvers.sampling.sampled import SampledAlgorithm
from mccfr.solvers.strata_training import (
    FIRST_STREET,
    Interval,
    StratumWorker,
    first_street_names,
    stratum_buckets,
    with_copies,
)
from mccfr.tables.table_layout import private_tables
from storage.block_tables import BlockStore, Partition
from storage.mapping import give_back, map_reserved
from storage.mirror import copy_checkpoint, restore
from storage.table_formats import NotFiniteError


def first_street_shapes(run: Run, game: Game) -> dict[str, tuple[int, ...]]:
    """Return {table name: shape} of the first street's tables. Each process has a copy."""
    shapes = {spec.name: spec.shape for spec in run.layout(game).specs}
    return {name: shapes[name] for name in first_street_names(game)}


def new_order(run: Run, game: Game) -> Order:
    """Return an `Order` (a message to the training processes) of zeros, sized for a run."""
    assert game.strata is not None
    return Order(game.strata.count, sum(int(np.prod(shape)) for shape in first_street_shapes(run, game).values()))


def stratum_store(run: Run, game: Game) -> BlockStore:
    """Return the store that saves and reads each stratum's (group of flops) table rows separately.

    These are the rows after the first street. Each saved state of a stratum's rows is a folder in the run directory, a
    version.
    """
    specs = tuple(spec for spec in run.layout(game).specs if FIRST_STREET not in spec.name)
    partition = Partition(specs, {spec.name: stratum_buckets(game, spec.name).tolist() for spec in specs})
    return BlockStore(run.directory, partition, run.identity, format=run.config.tables.format, lock=run.lock)


class Trainer:
    """Trains the strata (groups of flops) of one process; saves, reads and copies their rows.

    order, answer  the last message from process 0 (the coordinator), and the answer to it, which `train` fills in
    tables         {name: array} of all streets; those of the first street are a copy
    """

    def __init__(self, run: Run, game: Game, rank: int, keeps_for: int | None = None) -> None:
        """Create the tables of a training process and compile its kernels.

        rank       number of the training process, from 0
        keeps_for  number of the machine whose backup copies this process keeps; None: it keeps none
        """
        algorithm = run.algorithm
        assert isinstance(algorithm, SampledAlgorithm) and game.strata is not None
        shapes = first_street_shapes(run, game)
        self.rank, self._run, self._game = rank, run, game
        self.order = new_order(run, game)
        self.answer = RankAnswer(game.strata.count, len(self.order.first))
        self.tables = private_tables(with_copies(run.layout(game)), map_reserved)
        totals = self.order.totals(shapes)
        self._worker = StratumWorker(game, algorithm, totals, self.tables, self.answer.changes)
        self._worker.solver.warm_up()
        self._held: set[int] = set()  # strata whose rows are in memory
        self._machine = keeps_for

    def train(self) -> None:
        """Train the strata (groups of flops) of this process as `order` says; fill in `answer`."""
        order, answer, start = self.order, self.answer, time.monotonic_ns()
        own_strata = self.strata()
        scale = float(order.head[messages.SCALE].view(np.float64))
        interval = Interval(int(order.head[messages.NODES]), scale)
        answer.cells[:] = 0
        answer.rows[own_strata] = order.rows[own_strata]
        fits = train_strata(self._worker, answer.rows, own_strata, interval)
        answer.head[messages.ANSWERED], answer.head[messages.OVERFLOW] = order.head[messages.EPOCH], not fits
        answer.head[messages.TRAINED_NODES] = (answer.rows[own_strata] - order.rows[own_strata])[:, control.NODES].sum()
        answer.head[messages.BUSY_NANOSECONDS] = time.monotonic_ns() - start

    def strata(self) -> list[int]:
        """Return the numbers of the strata (groups of flops) that `order` gives this process."""
        return np.flatnonzero(self.order.owner == self.rank).tolist()

    def write(self) -> npt.NDArray[np.int64]:
        """Save the table rows of this process's strata (groups of flops), each in a new folder.

        Returns [N, 5] int64: for each of N strata the number and hash of its folder, zeros for strata of other
        processes. Raises `OSError` if the disk fails or is full, and `RuntimeError` for a cell that is NaN or infinite.
        """
        store, versions = stratum_store(self._run, self._game), np.zeros_like(self.order.versions)
        for stratum in self.strata():
            try:
                store.write(stratum, self._cells(store.partition, stratum))
            except NotFiniteError as error:
                raise RuntimeError(f"stratum {stratum}: {error}: nothing was saved") from error
            versions[stratum] = version_cells(store.versions[stratum])
        return versions

    def read(self) -> None:
        """Read the table rows of strata moved to this process, and free those of strata moved away.

        Strata are groups of flops. The rows come from saved folders or from a checkpoint, as `order` says; without
        either they begin as zeros. Raises `OSError` for rows that are damaged or missing.
        """
        store, order, own_strata = stratum_store(self._run, self._game), self.order, set(self.strata())
        for stratum in self._held - own_strata:
            for table in self._cells(store.partition, stratum).values():
                give_back(table)
        self._held &= own_strata
        for stratum in sorted(own_strata):
            if not order.moved[stratum]:
                continue
            cells, version = self._cells(store.partition, stratum), version_of(order.versions[stratum])
            if version is not None:
                store.versions[stratum] = version
                store.read(stratum, cells)
            elif order.head[messages.CHECKPOINT]:
                checkpoint = open_run_checkpoint(self._run, int(order.head[messages.CHECKPOINT]))
                for name, rows in cells.items():
                    checkpoint.read_rows(name, store.partition.first[name][stratum], rows)
            self._held.add(stratum)

    def obey(self) -> list[str]:
        """Do what `order` says: read rows, copy a checkpoint, or restore files from a copy.

        A process that keeps no copies only reads. Returns the names of restored files, otherwise []. Raises `OSError`
        if a file is damaged, missing or unreadable, or the disk is full.
        """
        command, kept = int(self.order.head[messages.COMMAND]), self._copies_directory()
        if command == messages.READ:
            self.read()
        elif kept is not None and command == messages.COPY:
            own = set(np.flatnonzero(self.order.copy_at == self._machine).tolist())
            copy_checkpoint(self._run.directory, kept, int(self.order.head[messages.CHECKPOINT]), own)
        elif kept is not None and command == messages.RESTORE and self.order.head[messages.CHECKPOINT] == self._machine:
            return restore(self._run.directory, kept)
        return []

    def _copies_directory(self) -> Path | None:
        """Return the directory for the backup copies of checkpoints that this process keeps.

        Returns None if it keeps none, or if `cluster.directory` is not set.
        """
        directory = self._run.config.cluster.directory
        if directory is None or self._machine is None:
            return None
        name = self._run.run_id  # runs of one configuration have separate copies
        return Path(directory.replace("{machine}", str(self._machine))) / name[:16]

    def _cells(self, parts: Partition, stratum: int) -> dict[str, npt.NDArray[Any]]:
        """Return {table name: view of one stratum's rows} for each table after the first street.

        A stratum is a group of flops. Tables in which it has no rows are left out.

        parts    partition of the tables' rows into strata
        stratum  number of the stratum, from 0
        """
        ends = {spec.name: parts.first[spec.name][stratum : stratum + 2] for spec in parts.parts(stratum)}
        return {name: self.tables[name][begin:end] for name, (begin, end) in ends.items()}
