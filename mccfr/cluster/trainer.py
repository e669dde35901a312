"""A rank that trains: its strata, one after the other, in tables of its own of which it touches only their rows.

The tables have the shape of the whole run's, so that kernels and bucket numbers are the ones of any run; they are
addresses without memory until something is written there, which is the rows of the rank's strata and a copy of the
first street.  Rows pass between ranks, and from session to session, as versions in the run directory
(`storage.blocks`): each rank writes those of its own strata, and reads those of strata that become its own.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cluster.messages import (
    ANSWERED,
    BUSY_NANOSECONDS,
    CHECKPOINT,
    COMMAND,
    COPY,
    EPOCH,
    NODES,
    OVERFLOW,
    READ,
    RESTORE,
    SCALE,
    TRAINED_NODES,
    Order,
    RankAnswer,
    version_cells,
    version_of,
)
from mccfr.games.game import Game
from mccfr.runs.directory.run import Run
from mccfr.runs.directory.state import open_own
from mccfr.runs.session import control
from mccfr.runs.session.strata.worker import train_strata
from mccfr.solvers.sampling.sampled import SampledAlgorithm
from mccfr.solvers.strata import (
    FIRST_STREET,
    Interval,
    StratumWorker,
    first_street_names,
    stratum_buckets,
    with_copies,
)
from mccfr.tables.layout import private_tables
from storage.blocks import BlockStore, Partition
from storage.copies import copy_checkpoint, restore
from storage.formats import NotFiniteError
from storage.mapping import give_back, map_reserved


def first_street_shapes(run: Run, game: Game) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tables that all strata share."""
    shapes = {spec.name: spec.shape for spec in run.layout(game).specs}
    return {name: shapes[name] for name in first_street_names(game)}


def new_order(run: Run, game: Game) -> Order:
    """An order of nothing yet, of the size that a run's orders have."""
    assert game.strata is not None
    return Order(game.strata.count, sum(int(np.prod(shape)) for shape in first_street_shapes(run, game).values()))


def stratum_store(run: Run, game: Game) -> BlockStore:
    """Where the rows of strata lie as versions, a block for each stratum."""
    later = tuple(spec for spec in run.layout(game).specs if FIRST_STREET not in spec.name)
    parts = Partition(later, {spec.name: stratum_buckets(game, spec.name).tolist() for spec in later})
    return BlockStore(run.directory, parts, run.identity, format=run.config.tables.format, lock=run.lock)


class Trainer:
    """What one rank has and does.

    order, answer  the messages, to be filled by the engine and by `train`
    tables         of all streets; those of the first are a copy
    """

    def __init__(self, run: Run, game: Game, rank: int, keeps_for: int | None = None) -> None:
        """`keeps_for`: of which machine this rank keeps the copies; None: another rank does, or nobody."""
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
        self._held: set[int] = set()  # strata whose rows are here
        self._machine = keeps_for

    def train(self) -> None:
        """Train the interval of the order, and fill in the answer."""
        order, answer, began = self.order, self.answer, time.monotonic_ns()
        mine = self.strata()
        interval = Interval(int(order.head[NODES]), float(order.head[SCALE : SCALE + 1].view(np.float64)[0]))
        answer.cells[:] = 0
        answer.rows[mine] = order.rows[mine]
        fits = train_strata(self._worker, answer.rows, mine, interval)
        answer.head[ANSWERED], answer.head[OVERFLOW] = order.head[EPOCH], not fits
        answer.head[TRAINED_NODES] = (answer.rows[mine] - order.rows[mine])[:, control.NODES].sum()
        answer.head[BUSY_NANOSECONDS] = time.monotonic_ns() - began

    def strata(self) -> list[int]:
        """The strata that the order gives to this rank."""
        return np.flatnonzero(self.order.owner == self.rank).tolist()

    def write(self) -> npt.NDArray[np.int64]:
        """Write the rows of this rank's strata as new versions; [N, 5] which they are, zeros for other ranks' strata.

        Raises `OSError` where the disk does not take them, `RuntimeError` for a cell that is no number.
        """
        store, found = stratum_store(self._run, self._game), np.zeros_like(self.order.versions)
        for stratum in self.strata():
            try:
                store.write(stratum, self._cells(store.partition, stratum))
            except NotFiniteError as error:
                raise RuntimeError(f"stratum {stratum}: {error}: nothing was saved") from error
            found[stratum] = version_cells(store.versions[stratum])
        return found

    def read(self) -> None:
        """Read the rows of strata that the order has moved to this rank, and let go of those it has taken away.

        Raises `OSError` for rows that are damaged or gone.
        """
        store, order, mine = stratum_store(self._run, self._game), self.order, set(self.strata())
        for stratum in self._held - mine:
            for table in self._cells(store.partition, stratum).values():
                give_back(table)
        self._held &= mine
        for stratum in sorted(mine):
            if not order.moved[stratum]:
                continue
            cells, version = self._cells(store.partition, stratum), version_of(order.versions[stratum])
            if version is not None:
                store.versions[stratum] = version
                store.read(stratum, cells)
            elif order.head[CHECKPOINT]:
                self._read_from_checkpoint(int(order.head[CHECKPOINT]), store.partition, stratum, cells)
            self._held.add(stratum)

    def obey(self) -> list[str]:
        """Carry out an order about files, other than `write`; what was restored.  Raises `OSError`."""
        command, kept = int(self.order.head[COMMAND]), self._kept_at()
        if command == READ:
            self.read()
        elif kept is not None and command == COPY:
            mine = set(np.flatnonzero(self.order.keeper == self._machine).tolist())
            copy_checkpoint(self._run.directory, kept, int(self.order.head[CHECKPOINT]), mine)
        elif kept is not None and command == RESTORE and self.order.head[CHECKPOINT] == self._machine:
            return restore(self._run.directory, kept)
        return []

    def _kept_at(self) -> Path | None:
        """Where the copies are that this rank keeps; None where it keeps none."""
        directory = self._run.config.cluster.directory
        if directory is None or self._machine is None:
            return None
        name = self._run.run_id  # runs of one configuration have copies of their own
        return Path(directory.replace("{machine}", str(self._machine))) / name[:16]

    def _read_from_checkpoint(
        self, number: int, parts: Partition, stratum: int, cells: dict[str, npt.NDArray[Any]]
    ) -> None:
        """Read rows from the tables that a checkpoint holds itself, as those of sessions on one machine do."""
        checkpoint = open_own(self._run, number)
        for name, rows in cells.items():
            checkpoint.read_rows(name, parts.first[name][stratum], rows)

    def _cells(self, parts: Partition, stratum: int) -> dict[str, npt.NDArray[Any]]:
        """{name: a stratum's rows} of every table of later streets that has any; views."""
        ends = {spec.name: parts.first[spec.name][stratum : stratum + 2] for spec in parts.parts(stratum)}
        return {name: self.tables[name][begin:end] for name, (begin, end) in ends.items()}
