"""Queries of lines outside of the tree: means over the translations, in real actions."""

import pytest
from random_policy import policy
from refusals import refused

from mccfr.games.translation import NOWHERE, Translation
from mccfr.play.line_ranges import RangesOfLine
from mccfr.policy.query import query
from mccfr.trees.compiled import DECISION


def test_lines_of_the_tree_are_answered_as_ever():
    found = query(policy(), "r200c/", hand="AsKd", board="Qs7h2d")
    assert "readings" not in found
    assert [action["action"] for action in found["actions"]] == ["c", "r400", "r600", "r20000"]


@pytest.mark.parametrize("line", ["r250", "r250c/r400", "r200c/cr300", "r777c/cr5000r9999"])
def test_other_lines_are_the_mean_over_their_readings(line):
    source, board = policy(), "Qs7h2d" if "/" in line else None
    found = query(source, line, hand="AsKd", board=board)
    translation = Translation(source.game.tree, source.game.real_rules)
    state, readings = translation.read(line)
    assert [reading["probability"] for reading in found["readings"]] == [reading.probability for reading in readings]
    closed = [reading["after_call"] for reading in found["readings"]]
    assert [line is None for line in closed] == [reading.closed == NOWHERE for reading in readings]
    expected = {}
    for reading in readings:
        bucket = source.game.cards.hand_bucket(state.street, state.player, "AsKd", board)
        decides = source.game.tree.arrays.kind[reading.node] == DECISION
        shares = source.probabilities(reading.node, bucket).tolist() if decides else [1.0]
        for action, share in zip(translation.real_actions(reading, state), shares, strict=True):
            expected[action] = expected.get(action, 0) + reading.probability * share
    played = {action["action"]: action["probability"] for action in found["actions"]}
    assert played == pytest.approx(expected) and sum(played.values()) == pytest.approx(1)
    assert found["pot_chips"] == sum(state.put_in) and found["player"] == state.player
    chips = [action["to_chips"] for action in found["actions"] if action["action"][0] == "r"]
    assert chips == sorted(chips) and all(state.lowest_raise <= amount <= 20_000 for amount in chips)
    if board:  # before the flop hands are listed by class, and this deck has buckets by suit
        every = query(source, line, board=board)
        assert every["hands"]["AsKd"] == pytest.approx([played[action["action"]] for action in every["actions"]])


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("R200C/CR400", "r200c/cr400"),
        (" 2bb c / c 50% ", "r200c/cr400"),
        ("2.5bb c/3bb 2x", "r250c/r550r850"),
        ("r250c/r1p allin", "r250c/r750r20000"),
        ("0.5p 3x c/", "r200r600c/"),
    ],
)
def test_lines_as_people_write_them(said, line):
    board = "Qs7h2d" if "/" in line else None
    source = policy()
    assert query(source, said, hand="AsKd", board=board) == query(source, line, hand="AsKd", board=board)
    assert RangesOfLine(source).follow(said, board or "").line == line


def test_a_size_is_of_no_use_where_nobody_may_raise():
    for line, text in (
        ("f 3bb", "'3' is no action"),
        ("allin 3bb", "no raise is possible"),
        ("3b", "'3' is no action"),
    ):
        refused(text, query, policy(), line, hand="AsKd")
