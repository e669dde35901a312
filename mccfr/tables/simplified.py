"""Strategies played more plainly than they are written: purified, or without what is rarely played.

Ganzfried, Sandholm & Waugh, "Strategy Purification and Thresholding: Effective Non-Equilibrium Approaches for Playing
Large Games" (AAMAS 2012).  Both take out actions that an average strategy keeps from early iterations; whether that
helps is measured, not known.

Seats at the table, exported policies and evaluations all play the rows that `simpler_rows` makes.  Of several likeliest
actions it takes the first that is no fold: a row that was never reached is uniform and says nothing, and is no reason
to give up the pot.
"""

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.tables.strategy import BlockRows, LazyBlocks, Strategy, row_starts
from mccfr.trees.compiled import DECISION

Cells = npt.NDArray[np.float64]
"""[buckets, slots] rows of probabilities side by side, or [buckets, rows] their weights."""
FOLD = "f"

CHOSEN_WEIGHT = float(np.finfo(np.float32).tiny)
"""The weight of a purified row that was never reached, where 0 would say that it is uniform: 1.2e-38."""


def check_threshold(threshold: float) -> None:
    """Raise `ValueError` for a threshold outside of 0 to 1."""
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold = {threshold}: it must be between 0 and 1")


def simplified(game: Game, strategy: Strategy, *, purify: bool = False, threshold: float = 0.0) -> Strategy:
    """A strategy as a seat with these options plays it.

    purify     only the likeliest action, of several the first that is no fold; the weight of a row that was never
               reached becomes `CHOSEN_WEIGHT`
    threshold  no action of less probability, the others in proportion; a row that would have none left stays

    Blocks are made one at a time, when they are asked for.  Raises `ValueError` for a threshold outside of 0 to 1.
    """
    check_threshold(threshold)
    if not purify and threshold == 0:
        return strategy

    def cells(block: int) -> Cells:
        given = np.asarray(strategy.probability[block], np.float64)
        return simpler_rows(given, row_starts(game, block), rows_that_fold(game, block), purify, threshold)

    def weight(block: int) -> Cells:
        return np.maximum(strategy.weight[block], CHOSEN_WEIGHT)

    count = len(strategy.blocks)
    played, behind = LazyBlocks(count, cells), LazyBlocks(count, weight) if purify else strategy.weight
    return Strategy(played, behind, LazyBlocks(count, lambda block: BlockRows(played[block], behind[block])))


def rows_that_fold(game: Game, block: int) -> npt.NDArray[np.bool_]:
    """[rows] whether the first action of each row of a block is a fold."""
    arrays = game.tree.arrays
    nodes = np.flatnonzero((arrays.kind == DECISION) & (arrays.block == block))
    folds = np.zeros(int(game.tree.row_count[block]), np.bool_)
    folds[arrays.row[nodes]] = [game.tree.label[child] == FOLD for child in arrays.first[nodes]]
    return folds


def simpler_rows(
    cells: Cells, starts: npt.NDArray[np.int64], folds: npt.NDArray[np.bool_], purify: bool, threshold: float
) -> Cells:
    """[buckets, slots] rows as they are played: without what is rarer than a threshold, then, if asked, purified.

    starts  [rows+1] first slot of each row, and the end of the last
    folds   [rows] whether a row's first action is a fold

    A row of zeros, of a hand that cannot be, stays.
    """
    if len(starts) == 1:
        return cells
    if threshold > 0:
        cells = _without_rare(cells, starts, threshold)
    return _likeliest(cells, starts, folds) if purify else cells


def _without_rare(cells: Cells, starts: npt.NDArray[np.int64], threshold: float) -> Cells:
    kept = np.where(cells < threshold, 0, cells)
    total = np.repeat(np.add.reduceat(kept, starts[:-1], axis=1), np.diff(starts), axis=1)
    return np.where(total > 0, kept / np.where(total > 0, total, 1), cells)


def _likeliest(cells: Cells, starts: npt.NDArray[np.int64], folds: npt.NDArray[np.bool_]) -> Cells:
    counts, slots = np.diff(starts), cells.shape[1]
    turn = np.arange(slots)  # which of several is taken: the one whose turn is first
    turn[starts[:-1][folds]] += slots
    largest = np.repeat(np.maximum.reduceat(cells, starts[:-1], axis=1), counts, axis=1)
    first = np.minimum.reduceat(np.where(cells == largest, turn, 2 * slots), starts[:-1], axis=1)
    return ((turn == np.repeat(first, counts, axis=1)) & (largest > 0)).astype(np.float64)
