"""Training by strata: intervals, quotas, and adding up the strata's changes of the first street.

A stratum is a group of boards of the second street (flops in hold'em), which is trained on deals of these boards only.
A table row after the first street belongs to one stratum (`mccfr.cards.board_strata`).  All strata share the tables of
the first street.

Within an *interval* each stratum changes its own copy of these tables as they were at the last *barrier*, but with
strategy sums of 0.  At the next barrier the changes of all copies are added up as 64-bit integers, so the order of
addition does not matter.  The result does not depend on the worker processes that train the strata.

A stratum's quota is its number of iterations in an interval.  It is in proportion to the chance that a deal belongs to
the stratum; remainders are carried over to the next interval.  The discount weight of an interval is that of its
beginning.  The floor of regrets on the first street is applied to the totals, as a copy lacks other strata's changes.

Intervals grow with the cube root of the iterations.  Copies drift apart more slowly as regrets grow, with the square
root of a row's visits.  Square-root growth costs accuracy late in the run; cube-root growth was measured to cost none
(docs/measured/strata.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import cbrt, ceil, frexp, isfinite, ldexp
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.solvers.sampling.sampled import SampledAlgorithm, SampledSolver
from mccfr.solvers.solver import Share, WorkerState
from mccfr.tables.table_layout import TableLayout, TableSet, table_name

FIRST_STREET = "/street0/"
"""Text that the names of the first street's tables contain; all strata share these tables."""
LEAST_VISITS = 2.0
"""Least expected visits of the most visited first-street row in an interval.

The interval is longer if `run.interval` times the cube root of the row's earlier visits is more.
"""
_BITS = 36
"""A cell of external sampling changes by at most 2^_BITS integer units in an interval."""
_MOST = 2.0**62


class Interval(NamedTuple):
    """Parameters of an interval, at whose end the changes of all strata are added up.

    A stratum is a group of second-street boards, which is trained apart from the others.

    nodes  nodes touched by all strata before, which determine the discount weight of the interval
    scale  power of two; changes are multiplied by it before they are rounded to integers
    """

    nodes: int
    scale: float


def first_street_names(game: Game) -> list[str]:
    """Return names of the first street's regret and strategy-sum tables, which all boards share."""
    players = game.tree.players
    blocks = [block for block in range(players) if game.tree.row_count[block]]
    return [table_name(kind, block, players) for kind in ("regret", "strategy_sum") for block in blocks]


def with_copies(layout: TableLayout) -> TableLayout:
    """Return the layout of a stratum's tables: copies of the first street's, then later streets'.

    A stratum is a group of second-street boards, which is trained apart from the others.  The copies have the dtypes of
    the later streets' tables.

    layout  layout of all tables of the run
    """
    later = [spec for spec in layout.specs if FIRST_STREET not in spec.name]
    dtypes = {spec.name.partition("/")[0]: spec.dtype for spec in later}
    copies = []
    for spec in (spec for spec in layout.specs if FIRST_STREET in spec.name):
        copies.append(msgspec.structs.replace(spec, dtype=dtypes[spec.name.partition("/")[0]]))
    return TableLayout((*copies, *later), layout.width)


def stratum_buckets(game: Game, name: str) -> npt.NDArray[np.int64]:
    """Return [N+1] bounds: first bucket of each of N strata in a table, and the end of the last.

    A stratum is a group of second-street boards; its buckets of a later street are consecutive.

    name  name of the table, such as "regret/street1/player0"

    All are 0 for a table of the first street, which all strata share.
    """
    assert game.strata is not None
    _, street, player = name.split("/")
    return game.strata.first[:, int(street.removeprefix("street")), int(player.removeprefix("player"))]


def first_states(algorithm: SampledAlgorithm, strata: int) -> list[WorkerState]:
    """Return a list of each stratum's initial state: counters of 0, and its own random state.

    strata  number of strata, the groups of second-street boards that are trained apart
    """
    return [WorkerState(rng=algorithm.first_words(stratum)) for stratum in range(strata)]


def interval_iterations(iterations: int, hottest: float, rate: float) -> int:
    """Return the length in iterations of the interval that begins after `iterations` iterations.

    In an interval groups of boards (strata) are trained apart; then their changes of the first street are added up.

    hottest  expected visits of the most visited first-street row in one iteration
    rate     `run.interval`: visits of this row in the interval, divided by the cube root of its earlier visits

    The interval has at least `LEAST_VISITS` expected visits of this row.
    """
    visits = max(LEAST_VISITS, rate * cbrt(iterations * hottest))
    return ceil(visits / hottest)


def interval_count(iterations: float, hottest: float, rate: float) -> float:
    """Return the approximate number of intervals in the first `iterations` iterations.

    In an interval groups of boards (strata) are trained apart; then their changes of the first street are added up.

    hottest  expected visits of the most visited first-street row in one iteration
    rate     `run.interval`: visits of this row in an interval, divided by the cube root of its earlier visits
    """
    begun = (LEAST_VISITS / rate) ** 3 / hottest  # iterations from which intervals grow
    early = min(iterations, begun)
    late = iterations ** (2 / 3) - early ** (2 / 3)
    return early * hottest / LEAST_VISITS + 1.5 * late * hottest ** (2 / 3) / rate


def quotas(iterations: int, shares: Sequence[int], due: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return two lists [N]: each stratum's iterations in an interval, and the remainders left.

    A stratum is a group of boards that is trained apart.  A remainder is the part of one iteration that a stratum is
    still owed, in units of 1/sum(shares).

    iterations  planned iterations of all strata together in the interval
    shares      [N] relative probabilities of the strata, as integers
    due         [N] remainders left by the previous interval
    """
    whole = sum(shares)
    amounts = [remainder + iterations * share for remainder, share in zip(due, shares, strict=True)]
    return [amount // whole for amount in amounts], [amount % whole for amount in amounts]


class Changes:
    """Finds the part of each first-street table in a flat array with the changes of all of them.

    Changes of regrets and strategy sums are integers, which are added up over strata (groups of boards).

    names   names of the tables, in the order of their parts
    tables  {name: array} with these tables; only their sizes are used
    cells   number of cells of all tables together, padding included
    """

    def __init__(self, names: Sequence[str], tables: Mapping[str, npt.NDArray[np.generic]]) -> None:
        self.names = list(names)
        ends = np.cumsum([0, *(tables[name].size for name in names)]).tolist()
        self._parts = {name: slice(*span) for name, span in zip(names, pairwise(ends), strict=True)}
        self.cells = ends[-1]

    def of(self, changes: npt.NDArray[np.int64], name: str) -> npt.NDArray[np.int64]:
        """Return the part of a flat array of changes that belongs to one table, as a view.

        changes  [cells] integer changes of all first-street tables
        """
        return changes[self._parts[name]]


class StratumWorker:
    """Trains strata (groups of boards) one after the other, each on fresh first-street tables.

    Fresh tables are a copy of the totals' regrets, and strategy sums of 0.

    totals   first-street tables with the changes of all strata until the interval began; not changed
    tables   TableSet for the kernels; its first street is overwritten for each stratum
    changes  [cells] int64; the changes of each stratum are added to it
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
        self._interval: Interval | None = None
        self._begun, self._change = (
            {name: np.zeros(totals[name].shape) for name in self._parts.names} for _ in range(2)
        )

    def run(self, stratum: int, state: WorkerState, quota: int, interval: Interval) -> bool:
        """Train a stratum (group of boards) for `quota` iterations; add its first-street changes to `changes`.

        stratum   number of the stratum, from 0
        state     its counters and random state, changed in place
        interval  Interval: its nodes give the discount weight of updates, its scale the unit of changes

        Returns False if a change is too large for sums in 64-bit integers; that table's change is then not added.
        """
        if interval is not self._interval:
            self._begin(interval)
        for name, begun in self._begun.items():
            np.copyto(self.tables[name], begun, casting="same_kind")
        self.solver.run_stratum(stratum, state, interval.nodes, quota)
        fits = True
        for name, begun in self._begun.items():
            change = np.subtract(self.tables[name], begun, out=self._change[name])
            change *= interval.scale
            np.rint(change, out=change)
            if not -self._most < change.min() <= change.max() < self._most:
                fits = False
                continue
            part = self._parts.of(self.changes, name)
            part += change.astype(np.int64).reshape(-1)
        return fits

    def _begin(self, interval: Interval) -> None:
        """Copy the regrets with which all strata begin the interval; strategy sums begin with 0."""
        self._interval = interval
        for name in self._parts.names:
            if not name.startswith("strategy_sum/"):  # the totals keep what rounding to the tables' dtype drops
                self._begun[name][...] = self._totals[name].astype(self.tables[name].dtype)


@dataclass
class Barrier:
    """Adds the strata's changes to the first street's tables, and plans the next interval.

    A stratum is a group of boards, which is trained apart from the others within an interval.

    totals  first-street tables in float64, changed in place at the end of each interval
    """

    game: Game
    algorithm: SampledAlgorithm
    totals: Mapping[str, npt.NDArray[np.float64]]

    def __post_init__(self) -> None:
        assert self.game.strata is not None
        self.strata = self.game.strata
        self.parts = Changes(first_street_names(self.game), self.totals)
        arrays, pots = self.game.tree.arrays, self.game.tree.pots
        span = np.abs(arrays.fixed) + np.abs(arrays.showdown) if pots is None else pots.chips
        self._span = max(1.0, 2 * float(span.max()))

    def begin(self, states: Sequence[WorkerState]) -> tuple[Interval, list[int]]:
        """Return (the next interval, list [N] of each stratum's iterations in it).

        states  [N] counters of each stratum. `due` receives the part of an iteration that the stratum is owed in the
                interval after this one
        """
        iterations = self.interval_iterations(sum(state.iterations for state in states))
        shares = self.strata.shares.tolist()
        quota, due = quotas(iterations, shares, [state.due for state in states])
        for state, remainder in zip(states, due, strict=True):
            state.due = remainder
        return self.interval(sum(state.nodes for state in states), iterations), quota

    def interval_iterations(self, iterations: int) -> int:
        """Return the length in iterations of the interval that begins after `iterations` iterations.

        Both numbers count the iterations of all strata together.
        """
        return interval_iterations(iterations, self.strata.hottest, self.algorithm.config.run.interval)

    def interval(self, nodes: int, iterations: int) -> Interval:
        """Return the Interval of `iterations` iterations that begins after `nodes` nodes.

        Both numbers count all strata together.  The scale is chosen by the largest change that a cell can have in these
        iterations of external sampling.
        """
        schedule = self.algorithm.schedule
        _, exponent = frexp(schedule.weight(nodes) * max(self._span, 1.0) * iterations)
        return Interval(nodes, ldexp(1.0, _BITS - exponent))

    def add(self, interval: Interval, changes: npt.NDArray[np.int64]) -> None:
        """Add an interval's changes [cells] to `totals`, in place, then raise regrets to a floor.

        The floor is the least regret that external sampling keeps while it skips actions of very negative regret; else
        there is none.

        changes  [cells] int64 sums of all strata's changes, in units of 1/scale of the interval
        """
        floor = self.algorithm.first_floor(self.game, interval.nodes)
        for name in self.parts.names:
            total = self.totals[name]
            total += self.parts.of(changes, name).reshape(total.shape) / interval.scale
            if name.startswith("regret/") and isfinite(floor):
                np.maximum(total, floor, out=total)
