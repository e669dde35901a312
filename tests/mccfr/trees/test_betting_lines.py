"""Betting lines as text: reading and writing, chips put in, amounts by street and by whole hand."""

import pytest
from msgspec.structs import replace
from places import RUNS
from refusals import refusals, refused
from small_games import BLINDS, DEEP, MENUS, TURN

from mccfr.config.game_tables import GoofspielGame, KuhnGame, LeducGame, LimitHoldemGame, OpenSpielGame
from mccfr.games.betting_tree import build_tree
from mccfr.games.holdem_betting import limit_holdem_rules
from mccfr.games.line_text import converted_line, line_start
from mccfr.games.registry import build_game
from mccfr.trees.betting_lines import all_lines, chips_after, find_decision, find_node, line_text, put_in_chips
from mccfr.trees.street_amounts import LineStart, refuse_whole_amounts, street_action, street_line, whole_line


def tree_of(config):
    return build_game(config, RUNS).tree


@pytest.mark.parametrize(
    "config",
    [KuhnGame(), LeducGame(), LeducGame(bets=((0.5, 1, 2), (1.5, 4))), BLINDS, TURN, GoofspielGame(cards=3)],
    ids=str,
)
def test_every_node_has_its_own_line(config):
    tree = tree_of(config)
    lines = [line_text(tree, node) for node in range(len(tree.label))]
    assert lines[0] == ""
    assert len(set(lines)) == len(lines)
    assert [find_node(tree, line) for line in lines] == list(range(len(lines)))


@pytest.mark.parametrize(
    ("config", "lines"),
    [
        (LeducGame(), ["r3r5c/r9", "r3r5cr9", " r3r5c/r9 ", "r3.0r5c/r9"]),
        (LeducGame(), ["cc/", "cc"]),
        (TURN, ["r1800c/", "r1800c", "r1800.00c"]),
        (GoofspielGame(cards=3), ["3 1 2", " 3  1 2 "]),
        (OpenSpielGame(game="kuhn_poker"), ["0 2 1"]),
    ],
    ids=str,
)
def test_ways_to_write_the_same_line(config, lines):
    tree = tree_of(config)
    assert len({find_decision(tree, line) for line in lines}) == 1
    assert line_text(tree, find_node(tree, lines[-1])) == lines[0]


test_invalid_lines_are_refused_with_position_and_legal_actions = refusals(
    (r"character 1: 'x' is not possible here; legal actions: c, b", KuhnGame(), "x"),
    (r"character 2: 'b' is not possible here; legal actions: f, c", KuhnGame(), "bb"),
    (r"character 3: 'c' .*the hand is over and the line must end", KuhnGame(), "bcc"),
    (r"the hand is over here", KuhnGame(), "bc"),
    (r"character 2: the street does not change here", KuhnGame(), "b/"),
    (r"character 1: the street does not change here.*legal actions: c, r3", LeducGame(), "/cc"),
    (r"character 2: the street does not change here", LeducGame(), "c/c"),
    (r"character 4: the street does not change here", LeducGame(), "cc//"),
    (r"character 1: 'r4' is not possible here; legal actions: c, r3", LeducGame(), "r4"),
    (r"character 3: 'r' is not possible here; legal actions: f, c, r5", LeducGame(), "r3r"),
    (r"character 5: 'r3' is not possible here; legal actions: c, r7", LeducGame(), "r3c/r3"),
    (r"character 3: ' ' is not possible", LeducGame(), "r3 c"),
    (r"action 3: '3' is not possible here; legal actions: 1, 2", GoofspielGame(cards=3), "3 1 3"),
    (r"chance acts here; add one of its outcomes: 0, 1, 2", OpenSpielGame(game="kuhn_poker"), ""),
    (r"action 2: '0' is not possible here; outcomes of chance: 1, 2", OpenSpielGame(game="kuhn_poker"), "0 0"),
    call=lambda config, line: find_decision(tree_of(config), line),
)


@pytest.mark.parametrize(
    ("config", "line", "own", "level", "after"),
    [
        (KuhnGame(), "", 1, 1, [1, 2]),
        (KuhnGame(), "cb", 1, 2, [1, 2]),
        (LeducGame(), "r3", 1, 3, [1, 3, 5]),
        (LeducGame(), "r3c/cr7", 3, 7, [3, 7, 11]),
        (BLINDS, "", 1, 2, [1, 2, 4, 5, 6, 7]),
        (BLINDS, "c", 2, 2, [2, 4, 5, 6, 7]),
        (BLINDS, "r5", 2, 5, [2, 5, 7]),
        (TURN, "cc/r1800", 900, 1800, [900, 1800, 5400, 20000]),
    ],
)
def test_chips_follow_the_rules(config, line, own, level, after):
    tree = tree_of(config)
    node = find_decision(tree, line)
    assert put_in_chips(tree, node) == (own, level)
    assert chips_after(tree, node) == after


BLINDED, ANTES, SPOT = LineStart(0, 100), LineStart(30, 130), LineStart(90, 90)


@pytest.mark.parametrize(
    ("start", "whole", "street"),
    [
        (BLINDED, "r300c/cr600c/r900", "b300c/cb300c/b300"),
        (BLINDED, "cr300r900c/cc/r1000", "cb300b900c/cc/b100"),
        (BLINDED, "cc/r200", "cc/b100"),
        (BLINDED, "ccr200", "ccb100"),
        (ANTES, "r330c/r430", "b300c/b100"),
        (SPOT, "r184r250c/cr265", "b94b160c/cb15"),
        (SPOT, "cc/cr90.5", "cc/cb0.5"),
    ],
)
def test_amounts_by_street_and_by_whole_hand_convert_both_ways(start, whole, street):
    assert (street_line(whole, start), whole_line(street, start)) == (street, whole)
    assert street_line(street, start) == street and whole_line(whole, start) == whole


def test_an_action_has_the_amount_of_its_street():
    assert [street_action("r300c/", label, BLINDED) for label in ("c", "r450", "f")] == ["c", "b150", "f"]


def test_whole_hand_amounts_that_equal_those_of_the_street_are_accepted():
    refuse_whole_amounts("r300c/", BLINDED)
    refused("r300 can mean", refuse_whole_amounts, "r300c/r450", BLINDED)


test_whole_hand_amounts_are_refused = refusals(
    (r"r184 can mean chips put in on this street \(cb184\) or over the whole hand \(cb94\)", "cr184"),
    (r"\(b300c/b450\) or over the whole hand \(b210c/b150\)", "r300c/r450"),
    call=lambda line: refuse_whole_amounts(line, SPOT),
)


@pytest.mark.parametrize(
    "config",
    [KuhnGame(), LeducGame(), BLINDS, TURN, replace(DEEP, menu=MENUS["two sizes"]), LimitHoldemGame()],
    ids=str,
)
def test_reading_a_written_line_gives_the_same_line(config):
    if isinstance(config, LimitHoldemGame):
        tree, start = build_tree(limit_holdem_rules(config.blinds)), limit_holdem_rules(config.blinds).line_start
        for line in all_lines(tree)[:500]:
            assert whole_line(street_line(line, start), start) == line
        return
    game = build_game(config, RUNS)
    for line in all_lines(game.tree)[:500]:
        typed = street_line(line, line_start(game))
        assert converted_line(game, typed).replace("/", "") == line.replace("/", ""), typed
