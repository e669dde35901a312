"""Exact evaluation: reference values of uniform play, known equilibria, offsets and big blinds.

Shows:

* Exact values and exploitability equal those of OpenSpiel and of enumeration over pure strategies (test_exact,
  test_values_and_best_responses_equal_openspiel, test_best_response_equals_the_best_of_all_pure_strategies)
"""

import pytest
from places import ENDGAMES, RUNS
from strategies import tabulate

from mccfr.config.game_tables import AkqGame, ClairvoyanceGame, HoldemSubgame, KuhnGame, LeducGame, MatrixGame
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.registry import build_game
from mccfr.tables.strategy import uniform_strategy


def evaluate(config, choose=None):
    """Evaluate uniform play, or play that bets or calls with probability `choose(hand name, history)`."""
    game = build_game(config, RUNS)
    if choose is None:
        return evaluate_exact(game, uniform_strategy(game))
    return evaluate_exact(game, tabulate(game, lambda node, bucket: row(game, node, bucket, choose)))


def row(game, node, bucket, choose):
    """Return the probabilities of passing (checking, folding) and of betting or calling."""
    player = int(game.tree.arrays.player[node])
    street = int(game.tree.arrays.block[node]) // 2
    hand = next(h for h, b in enumerate(game.cards.bucket[street][player, 0]) if b == bucket)
    history = [game.tree.label[n][0] for n in game.tree.path(node)[1:]]
    bold = choose(game.cards.hand_names[hand], "".join(history))
    return [1 - bold, bold]


@pytest.mark.parametrize(
    ("config", "exploitability"),
    [
        (KuhnGame(), 11 / 24),
        (LeducGame(), 2.373611),
        (LeducGame(merge_suits=True), 2.373611),
        (MatrixGame(payoffs=((1, 0.9), (-0.7, 1))), (0.95 - 0.15) / 2),
    ],
)
def test_exploitability_of_uniform_play(config, exploitability):
    result = evaluate(config)
    assert result.exploitability_chips == pytest.approx(exploitability, abs=5e-7)
    assert sum(result.best_response_chips) == pytest.approx(2 * result.exploitability_chips)
    assert result.exploitability_mbb is None


@pytest.mark.skipif(not ENDGAMES.is_dir(), reason="the Libratus endgames are not on this machine")
def test_uniform_play_on_subgame_3():
    result = evaluate(HoldemSubgame(file=str(ENDGAMES / "subgame3.txt")))
    assert result.exploitability_mbb == pytest.approx(28_634.679, abs=5e-4)
    assert result.exploitability_chips == pytest.approx(2_863.4679, abs=5e-5)


def test_uniform_play_on_shipped_endgames():
    """Compare with recorded values; test_vector.py enumerates these endgames with fewer hands."""
    assert evaluate(HoldemSubgame(file="games/river.txt")).exploitability_mbb == pytest.approx(
        34_066.751980842, abs=1e-8
    )
    turn = evaluate(HoldemSubgame(file="games/turn.txt"))
    assert turn.exploitability_mbb == pytest.approx(43_118.059273051, abs=1e-8)


def test_kuhn_equilibrium():
    """Kuhn 1950 with α = 1/5: bluff a jack α, bet a king 3α, call with a queen 1/3 + α."""
    bets = {"J": 1 / 5, "Q": 0, "K": 3 / 5}
    calls = {"J": 0, "Q": 1 / 3 + 1 / 5, "K": 1}
    answers = {"c": {"J": 1 / 3, "Q": 0, "K": 1}, "b": {"J": 0, "Q": 1 / 3, "K": 1}}

    def choose(hand, history):
        return {"": bets, "cb": calls, **answers}[history][hand]

    result = evaluate(KuhnGame(), choose)
    assert result.value_chips == pytest.approx(-1 / 18, abs=1e-12)
    assert result.exploitability_chips == pytest.approx(0, abs=1e-12)


def test_akq_equilibrium():
    """Pot 2, bet 1: bet aces and 1/3 of queens, call with aces and 1/3 of kings; the value is 1/18."""

    def choose(hand, history):
        return {"": {"Q": 1 / 3, "K": 0, "A": 1}, "r": {"Q": 0, "K": 1 / 3, "A": 1}}[history][hand]

    result = evaluate(AkqGame(), choose)
    assert result.value_chips == pytest.approx(1 / 18, abs=1e-12)
    assert result.best_response_chips == pytest.approx((1 / 18, -1 / 18), abs=1e-12)
    assert result.exploitability_chips == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("streets", "bet", "probability", "share"), [(2, 1, 0.2, 0.45), (3, 1, 0.2, 0.675), (3, 0.5, 0.3, 0.7111111)]
)
def test_clairvoyance_equilibrium(streets, bet, probability, share):
    """Player 0 bluffs so often that calling has EV 0; player 1 calls 1/(1+b) of the bets."""
    ratio = (1 + 2 * bet) / (1 + bet)
    betting = [1, *(probability * ratio ** (streets - street) for street in range(streets))]  # share betting so far

    def choose(hand, history):
        if hand == "bluffcatcher":
            return 1 / (1 + bet)
        if hand == "nuts":
            return 1
        street = history.count("r")
        gave_up = history != "rc" * street
        return 0 if gave_up else (betting[street + 1] - probability) / (betting[street] - probability)

    result = evaluate(ClairvoyanceGame(streets=streets, bet=bet, probability=probability), choose)
    assert result.value_chips == pytest.approx(share, abs=5e-8)
    assert result.exploitability_chips == pytest.approx(0, abs=1e-12)
    assert result.best_response_chips == pytest.approx((result.value_chips, -result.value_chips), abs=1e-12)
