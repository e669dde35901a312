"""A rank that trains: its strata, one after the other, in tables of its own of which it touches only their rows.

The tables have the shape of the whole run's, so that kernels and bucket numbers are the ones of any run; memory is
taken by the system for what is touched, which is the rows of the rank's strata and a copy of the first street.
"""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cluster.messages import (
    ANSWERED,
    BUSY_NANOSECONDS,
    EPOCH,
    NODES,
    OVERFLOW,
    SCALE,
    TRAINED_NODES,
    Answer,
    Order,
)
from mccfr.games.game import Game
from mccfr.runs import control
from mccfr.runs.rundir import Run
from mccfr.runs.strata.worker import train_strata
from mccfr.solvers.sampled import SampledAlgorithm
from mccfr.solvers.strata import (
    FIRST_STREET,
    Interval,
    StratumWorker,
    first_street_names,
    stratum_buckets,
    with_copies,
)
from mccfr.tables.layout import TableSet, private_tables


def first_street_shapes(run: Run, game: Game) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tables that all strata share."""
    shapes = {spec.name: spec.shape for spec in run.layout(game).specs}
    return {name: shapes[name] for name in first_street_names(game)}


def pieces(game: Game, tables: TableSet | Mapping[str, npt.NDArray[Any]], stratum: int) -> list[npt.NDArray[np.uint8]]:
    """The bytes of a stratum's rows in every table of later streets, in the order of their names; views."""
    found = []
    for name in sorted(name for name in tables if FIRST_STREET not in name):
        begin, end = stratum_buckets(game, name)[stratum : stratum + 2]
        if end > begin:
            found.append(tables[name][begin:end].reshape(-1).view(np.uint8))
    return found


class Trainer:
    """What one rank has and does.

    order, answer  the messages, to be filled by the engine and by `train`
    tables         of all streets; those of the first are a copy
    """

    def __init__(self, run: Run, game: Game, rank: int) -> None:
        algorithm = run.algorithm
        assert isinstance(algorithm, SampledAlgorithm) and game.strata is not None
        shapes = first_street_shapes(run, game)
        cells = sum(int(np.prod(shape)) for shape in shapes.values())
        self.rank, self._game = rank, game
        self.order, self.answer = Order(game.strata.count, cells), Answer(game.strata.count, cells)
        self.tables = private_tables(with_copies(run.layout(game), run.config.tables.regret_dtype))
        totals = self.order.totals(shapes)
        self._worker = StratumWorker(game, algorithm, totals, self.tables, self.answer.changes)
        self._worker.solver.warm_up()

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

    def strata(self, *, moved: bool = False) -> list[int]:
        """The strata that the order gives to this rank; `moved`: those of them whose rows it must take over."""
        mine = self.order.owner == self.rank
        return np.flatnonzero(mine & (self.order.moved == 1) if moved else mine).tolist()

    def pieces(self, stratum: int) -> list[npt.NDArray[np.uint8]]:
        """As the function, of this rank's tables."""
        return pieces(self._game, self.tables, stratum)
