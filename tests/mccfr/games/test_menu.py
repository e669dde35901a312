"""Betting menus by street, player and number of bets: tree counts, bet sizes, invalid menus."""

import numpy as np
import pytest
from refusals import refusals, refused

from mccfr.config.game_tables import Menu, PlayerMenu, StreetMenu
from mccfr.config.toml_files import config_from, to_document
from mccfr.games.betting import called, raised
from mccfr.games.betting_tree import build_tree
from mccfr.games.holdem_betting import holdem_rules
from mccfr.games.menu import MenuGame, menu_targets
from mccfr.trees.compiled import can_pack

HALF = ("0.5p", "1p", "allin")
POT = ("1p", "allin")
# Menu, stack and ante with blinds 50 and 100 -> nodes, decisions by street, actions by street. The counts come from an
# independent enumeration.
COUNTS = {
    "players": (
        Menu(
            first=POT,
            later=POT,
            flop=StreetMenu(
                later=("allin",),
                big_blind=PlayerMenu(first=("0.33p", "1p")),
                button=PlayerMenu(first=("0.75p", "allin"), later=("2.5x", "allin")),
            ),
        ),
        (20_000, 0),
        (4_933, [20, 101, 456, 1_384], [57, 267, 1_184, 3_424]),
    ),
    "number of bets": (
        Menu(
            sizes=(("0.5p", "2p"), ("1p",), ("allin",)),
            turn=StreetMenu(sizes=(("0.5p", "1p"), ("1p",), ("3x", "allin"))),
        ),
        (5_000, 0),
        (3_818, [14, 90, 418, 1_222], [39, 234, 1_010, 2_534]),
    ),
    "threshold": (
        Menu(first=("0.5p", "1p"), later=("1p",), allin_threshold="40%"),
        (20_000, 0),
        (15_210, [20, 184, 1_084, 4_720], [57, 492, 2_800, 11_860]),
    ),
    "no limp": (
        Menu(first=HALF, later=POT, max_bets=2, limp=False),
        (20_000, 0),
        (7_033, [6, 40, 352, 2_184], [16, 112, 984, 5_920]),
    ),
    "limits": (
        Menu(
            first=HALF,
            later=POT,
            max_bets=3,
            flop=StreetMenu(max_bets=1, button=PlayerMenu(max_bets=2)),
            river=StreetMenu(max_bets=0),
        ),
        (20_000, 0),
        (9_386, [20, 144, 1_384, 2_516], [57, 396, 3_900, 5_032]),
    ),
    "chips, blinds and an ante": (
        Menu(
            preflop=StreetMenu(first=("2.5bb", "3x", "333chips"), later=("2.2x", "1p")),
            first=("0.35p", "4bb"),
            later=("3x",),
        ),
        (4_321, 15),
        (45_706, [56, 468, 2_960, 15_772], [165, 1_184, 7_228, 37_128]),
    ),
}


@pytest.mark.parametrize("name", COUNTS)
def test_trees_of_menus_have_the_counts_of_an_independent_enumeration(name):
    menu, (stack, ante), (nodes, decisions, actions) = COUNTS[name]
    tree = build_tree(holdem_rules(stack, (50, 100), ante, menu))
    street = tree.arrays.block[tree.decisions] // 2
    assert (tree.nodes, np.bincount(street).tolist()) == (nodes, decisions)
    assert np.bincount(street, weights=tree.arrays.count[tree.decisions]).tolist() == actions
    assert can_pack(tree)


TURN, RIVER = MenuGame(20_000, 100, 2, 2), MenuGame(20_000, 100, 3, 1)


# --- Sizes of single cases ---

ANTE_MENU = Menu(preflop=StreetMenu(first=("3x", "1p"), later=("3x",)))


def line(rules, *actions):
    """Return the state after raises to these amounts and calls ("c")."""
    state = rules.start()
    for action in actions:
        state = called(rules, state) if action == "c" else raised(rules, state, action)
    return state


@pytest.mark.parametrize(
    ("sizes", "actions", "expected"),
    [
        (("3x",), (300,), [900]),  # the last bet is to 300
        (("3x",), (300, 900), [2_700]),
        (("3x",), (300, "c", 500), [900]),  # a bet of 200 into 600, with 300 in each: 300 and three times 200
        (("3x",), (300, "c", 500, 900), [2_100]),  # to 600 on this street, three times that
        (("1.5x",), (300, "c", 500), [700]),  # a minimum raise
        (("1p",), (300,), [900]),  # the pot after calling is 600
        (("0.5p",), (300, "c", 500), [1_000]),  # 1,000 after calling
        (("2.5bb",), (), [250]),
        (("2.5bb",), (300,), [500]),  # below the least raise
        (("1234chips", "700 chips", "allin"), (300,), [700, 1_234, 20_000]),
        (("0.33p", "0.34p"), (), [200]),  # both are below the least raise: one action
        (("0.75p",), (275,), [688]),  # 687.5 in whole chips
        (("40p", "20000chips"), (300,), []),  # at or above the stack: only as all-in
    ],
)
def test_sizes(sizes, actions, expected):
    postflop = StreetMenu(first=())
    menu = Menu(first=sizes, later=sizes, flop=postflop, turn=postflop, river=postflop)
    rules = holdem_rules(20_000, (50, 100), 0, menu)
    assert list(rules.raise_targets(line(rules, *actions))) == expected


@pytest.mark.parametrize(
    ("chips", "menu", "actions", "expected"),
    [
        ((1_000, (50, 100), 0), Menu(first=("290chips",), allin_threshold="29%"), (), [290]),
        ((1_000, (50, 100), 0), Menu(first=("290chips",), allin_threshold="28.99%"), (), [1_000]),
        ((1_000, (50, 100), 0), Menu(first=("290chips",), allin_threshold="100%"), (), [290]),
        ((1_000, (50, 100), 0), Menu(first=("290chips",)), (), [290]),
        ((20_000, (50, 100), 30), ANTE_MENU, (), [330, 390]),  # 30 and three blinds; 130 and a pot of 260
        ((20_000, (50, 100), 30), ANTE_MENU, (330,), [930]),  # the ante is no part of the last bet
        ((20_000, (50, 125), 0), Menu(first=("0.75p",)), (), [313]),  # whole chips, as all amounts are
        ((20_000, (62.5, 125), 0), Menu(first=("0.75p",)), (), [312.5]),
    ],
)
def test_sizes_with_thresholds_antes_and_fractions(chips, menu, actions, expected):
    rules = holdem_rules(*chips, menu)
    assert list(rules.raise_targets(line(rules, *actions))) == expected


def test_endgame_sizes_count_from_the_chips_before_the_street():
    targets = menu_targets(Menu(first=("1p",), later=("2x", "4x")), RIVER)
    rules = holdem_rules(20_000, (50, 100), 0, Menu())
    bet = raised(rules, line(rules, 300, "c"), 500)
    assert list(targets(bet._replace(street=0))) == [700, 1_100]
    unlimited = menu_targets(Menu(first=("1p",), later=("1p",), max_bets=1), RIVER)
    opening = line(rules, 300, "c")._replace(street=0)
    assert list(unlimited(opening)) == [900]  # no blind counts as a bet here
    assert list(unlimited(raised(rules, opening, 900))) == []


# --- Bad menus ---

BAD = {
    "game.menu.first: bet size '0p' is not allowed: it must be a number above 0": {"first": ["0p"]},
    "game.menu.later: bet size '-1p' is not allowed": {"later": ["1p", "-1p"]},
    "game.menu.sizes[1]: bet size '1q' is not allowed": {"sizes": [["1p"], ["1q"]]},
    "game.menu.turn.first: bet size 'inf' is not allowed": {"turn": {"first": ["inf"]}},
    "game.menu.river.button.later: bet size '' is not allowed": {"river": {"button": {"later": [""]}}},
    "game.menu.flop.big_blind.sizes[0]: bet size 'all-in'": {"flop": {"big_blind": {"sizes": [["all-in"]]}}},
    "game.menu.sizes = [] is not allowed: it needs at least one list": {"sizes": []},
    "game.menu.flop.sizes and game.menu.flop.later are both given": {"flop": {"sizes": [["1p"]], "later": ["1p"]}},
    "game.menu.sizes and game.menu.first are both given": {"sizes": [["1p"]], "first": ["1p"]},
    "game.menu.max_bets = -1 is not allowed: it must be at least 0": {"max_bets": -1},
    "game.menu.allin_threshold = '0%' is not allowed: it must be above 0% and at most 100%": {"allin_threshold": "0%"},
    "game.menu.turn.allin_threshold = '150%' is not allowed": {"turn": {"allin_threshold": "150%"}},
    "game.menu.first: bet size '3x' is not allowed for the first bet of the flop": {"first": ["3x"]},
    "game.menu.river.button.sizes[0]: bet size '2x' is not allowed for the first bet of the river": {
        "river": {"button": {"sizes": [["2x"]]}}
    },
    "game.menu.limp = False is not allowed: the button could only fold": {"limp": False, "first": []},
    "game.menu.limp = False is not allowed: the button could only": {"limp": False, "first": ["1p"], "max_bets": 1},
    "before the flop has no raise within max_bets and below game.stack = 250": {
        "limp": False,
        "first": ["1p"],
        "stack": 250,
    },
}


def refused_menu(menu):
    keys = {name: key for name, key in menu.items() if name != "stack"}
    config = config_from({"game": {"name": "holdem", "stack": menu.get("stack", 20_000), "menu": keys}}, "test").game
    message = refused("", holdem_rules, config.stack, config.blinds, config.ante, config.menu)
    assert ". " not in message
    raise ValueError(message)


test_bad_menus = refusals(*((words, refused_menu, menu) for words, menu in BAD.items()))


def test_an_endgame_has_no_limp_and_checks_only_its_streets():
    refused(r"game\.menu\.limp = False is not allowed in an endgame", menu_targets, Menu(limp=False), TURN)
    refused("game.menu.flop is not allowed in a game without", menu_targets, Menu(flop=StreetMenu(first=("3x",))), TURN)
    refused(r"game\.menu\.flop\.first: bet size '3y'", menu_targets, Menu(flop=StreetMenu(first=("3y",))), TURN)


def test_menus_are_read_from_toml_tables():
    document = {
        "name": "holdem",
        "menu": {
            "sizes": [["1p"], ["allin"]],
            "allin_threshold": "100%",
            "limp": False,
            "flop": {"max_bets": 2, "button": {"first": ["0.5p"]}, "big_blind": {"later": []}},
        },
    }
    menu = config_from({"game": document}, "test").game.menu
    assert (menu.sizes, menu.allin_threshold, menu.limp) == ([["1p"], ["allin"]], "100%", False)
    assert (menu.flop.max_bets, menu.flop.button.first, menu.flop.big_blind.later) == (2, ["0.5p"], [])
    again = config_from(to_document(config_from({"game": document}, "test")), "a run's own copy").game.menu
    assert list(again.first) == ["0.5p", "1p", "allin"]  # written out, yet no contradiction of sizes
    holdem_rules(20_000, (50, 100), 0, again)
    wrong = {"game": {"name": "holdem", "menu": {"flop": {"limp": True}}}}
    unknown = r"unknown key 'limp' in game\.menu\.flop; allowed: allin_spr, allin_threshold, big_blind"
    refused(unknown, config_from, wrong, "test")
