"""Purified strategies, and strategies with low-probability actions removed (thresholding).

Ganzfried, Sandholm & Waugh, "Strategy Purification and Thresholding: Effective Non-Equilibrium Approaches for Playing
Large Games" (AAMAS 2012). Both remove actions that an average strategy retains from early iterations.

Bots, exported policies and evaluations all use `simpler_rows`. Among equally likely actions, purification takes the
first that is not a fold. So a row that training never reached, which is uniform, does not give up the pot.
"""

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.tables.strategy import BlockRows, LazyBlocks, Strategy, row_starts
from mccfr.trees.compiled import DECISION

Cells = npt.NDArray[np.float64]
"""[buckets, slots] probabilities, or [buckets, rows] weights of rows."""
FOLD = "f"

CHOSEN_WEIGHT = float(np.finfo(np.float32).tiny)
"""Weight, 1.2e-38, of a purified row that was never reached; the weight 0 would mean "uniform"."""


def check_threshold(threshold: float) -> None:
    """Raise `ValueError` for a threshold outside 0 to 1."""
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold = {threshold}: it must be between 0 and 1")


def simplified(game: Game, strategy: Strategy, *, purify: bool = False, threshold: float = 0.0) -> Strategy:
    """Return a strategy with thresholding and then purification applied, as far as the arguments say.

    purify     True: keep only the likeliest action, among equals the first that is no fold; rows never reached get the
               tiny weight `CHOSEN_WEIGHT`, because 0 would make them uniform
    threshold  remove actions of lower probability and rescale the others; a row that would lose all actions is kept.
               0: remove none

    The result computes the probabilities of a block (street and player) on access. With neither change it is
    `strategy` itself. Raises `ValueError` for a threshold outside 0 to 1.
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
    probabilities, weights = LazyBlocks(count, cells), LazyBlocks(count, weight) if purify else strategy.weight
    return Strategy(
        probabilities, weights, LazyBlocks(count, lambda block: BlockRows(probabilities[block], weights[block]))
    )


def rows_that_fold(game: Game, block: int) -> npt.NDArray[np.bool_]:
    """Return [rows] bool for a block (street and player): True if a row's first action is a fold."""
    arrays = game.tree.arrays
    nodes = np.flatnonzero((arrays.kind == DECISION) & (arrays.block == block))
    folds = np.zeros(int(game.tree.row_count[block]), np.bool_)
    folds[arrays.row[nodes]] = [game.tree.label[child] == FOLD for child in arrays.first[nodes]]
    return folds


def simpler_rows(
    cells: Cells, starts: npt.NDArray[np.int64], folds: npt.NDArray[np.bool_], purify: bool, threshold: float
) -> Cells:
    """Return the strategy [buckets, slots] after thresholding and, if `purify`, purification.

    A row holds the action probabilities of one decision, a slot is one action of it.

    cells      [buckets, slots] action probabilities
    starts     [rows+1] first slot of each row, and the end of the last
    folds      [rows] True if a row's first action is a fold
    threshold  actions of lower probability are removed; 0: none

    A row of zeros, for an impossible hand, is kept.
    """
    if len(starts) == 1:
        return cells
    if threshold > 0:
        cells = _without_rare(cells, starts, threshold)
    return _likeliest(cells, starts, folds) if purify else cells


def _without_rare(cells: Cells, starts: npt.NDArray[np.int64], threshold: float) -> Cells:
    remaining = np.where(cells < threshold, 0, cells)
    total = np.repeat(np.add.reduceat(remaining, starts[:-1], axis=1), np.diff(starts), axis=1)
    return np.where(total > 0, remaining / np.where(total > 0, total, 1), cells)


def _likeliest(cells: Cells, starts: npt.NDArray[np.int64], folds: npt.NDArray[np.bool_]) -> Cells:
    counts, slots = np.diff(starts), cells.shape[1]
    tie_rank = np.arange(slots)  # tie-break: the smallest value wins
    tie_rank[starts[:-1][folds]] += slots
    largest = np.repeat(np.maximum.reduceat(cells, starts[:-1], axis=1), counts, axis=1)
    first = np.minimum.reduceat(np.where(cells == largest, tie_rank, 2 * slots), starts[:-1], axis=1)
    return ((tie_rank == np.repeat(first, counts, axis=1)) & (largest > 0)).astype(np.float64)
