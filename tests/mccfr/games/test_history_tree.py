"""History trees of card games: same values and best responses, counts, names, conversions."""

import numpy as np
import pyspiel
import pytest
from expansion import expanded_strategy
from naive import check_order
from refusals import refused
from small_games import game_of, unequal
from strategies import best_response_value, expected_value, random_strategy

from mccfr.config.game_tables import ClairvoyanceGame, GoofspielGame, KuhnGame, LeducGame, PokerGame
from mccfr.games import history_tree as expanded_module
from mccfr.games.goofspiel import goofspiel
from mccfr.games.history_tree import expand
from mccfr.games.identity_translation import IdentityTranslation
from mccfr.games.line_lookup import LineReading
from mccfr.games.poker import clairvoyance, kuhn, leduc, poker
from mccfr.games.translation import real_betting
from mccfr.solvers.histories import history_values
from mccfr.tables.strategy import uniform_strategy
from mccfr.trees.betting_lines import line_text
from mccfr.trees.compiled import CHANCE, DECISION, TERMINAL

TOY = PokerGame(ranks=4, hole_cards=2, board_cards=(0, 1), antes=(1, 1), stack=3, max_raises=(1, 1))
GAMES = {
    "kuhn": kuhn(KuhnGame()),
    "leduc": leduc(LeducGame()),
    "leduc, suits merged": leduc(LeducGame(merge_suits=True)),
    "four ranks": leduc(LeducGame(ranks=4, suits=3, bets=((1, 2), (3,)), merge_suits=True)),
    "clairvoyance": clairvoyance(ClairvoyanceGame(streets=2, probability=0.2)),
    "two hole cards, unequal ranges": unequal(poker(TOY)),
    "three streets": unequal(poker(PokerGame(board_cards=(0, 1, 1), antes=(1, 1), stack=2, max_raises=(1, 1, 1)))),
    "board first": unequal(poker(PokerGame(board_cards=(1, 1), antes=(1, 1), stack=3, max_raises=(1, 1)))),
}


@pytest.mark.parametrize("name", GAMES)
def test_values_and_best_responses_equal_those_of_the_card_game(name):
    game = GAMES[name]
    expanded = expand(game)
    check_order(expanded.game.tree)
    for seed in range(3):
        strategy = random_strategy(game, seed)
        same = expanded_strategy(expanded, strategy)
        assert history_values.expected_value(expanded.game, same) == pytest.approx(
            expected_value(game, strategy), abs=1e-10
        )
        for player in range(2):
            assert history_values.best_response_value(expanded.game, same, player) == pytest.approx(
                best_response_value(game, strategy, player), abs=1e-10
            )


NO_LIMIT = (
    "universal_poker(betting=nolimit,numPlayers=2,numSuits=2,numRanks=3,bettingAbstraction=fullgame,numRounds=2,"
    "blind=2 1,stack=7 7,firstPlayer=2 1,numHoleCards=1,numBoardCards=0 1)"
)


@pytest.mark.parametrize(
    ("text", "game", "histories"),
    [
        ("leduc_poker", leduc(LeducGame()), 9_457),
        (NO_LIMIT, poker(PokerGame(blinds=[2, 1], stack=7, first_player=[2, 1])), 21_307),
    ],
)
def test_counts_equal_those_of_openspiel(text, game, histories):
    game = expand(game).game
    todo, kinds, infosets = [pyspiel.load_game(text).new_initial_state()], [0, 0, 0], set()
    while todo:
        state = todo.pop()
        kinds[TERMINAL if state.is_terminal() else CHANCE if state.is_chance_node() else DECISION] += 1
        if state.is_player_node():
            infosets.add(state.information_state_string())
        todo.extend(state.child(action) for action in state.legal_actions())
    assert np.bincount(game.tree.arrays.kind).tolist() == kinds
    assert len(game.tree.arrays.kind) == histories
    assert game.infosets.sum() == len(infosets)


def test_merged_suits_make_indistinguishable_deals_one_history():
    """Count the deals of Leduc with suits merged: 3 ranks for each player, then 2 or 3 for the board.

    Two equal ranks leave none of this rank for the board.
    """
    merged = expand(leduc(LeducGame(merge_suits=True))).game
    assert merged.infosets.sum() == 288
    first, second = merged.tree.arrays.count[0], merged.tree.arrays.count[1]
    assert (first, second) == (3, 3)
    assert merged.tree.arrays.probability[list(merged.tree.children(1))].tolist() == pytest.approx([0.2, 0.4, 0.4])
    assert len(merged.tree.arrays.kind) == 1939


def test_names_of_infosets():
    expanded = expand(kuhn(KuhnGame())).game
    assert sorted(expanded.tree.infoset_names[0]) == ["J", "J cb", "K", "K cb", "Q", "Q cb"]
    assert sorted(expanded.tree.infoset_names[1]) == ["J b", "J c", "K b", "K c", "Q b", "Q c"]
    for game in GAMES.values():
        tree = expand(game).game.tree
        for player, names in enumerate(tree.infoset_names):
            assert len(set(names)) == len(names) == tree.row_count[player]


def test_refusals(monkeypatch):
    refused("has every history in its tree already", expand, goofspiel(GoofspielGame(cards=3)))
    words = "leduc has at least 9,457 histories; 9,456 are allowed"
    refused(words, expand, GAMES["leduc"], max_histories=9456)
    assert len(expand(GAMES["leduc"], max_histories=9457).game.tree.arrays.kind) == 9457
    expanded = expand(GAMES["kuhn"])
    words = r"the strategy's tables have the shapes .* kuhn needs"
    refused(words, expanded_strategy, expanded, uniform_strategy(GAMES["leduc"]))
    monkeypatch.setattr(expanded_module, "MAX_DEALS", 100)
    refused(r"leduc has up to 216 deals of two hands and a board; at most 100", expand, GAMES["leduc"])


# --- Identity translation: a real line maps to exactly one node, with the tree's payoffs ---


@pytest.mark.parametrize("name", ["kuhn", "leduc"])
def test_identity_translation_maps_each_line_to_its_node_with_its_payoff(name):
    found = real_betting(game_of(name))
    assert isinstance(found, IdentityTranslation)
    tree = found.tree
    ended = 0
    for node, kind in enumerate(tree.arrays.kind.tolist()):
        state, readings = found.read(line_text(tree, node))
        assert readings == [LineReading(node, 1.0)]
        assert isinstance(state, int) == (kind != DECISION)
        if kind != DECISION:
            continue
        assert (state.player, state.street) == (tree.arrays.player[node], tree.arrays.block[node] // 2)
        for number, action in enumerate(found.actions(state)):
            child = found.child(node, number)
            assert found.follow(readings, state, action) == [LineReading(child, 1.0)]
            assert found.real_actions(readings[0], state)[number] == found.real_action(node, number, state) == action
            if tree.arrays.kind[child] == TERMINAL:
                ended += 1
                assert isinstance(found.apply(state, action), int)
                if action == "f":
                    assert found.settled(state, action) == (
                        -state.put_in[0] if state.player == 0 else state.put_in[1],
                        0,
                    )
                else:
                    assert found.settled(state, action) == (0, state.to_call)
            else:
                assert found.apply(state, action) == found.read(line_text(tree, child))[0]
    assert ended == (tree.arrays.kind == TERMINAL).sum()
