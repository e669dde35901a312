"""Training by strata: intervals, quotas, and the addition of what each stratum has changed on the first street.

Rows after the first street belong to one stratum (`mccfr.cards.strata`).  The first street is everybody's: within an
*interval* a stratum works on a copy of it as it was at the last *barrier*, and at the next one the changes of all
copies are added up.  They are added as whole numbers of 64 bits, so that their order cannot matter: what is done in an
interval follows from the tables at the barrier and each stratum's quota, whoever does it, and where.

Quotas are in proportion to the deals that a stratum's boards take; what rounding leaves is carried over, so that no
stratum gets more than its share for good, however fast it is.  An addition weighs what the schedule says where the
interval begins.  Floors and discounts, which depend on signs, are applied to the sum and never to a copy.

Intervals are short at first and longer later: one update moves a row's strategy by about its own size over the row's
regrets, which grow as the square root of its visits, so that later copies drift apart more slowly.  Lengths that grow
as fast as that cost something in the end, when most of the average is made; as the cube root they were measured to
cost nothing (docs/server.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import cbrt, ceil, frexp, isfinite, ldexp
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.solvers.sampling.sampled import SampledAlgorithm, SampledSolver
from mccfr.solvers.solver import Share, WorkerState
from mccfr.tables.layout import TableLayout, TableSet, table_name

FIRST_STREET = "/street0/"
"""In the names of tables that all strata share."""
LEAST_VISITS = 2.0
"""Visits of the most visited first-street row in an interval: so many, or `run.interval` times the cube root of those
before it if that is more."""
_BITS = 36
"""Of a whole number: what a cell of external sampling can change by in an interval is at most 2^_BITS."""
_MOST = 2.0**62


class Interval(NamedTuple):
    """What every stratum is told at a barrier.

    nodes    touched by all strata so far: what the interval weighs follows from it
    scale    whole numbers are changes times this, a power of two
    """

    nodes: int
    scale: float


def first_street_names(game: Game) -> list[str]:
    """The tables that all strata share."""
    blocks = [block for block in (0, 1) if game.tree.row_count[block]]
    return [table_name(kind, block) for kind in ("regret", "strategy_sum") for block in blocks]


def with_copies(layout: TableLayout) -> TableLayout:
    """What a stratum is trained on: the first street, ahead of all others, as a copy in the dtypes of the others."""
    later = [spec for spec in layout.specs if FIRST_STREET not in spec.name]
    dtypes = {spec.name.partition("/")[0]: spec.dtype for spec in later}
    copies = []
    for spec in (spec for spec in layout.specs if FIRST_STREET in spec.name):
        copies.append(msgspec.structs.replace(spec, dtype=dtypes[spec.name.partition("/")[0]]))
    return TableLayout((*copies, *later), layout.width)


def stratum_buckets(game: Game, name: str) -> npt.NDArray[np.int64]:
    """[N+1] where each stratum's buckets begin in a table of that name, those of stratum N where it ends.

    All are 0 in a table of the first street, which belongs to nobody.
    """
    assert game.strata is not None
    _, street, player = name.split("/")
    return game.strata.first[:, int(street.removeprefix("street")), int(player.removeprefix("player"))]


def first_states(algorithm: SampledAlgorithm, strata: int) -> list[WorkerState]:
    """States of strata that have not begun."""
    return [WorkerState(rng=algorithm.first_words(stratum)) for stratum in range(strata)]


def interval_iterations(iterations: int, hottest: float, rate: float) -> int:
    """Iterations of the interval that follows so many.

    hottest  how often one visits the most visited row;  rate  `run.interval`
    """
    visits = max(LEAST_VISITS, rate * cbrt(iterations * hottest))
    return ceil(visits / hottest)


def quotas(iterations: int, shares: Sequence[int], due: Sequence[int]) -> tuple[list[int], list[int]]:
    """Each stratum's part of an interval's iterations, and what rounding has left it, in parts of the sum of shares."""
    whole = sum(shares)
    amounts = [left + iterations * share for left, share in zip(due, shares, strict=True)]
    return [amount // whole for amount in amounts], [amount % whole for amount in amounts]


class Changes:
    """Changes of the first street as whole numbers, in the order of its tables.

    names  of the tables
    cells  of all of them, padding included
    """

    def __init__(self, names: Sequence[str], tables: Mapping[str, npt.NDArray[np.generic]]) -> None:
        self.names = list(names)
        ends = np.cumsum([0, *(tables[name].size for name in names)]).tolist()
        self._parts = {name: slice(*span) for name, span in zip(names, pairwise(ends), strict=True)}
        self.cells = ends[-1]

    def of(self, changes: npt.NDArray[np.int64], name: str) -> npt.NDArray[np.int64]:
        """One table's part of `changes` [cells]: a view."""
        return changes[self._parts[name]]


class StratumWorker:
    """Trains strata one after the other on tables whose first street is a copy of its own.

    totals   first-street tables as they were at the barrier; never changed here
    tables   with the kernels' form; its first street is filled anew for each stratum
    changes  [cells] int64 to which each stratum's changes are added
    """

    def __init__(
        self,
        game: Game,
        algorithm: SampledAlgorithm,
        totals: Mapping[str, npt.NDArray[np.floating]],
        tables: TableSet,
        changes: npt.NDArray[np.int64],
    ) -> None:
        assert game.strata is not None
        self.solver: SampledSolver = algorithm.solver(game, tables, Share())
        self._algorithm, self._totals, self.tables, self.changes = algorithm, totals, tables, changes
        self._parts = Changes(first_street_names(game), totals)
        self._most = _MOST / game.strata.count

    def run(self, stratum: int, state: WorkerState, quota: int, interval: Interval) -> bool:
        """Train a stratum for its quota of an interval; its state is changed in place.

        Returns False where a change does not fit into whole numbers of 64 bits: it is not added then.
        """
        begun = {}
        for name in self._parts.names:
            self._copy(name)
            begun[name] = self.tables[name].astype(np.float64)
        self.solver.run_stratum(stratum, state, interval.nodes, quota)
        fits = True
        for name in self._parts.names:
            change = np.rint((self.tables[name].astype(np.float64) - begun[name]) * interval.scale)
            if not np.all(np.abs(change) < self._most):
                fits = False
                continue
            part = self._parts.of(self.changes, name)
            part += change.astype(np.int64).reshape(-1)
        return fits

    def _copy(self, name: str) -> None:
        """Fill a copy of regrets with the numbers nearest to the totals; sums begin with 0.

        They need no more: what is rounded away stays in the totals, and what kernels change is right on average.
        """
        copy: npt.NDArray[Any] = self.tables[name]
        if name.startswith("strategy_sum/"):
            copy[...] = 0
        else:
            np.copyto(copy, self._totals[name], casting="same_kind")


@dataclass
class Barrier:
    """The totals of the first street, and when intervals begin and end.

    totals  first-street tables in float64, changed in place at each barrier
    """

    game: Game
    algorithm: SampledAlgorithm
    totals: Mapping[str, npt.NDArray[np.float64]]

    def __post_init__(self) -> None:
        assert self.game.strata is not None
        self.strata = self.game.strata
        self.parts = Changes(first_street_names(self.game), self.totals)
        arrays = self.game.tree.arrays
        span = np.abs(arrays.fixed) + np.abs(arrays.showdown)
        self._span = max(1.0, 2 * float(span.max()))

    def begin(self, states: Sequence[WorkerState]) -> tuple[Interval, list[int]]:
        """The next interval and the strata's quotas in it; `due` of the states is changed in place."""
        iterations = self.interval_iterations(sum(state.iterations for state in states))
        shares = self.strata.shares.tolist()
        found, due = quotas(iterations, shares, [state.due for state in states])
        for state, left in zip(states, due, strict=True):
            state.due = left
        return self.interval(sum(state.nodes for state in states), iterations), found

    def interval_iterations(self, iterations: int) -> int:
        """Iterations of the interval that follows so many."""
        return interval_iterations(iterations, self.strata.hottest, self.algorithm.config.run.interval)

    def interval(self, nodes: int, iterations: int) -> Interval:
        """An interval of so many iterations, which weigh what the schedule says at a count of nodes."""
        schedule = self.algorithm.schedule
        _, exponent = frexp(schedule.weight(nodes) * max(self._span, 1.0) * iterations)
        return Interval(nodes, ldexp(1.0, _BITS - exponent))

    def add(self, interval: Interval, changes: npt.NDArray[np.int64]) -> None:
        """Add changes [cells] of an interval to the totals, which keep above the floor of pruning."""
        floor = self.algorithm.first_floor(interval.nodes)
        for name in self.parts.names:
            total = self.totals[name]
            total += self.parts.of(changes, name).reshape(total.shape) / interval.scale
            if name.startswith("regret/") and isfinite(floor):
                np.maximum(total, floor, out=total)
