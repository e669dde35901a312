"""`tools/study` on a deck of six cards: lower bounds, table, resuming.

Shows:

* Every lower bound of a study is at most the exact figure
  (test_every_lower_bound_is_below_the_exact_figure_and_a_stop_costs_one_policy)
* The study's figures equal those of the commands (test_what_it_measures_is_what_the_commands_find)
"""

import csv
import sys

import numpy as np
import pytest
from places import ROOT
from refusals import refused

sys.path.insert(0, str(ROOT / "tools"))

import study as tool

from mccfr.evaluation.sampled_best_response import sampled_best_response
from mccfr.policy.profile import Profile

DECK = {"name": "poker", "ranks": 3, "suits": 2, "hole_cards": 2, "board_cards": [0, 1, 1], "merge_suits": True}
GAME = {**DECK, "antes": [1, 1], "stack": 3}
PLANS = [
    tool.Arm("ehs", 2, tool.SAMPLED, 0, (300, 20_000)),
    tool.Arm("recall", 2, tool.SAMPLED, 0, (20_000,)),
    tool.Arm("ehs", 2, tool.BR, 0, (20_000,)),
]
EFFORT = tool.StudyEffort(hands=None, nodes=20_000, boards=30)
"""All 30 boards and every deal: nothing is sampled, so that bounds hold to the last digits."""


def begun(out):
    return tool.Study(out, GAME, tool.Arm(tool.LOSSLESS, 0, tool.SAMPLED, 9, (20_000,)))


def test_every_lower_bound_is_below_the_exact_figure_and_a_stop_costs_one_policy(tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "_RESAMPLED", 5)
    told = tool.run(begun(tmp_path), tmp_path, PLANS, EFFORT)
    found = tool.read_done(tmp_path)
    assert [line["point"] for line in found] == [300, 20_000, 20_000, 20_000] and len(told) > 10
    for line in found:
        chips, exact = line["chips"], line["chips"]["exact"]
        bounds = [name for name in tool.LOWER_BOUNDS if name in chips]
        assert {"from flop", "from turn", "lbr 2", "trained-br"} <= set(bounds)
        assert all(chips[name] <= exact + 1e-9 for name in bounds) and not any(line["half"].values())
        assert chips["from turn"] <= chips["from flop"] + 1e-9
        assert ("abstract" in chips) == (line["features"] == "recall")
    ends = [line["chips"] for line in found if line["point"] == 20_000]
    assert all("lbr 1" in chips and chips["uint8"] == pytest.approx(chips["exact"], rel=0.05) for chips in ends)
    rows = list(csv.DictReader((tmp_path / tool.ORDER).read_text().splitlines()))
    assert all(int(row["above_exact"]) == 0 for row in rows if row["measure"] in tool.LOWER_BOUNDS)
    assert {row["policies"] for row in rows if row["trained_by"] == "all" and row["measure"] == "lbr 2"} == {"4"}

    table = (tmp_path / tool.TABLE).read_text()
    lines = (tmp_path / tool.POLICIES).read_text().splitlines(keepends=True)
    (tmp_path / tool.POLICIES).write_text("".join(lines[:-1]))
    trained = []
    train = tool.Study.train
    monkeypatch.setattr(tool.Study, "train", lambda self, plan: trained.append(plan) or train(self, plan))
    tool.run(begun(tmp_path), tmp_path, PLANS, EFFORT)
    assert trained[0] == PLANS[-1] and PLANS[0] not in trained
    assert (tmp_path / tool.TABLE).read_text() == table

    planted = [{**line, "chips": {**line["chips"], "from turn": line["chips"]["exact"] + 1e-6}} for line in found]
    above = {row[1]: row[-1] for row in tool.order(planted) if row[0] == "all"}
    assert above["from turn"] == 4 and above["from flop"] == 0
    refused("measured with another effort: give another folder", tool.run, begun(tmp_path), tmp_path, PLANS, None)


def test_what_it_measures_is_what_the_commands_find(tmp_path):
    study = begun(tmp_path)
    plan = PLANS[0]
    (_, strategy), *_ = study.train(plan)
    game, public = study.game(plan.features, plan.buckets)
    for street in range(3):
        found = sampled_best_response(Profile(game, strategy), street)
        assert found.exact and found.value_chips == pytest.approx(tool.exploitability(public, strategy, street))
    assert tool.won(game, strategy, game, strategy) == pytest.approx(0, abs=1e-12)


def test_rank_correlations_go_by_place_and_their_intervals_by_runs():
    assert tool.rank_correlation([1, 2, 3, 40], [5, 6, 7, 8]) == pytest.approx(1)
    assert tool.ranks([3, 1, 3]).tolist() == [2.5, 1, 2.5]
    assert np.isnan(tool.rank_correlation([1, 2], [1, 2]))
    rng = np.random.default_rng(1)
    exact = rng.random(24)
    lines = [
        {"name": str(i // 2), "chips": {"exact": x, "good": x**2, "noise": rng.random()}} for i, x in enumerate(exact)
    ]
    assert tool.correlation95(lines, "good") == pytest.approx((1, 1, 1))
    value, low, high = tool.correlation95(lines, "noise")
    assert low < value < high and low < 0 < high


def test_values_are_those_of_a_short_run(tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "WORTH", tool.Arm("ehs", 2, tool.BR, 5, (1_000, 3_000)))
    study = begun(tmp_path)
    early, late = (side.strategy.probability[0] for side in study._short_run())
    assert not np.array_equal(early, late)
    game, _ = study.game(tool.VALUES, 3)
    assert game.buckets[2:].tolist() == [3] * 4
