"""The sequence-form linear program of the tests: published values, optimal strategies."""

import pytest
from linear_program import solve_linear_program
from small_games import coin

from mccfr.config.game_tables import (
    AkqGame,
    ClairvoyanceGame,
    GoofspielGame,
    KuhnGame,
    LeducGame,
    MatrixGame,
    PokerGame,
)
from mccfr.games.goofspiel import goofspiel
from mccfr.games.history_tree import expand
from mccfr.games.matrix import matrix
from mccfr.games.poker import akq, clairvoyance, kuhn, leduc, poker
from mccfr.solvers.histories.history_values import best_response_value, expected_value

LEDUC_VALUE = -0.08560642407800
VALUES = {
    "kuhn": (kuhn(KuhnGame()), -1 / 18),
    "leduc": (leduc(LeducGame()), LEDUC_VALUE),
    "leduc, suits merged": (leduc(LeducGame(merge_suits=True)), LEDUC_VALUE),
    "half-street AKQ": (akq(AkqGame()), 1 / 18),
    "clairvoyance, 3 streets": (clairvoyance(ClairvoyanceGame(streets=3, bet=0.5, probability=0.3)), 0.32 / 0.45),
    "antes 1 1, stack 5": (poker(PokerGame(antes=(1, 1), stack=5, merge_suits=True)), -0.080417285),
    "unequal chances": (coin(lambda _: "blind"), 1.0),
    "goofspiel": (goofspiel(GoofspielGame(cards=4)), 0.0),
    "matrix": (matrix(MatrixGame(payoffs=[[1, 0.9], [-0.7, 1]])), 1.63 / 1.8),
}


@pytest.mark.parametrize("name", VALUES)
def test_published_values(name):
    game, value = VALUES[name]
    game = expand(game).game if game.cards.dealt else game
    found = solve_linear_program(game)
    assert found.value_chips + game.offset_chips == pytest.approx(value, abs=2e-7)
    assert expected_value(game, found.strategy) == pytest.approx(found.value_chips, abs=1e-6)
    assert best_response_value(game, found.strategy, 0) == pytest.approx(found.value_chips, abs=1e-6)
    assert best_response_value(game, found.strategy, 1) == pytest.approx(-found.value_chips, abs=1e-6)
