"""Measures a run's progress on checkpoints: rows never reached, lost updates, and strategy changes.

*Lost updates.* Workers add to one table without locks, so an addition may overwrite another. Call a decision first if
its player has not acted before. External sampling visits it once per iteration, when the opponent traverses, and adds
the iteration's weight to its strategy sums. Over all buckets, its sums must equal the total weight of the iterations;
the difference is lost.

At later decisions the expected total is that of the player's previous decision, times the share of the action between
them in its sums. This is a martingale with a standard error of at most sqrt(largest weight * total). It is measured at
the most visited decisions of each street. Stochastic rounding of float32 sums is included in the error.

Nothing is reported if sums are discounted (`dcfr`) or actions are skipped (pruning).
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import nogil_njit
from mccfr.common.rounding import LARGEST_VARIANCE
from mccfr.games.game import Game
from mccfr.solvers.solver import Algorithm
from mccfr.tables.strategy import row_starts
from mccfr.tables.table_layout import TableSet
from mccfr.trees.betting_lines import own_actions

TRENDS = "trends.jsonl"
SENTINELS = 16
"""Number of decisions per street at which lost updates are measured."""
_BLOCK_CELLS = 1 << 22  # cells of a table copied in row-major order at a time
_KEPT_BYTES = 256 << 20  # largest first street kept from checkpoint to checkpoint


class BlockTotals(NamedTuple):
    """Totals of a block's strategy sums over all buckets.

    cells          [slots] float64 sums
    variance       [slots] float64 upper bound of their variance by rounding; 0 for float64 tables
    rows           number of rows
    never_reached  rows without any sum
    """

    cells: npt.NDArray[np.float64]
    variance: npt.NDArray[np.float64]
    rows: int
    never_reached: int


@nogil_njit
def _add_up(sums, starts, cells, squares):
    """Add sums [K, width] over buckets to cells [slots], and their squares to squares [slots].

    Returns the number of rows whose sums are all 0.
    """
    empty = 0
    for bucket in range(sums.shape[0]):
        for row in range(starts.shape[0] - 1):
            total = 0.0
            for slot in range(starts[row], starts[row + 1]):
                cell = np.float64(sums[bucket, slot])
                cells[slot] += cell
                squares[slot] += cell * cell
                total += cell
            if total == 0.0:
                empty += 1
    return empty


def block_totals(game: Game, block: int, sums: npt.NDArray[Any]) -> BlockTotals:
    """Return the totals of a block's strategy sums [K, width], computed for a few buckets at a time."""
    starts = row_starts(game, block)
    cells, squares = np.zeros((2, int(starts[-1])))
    step = max(1, _BLOCK_CELLS // sums.shape[1])
    parts = (np.ascontiguousarray(sums[at : at + step]) for at in range(0, len(sums), step))
    empty = sum(int(_add_up(part, starts, cells, squares)) for part in parts)
    rounding = LARGEST_VARIANCE if sums.dtype == np.float32 else 0.0
    return BlockTotals(cells, rounding * squares, len(sums) * (len(starts) - 1), empty)


class Visits(NamedTuple):
    """Totals of the strategy sums at a decision: found, expected, and standard error of the difference.

    first  the player has not acted before, so the expected total is exact
    """

    node: int
    first: bool
    found: float
    expected: float
    error: float


def expected_visits(
    game: Game,
    taken: Sequence[int],
    totals: Mapping[int, BlockTotals],
    iterations_weight: float,
    largest_weight: float,
) -> list[Visits]:
    """Return found and expected strategy sums of external sampling, by node.

    Decisions whose expectation is unknown are left out.


    taken              `own_actions` of the tree
    totals             by block; decisions of other blocks are left out
    iterations_weight  total weight of the iterations
    largest_weight     largest weight of an iteration
    """
    known: dict[int, Visits] = {}
    for node in game.tree.decisions.tolist():
        if int(game.tree.arrays.block[node]) not in totals:
            continue
        found, variance = _total(game, totals, node)
        if taken[node] < 0:
            known[node] = Visits(node, True, found, iterations_weight, sqrt(variance))
            continue
        before = known.get(int(game.tree.parent[taken[node]]))
        if before is None or before.found <= 0 or before.expected <= 0:
            continue
        share, relative = _share(game, totals, before, taken[node])
        expected = before.expected * share
        relative += (before.error / before.expected) ** 2
        error = sqrt(expected**2 * relative + expected * largest_weight + variance)
        known[node] = Visits(node, False, found, expected, error)
    return list(known.values())


def _total(game: Game, totals: Mapping[int, BlockTotals], node: int) -> tuple[float, float]:
    """Return the sum over all actions of a decision, and its variance."""
    arrays = game.tree.arrays
    block, first = int(arrays.block[node]), int(arrays.slot[node])
    here = slice(first, first + int(arrays.count[node]))
    return float(totals[block].cells[here].sum()), float(totals[block].variance[here].sum())


def _share(game: Game, totals: Mapping[int, BlockTotals], before: Visits, taken: int) -> tuple[float, float]:
    """Return the share of the action into node `taken` in the sums at `before`, and its relative variance."""
    arrays, block = game.tree.arrays, totals[int(game.tree.arrays.block[before.node])]
    place = int(arrays.slot[before.node]) + taken - int(arrays.first[before.node])
    cell = float(block.cells[place])
    if cell <= 0:
        return 0.0, 0.0
    _, variance = _total(game, totals, before.node)
    return cell / before.found, float(block.variance[place]) / cell**2 + variance / before.found**2


def lost_updates(game: Game, visits: list[Visits]) -> dict[str, Any]:
    """Return the shares of updates lost at first decisions and at each street's most visited others.

    first_decisions         share lost at the first decisions of both players; no sampling error
    first_decisions_error   upper bound of its standard error, by rounding; 0 for float64 sums
    sentinels_per_street    [S] share lost at the most visited of the other decisions; None if none was visited
    sentinel_errors_per_street  [S] upper bound of its standard error
    """
    tree, first = game.tree, [v for v in visits if v.first and v.expected > 0]
    shares: list[float | None] = []
    errors: list[float | None] = []
    for street in range(tree.streets):
        here = [v for v in visits if not v.first and v.expected > 0 and int(tree.arrays.block[v.node]) // 2 == street]
        chosen = sorted(here, key=lambda v: v.expected, reverse=True)[:SENTINELS]
        expected = sum(v.expected for v in chosen)
        shares.append(1 - sum(v.found for v in chosen) / expected if chosen else None)
        errors.append(sum(v.error for v in chosen) / expected if chosen else None)
    weight = sum(v.expected for v in first)
    return {
        "first_decisions": 1 - sum(v.found for v in first) / weight if first else None,
        "first_decisions_error": sqrt(sum(v.error**2 for v in first)) / weight if first else None,
        "sentinels_per_street": shares,
        "sentinel_errors_per_street": errors,
    }


class FirstStreetTrend(NamedTuple):
    """Average strategy of the first street's rows, by block: probability [K, slots] and weight [K, rows]."""

    probability: dict[int, npt.NDArray[np.float64]]
    weight: dict[int, npt.NDArray[np.float64]]


def first_street(game: Game, tables: TableSet) -> FirstStreetTrend | None:
    """Return the first street of tables; None if it is too large to keep or has no strategy sums."""
    found = {
        block: tables.numbers("strategy_sum", block, row_starts(game, block))
        for block in (0, 1)
        if game.tree.row_count[block]
    }
    probability: dict[int, npt.NDArray[np.float64]] = {}
    weight: dict[int, npt.NDArray[np.float64]] = {}
    if not found or sum(0 if table is None else table.size * 8 for table in found.values()) > _KEPT_BYTES:
        return None
    for block, table in found.items():
        if table is None:
            return None
        starts = row_starts(game, block)
        sums = np.asarray(table[:, : starts[-1]], np.float64)
        weight[block] = np.add.reduceat(sums, starts[:-1], axis=1)
        totals = np.repeat(weight[block], np.diff(starts), axis=1)
        probability[block] = np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0)
    return FirstStreetTrend(probability, weight)


def mean_change(game: Game, before: FirstStreetTrend, now: FirstStreetTrend) -> float | None:
    """Return the mean total-variation distance of two strategies on the first street, weighted by `now`.

    Only rows that both have reached count; None if there are none.
    """
    distance = weights = 0.0
    for block, probability in now.probability.items():
        starts = row_starts(game, block)
        moved = np.add.reduceat(np.abs(probability - before.probability[block]), starts[:-1], axis=1) / 2
        weight = np.where(before.weight[block] > 0, now.weight[block], 0.0)
        distance += float((weight * moved).sum())
        weights += float(weight.sum())
    return distance / weights if weights > 0 else None


class Trends:
    """Measures the checkpoints of a session, one after the other."""

    def __init__(self, game: Game, algorithm: Algorithm) -> None:
        self._game = game
        self._taken = own_actions(game.tree) if game.cards.dealt and algorithm.traits.counts_lost_updates else None
        self._before: FirstStreetTrend | None = None

    def remember(self, tables: TableSet) -> None:
        """Set the tables from which the session resumes as the reference for the next change."""
        self._before = first_street(self._game, tables)

    def measure(self, tables: TableSet, iterations_weight: float, largest_weight: float) -> dict[str, Any]:
        """The trend fields of one line of trends.jsonl.

        tables             all of them
        iterations_weight  total weight of the iterations
        largest_weight     of one iteration
        """
        game = self._game
        totals = {
            block: block_totals(game, block, sums)
            for block in range(2 * game.tree.streets)
            if game.tree.row_count[block]
            and (sums := tables.numbers("strategy_sum", block, row_starts(game, block))) is not None
        }
        lost = None
        if iterations_weight and self._taken is not None:
            visits = expected_visits(game, self._taken, totals, iterations_weight, largest_weight)
            lost = lost_updates(game, visits)
        now = first_street(game, tables)
        change = None if now is None or self._before is None else mean_change(game, self._before, now)
        self._before = now
        return {
            "never_reached_per_street": [_never_reached(totals, street) for street in range(game.tree.streets)],
            "lost_updates": lost,
            "preflop_change": change,
        }


def _never_reached(totals: Mapping[int, BlockTotals], street: int) -> float | None:
    """Return the share of a street's rows without any strategy sum; None if the street has no sums."""
    here = [totals[block] for block in (2 * street, 2 * street + 1) if block in totals]
    rows = sum(total.rows for total in here)
    return sum(total.never_reached for total in here) / rows if rows else None
