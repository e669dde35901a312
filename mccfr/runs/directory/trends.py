"""Measures a run's progress on checkpoints: the share of infosets that no traversal has reached."""

from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import nogil_njit
from mccfr.games.game import Game
from mccfr.tables.strategy import row_starts
from mccfr.tables.table_layout import TableSet

TRENDS = "trends.jsonl"
_BLOCK_CELLS = 1 << 22  # cells of a table copied in row-major order at a time


@nogil_njit
def _empty_rows(sums, starts):
    """Return the number of infosets whose strategy sums add up to 0.

    sums    [buckets, slots]; an infoset is a bucket and a decision r, in slots starts[r] .. starts[r+1]-1
    starts  [decisions+1] int64
    """
    empty = 0
    for bucket in range(sums.shape[0]):
        for row in range(starts.shape[0] - 1):
            total = 0.0
            for slot in range(starts[row], starts[row + 1]):
                total += np.float64(sums[bucket, slot])
            if total == 0.0:
                empty += 1
    return empty


def never_reached(sums: npt.NDArray[Any], starts: npt.NDArray[np.int64]) -> int:
    """Count the infosets of a block (one player on one street) whose strategy sums add up to 0.

    sums    [buckets, slots] strategy sums; a slot is one action of a decision
    starts  [decisions+1] first slot of each decision, then the end of the last
    """
    step = max(1, _BLOCK_CELLS // sums.shape[1])
    parts = (np.ascontiguousarray(sums[at : at + step]) for at in range(0, len(sums), step))
    return sum(int(_empty_rows(part, starts)) for part in parts)


def never_reached_per_street(game: Game, tables: TableSet) -> list[float | None]:
    """Return for each street the share of infosets whose strategy sums add up to 0.

    It is None for streets without strategy sums.

    tables  the run's tables; the strategy sums are read
    """
    counts = np.zeros((2, len(game.tree.row_slots)), np.int64)
    for block in np.flatnonzero(game.tree.row_count).tolist():
        starts = row_starts(game, block)
        if (sums := tables.numbers("strategy_sum", block, starts)) is not None:
            counts[:, block] = never_reached(sums, starts), len(sums) * (len(starts) - 1)
    empty, rows = counts.reshape(2, game.tree.streets, -1).sum(axis=2).tolist()
    return [one / of if of else None for one, of in zip(empty, rows, strict=True)]
