"""Betting lines with the chips of a street, as players write them, and with those of the whole hand, as files do."""

import pytest
from msgspec.structs import replace
from places import RUNS
from refusals import refusals
from small_games import BLINDS, DEEP, MENUS, TURN

from mccfr.config.game_tables import KuhnGame, LeducGame, LimitHoldemGame
from mccfr.games.betting_tree import build_tree
from mccfr.games.holdem_betting import limit_holdem_rules
from mccfr.games.line_text import converted_line, line_start
from mccfr.games.registry import build_game
from mccfr.trees.betting_lines import all_lines
from mccfr.trees.street_amounts import LineStart, refuse_whole_amounts, street_action, street_line, whole_line

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
def test_the_same_bet_has_two_amounts(start, whole, street):
    assert (street_line(whole, start), whole_line(street, start)) == (street, whole)
    assert street_line(street, start) == street and whole_line(whole, start) == whole


def test_an_action_has_the_amount_of_its_street():
    assert [street_action("r300c/", label, BLINDED) for label in ("c", "r450", "f")] == ["c", "b150", "f"]


test_amounts_of_the_whole_hand = refusals(
    (r"r184 can mean chips put in on this street \(cb184\) or over the whole hand \(cb94\)", "cr184"),
    (r"\(b300c/b450\) or over the whole hand \(b210c/b150\)", "r300c/r450"),
    call=lambda line: refuse_whole_amounts(line, SPOT),
)


@pytest.mark.parametrize(
    "config",
    [KuhnGame(), LeducGame(), BLINDS, TURN, replace(DEEP, menu=MENUS["two sizes"]), LimitHoldemGame()],
    ids=str,
)
def test_every_line_is_read_as_it_is_written(config):
    if isinstance(config, LimitHoldemGame):
        tree, start = build_tree(limit_holdem_rules(config.blinds)), limit_holdem_rules(config.blinds).line_start
        for line in all_lines(tree)[:500]:
            assert whole_line(street_line(line, start), start) == line
        return
    game = build_game(config, RUNS)
    for line in all_lines(game.tree)[:500]:
        typed = street_line(line, line_start(game))
        assert converted_line(game, typed).replace("/", "") == line.replace("/", ""), typed
