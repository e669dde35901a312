"""Purified and thresholded strategies: row by row what a seat at the table plays."""

from itertools import pairwise

import numpy as np
import pytest
from small_games import game_of
from strategies import random_strategy

from mccfr.tables.simplified import purified, thresholded
from mccfr.tables.strategy import row_starts


def rows_of(game, strategy):
    for block, probability in enumerate(strategy.probability):
        starts = row_starts(game, block)
        for first, stop in pairwise(starts):
            yield probability[:, first:stop]


def test_rows_are_those_that_are_played():
    game = game_of("leduc")
    strategy = random_strategy(game, 3)
    pure, common = purified(game, strategy), thresholded(game, strategy, 0.3)
    for given, one, other in zip(*(list(rows_of(game, s)) for s in (strategy, pure, common)), strict=True):
        for row, likeliest, kept in zip(given, one, other, strict=True):
            assert likeliest.tolist() == [float(action == row.argmax()) for action in range(len(row))]
            above = [share if share >= 0.3 else 0.0 for share in row]
            assert kept == pytest.approx([share / sum(above) for share in above] if sum(above) else row)
    assert np.array_equal(thresholded(game, strategy, 0).probability[0], strategy.probability[0])
    with pytest.raises(ValueError, match=r"threshold = 1\.5"):
        thresholded(game, strategy, 1.5)
