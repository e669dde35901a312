"""The sequence-form linear program: published values, optimal strategies."""

import pytest
from linear_program import solve_linear_program
from small_games import coin

from mccfr.cards.no_cards import NO_CARDS
from mccfr.config.game_tables import (
    AkqGame,
    ClairvoyanceGame,
    GoofspielGame,
    KuhnGame,
    LeducGame,
    MatrixGame,
    PokerGame,
)
from mccfr.games.game import Game
from mccfr.games.goofspiel import goofspiel
from mccfr.games.history_tree import expand
from mccfr.games.matrix import matrix
from mccfr.games.poker import akq, clairvoyance, kuhn, leduc, poker
from mccfr.solvers.histories.history_values import best_response_value, expected_value
from mccfr.trees.history_compiler import Decision, build_history_tree

LEDUC_VALUE = -0.08560642407800
VALUES = {
    "kuhn": (kuhn(KuhnGame()), -1 / 18),
    "leduc": (leduc(LeducGame()), LEDUC_VALUE),
    "leduc, suits merged": (leduc(LeducGame(merge_suits=True)), LEDUC_VALUE),
    "half-street AKQ": (akq(AkqGame()), 1 / 18),
    "clairvoyance, 3 streets": (clairvoyance(ClairvoyanceGame(streets=3, bet=0.5, probability=0.3)), 0.32 / 0.45),
    "antes 1 1, stack 5": (poker(PokerGame(antes=(1, 1), stack=5, merge_suits=True)), -0.080417285),
    "blinds 2 1, stack 7": (
        poker(PokerGame(blinds=(2, 1), stack=7, first_player=(2, 1), merge_suits=True)),
        -0.157575758,
    ),
    "two hole cards, blinds 2 1, stack 8": (
        poker(PokerGame(hole_cards=2, board_cards=(0,), blinds=(2, 1), stack=8, first_player=(2,))),
        -0.092233314,
    ),
    "goofspiel": (goofspiel(GoofspielGame(cards=4)), 0.0),
    "matrix": (matrix(MatrixGame(payoffs=[[1, 0.9], [-0.7, 1]])), 1.63 / 1.8),
}


def assert_optimal(game, found, value):
    assert found.value_chips + game.offset_chips == pytest.approx(value, abs=2e-7)
    assert expected_value(game, found.strategy) == pytest.approx(found.value_chips, abs=1e-6)
    assert best_response_value(game, found.strategy, 0) == pytest.approx(found.value_chips, abs=1e-6)
    assert best_response_value(game, found.strategy, 1) == pytest.approx(-found.value_chips, abs=1e-6)


@pytest.mark.parametrize("name", VALUES)
def test_published_values(name):
    game, value = VALUES[name]
    game = expand(game).game if game.cards.dealt else game
    assert_optimal(game, solve_linear_program(game), value)


def test_strategies_of_the_akq_game():
    """Half-street AKQ, pot 2, bet 1: the queen bluffs with 1/3, the king calls with 1/3."""
    game = expand(akq(AkqGame())).game
    strategy = solve_linear_program(game).strategy
    wanted = {"Q": [2 / 3, 1 / 3], "K": [1, 0], "A": [0, 1]}, {"Q r2": [1, 0], "K r2": [2 / 3, 1 / 3], "A r2": [0, 1]}
    for player, rows in enumerate(wanted):  # (check, bet) and (fold, call)
        in_order = [share for name in game.tree.infoset_names[player] for share in rows[name]]
        assert strategy.probability[player][0] == pytest.approx(in_order, abs=1e-6)


def test_rows_out_of_reach_play_uniformly_and_say_so():
    """Whoever is shown 5 for stopping never goes on, and what he would do then has no weight."""

    def grow(history):
        if history == "":
            return Decision(0, "first", ["stop", "go"], ["s", "g"])
        return (
            Decision(0, "second", ["a", "b"], ["ga", "gb"])
            if history == "g"
            else {"s": 5.0, "ga": 1.0, "gb": 2.0}[history]
        )

    found = solve_linear_program(Game("stop", build_history_tree("", grow), NO_CARDS))
    assert found.value_chips == pytest.approx(5)
    assert found.strategy.probability[0][0].tolist() == [1, 0, 0.5, 0.5]
    assert found.strategy.weight[0][0].tolist() == [1, 0]


def test_chance_of_unequal_probabilities():
    game = coin(lambda _: "blind")
    assert_optimal(game, solve_linear_program(game), 1.0)
