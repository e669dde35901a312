"""Spots at the end of a policy's betting line: ranges, pot, stacks, bet sizes and refused lines.

Shows:

* `mccfr spot --policy` starts with the page's ranges, pot and stacks
  (test_ranges_pot_and_stacks_are_those_of_the_page)
* Two players left of three have a spot, with the third's chips (test_two_remaining_players_of_three_have_a_spot)
"""

import json

import numpy as np
import pytest
from commands import call
from random_policy import MENU, policy
from refusals import refusals, refused

import mccfr
from abstraction.cards import combo_index, parse_cards
from mccfr.config.game_tables import HoldemGame, Menu, PlayerMenu, StreetMenu
from mccfr.config.toml_files import config_from
from mccfr.games.registry import build_game
from mccfr.runs.results.line_spot import spot_behind
from mccfr.trees.betting_lines import all_lines, find_node, line_text
from mccfr.view import Spots

FLOP, TURN = "Kc7d2s", "Kc7d2s4h"
EDITED = Menu(first=("0.5p", "1p"), later=("1p",), add=("b200c/cb355", "b200c/b244"), remove=("b200c/cb200",))


def spot_after(line, board, menu=MENU):
    return spot_behind(policy(menu), HoldemGame(menu=menu), line, board)


def hand_weights(found, player):
    """Return the hand weights that the page shows, as an array [1326]."""
    weights = np.zeros(1326)
    for name, weight in zip(found["hands"]["names"], found["hands"]["reach"][player], strict=True):
        weights[combo_index(*parse_cards(name))] = weight
    return weights


@pytest.mark.parametrize(("line", "board"), [("b200c/", FLOP), ("b200c/cb200c/", TURN), ("b250c/cb527c/", TURN)])
def test_ranges_pot_and_stacks_are_those_of_the_page(line, board):
    game, _ = spot_after(line, board)
    found = Spots(policy(), "random").spot(line, board)
    for player, name in enumerate(("oop", "ip")):
        np.testing.assert_allclose(game["ranges"][name], hand_weights(found, player), atol=1e-6)
    assert (game["board"], game["pot"], game["big_blind"]) == (board, found["pot_chips"], 100)
    assert [game["effective_stack"]] * 2 == found["behind_chips"]


@pytest.mark.parametrize("menu", [MENU, EDITED])
def test_a_spot_has_the_bets_of_the_policys_tree(menu):
    """The spot's tree is the policy's tree after the line, also if the menu adds and removes lines."""
    game, own = spot_after("b200c/", FLOP, menu)
    document = {"game": {"name": "holdem-subgame", **game, "menu": own}}
    mine = {"r200c/" + line for line in all_lines(build_game(config_from(document, "test").game, None).tree)}
    tree = policy(menu).game.tree
    assert line_text(tree, find_node(tree, "r200c/")) == "r200c/"
    assert mine == {line for line in all_lines(tree) if line.startswith("r200c/")}


test_lines_that_are_no_spot_are_refused = refusals(
    ("has 4 cards", "b200c/", TURN),
    ("a spot begins on a flop, turn or river", "b200c/", ""),
    ("a spot begins on a flop, turn or river", "", ""),
    ("ends within a street: .* as after 'b200c/'", "b200c/c", FLOP),
    ("the hand is over here", "b20000c/", FLOP),
    ("the hand is over here", "b20000c", FLOP),
    ("b150.*a bet must put in 200", "b150c/", FLOP),
    ("'x' is not an action", "x", FLOP),
    call=spot_after,
)


def test_a_line_of_a_solved_spot_is_a_spot(capsys, tmp_path, monkeypatch):
    """Solve the river after a line of a solved turn, by the command and in Python."""
    monkeypatch.chdir(tmp_path)
    turn = {"board": "QsJh2h7c", "oop": "AA,JJ,KTs", "ip": "QQ,AJs,T9s", "pot": 100, "stack": 200, "to": "2%"}
    mccfr.spot(**turn, workers=0, run="turn", bets="0.5p", raises="", rake="5%", rake_cap=9)
    options = ["--policy", "turn", "--line", "cb50c/", "--board", "QsJh2h7c3d", "--workers", "0"]
    ended = call(capsys, "spot", *options, "--run", "river", "--json")
    found = json.loads(ended.out)
    assert (found["board"], found["pot_chips"], ended.status) == ("QsJh2h7c3d", 200, 0)
    assert [one["action"] for one in found["actions"]] == ["c", "b100"]
    assert sum(found["ev_chips"]) == pytest.approx(191, abs=1e-3)  # the river has the turn's rake
    again = mccfr.spot(policy="turn", line="cb50c/", board="3d", workers=0, run="river")
    assert {**again, "seconds": 0} == {**found, "seconds": 0}
    other = mccfr.spot(policy="turn", line="cb50c/", board="3d", workers=0, run="wide", bets="25%")
    assert [one["action"] for one in other["actions"]] == ["c", "b50"]


def refused_command(line, capsys):
    ended = call(capsys, *line.split())
    assert ended.status == 2
    raise ValueError(" ".join(ended.err.split()))


test_incomplete_options_of_a_spot_are_refused = refusals(
    ("policy, line and board go together", "spot --policy p --line c/"),
    ("policy, line and board go together", "spot QsJh2h --policy p"),
    ("pot is given beside policy", "spot QsJh2h --policy p --line c --pot 3"),
    ("pot is missing", "spot QsJh2h --oop AA --ip KK --stack 9"),
    ("both given", "spot QsJh2h --board QsJh2h"),
    ("p is neither a run directory nor an exported policy", "spot QsJh2h --policy p --line c"),
    call=refused_command,
)


def test_two_remaining_players_of_three_have_a_spot():
    """Ranges follow from the policy's rows; the small blind's sizes go to the player out of position."""
    menu = Menu(first=("1p",), later=("allin",), flop=StreetMenu(small_blind=PlayerMenu(first=("0.5p",))))
    config = HoldemGame(menu=menu, seats=3, rake="5%", rake_cap=100)
    source = policy(menu, seats=3, rake="5%", rake_cap=100)
    game, bets = spot_behind(source, config, "b350cf/", FLOP)
    assert (game["pot"], game["effective_stack"], game["rake"], game["rake_cap"]) == (800, 19_650, "5%", 100)
    dealing, live = source.game.cards.at_table(), source.game.cards.live(1, tuple(parse_cards(FLOP)))
    rows = dealing.bucket_row(0, 0, ())
    for name, line, action in (("oop", "r350", "c"), ("ip", "", "r350")):
        node = find_node(source.game.tree, line)
        labels = [source.game.tree.label[child] for child in source.game.tree.children(node)]
        np.testing.assert_allclose(game["ranges"][name], source.rows(node, rows)[0][:, labels.index(action)] * live)
    assert list(bets["flop"]["big_blind"]["first"]) == ["0.5p"] and "small_blind" not in bets["flop"]
    refused("leaves 3 players: a spot is for two", spot_behind, source, config, "b350cc/", FLOP)
    small = policy(menu, seats=3, flop_players=2)
    with pytest.raises(ValueError, match="a call that the tree lacks"):
        spot_behind(small, HoldemGame(menu=menu, seats=3, flop_players=2), "b350cf/", FLOP)
