"""One betting line on many flops: compared with the page, naive means and head-to-head.

Shows:

* `mccfr report --spots` states the frequencies and equities that the page shows for the flop
  (test_report_of_a_flop_equals_the_page)
* Its values equal those of the strategy in head-to-head against itself (test_values_equal_head_to_head_against_itself)
* Its 95 % intervals cover the values found with more run-outs (test_intervals_cover_values_from_more_run_outs)
"""

import csv
from dataclasses import replace

import numpy as np
import pytest
from commands import call, refusing
from random_policy import policy
from refusals import refusals
from strategies import tabulate

from abstraction.boards import board_classes, locate_board
from abstraction.cards import cards_text, parse_cards
from mccfr.config.game_tables import Menu
from mccfr.evaluation.flop_values import Flops, LineOnFlops, all_flops, flop_report, some_flops
from mccfr.evaluation.head_to_head import PolicyPair
from mccfr.games.subgame import nodes_below
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.results import flop_tables
from mccfr.runs.results.targets import Target
from mccfr.solvers.public.sampled_board import from_cards
from mccfr.trees.betting_lines import find_node
from mccfr.view import Spots

LINE, WHOLE_LINE = "b200c/c", "r200c/c"
MENU = Menu(first=("0.5p",), later=(), max_bets=2)
FLOPS = Flops(np.array([parse_cards(flop) for flop in ("2s7dKc", "QsJs2s", "7d7h7s")], np.int8), np.array([24.0, 4, 4]))
DRAWN = 3


@pytest.fixture(scope="module")
def source():
    """Return a random strategy in tables."""
    behaviour = policy(MENU, 1_000.0)
    return Profile(behaviour.game, tabulate(behaviour.game, behaviour.probabilities))


@pytest.fixture(scope="module")
def found(source):
    return flop_report(source, LINE, FLOPS, DRAWN)


def test_report_of_a_flop_equals_the_page(source, found):
    page = Spots(source, "random")
    for flop, cards in enumerate(FLOPS.cards.tolist()):
        shown, own = page.spot(LINE, cards_text(cards)), np.array([flop])
        assert [one["action"] for one in shown["actions"]] == found.actions
        assert found.player == shown["player"] == 1
        assert found.frequencies(own) == pytest.approx(shown["frequencies"], abs=1e-5)
        assert [found.equity(own, player) for player in range(2)] == pytest.approx(
            page.equity(LINE, cards_text(cards))["mean"], abs=1e-5
        )


def test_values_equal_head_to_head_against_itself(source, found):
    """Compare with the strategy against itself on each run-out, in chips won after the line."""
    units, tree = LineOnFlops(source, LINE, FLOPS, DRAWN, 0), source.game.tree
    inside = np.zeros(len(tree.parent), bool)
    inside[nodes_below(tree, find_node(tree, WHOLE_LINE))] = True

    def played(full, **columns):
        game = replace(source.game, tree=replace(tree, arrays=tree.arrays._replace(**columns)))
        side = Profile(game, source.strategy)
        board = from_cards(game.cards, list(full), ordered=True)
        return PolicyPair(side, side).play(board, 0)[0]

    ends = inside & (tree.arrays.kind != 0)
    for flop in range(len(FLOPS.cards)):
        board = tuple(FLOPS.cards[flop].tolist())
        rng = np.random.default_rng((0, flop))
        full, _ = source.game.cards.at_table().full_boards(1, board, (), DRAWN, rng)
        for each, (won, _, weight) in zip(full, found.run_outs[flop], strict=True):
            arrays = tree.arrays
            mine = played(each, fixed=np.where(inside, arrays.fixed, 0), showdown=np.where(inside, arrays.showdown, 0))
            assert won == pytest.approx(mine, rel=1e-9)
            assert weight == pytest.approx(played(each, fixed=ends * 1.0, showdown=np.zeros(len(ends))), rel=1e-9)
    assert units.line == LINE


def test_intervals_cover_values_from_more_run_outs(source):
    """Check 95 % intervals of twelve flops; the control variate for luck narrows them."""
    few = flop_report(source, LINE, some_flops(12), 4)
    many = flop_report(source, LINE, some_flops(12), 30, seed=1)
    scores = []
    for flop in range(12):
        one, other = (report.value(np.array([flop]), 0) for report in (few, many))
        scores.append(abs(one.mean - other.mean) / np.hypot(one.within, other.within))
        assert other.within < one.within
    assert sum(score <= 1 for score in scores) >= 10
    assert np.sqrt(np.mean(np.square(scores))) > 0.3, "0.5 or more on average, and less where intervals are too wide"
    whole = np.arange(12)
    assert abs(few.value(whole, 0).mean - many.value(whole, 0).mean) <= few.value(whole, 0).within * 1.5
    sums = [many.value(whole, player).mean for player in range(2)]
    assert sum(sums) == pytest.approx(many.pot)
    plain = replace(many)
    plain.__dict__["_factor"] = 0.0
    assert many.value(whole, 0).within < 0.9 * plain.value(whole, 0).within


def test_hand_classes_add_up_to_the_range(found):
    flops = np.arange(len(FLOPS.cards))
    for player in range(2):
        classes = found.of_classes(player)
        assert sum(share for share, *_ in classes.values()) == pytest.approx(1)
        equity = sum(share * equity for share, equity, *_ in classes.values())
        assert equity == pytest.approx(found.equity(flops, player))
    played = np.sum([share * np.array(row) for share, _, _, row in found.of_classes(1).values()], axis=0)
    assert played == pytest.approx(found.frequencies(flops))


def test_weights_of_flop_subsets_add_up_to_all_flops():
    every = all_flops()
    assert len(every.cards) == 1755 and every.weight.sum() == 22_100
    for count in (1, 49, 95, 184, 1755):
        some = some_flops(count)
        assert len(some.cards) == count and some.weight.sum() == 22_100
    paired = np.array([len({card // 4 for card in cards}) < 3 for cards in some_flops(95).cards.tolist()])
    assert some_flops(95).weight[paired].sum() / 22_100 == pytest.approx(0.1718, abs=0.02)
    number, _ = locate_board(some_flops(1).cards[0].tolist())
    assert board_classes(3).multiplicity[number] > 0


def test_report_tables_are_written_and_resumed(source, tmp_path, monkeypatch, capsys):
    """The command writes three tables, resumes to the same tables, and overwrites no other files."""
    monkeypatch.setattr(flop_tables, "open_target", lambda _: Target(source.game, source.strategy, {}))
    out, keep = tmp_path / "flops.csv", tmp_path / "kept"
    arguments = ["report", "there", out, "--spots", LINE, "--flops", 3, "--run-outs", 2, "--keep", keep]
    ended = call(capsys, *arguments)
    assert ended.status == 0 and "all" in ended.out and "flops would be off" not in ended.out
    tables = {name: (tmp_path / f"flops{name}.csv").read_text() for name in ("", ".textures", ".classes")}
    rows = list(csv.DictReader(tables[""].splitlines()))
    assert len(rows) == 3 and sum(float(row["stands_for"]) for row in rows) == 22_100
    assert all(sum(float(row[action]) for action in ("c", "b200")) == pytest.approx(1, abs=1e-5) for row in rows)
    assert tables[".textures"].startswith("by,texture,") and tables[".classes"].startswith("position,class,")
    again = call(capsys, *arguments, "--workers", 1)
    assert again.status == 0 and out.read_text() == tables[""]
    out.write_text("mine")
    assert call(capsys, *arguments).status == 2 and out.read_text() == "mine"


def report_two_flops(line, out, source, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(flop_tables, "open_target", lambda _: Target(source.game, source.strategy, {}))
    refusing(("report", "there", tmp_path / out, "--spots", line, "--flops", 2), capsys)


test_refusals = refusals(
    ("must end in .csv or .html", "b200c/", "x.txt"),
    ("a line that ends on the flop", "b200", "x.csv"),
    ("ends after the flop", "b200c/cc/", "x.csv"),
    ("bets that the strategy does not have", "b300c/", "x.csv"),
    ("the hand is over here", "b200f", "x.csv"),
    call=report_two_flops,
)
