"""Measured runs similar to a planned run, which `plan` shows, and the program that measures them.

Shows:

* `plan` shows the exploitability of similar runs, not of other games, algorithms, sizes or lengths
  (test_a_plan_shows_the_exploitability_of_similar_runs, test_runs_that_are_not_similar_are_left_out)
"""

import sys
from types import SimpleNamespace

import numpy as np
from commands import answer, call
from places import ROOT, RUNS

from mccfr.config.examples import EXAMPLES
from mccfr.config.toml_files import load_config
from mccfr.runs.session.similar_runs import EXACT, TABLE, measured_runs, similar_runs
from mccfr.solvers.game_from_config import planned_game

sys.path.insert(0, str(ROOT / "tools"))

import quality


def similar(recipe, *settings, nodes=None, iterations=None, buckets=None):
    """Return the similar runs of a recipe with other keys, for a plan of this size."""
    config = load_config(RUNS / f"{recipe}.toml", settings)
    like = next(run for run in measured_runs() if run.recipe == recipe)
    counts = like.buckets if buckets is None else (169, buckets, buckets, buckets)
    plan = {"buckets_per_street": [[count] * 2 for count in counts], "infosets": like.infosets}
    return similar_runs(config, plan | {"run_nodes": nodes, "iterations": iterations})


def test_a_plan_shows_the_exploitability_of_similar_runs(capsys):
    plan = answer(capsys, "plan", RUNS / "hunl-quick.toml", "--speed", 3e7)
    (found,) = plan["similar_runs"]
    assert (found["nodes"], found["mbb"], found["low"], found["high"]) == (8e9, 1977, 1799, 2157)
    assert found["infosets"] == plan["infosets"] == 271_380
    shown = call(capsys, "plan", RUNS / "hunl-quick.toml", "--speed", 3e7).out.splitlines()[-1]
    text = "hunl-quick on 200 buckets after 8.0e+09 nodes, 2.95e+04 to an infoset: loses 1,977 mbb/g (1,799 to 2,157)"
    assert shown == f"similar      {text}, exact on 24 flops"


def test_a_plan_shows_similar_runs_of_the_nearest_lengths(capsys):
    """A plan shows the three measured runs nearest in buckets and length, the shortest first."""
    found = similar("hunl-safe", iterations=40_000, buckets=1_000)
    assert [(run["boards"], run["mbb"]) for run in found] == [(12_001, 495), (40_001, 439), (120_001, 427)]
    for buckets, lost in (1_000, (1_696, 1_719, 1_793)), (5_000, (1_476, 1_453, 1_448)):
        found = similar("hunl-quick", nodes=2e10, buckets=buckets)
        assert [(run["nodes"], run["mbb"]) for run in found] == list(zip((2e10, 6e10, 2e11), lost, strict=True))
    bounds = similar("hunl-quick", "solver.negative_regret_pruning=false", nodes=2e10)
    assert [run["nodes"] for run in bounds] == [2e9, 1e10, 5e10]
    assert all(run["measure"].startswith("at least") for run in bounds)


def test_runs_that_are_not_similar_are_left_out():
    assert similar("hunl-quick", nodes=8e9) and similar("hunl-fine", nodes=1e10)
    assert not similar("hunl-quick", "game.stack=10000", nodes=8e9)
    assert not similar("hunl-fine", "solver.algorithm='outcome-sampling'", nodes=1e10)
    for sizes in ({"nodes": 8e9, "buckets": 450}, {"nodes": 4e11}, {"nodes": 2e8}):
        assert not similar("hunl-quick", **sizes)


def test_each_measured_run_is_of_a_shipped_recipe():
    for run in measured_runs():
        path = EXAMPLES / f"{run.recipe}.toml"
        game = planned_game(load_config(path, run.settings), path.parent)
        decisions = np.bincount(game.tree.arrays.block[game.tree.decisions] // 2)
        assert sum(decisions * np.array(run.buckets)) == run.infosets, run
        assert (run.nodes is None) != (run.boards is None) and run.measure.startswith((EXACT, "at least"))
        assert run.low is None or run.low <= run.mbb <= run.high


def test_the_program_adds_rows_and_skips_those_that_are_there(tmp_path, monkeypatch):
    table, calls = tmp_path / "table.csv", []
    table.write_text(TABLE.read_text().splitlines()[0] + "\n")
    game = planned_game(load_config(RUNS / "hunl-quick.toml"), RUNS)

    def fake_solve(recipe, run, *, overrides, progress):
        calls.append(overrides["run.nodes"])
        return SimpleNamespace(_open=lambda: SimpleNamespace(build_game=lambda: game))

    def found(run, method, *, flops, seed, workers):
        record = {"ci95_mbb": [900.4, 1100.4]}
        return SimpleNamespace(record=record, exploitability_mbb=1000.2, nodes_touched=calls[-1] + 5, iterations=7)

    monkeypatch.setattr(quality, "solve", fake_solve)
    monkeypatch.setattr(quality, "evaluate", found)
    series = quality.Series("hunl-quick", "nodes", (1_000, 3_000))
    for run in quality.measured(series, 200, tmp_path, table):
        quality.add_row(run, table)
    assert calls == [1_000, 3_000] and len(measured_runs(table)) == 2
    assert measured_runs(table)[0].nodes == 1_005 and measured_runs(table)[1].high == 1_100
    assert list(quality.measured(series, 200, tmp_path, table)) == [] and calls == [1_000, 3_000]
