"""Sums and means over hands for each cell of the web page's grid of hands, such as the 13x13 classes."""

from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.grid import Grid
from mccfr.play.line_ranges import Weights

DIGITS = 6
"""Decimals of the numbers sent to the page."""


class GridCells:
    """Computes sums and means over the hands of each grid cell; L possible hands, C cells, A actions.

    A cell is one hand or a class of hands, such as AKs.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def means(self, played: Weights, weights: Weights, live: npt.NDArray[np.int64]) -> Any:
        """Return [C][A] the weighted mean of the action probabilities over the hands of each cell.

        played   [L, A] probabilities of the actions with each possible hand, which is in an initial range and shares no
                 card with the board
        weights  [L] weights of these hands in the means
        live     [L] indices of these hands among all hands of the game

        A cell whose weights are all 0 gets the unweighted mean.
        """
        cell, cells = self._grid.cell[live], len(self._grid.label)
        shares = np.bincount(cell, weights, cells)
        weight = np.where(shares[cell] > 0, weights, 1.0)  # an unweighted mean if the weight of the class is 0
        whole = np.maximum(np.bincount(cell, weight, cells), 1e-300)
        return rounded(np.stack([np.bincount(cell, weight * column, cells) / whole for column in played.T], axis=1))

    def weights(self, reach: Weights, share: Weights, live: npt.NDArray[np.int64]) -> dict[str, Any]:
        """Return for each cell its number of hands (`combos`), mean `reach` and summed `shares`.

        `combos` is [C]; `reach` and `shares` are [P][C] for P players.

        reach  [P, L] each player's reach weight of each possible hand, which is in an initial range and shares no card
               with the board
        share  [P, L] probability that a player holds each hand; the answer has the sums as `shares`
        live   [L] indices of these hands among all hands of the game
        """
        cell, cells = self._grid.cell[live], len(self._grid.label)
        count = np.bincount(cell, minlength=cells)
        return {
            "combos": count.tolist(),
            "reach": rounded(np.stack([np.bincount(cell, one, cells) / np.maximum(count, 1) for one in reach])),
            "shares": rounded(np.stack([np.bincount(cell, one, cells) for one in share])),
        }


def rounded(values: Weights) -> Any:
    """Return an array as nested lists of numbers, rounded to `DIGITS` (6) decimals."""
    return np.round(values, DIGITS).tolist()
