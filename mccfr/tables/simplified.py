"""Strategies made simpler, as they may be played or stored: purified, without rare actions, in whole shares.

Ganzfried, Sandholm & Waugh, "Strategy Purification and Thresholding: Effective Non-Equilibrium Approaches for Playing
Large Games" (AAMAS 2012).  A seat at the table does the same to the rows that it plays (`mccfr.play.seat`), and an
exported policy has whole shares (`mccfr.policy.quantise`); here all of a strategy is changed, to be evaluated.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.tables.strategy import Strategy, row_starts

Rows = npt.NDArray[np.float64]
"""[buckets, actions] a row's probabilities."""


def purified(game: Game, strategy: Strategy) -> Strategy:
    """Always the likeliest action of each row, the first of several."""

    def pure(rows: Rows) -> Rows:
        return (np.arange(rows.shape[1]) == rows.argmax(axis=1)[:, None]).astype(np.float64)

    return _changed(game, strategy, pure)


def thresholded(game: Game, strategy: Strategy, threshold: float) -> Strategy:
    """No action of less probability than a threshold; the others in proportion.  A row that would be empty stays.

    `ValueError` for a threshold outside of 0 to 1.
    """
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold = {threshold}: it must be between 0 and 1")

    def common(rows: Rows) -> Rows:
        kept = np.where(rows < threshold, 0, rows)
        total = kept.sum(axis=1, keepdims=True)
        return np.where(total > 0, kept / np.where(total > 0, total, 1), rows)

    return _changed(game, strategy, common)


def _changed(game: Game, strategy: Strategy, change: Callable[[Rows], Rows]) -> Strategy:
    probability = []
    for block, given in enumerate(strategy.probability):
        made, starts = np.array(given), row_starts(game, block)
        for first, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            made[:, first:stop] = change(made[:, first:stop])
        probability.append(made)
    return Strategy(tuple(probability), strategy.weight)
