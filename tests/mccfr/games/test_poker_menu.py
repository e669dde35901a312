"""Betting menus of small no-limit decks: against universal_poker, single cases, invalid menus."""

from functools import cache

import pytest
from openspiel import assert_same_betting, universal_poker
from places import ROOT
from refusals import refusals, refused

from mccfr.config.toml_files import config_from, load_config
from mccfr.games.poker import poker
from mccfr.games.registry import build_game
from mccfr.trees.compiled import DECISION

TWIN = ROOT / "runs" / "twin-20.toml"
POT = ["1p", "allin"]


def game_of(**keys):
    """Return the game of a `[game]` table."""
    return poker(config_from({"game": {"name": "poker", "hole_cards": 1, **keys}}, "test").game)


@pytest.mark.parametrize("stack", [7, 20, 55])
@pytest.mark.parametrize(
    ("blinds", "first", "keys"),
    [
        ("2 1", "2 1", {"blinds": [2, 1], "first_player": [2, 1]}),
        ("1 2", "1 1", {"blinds": [1, 2]}),
        ("1 1", "1 1", {"antes": [1, 1]}),
        ("2 1", "2 1 1", {"blinds": [2, 1], "first_player": [2, 1, 1], "board_cards": [0, 1, 1]}),
    ],
)
def test_trees_equal_those_of_openspiel_with_its_menu(blinds, first, keys, stack):
    tree = game_of(ranks=6, stack=stack, menu={"first": POT, "later": POT}, **keys).tree
    betting = {"betting": "nolimit", "bettingAbstraction": "fcpa", "blind": blinds, "firstPlayer": first}  # our menu
    game = universal_poker(6, 2, 1, (0, 1, 1)[: len(first.split())], **betting, stack=f"{stack} {stack}")
    state = game.new_initial_state()  # player 0 holds the best card of the deck
    for card in (10, 8):
        state.apply_action(card)
    ends = assert_same_betting(tree, 0, state)
    assert ends == (tree.arrays.kind != DECISION).sum() > 8


# --- runs/twin-20.toml: a game with the structure of no-limit hold'em and twenty cards ---


@cache
def twin():
    return build_game(load_config(TWIN).game, TWIN.parent)


def test_twin_20_has_known_counts():
    game = twin()
    assert game.buckets.tolist() == [25, 25, 255, 255, 3185, 3185, 43460, 43460]
    assert game.counts()["decision_nodes_per_street"] == [4, 12, 36, 108]
    assert game.counts()["decision_nodes"] == 160
    assert len(game.cards.board_cards[-1]) == 20 * 19 * 18


def test_twin_20_allows_one_pot_bet_on_each_street():
    """Blinds of 1 and 2, then 6, 18, 54 and, all-in, 162 chips; seat 0 acts last at first, then first."""
    tree = twin().tree
    node = 0
    for street, chips in enumerate((6, 18, 54, 162)):
        assert tree.arrays.player[node] == (1 if street == 0 else 0)
        labels = [tree.label[child] for child in tree.children(node)]
        assert labels == ["f", "c", "r6"] if street == 0 else ["c", f"r{chips}"]
        node = tree.children(node)[-1]
        assert [tree.label[child] for child in tree.children(node)] == ["f", "c"]  # no raise of a bet
        node = tree.children(node)[-1]
    assert tree.arrays.kind[node] != DECISION and tree.arrays.showdown[node] == 162


# --- menus in other games ---


def raises(tree, node=0):
    return [tree.label[child] for child in tree.children(node) if tree.label[child].startswith("r")]


def test_bet_sizes_of_single_cases():
    """Check sizes in pots, multiples, big blinds and chips, with blinds of 2 and 1 and antes of 1."""
    menu = {"first": ["1p", "2.5bb"], "later": [], "flop": {"first": ["3chips", "0.5p"]}}
    tree = game_of(ranks=4, stack=50, blinds=[2, 1], first_player=[2, 1], menu=menu).tree
    assert raises(tree) == ["r5", "r6"]
    check = tree.children(tree.children(0)[1])[0]  # call, check
    assert raises(tree, check) == ["r4", "r5"]
    ante = game_of(ranks=4, stack=50, antes=[1, 1], menu={"first": ["4chips", "1p"], "later": ["3x"]}).tree
    assert raises(ante) == ["r3", "r5"]  # an ante is no bet: a bet of four chips adds to it
    assert raises(ante, ante.children(0)[2]) == ["r13"]


def test_players_are_named_by_their_blinds():
    """The small blind is the button, whichever seat posts it."""
    menu = {"first": ["1p"], "later": [], "preflop": {"button": {"first": ["2bb"]}, "big_blind": {"first": ["3bb"]}}}
    for blinds, first in (([2, 1], [2, 1]), ([1, 2], [1, 1])):
        tree = game_of(ranks=4, stack=50, blinds=blinds, first_player=first, menu=menu).tree
        assert raises(tree) == ["r4"]
        assert raises(tree, tree.children(0)[1]) == ["r6"]


def test_max_bets_counts_the_big_blind_but_no_ante():
    menu = {"first": ["1p"], "later": ["1p"], "max_bets": 2}
    blinds = game_of(ranks=4, stack=500, blinds=[2, 1], first_player=[2, 1], menu=menu).tree
    assert raises(blinds) == ["r6"] and raises(blinds, blinds.children(0)[2]) == []
    antes = game_of(ranks=4, stack=500, antes=[1, 1], menu=menu).tree
    bet = antes.children(0)[1]
    assert raises(antes) == ["r3"] and raises(antes, bet) == ["r9"] and raises(antes, antes.children(bet)[2]) == []


BAD = {
    "game.menu is for no-limit poker": {"raise_sizes": [2, 4], "max_raises": [2, 2]},
    "leave out raise_sizes and max_raises, or the menu": {"max_raises": [2, 2]},
    "game.menu.turn is not allowed in a game without this street": {"menu": {"turn": {"first": ["1p"]}}},
    "with game.menu there are at most 4 streets": {"board_cards": [0, 1, 1, 1, 1], "ranks": 6},
    "game.menu: bet size '2bb' is not allowed with game.antes": {"menu": {"first": ["2bb"]}, "antes": [1, 1]},
    "game.menu.limp = False is not allowed with game.antes": {"menu": {"limp": False}, "antes": [1, 1]},
    "the table game.menu.flop.button, which names a player by a blind, is not allowed with game.antes": {
        "menu": {"flop": {"button": {"first": ["1p"]}}},
        "antes": [1, 1],
    },
    "game.menu.first: bet size '2x' is not allowed for the first bet of the preflop": {
        "menu": {"first": ["2x"], "flop": {"first": ["1p"]}},
        "antes": [1, 1],
    },
    "the first player to act has posted the larger blind": {"menu": {"limp": False}, "first_player": [1, 1]},
    "the button could only fold": {"menu": {"limp": False, "first": []}},
    "game.stack = inf": {"stack": float("inf")},
}


def refused_menu(changes):
    keys = {"ranks": 4, "stack": 20, "first_player": [2, 1], "menu": {}, **changes}
    if "antes" in keys:
        keys["first_player"] = [1, 1]
    else:
        keys["blinds"] = [2, 1]
    if len(keys.get("board_cards", (0, 1))) != len(keys["first_player"]):
        del keys["first_player"]
    message = refused("", game_of, **keys)
    assert ". " not in message
    raise ValueError(message)


test_bad_menus = refusals(*((words, refused_menu, changes) for words, changes in BAD.items()))
