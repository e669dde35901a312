"""Queries of lines outside of the tree: means over the translations, in real actions."""

import pytest
from random_policy import policy
from refusals import refused

from mccfr.games.line_text import converted_line, line_start
from mccfr.games.translation import NOWHERE, Translation
from mccfr.play.line_ranges import RangesOfLine
from mccfr.policy.query import query
from mccfr.trees.compiled import DECISION
from mccfr.trees.street_amounts import street_action, street_line


def test_lines_of_the_tree_are_answered_as_ever():
    found = query(policy(), "b200c/", hand="AsKd", board="Qs7h2d")
    assert "readings" not in found
    assert [action["action"] for action in found["actions"]] == ["c", "b200", "b400", "b19800"]


@pytest.mark.parametrize("line", ["b250", "b250c/b150", "b200c/cb100", "b777c/cb4223b9222"])
def test_other_lines_are_the_mean_over_their_readings(line):
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
    ("said", "line"),
    [
        ("B200C/CB200", "b200c/cb200"),
        (" 2bb c / c 50% ", "b200c/cb200"),
        ("2.5bb c/300chips 2x", "b250c/b300b600"),
        ("b250c/b1p allin", "b250c/b500b19750"),
        ("0.5p 3x c/", "b200b600c/"),
    ],
)
def test_lines_as_people_write_them(said, line):
    board = "Qs7h2d" if "/" in line else None
    source = policy()
    assert query(source, said, hand="AsKd", board=board) == query(source, line, hand="AsKd", board=board)
    assert street_line(RangesOfLine(source).follow(said, board or "").line, line_start(source.game)) == line


def test_a_size_is_of_no_use_where_nobody_may_raise():
    for line, text in (
        ("f 3bb", "'3' is not an action"),
        ("allin 3bb", "no raise is possible"),
        ("3b", "'3' is not an action"),
        (
            "r200c/r400",
            r"r200 can mean chips put in on this street \(b200c/b400\) or over the whole hand \(b200c/b200\)",
        ),
        ("b150", "a bet must put in 200 to 20000 chips on this street"),
    ):
        refused(text, query, policy(), line, hand="AsKd")
