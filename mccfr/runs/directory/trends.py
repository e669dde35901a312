"""Measures a run's progress on checkpoints: rows never reached, and lost updates.

*Lost updates.* Workers add to one table without locks, so an addition may overwrite another and be lost. They are
counted at the first decisions, those whose player has not acted before. External sampling visits each once per
iteration, when the opponent traverses, and adds the iteration's weight to the strategy sums. Over all buckets, a first
decision's sums should therefore equal the total weight of the iterations. The missing part was lost. The stated error
includes the stochastic rounding of float32 sums.

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
from mccfr.trees.betting_lines import previous_own_actions

TRENDS = "trends.jsonl"
_BLOCK_CELLS = 1 << 22  # cells of a table copied in row-major order at a time


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


def lost_updates(
    game: Game, first: Sequence[int], totals: Mapping[int, BlockTotals], iterations_weight: float
) -> dict[str, float] | None:
    """Return the share of updates lost at players' first decisions; None without strategy sums of them.

    first              decisions whose player has not acted before
    totals             by block
    iterations_weight  total weight of the iterations

    first_decisions        share lost; no sampling error
    first_decisions_error  upper bound of its standard error, by rounding; 0 for float64 sums
    """
    arrays, total, variance, weight = game.tree.arrays, 0.0, 0.0, 0.0
    for node in first:
        block, slot = int(arrays.block[node]), int(arrays.slot[node])
        if block in totals:
            slots = slice(slot, slot + int(arrays.count[node]))
            total += float(totals[block].cells[slots].sum())
            variance += float(totals[block].variance[slots].sum())
            weight += iterations_weight
    return {"first_decisions": 1 - total / weight, "first_decisions_error": sqrt(variance) / weight} if weight else None


class Trends:
    """Measures rows never reached and lost updates on the tables of a session's checkpoints."""

    def __init__(self, game: Game, algorithm: Algorithm) -> None:
        self._game = game
        counts = game.cards.dealt and game.tree.players == 2 and algorithm.traits.counts_lost_updates
        taken = previous_own_actions(game.tree) if counts else ()
        self._first = [node for node in game.tree.decisions.tolist() if taken[node] < 0] if counts else []

    def measure(self, tables: TableSet, iterations_weight: float) -> dict[str, Any]:
        """Return the measured fields of a line of trends.jsonl.

        tables             all of them
        iterations_weight  total weight of the iterations
        """
        game = self._game
        totals = {
            block: block_totals(game, block, sums)
            for block in range(len(game.tree.row_slots))
            if game.tree.row_count[block]
            and (sums := tables.numbers("strategy_sum", block, row_starts(game, block))) is not None
        }
        by_street = np.arange(len(game.tree.row_slots)).reshape(game.tree.streets, -1).tolist()
        return {
            "never_reached_per_street": [_never_reached(totals, blocks) for blocks in by_street],
            "lost_updates": lost_updates(game, self._first, totals, iterations_weight),
        }


def _never_reached(totals: Mapping[int, BlockTotals], blocks: Sequence[int]) -> float | None:
    """Return the share of the blocks' rows whose strategy sums are all 0; None without strategy sums."""
    own = [totals[block] for block in blocks if block in totals]
    rows = sum(total.rows for total in own)
    return sum(total.never_reached for total in own) / rows if rows else None
