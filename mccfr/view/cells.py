"""What hands do and weigh, cell by cell of a grid."""

from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.grid import Grid

DIGITS = 6
"""Of numbers that pages are told."""
Weights = npt.NDArray[np.float64]


class GridCells:
    """Sums and means over the hands of each cell.  L live hands, C cells, A actions."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def means(self, played: Weights, own: Weights, live: npt.NDArray[np.int64]) -> Any:
        """[C][A] mean of what hands play [L, A] over each cell, by their probabilities `own` [L].

        live  [L] numbers of the hands
        """
        cell, cells = self._grid.cell[live], len(self._grid.label)
        shares = np.bincount(cell, own, cells)
        weight = np.where(shares[cell] > 0, own, 1.0)  # a plain mean where nobody comes with the class
        whole = np.maximum(np.bincount(cell, weight, cells), 1e-300)
        return rounded(np.stack([np.bincount(cell, weight * column, cells) / whole for column in played.T], axis=1))

    def weights(self, reach: Weights, share: Weights, live: npt.NDArray[np.int64]) -> dict[str, Any]:
        """Of each cell: hands that the board leaves, their mean reach [2, L], the sum of their shares [2, L]."""
        cell, cells = self._grid.cell[live], len(self._grid.label)
        count = np.bincount(cell, minlength=cells)
        return {
            "combos": count.tolist(),
            "reach": rounded(np.stack([np.bincount(cell, one, cells) / np.maximum(count, 1) for one in reach])),
            "shares": rounded(np.stack([np.bincount(cell, one, cells) for one in share])),
        }


def rounded(values: Weights) -> Any:
    """Lists of numbers."""
    return np.round(values, DIGITS).tolist()
