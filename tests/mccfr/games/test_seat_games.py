"""Kuhn and Leduc poker with three to five players: their trees, exact values and refusals.

Shows:

* Kuhn and Leduc poker of more players have OpenSpiel's histories, infosets and payoffs
  (test_the_tree_equals_that_of_openspiel)
* Values and best responses of uniform play equal OpenSpiel's
  (planted: test_planted_errors_change_the_figures)
* Values of random strategies equal OpenSpiel's (test_random_strategies_have_the_values_of_openspiel)
"""

from functools import cache

import numpy as np
import pyspiel
import pytest
from openspiel import openspiel_values
from refusals import refusals, refused
from strategies import random_strategy

import mccfr
from mccfr.evaluation import exploitative_responses
from mccfr.evaluation.exact import evaluate_exact
from mccfr.evaluation.methods.registry import measure, record_text
from mccfr.games import seat_histories
from mccfr.games.betting import payoffs
from mccfr.games.translation import real_betting
from mccfr.play.resolving.resolving_spot import Spot
from mccfr.policy.strategy_profile import Profile
from mccfr.tables.strategy import uniform_strategy
from mccfr.trees.compiled import CHANCE, DECISION, TERMINAL

HISTORIES = {("kuhn", 3): 617, ("kuhn", 4): 7_886, ("kuhn", 5): 116_437, ("leduc", 3): 1_831_601}
INFOSETS = {("kuhn", 3): 48, ("kuhn", 4): 160, ("kuhn", 5): 480, ("leduc", 3): 25_800}
UNIFORM = {
    ("kuhn", 3): ((0.546875, 0.692708333333, 0.822916666667), (0.234375, -0.046875, -0.1875)),
    ("kuhn", 4): (
        (0.690104166667, 0.827604166667, 0.9421875, 1.016145833333),
        (0.309895833333, 0.018229166667, -0.127604166667, -0.200520833333),
    ),
    ("kuhn", 5): (
        (0.790071614583, 0.942415364583, 1.027962239583, 1.102506510417, 1.147851562500),
        (0.358886718750, 0.065917968750, -0.080566406250, -0.153808593750, -0.190429687500),
    ),
    ("leduc", 3): ((3.993549176, 4.095902916, 4.521769249), (-0.158613040, -0.019097222, 0.177710262)),
}
"""Gains and values of each player in uniform play, in chips: OpenSpiel 1.6, rounded to the digits shown."""
GAMES = pytest.mark.parametrize(("name", "players"), list(HISTORIES))


@pytest.fixture(scope="module")
def game_of():
    """Games by name and number of players, each built once."""
    return cache(lambda name, players: mccfr.game(name, players=players))


def openspiel_game(name, players):
    return pyspiel.load_game(f"{name}_poker(players={players})")


def compare(game, node, state, rows):
    """Compare a node of ours with a state of OpenSpiel; `rows` maps its infosets to ours."""
    arrays, children = game.tree.arrays, game.tree.children(node)
    if state.is_terminal():
        assert arrays.kind[node] == TERMINAL
        assert game.tree.payoffs[node].tolist() == pytest.approx(state.returns(), abs=1e-12)
        return ()
    actions = state.legal_actions()
    assert len(children) == len(actions)
    if state.is_chance_node():
        assert arrays.kind[node] == CHANCE
        shares = [share for _, share in state.chance_outcomes()]
        assert arrays.probability[list(children)].tolist() == pytest.approx(shares, abs=1e-12)
    else:
        player = state.current_player()
        assert (arrays.kind[node], arrays.player[node]) == (DECISION, player)
        named = rows[player].setdefault(state.information_state_string(), int(arrays.row[node]))
        assert named == arrays.row[node]
    return tuple(zip(children, actions, strict=True))


@GAMES
def test_the_tree_equals_that_of_openspiel(game_of, name, players):
    """Kuhn poker's whole tree; of Leduc poker's, 3,000 random histories."""
    game, rows = game_of(name, players), [{} for _ in range(players)]
    assert len(game.tree.parent) == HISTORIES[name, players]
    assert np.abs(game.tree.payoffs.sum(axis=1)).max() < 1e-12
    assert int(game.infosets.sum()) == INFOSETS[name, players]
    root, rng = openspiel_game(name, players).new_initial_state(), np.random.default_rng(1)
    if name == "kuhn" and players < 5:
        todo = [(0, root)]
        while todo:
            node, state = todo.pop()
            todo += [(child, state.child(action)) for child, action in compare(game, node, state, rows)]
        assert [len(own) for own in rows] == game.counts()["infosets_per_player"]
    else:
        for _ in range(3_000):
            node, state = 0, root
            while following := compare(game, node, state, rows):
                node, action = following[rng.integers(len(following))]
                state = state.child(action)
    for own in rows:
        assert len({*own.values()}) == len(own)


@GAMES
def test_uniform_play_has_the_gains_and_values_of_openspiel(game_of, name, players):
    result = evaluate_exact(game_of(name, players), uniform_strategy(game_of(name, players)))
    digits = 1e-12 if name == "kuhn" else 1e-9
    gains, values = UNIFORM[name, players]
    assert result.gains_chips == pytest.approx(gains, abs=digits)
    own = [best - gain for best, gain in zip(result.best_response_chips, result.gains_chips, strict=True)]
    assert own == pytest.approx(values, abs=digits)
    assert result.value_chips == pytest.approx(own[0], abs=1e-15)
    assert result.exploitability_chips == pytest.approx(sum(result.gains_chips) / players, abs=1e-15)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_strategies_have_the_values_of_openspiel(game_of, seed):
    game = game_of("kuhn", 3)
    strategy = random_strategy(game, seed)
    result, (values, best) = evaluate_exact(game, strategy), openspiel_values(game, openspiel_game("kuhn", 3), strategy)
    assert result.best_response_chips == pytest.approx(best, abs=1e-12)
    assert result.gains_chips == pytest.approx(np.subtract(best, values), abs=1e-12)


def shared_wrongly(rules, state, strength):
    """Share each pot among all players who have not folded."""
    return payoffs(rules, state, [0] * len(strength))


def folded_cards_counted(rules, state, strength):
    """Pay the pot to no player if a folded player has the best cards."""
    paid = payoffs(rules, state, strength)
    best = max(range(len(strength)), key=lambda player: strength[player])
    folded = state.seats.folded >> best & 1 and state.seats.folded.bit_count() < len(strength) - 1
    return [-chips for chips in state.put_in] if folded else paid


@pytest.mark.parametrize("error", [shared_wrongly, folded_cards_counted])
def test_planted_errors_change_the_figures(monkeypatch, error):
    monkeypatch.setattr(seat_histories, "payoffs", error)
    game = mccfr.game("kuhn", players=3)
    result = evaluate_exact(game, uniform_strategy(game))
    assert abs(sum(result.gains_chips) - sum(UNIFORM["kuhn", 3][0])) > 0.1


def test_three_players_of_small_poker_have_side_pots():
    """With antes of 1 and stacks of 3, 2 and 4 the player with 2 wins at most 4 chips."""
    game = mccfr.game("poker", antes=[1, 1, 1], stack=[3, 2, 4], ranks=4, board_cards=[0])
    won = game.tree.payoffs
    assert np.abs(won.sum(axis=1)).max() == 0
    assert won.min(axis=0).tolist() == [-3, -2, -3], "no player calls the third chip of the player with 4"
    assert won.max(axis=0).tolist() == [5, 4, 5]


def test_merged_suits_have_the_value_of_distinct_ones():
    whole, merged = (mccfr.game("leduc", players=3, raises=1, merge_suits=merge) for merge in (False, True))
    assert merged.infosets.sum() < whole.infosets.sum()
    first, second = (evaluate_exact(game, uniform_strategy(game)) for game in (whole, merged))
    assert first.best_response_chips == pytest.approx(second.best_response_chips, abs=1e-9)


test_refusals = refusals(
    ("leduc with 5 players has at least", lambda: mccfr.game("leduc", players=5)),
    ("needs 6 cards, and the deck has 4", lambda: mccfr.game("leduc", players=5, ranks=2)),
    ("players", lambda: mccfr.game("kuhn", players=6)),
    ("one for each of 3 seats", lambda: mccfr.game("poker", antes=[1, 1, 1], stack=[3, 2])),
    ("one amount of every seat", lambda: mccfr.game("poker", blinds=[1, 2, 0], antes=[1, 2, 0])),
    ("two to 6 amounts", lambda: mccfr.game("poker", antes=[1] * 7)),
    ("game.menu is for two seats", lambda: mccfr.game("poker", antes=[1, 1, 1], menu={})),
)


def test_the_exact_method_prints_each_players_gain(game_of):
    game = game_of("kuhn", 3)
    side = Profile(game, uniform_strategy(game))
    record = measure("auto", side)
    assert record_text(record, "1 s").startswith("NashConv 2.0625 chips; player 0: value 0.234375, gain 0.546875; ")
    for method in ("head-to-head", "lbr", "sampled-br"):
        refused("is for two players, and kuhn has 3: mccfr evaluate --method exact", measure, method, side)
    refused("a response that is kept is for two", exploitative_responses.answered, game, side.strategy, (0,))
    refused("play at a table of this game is for two players", real_betting, game)
    refused("re-solving is for two players", Spot, game, 0, 0)


def test_games_of_two_players_keep_public_trees_and_cards():
    """The default number of players is two; those games have public trees with separate cards."""
    assert mccfr.game("kuhn").cards.dealt and mccfr.game("leduc").tree.payoffs is None
    assert mccfr.game("kuhn").tree.players == 2
