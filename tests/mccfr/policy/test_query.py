"""Queries of strategies and policies: hands, boards and betting lines."""

from dataclasses import replace

import numpy as np
import pytest
from places import ROOT, RUNS
from policies import document
from random_policy import policy
from refusals import refusals, refused
from strategies import tabulate

from mccfr.config import game_tables as games
from mccfr.games.line_text import converted_line, line_start
from mccfr.games.registry import build_game
from mccfr.games.translation import NOWHERE, Translation
from mccfr.play.line_ranges import RangesOfLine
from mccfr.policy import Policy, Profile, write_policy
from mccfr.policy.query import query
from mccfr.tables.strategy import Strategy, uniform_strategy
from mccfr.trees.compiled import DECISION
from mccfr.trees.street_amounts import street_action, street_line

TURN = games.HoldemSubgame(file="games/turn.txt")  # board Qd9c6c3h, pot 1,800


def source(config, seed=0):
    game = build_game(config, RUNS)
    rng = np.random.default_rng(seed)
    rows = {}

    def choose(node, bucket):
        key = (int(game.tree.arrays.block[node]), int(game.tree.arrays.row[node]), bucket)
        return rows.setdefault(key, rng.dirichlet(np.ones(int(game.tree.arrays.count[node]))))

    return Profile(game, tabulate(game, choose))


@pytest.fixture(scope="module")
def leduc():
    return source(games.LeducGame())


@pytest.fixture(scope="module")
def turn():
    game = build_game(TURN, RUNS)
    return Profile(game, uniform_strategy(game))


def test_kuhn_answer_has_the_fields_of_the_interface(tmp_path):
    game = build_game(games.KuhnGame(), ROOT)
    after_bet = {0: [1, 0], 1: [0.75, 0.25], 2: [0, 1]}  # J folds, Q calls sometimes, K calls
    strategy = tabulate(game, lambda node, bucket: after_bet[bucket])
    weight = tuple(12.5 * w for w in strategy.weight)
    strategy = Strategy(strategy.probability, weight)
    write_policy(tmp_path / "p", game, document(games.KuhnGame()), strategy, provenance={})
    policy = Policy.open(tmp_path / "p")
    found = query(policy, "cb", hand="Q")
    assert [action.pop("probability") for action in found["actions"]] == pytest.approx([0.75, 0.25], abs=1 / 65535)
    assert found == {
        "line": "cb",
        "street": 0,
        "player": 0,
        "role": "first player",
        "big_blind_chips": None,
        "pot_chips": 3,
        "actions": [{"action": "f", "to_chips": 1, "weight": 12.5}, {"action": "c", "to_chips": 2, "weight": 12.5}],
        "reached": True,
    }
    found = query(policy, "b")
    assert found["player"] == 1
    assert found["actions"] == [{"action": "f", "to_chips": 1}, {"action": "c", "to_chips": 2}]
    assert list(found["hands"]) == ["J", "Q", "K"]
    assert found["hands"]["K"] == [0, 1]
    assert found["unreached"] == []


def test_leduc_hand_and_board_find_their_infoset(leduc):
    game = leduc.game
    found = query(leduc, "b2c/b4", hand="Jd", board="Kc")
    assert (found["line"], found["street"], found["player"], found["pot_chips"]) == ("b2c/b4", 1, 1, 10)
    board = game.cards.board_cards[1][:, 0].tolist().index(4)  # Kc
    bucket = game.cards.bucket[1][1, board, 1]  # Jd
    node = next(
        n for n in game.tree.decisions if [game.tree.label[m] for m in game.tree.path(n)[1:]] == ["r3", "c", "r7"]
    )
    expected = leduc.probabilities(int(node), int(bucket)).tolist()
    assert [action["probability"] for action in found["actions"]] == expected
    assert [action["to_chips"] for action in found["actions"]] == [3, 7, 11]
    everyone = query(leduc, "b2c/b4", board="Kc")["hands"]
    assert everyone["Jd"] == expected
    assert list(everyone) == ["Jc", "Jd", "Qc", "Qd", "Kd"]


def test_a_rank_without_suit_is_accepted_if_suits_make_no_difference(leduc):
    merged = source(games.LeducGame(merge_suits=True))
    assert query(merged, "", hand="K")["actions"] == query(merged, "", hand="Kd")["actions"]
    assert query(merged, "cc", hand="K", board="K") == query(merged, "cc", hand="Kc", board="Kd")
    assert query(leduc, "cc", hand="K", board="Kd") == query(leduc, "cc", hand="Kc", board="Kd")  # only one is left
    refused("may mean Kc, Kd, which differ: give the suits", query, leduc, "", hand="K")
    refused("may mean several boards", query, leduc, "cc", board="K")


test_invalid_queries_of_leduc_are_refused = refusals(
    ("'A' is not a card here; a card is a rank of JQK and a suit of cd", "", "A", None),
    ("'s' is not a card here|'Ks' is not a card here", "", "Ks", None),
    ("has 2 cards: a hand has 1 here", "", "KcQc", None),
    ("no board has been dealt", "", "Kc", "Qd"),
    ("no board is given: the board has 1 card at this point", "cc", "Kc", None),
    ("no board is given", "cc", None, None),
    ("has 2 cards: the board has 1 card", "cc", "Kc", "QcQd"),
    ("holds a card twice", "cc", "Kc", "QcQc"),
    ("shares a card with the board", "cc", "Kc", "Kc"),
    ("the hand is over", "b2f", "Kc", None),
    call=lambda line, hand, board, leduc: query(leduc, line, hand, board),
)


def test_turn_subgame_takes_the_whole_board_or_the_river(turn):
    found = query(turn, "cc/", hand="7d7c", board="2h")
    assert found == query(turn, "cc", hand="7c7d", board="2h") == query(turn, "cc", hand="7d7c", board="3hQd6c9c2h")
    assert (found["street"], found["pot_chips"], found["reached"]) == ("river", 1800, False)
    assert {action["probability"] for action in found["actions"]} == {0.25}
    assert {action["weight"] for action in found["actions"]} == {0}
    first = query(turn, "")
    assert first["street"] == "turn"
    assert first == query(turn, "", board="Qd9c6c3h")
    assert set(first["hands"]) == set(first["unreached"])
    live = turn.game.cards.reach[0] > 0
    assert list(first["hands"]) == np.array(turn.game.cards.hand_names)[live].tolist()
    assert not any("2h" in hand for hand in query(turn, "cc", board="2h")["hands"])


test_invalid_queries_of_the_turn_subgame_are_refused = refusals(
    ("5 are needed, or only the 1 dealt after Qd9c6c3h", "cc", "7d7c", None),
    ("is not one of this game's; the game begins with Qd9c6c3h", "cc", "7d7c", "Qd9c6c2h4h"),
    ("is not one of this game's", "cc", "7d7c", "Qd"),
    ("has 2 cards: 5 are needed", "cc", "7d7c", "2h4h"),
    ("has 5 cards: the board has 4 cards", "", "7d7c", "Qd9c6c3h2h"),
    ("shares a card with the board", "", "Qd7c", None),
    ("shares a card with the board", "cc", "7d7c", "7c"),
    ("not in the range of player 0", "", "3d2c", None),
    ("holds a card twice", "", "AsAs", None),
    ("'1d' is not a card here; a card is a rank of 23456789TJQKA and a suit of cdhs", "", "As1d", None),
    ("has 1 cards: a hand has 2 here", "", "As", None),
    (r"may mean 7d7c Qd9c6c3h, .*which differ: give the suits", "", "77", None),
    call=lambda line, hand, board, turn: query(turn, line, hand, board),
)


def test_a_range_may_leave_out_hands_that_have_a_bucket(leduc):
    reach = leduc.game.cards.reach.copy()
    reach[0, 5] = 0  # Kd
    game = replace(leduc.game, cards=replace(leduc.game.cards, reach=reach))
    narrow = Profile(game, leduc.strategy)
    refused("'Kd' is not in the range of player 0", query, narrow, "", hand="Kd")
    assert query(narrow, "", hand="K")["actions"] == query(leduc, "", hand="Kc")["actions"]
    assert list(query(narrow, "")["hands"]) == ["Jc", "Jd", "Qc", "Qd", "Kc"]
    assert list(query(narrow, "c")["hands"]) == ["Jc", "Jd", "Qc", "Qd", "Kc", "Kd"]


def test_a_flop_may_be_written_in_any_order():
    game = build_game(
        games.PokerGame(ranks=4, suits=2, board_cards=(0, 2, 1), antes=(1, 1), stack=2, max_raises=(0, 0, 0)), ROOT
    )
    cards = game.cards
    known = {cards.hand_bucket(2, 0, "Jd", board) for board in ("AcKdQc", "KdAcQc")}
    assert len(known) == 1
    assert cards.hand_bucket(2, 0, "Jd", "AcQcKd") not in known  # another turn card
    assert cards.hand_buckets(2, 0, "AcKdQc")["Jd"] in known


def test_hands_without_cards():
    found = query(source(games.ClairvoyanceGame()), "", hand="air")
    assert [action["action"] for action in found["actions"]] == ["c", "b1"]
    assert (found["pot_chips"], found["actions"][1]["to_chips"]) == (1, 1.5)
    refused("expected one of nuts, bluffcatcher, air", query, source(games.ClairvoyanceGame()), "", hand="K")
    refused("not in the range of player 0", query, source(games.ClairvoyanceGame()), "", hand="bluffcatcher")


def test_games_without_hands_answer_by_line():
    goofspiel = source(games.GoofspielGame(cards=3))
    found = query(goofspiel, "3")
    assert (found["player"], found["pot_chips"], found["street"]) == (1, None, 0)
    assert [action["action"] for action in found["actions"]] == ["1", "2", "3"]
    assert found["actions"] == query(goofspiel, "1")["actions"]  # player 1 has not seen the bid
    assert found["actions"][0]["to_chips"] is None
    refused("has no cards: leave hand and board out", query, goofspiel, "3", hand="K")
    imported = source(games.OpenSpielGame(game="kuhn_poker"))
    assert query(imported, "2 0 1")["actions"] == query(imported, "1 0 1")["actions"]
    assert query(imported, "2 0")["actions"] != query(imported, "1 0")["actions"]


# --- lines outside of the tree: means over the translations, in real actions ---


def test_lines_in_the_tree_are_answered_without_readings():
    found = query(policy(), "b200c/", hand="AsKd", board="Qs7h2d")
    assert "readings" not in found
    assert [action["action"] for action in found["actions"]] == ["c", "b200", "b400", "b19800"]


@pytest.mark.parametrize("line", ["b250", "b250c/b150", "b200c/cb100", "b777c/cb4223b9222"])
def test_lines_outside_of_the_tree_are_the_mean_over_their_readings(line):
    source, board = policy(), "Qs7h2d" if "/" in line else None
    found = query(source, line, hand="AsKd", board=board)
    translation = Translation(source.game.tree, source.game.real_rules)
    whole = converted_line(source.game, line)
    state, readings = translation.read(whole)
    assert [reading["probability"] for reading in found["readings"]] == [reading.probability for reading in readings]
    closed = [reading["after_call"] for reading in found["readings"]]
    assert [line is None for line in closed] == [reading.closed == NOWHERE for reading in readings]
    expected = {}
    for reading in readings:
        bucket = source.game.cards.hand_bucket(state.street, state.player, "AsKd", board)
        decides = source.game.tree.arrays.kind[reading.node] == DECISION
        shares = source.probabilities(reading.node, bucket).tolist() if decides else [1.0]
        for action, share in zip(translation.real_actions(reading, state), shares, strict=True):
            typed = street_action(whole, action, line_start(source.game))
            expected[typed] = expected.get(typed, 0) + reading.probability * share
    played = {action["action"]: action["probability"] for action in found["actions"]}
    assert played == pytest.approx(expected) and sum(played.values()) == pytest.approx(1)
    assert found["pot_chips"] == sum(state.put_in) and found["player"] == state.player
    chips = [action["to_chips"] for action in found["actions"] if action["action"][0] == "b"]
    assert chips == sorted(chips) and all(state.lowest_raise <= amount <= 20_000 for amount in chips)
    if board:  # before the flop hands are listed by class, and this deck has buckets by suit
        every = query(source, line, board=board)
        assert every["hands"]["AsKd"] == pytest.approx([played[action["action"]] for action in every["actions"]])


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("B200C/CB200", "b200c/cb200"),
        (" 2bb c / c 50% ", "b200c/cb200"),
        ("2.5bb c/300chips 2x", "b250c/b300b600"),
        ("b250c/b1p allin", "b250c/b500b19750"),
        ("0.5p 3x c/", "b200b600c/"),
    ],
)
def test_lines_typed_by_users(typed, line):
    board = "Qs7h2d" if "/" in line else None
    source = policy()
    assert query(source, typed, hand="AsKd", board=board) == query(source, line, hand="AsKd", board=board)
    assert street_line(RangesOfLine(source).follow(typed, board or "").line, line_start(source.game)) == line


def test_invalid_bet_sizes_are_refused():
    for line, text in (
        ("f 3bb", "'3' is not an action"),
        ("allin 3bb", "no raise is possible"),
        ("3b", "'3' is not an action"),
        ("r200c/r400", r"r200 can mean .* this street \(b200c/b400\) or over the whole hand \(b200c/b200\)"),
        ("b150", "a bet must put in 200 to 20000 chips on this street"),
        ("b300z", "line 'b300z', 'z' is not an action: write f, c, a bet"),
        ("b300.2.3", "'.' is not an action"),
    ):
        refused(text, query, policy(), line, hand="AsKd")
