"""Drills at the page's table: hands that start with a line, replayed hands.

Shows:

* A drilled hand starts with the chosen betting line (test_a_drilled_hand_begins_with_its_line)
* Drills deal from the ranges of raiser and caller (test_hands_are_dealt_by_both_ranges,
  test_drills_after_the_flop_are_of_the_raiser_and_the_caller, test_solved_spots_are_drilled_on_their_first_street)
"""

from pathlib import Path

import numpy as np
import pytest
from policies import write_random
from random_policy import policy
from refusals import refusals, refused
from test_page_table import finish

from mccfr.config.game_tables import KuhnGame, LeducGame
from mccfr.view import Spots, open_spots
from mccfr.view.drills import deal_hand, drills, postflop_lines
from mccfr.view.page_table import PageTable
from mccfr.view.spot_worker import solve_spot


@pytest.fixture(scope="module")
def spots():
    return Spots(policy(), "random")


@pytest.mark.parametrize("line", ["b200b600", "b300c/cb600", "cc/cc/"])
def test_a_drilled_hand_begins_with_its_line(spots, line):
    """Lines end on any street and may have off-tree bets; the user acts next, to the hand's end."""
    table, said = PageTable(spots), spots.spot(line)["line"]
    state = table.sit(seed=3, line=line)
    for number in range(3):
        assert state["line"] == said and state["hand"] == number and state["drilled"] == line
        assert len(state["log"]) == state["opened"] == sum(mark in "cfb" for mark in said) and state["actions"]
        assert state["position"] == spots.spot(line)["player"]
        state = finish(table, state, lambda now: "c")[-1]
        assert state["played"] == number + 1
        state = table.deal(number)


def test_hands_are_dealt_by_both_ranges(tmp_path):
    """Kuhn after a bet: pairs of cards are dealt with the probabilities of both ranges."""
    found = open_spots(write_random(tmp_path / "kuhn", KuhnGame(), seed=2))
    reach = found.decision("b", "").reach
    pairs = np.outer(reach[0], reach[1]) * (1 - np.eye(3))
    dealt = np.zeros((3, 3))
    for number in range(600):
        one = deal_hand(found, "b", 1, number)
        assert one.position == 1 and one.actions == ["b"]
        dealt[one.deal.hands] += 1
    share = pairs / pairs.sum()
    assert np.abs(dealt / 600 - share).max() < 4 * np.sqrt(0.25 / 600) and (dealt[share == 0] == 0).all()


def test_a_replayed_hand_is_the_same_and_does_not_count(spots):
    table = PageTable(spots)
    first = table.sit(seed=5)
    over = finish(table, first, lambda now: "c")[-1]
    second = finish(table, table.deal(0), lambda now: "c")[-1]
    again = table.again(0)
    dealt = again["hand"], again["cards"], again["position"]
    assert again["again"] and dealt == (0, first["cards"], first["position"])
    refused("once one is over", table.again, 0)
    ended = finish(table, again, lambda now: "c")[-1]
    assert (ended["played"], ended["won_chips"]) == (2, second["won_chips"])
    assert ended["result"] == over["result"]
    assert table.deal(0)["hand"] == 2
    refused("only hands of this session", table.again, 9)


def test_spots_have_names_that_players_use(spots, tmp_path):
    named = {one["line"]: one["name"] for one in drills(spots)}
    assert named["b200b600"].endswith("facing a 3-bet: b200b600") and named[""].endswith("first in")
    assert named["c"].endswith("after a limp")
    assert drills(open_spots(write_random(tmp_path / "leduc", LeducGame()))) == []


def test_drills_after_the_flop_are_of_the_raiser_and_the_caller(spots):
    """The last raiser bets on every street, in position or not; names give the player and the action."""
    lines = dict(postflop_lines(spots))
    assert lines["b200c/c"] == "Button, c-bet in a single-raised pot: b200c/c"
    assert lines["b200b600c/"] == "Big blind, c-bet in a 3-bet pot: b200b600c/"
    assert lines["b200c/cb400"].startswith("Big blind, facing a c-bet in a single-raised pot")
    kinds = ["c-bet", "facing a c-bet", "turn barrel", "facing a turn barrel", "river barrel", "river call"]
    for kind, street in zip(kinds, (1, 1, 2, 2, 3, 3), strict=True):
        there = [line for line, name in lines.items() if f", {kind} in a " in name]
        assert there
        for line in there:
            at = spots.spot(line)
            before = [one for one in at["path"] if one["street"] == 0 and one["kind"] == "raise"]
            faces = at["path"][-1]["kind"] == "raise"
            assert at["street"] == street and faces == (kind in kinds[1::2])
            assert (at["player"] == before[-1]["player"]) == (not faces)


def test_solved_spots_are_drilled_on_their_first_street(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spot = {"board": "QsJh2h7c3d", "oop": "TT+,AQs+", "ip": "77+,KQs", "pot": 180.0, "stack": 180.0, "bets": "0.5p"}
    told = []
    solve_spot({**spot, "to": 0.05}, told.append)
    found = open_spots(next(Path(one["run"]) for one in told if "run" in one))
    named = {one["line"]: one["name"] for one in drills(found)}
    assert named[""] == "Out of position, first to act" and named["c"] == "In position, c"
    assert all(sum(mark in "cb" for mark in line) <= 2 for line in named)
    state = PageTable(found).sit(seed=1, line="c")
    assert state["position"] == 1 and state["opened"] == 1 and state["actions"]


def test_a_hand_of_an_earlier_session_is_dealt_again(spots):
    """The same seed, line and number deal the same cards."""
    first = PageTable(spots)
    state = first.sit(seed=7, line="b200c/c")
    for _ in range(2):
        state = first.deal(finish(first, state, lambda now: "c")[-1]["hand"])
    again = PageTable(spots).sit(seed=state["seed"], line="b200c/c", hand=2)
    assert {**again, "played": 0, "won_chips": 0.0} == {**state, "played": 0, "won_chips": 0.0}


test_refusals = refusals(
    ("the hand is over", lambda spots: PageTable(spots).sit(seed=1, line="f")),
    ("hand = -1: it must be from 0", lambda spots: PageTable(spots).sit(seed=1, hand=-1)),
    ("is not an action", lambda spots: PageTable(spots).sit(seed=1, line="x")),
)
