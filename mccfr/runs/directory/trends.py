"""How a run develops, measured on the tables of its checkpoints: what is never reached, what is lost, what still moves.

*Lost updates.*  Workers add to one table without locks, so an addition may overwrite another.  External sampling visits
the first decision of a player (one before which he has not acted) once in every iteration, namely when his opponent
traverses, and adds the iteration's weight to its strategy sums, spread over the actions.  Summed over all buckets these
rows, the hottest of all, must therefore hold the total weight of the iterations, which the workers count; what is
missing was lost.  For later decisions the expected total is that of the player's own decision before, times the share
of the action between them in its sums: a martingale, with a standard error of at most the root of largest weight times
total.  It is followed from decision to decision, and measured at the most visited ones of each street.  Sums in float32
are rounded at random, which adds to the error what it can at most, so that noise is not taken for a loss.  Where sums
fade (`dcfr`) or actions are skipped (pruning) none of this holds, and nothing is reported.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import nogil_njit
from mccfr.games.game import Game
from mccfr.rounding import LARGEST_VARIANCE
from mccfr.solvers.solver import Algorithm
from mccfr.tables.layout import TableSet
from mccfr.tables.strategy import row_starts
from mccfr.trees.lines import own_actions

TRENDS = "trends.jsonl"
SENTINELS = 16
"""Decisions of each street on which lost updates are measured."""
_BLOCK_CELLS = 1 << 22  # of a table that are brought into order at a time
_KEPT_BYTES = 256 << 20  # sums of the first street that are kept from checkpoint to checkpoint


class BlockTotals(NamedTuple):
    """What one block's strategy sums come to, over all buckets.

    cells     [slots] float64  sums
    variance  [slots] float64  of them by rounding, at most; 0 where they are in float64
    """

    cells: npt.NDArray[np.float64]
    variance: npt.NDArray[np.float64]
    rows: int
    never_reached: int


@nogil_njit
def _add_up(sums, starts, cells, squares):
    """Add the buckets of sums [K, width] to cells [slots], and their squares; returns how many rows are all 0."""
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
    """Totals of a block's strategy sums [K, width], a few buckets at a time, so that no table is copied whole."""
    starts = row_starts(game, block)
    cells, squares = np.zeros((2, int(starts[-1])))
    step = max(1, _BLOCK_CELLS // sums.shape[1])
    parts = (np.ascontiguousarray(sums[at : at + step]) for at in range(0, len(sums), step))
    empty = sum(int(_add_up(part, starts, cells, squares)) for part in parts)
    rounding = LARGEST_VARIANCE if sums.dtype == np.float32 else 0.0
    return BlockTotals(cells, rounding * squares, len(sums) * (len(starts) - 1), empty)


class Visits(NamedTuple):
    """Totals of the strategy sums at one decision: found, expected, and one standard error of their difference.

    first: its player has not acted before, so that what is expected is known exactly
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
    """What external sampling must have added at every decision that can be followed, in order of nodes.

    taken              `own_actions` of the tree
    totals             by block; decisions of other blocks are left out
    iterations_weight  total weight of the iterations
    largest_weight     of one iteration
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
    """The sums at a decision, over all actions, and their variance."""
    arrays = game.tree.arrays
    block, first = int(arrays.block[node]), int(arrays.slot[node])
    here = slice(first, first + int(arrays.count[node]))
    return float(totals[block].cells[here].sum()), float(totals[block].variance[here].sum())


def _share(game: Game, totals: Mapping[int, BlockTotals], before: Visits, taken: int) -> tuple[float, float]:
    """Share of the action into node `taken` in the sums at `before`, and its variance relative to its square."""
    arrays, block = game.tree.arrays, totals[int(game.tree.arrays.block[before.node])]
    place = int(arrays.slot[before.node]) + taken - int(arrays.first[before.node])
    cell = float(block.cells[place])
    if cell <= 0:
        return 0.0, 0.0
    _, variance = _total(game, totals, before.node)
    return cell / before.found, float(block.variance[place]) / cell**2 + variance / before.found**2


def lost_updates(game: Game, visits: list[Visits]) -> dict[str, Any]:
    """Shares of the updates that are missing, of the first decisions and of each street's sentinels.

    first_decisions         share lost at the first decisions of both players, the hottest rows: no sampling error
    first_decisions_error   one standard error of it, at most: by rounding; 0 where sums are in float64
    sentinels_per_street    [S] share lost at the most visited of the other decisions, None where none was visited
    sentinel_errors_per_street  [S] one standard error of it, at most
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
    """The first street of tables; None where it is too large to keep, or keeps no sums."""
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
    """Mean total-variation distance of two average strategies over the first street's rows, weighted by `now`.

    Rows that either has not reached are left out; None where none is left.
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
    """Measures one checkpoint after the other of a session."""

    def __init__(self, game: Game, algorithm: Algorithm) -> None:
        self._game = game
        self._taken = own_actions(game.tree) if game.cards.dealt and algorithm.traits.counts_lost_updates else None
        self._before: FirstStreetTrend | None = None

    def remember(self, tables: TableSet) -> None:
        """Take the tables of the checkpoint that the session goes on from as what changes are measured against."""
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
    """Share of a street's rows, of both players, that hold no strategy sum; None where it keeps none."""
    here = [totals[block] for block in (2 * street, 2 * street + 1) if block in totals]
    rows = sum(total.rows for total in here)
    return sum(total.never_reached for total in here) / rows if rows else None
