"""Strategies played more plainly than they are written: purified, or without what is rarely played.

Both take out actions that an average strategy keeps from early iterations (Ganzfried, Sandholm & Waugh 2012,
"Strategy purification and thresholding"); whether that helps is measured, not known.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.tables.strategy import Strategy, row_starts


def sharpened(game: Game, strategy: Strategy, *, purify: bool = False, threshold: float = 0.0) -> Strategy:
    """A strategy as a seat with these options plays it; rows that were never reached stay uniform.

    purify     only the likeliest action, the first of several
    threshold  no action of less probability, the others in proportion; a row that would have none left stays

    Blocks are made one at a time, when they are asked for.  Raises `ValueError` for a threshold outside of 0 to 1.
    """
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold = {threshold}: it must be between 0 and 1")
    if not purify and threshold == 0:
        return strategy
    return Strategy(_Sharpened(game, strategy, purify, threshold), strategy.weight)


class _Sharpened(Sequence[npt.NDArray[np.float64]]):
    """Probabilities by block, made from those of a strategy; the last block is kept."""

    def __init__(self, game: Game, strategy: Strategy, purify: bool, threshold: float) -> None:
        self._game, self._strategy, self._purify, self._threshold = game, strategy, purify, threshold
        self._last: tuple[int, npt.NDArray[np.float64]] | None = None

    def __len__(self) -> int:
        return self._strategy.blocks

    def __getitem__(self, block: Any) -> Any:
        number = range(len(self))[block]
        if self._last is None or self._last[0] != number:
            self._last = number, self._made(number)
        return self._last[1]

    def _made(self, block: int) -> npt.NDArray[np.float64]:
        starts = row_starts(self._game, block)
        cells = np.asarray(self._strategy.probability[block], np.float64)
        if len(starts) == 1:
            return cells
        found = _without_rare(cells, starts, self._threshold)
        if self._purify:
            found = _likeliest(found, starts)
        never = np.asarray(self._strategy.weight[block]) == 0
        return np.where(np.repeat(never, np.diff(starts), axis=1), cells, found)


def _without_rare(
    cells: npt.NDArray[np.float64], starts: npt.NDArray[np.int64], threshold: float
) -> npt.NDArray[np.float64]:
    """[buckets, slots] what is below the threshold left out, row by row; a row that would be empty stays."""
    counts = np.diff(starts)
    kept = np.where(cells < threshold, 0, cells)
    total = np.repeat(np.add.reduceat(kept, starts[:-1], axis=1), counts, axis=1)
    return np.where(total > 0, kept / np.where(total > 0, total, 1), cells)


def _likeliest(cells: npt.NDArray[np.float64], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """[buckets, slots] 1 at the first of the largest cells of each row."""
    counts, slots = np.diff(starts), np.arange(cells.shape[1])
    largest = np.repeat(np.maximum.reduceat(cells, starts[:-1], axis=1), counts, axis=1)
    first = np.minimum.reduceat(np.where(cells == largest, slots, len(slots)), starts[:-1], axis=1)
    return (slots == np.repeat(first, counts, axis=1)).astype(np.float64)
