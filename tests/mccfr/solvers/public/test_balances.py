"""Showdown values by precomputed matrices, against walks over every board.

Shows:

* Showdown values by matrices equal those of walks over all run-outs
  (test_showdown_matrices_equal_walks_over_all_boards; planted:
  test_planted_errors_in_showdown_matrices_are_caught)
"""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from strategies import random_strategy

from mccfr.config.spot_table import spot_document
from mccfr.config.toml_files import config_from
from mccfr.games.registry import build_game
from mccfr.solvers.public.best_response import values
from mccfr.solvers.public.merged_rows import tree_by_rows
from mccfr.solvers.public.public_tree import with_balances

SPOTS = {
    "monotone flop": ("Kc7c2c", "AA,KQs,54s", "QQ,AKs:0.7,A5s,22", {}),
    "two-tone turn": ("Kc7d2c5h", "AA,KQs,76s:0.3,54s", "QQ,AKs:0.7,87s,A5s,22", {"rake": "5%", "rake_cap": 4}),
    "locked turn": ("Kc7d2s5h", "AA,KQs,54s", "QQ,AKs:0.7,87s,22", {"locks": {"c": "c 22,87s"}}),
}


@cache
def spot(name):
    """Return a game, its public tree with and without matrices, and a random strategy."""
    board, oop, ip, more = SPOTS[name]
    given = {"board": board, "ranges": {"oop": oop, "ip": ip}, "pot": 60, "effective_stack": 120}
    game = build_game(config_from(spot_document(given | more, 0.01, 0), "test").game, Path())
    walked = tree_by_rows(game)
    return game, with_balances(walked, game), walked, random_strategy(game)


@pytest.mark.parametrize("name", SPOTS)
def test_showdown_matrices_equal_walks_over_all_boards(name):
    game, counted, walked, strategy = spot(name)
    assert (counted.balances.first >= 0).sum() == (1 if "turn" in name else 24)  # 23 turns are not isomorphic
    expected = values(game, strategy, public=walked)
    np.testing.assert_allclose(values(game, strategy, public=counted), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "planted",
    [
        lambda cells, sizes: cells[:sizes].__imul__(-1),  # values of the other player
        lambda cells, sizes: cells[sizes:].fill(1),  # hands that share a column count as one hand
        lambda cells, sizes: cells[:1].__iadd__(5),  # one cell counts five boards too many
    ],
    ids=["sign", "sizes", "count"],
)
def test_planted_errors_in_showdown_matrices_are_caught(planted):
    game, counted, walked, strategy = spot("monotone flop")
    cells, columns = counted.balances.cells.copy(), np.diff(counted.ranges.first)[:, 0]
    planted(cells[: columns.prod() + columns.sum()], columns.prod())
    wrong = counted._replace(balances=counted.balances._replace(cells=cells))
    expected = values(game, strategy, public=walked)
    assert np.abs(values(game, strategy, public=wrong) - expected).max() > 1e-6
