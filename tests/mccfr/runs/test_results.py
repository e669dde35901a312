"""Evaluations and exports of a run's checkpoints, and head-to-head matches between runs and policies.

Shows:

* If a kill prevents the evaluation of a checkpoint, the next session evaluates it first
  (test_a_checkpoint_whose_evaluation_a_kill_prevented_is_evaluated_first)
"""

from pathlib import Path

import numpy as np
import pytest
from commands import refusing
from refusals import refusals, refused
from sessions import go, make, trained

from mccfr.api.evaluating import evaluate_target
from mccfr.policy import Policy, verify_policy
from mccfr.runs.directory.run import EVALUATIONS
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from mccfr.runs.results.run_export import ExportOptions, export_run
from mccfr.runs.results.targets import Reference
from mccfr.tables.strategy import average_strategy


def test_a_run_exports_the_requested_checkpoint(tmp_path):
    run = trained(make(tmp_path / "run"), iterations=500)
    go(run, iterations=1500)
    game = run.build_game()
    newest = Policy.open(export_run(run, game, tmp_path / "p"))
    assert verify_policy(newest.path) == []
    assert newest.meta["provenance"]["checkpoint"] == 2 and newest.meta["provenance"]["iterations"] == 1500
    strategy = average_strategy(game, read_tables(find_checkpoint(run, 2), "strategy_sum"))
    for stored, saved in zip(newest.strategy().probability, strategy.probability, strict=True):
        np.testing.assert_allclose(stored, saved, atol=2e-5)
    options = ExportOptions(quantise="uint8", number=1)
    first = Policy.open(export_run(run, game, tmp_path / "p", options))  # replaces the first export
    assert first.meta["provenance"]["iterations"] == 500
    assert evaluate_target(first.path, "exact", None)["iterations"] == 500
    assert evaluate_target(run.directory, "exact", 1)["checkpoint"] == 1
    refused("has no checkpoint 7: give one of 1, 2", export_run, run, game, tmp_path / "q", ExportOptions(number=7))


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("last", [500, 1500])
def test_a_checkpoint_whose_evaluation_a_kill_prevented_is_evaluated_first(tmp_path, lost, last):
    """In large games an evaluation ends minutes after its checkpoint, so a kill between them is likely."""
    points = {"at_iterations": [500], "keep": True, "every_checkpoint": False, "at_end": False}
    run = trained(make(tmp_path / "run", evaluation=points), iterations=500)
    whole = list(run.backwards(EVALUATIONS))
    if lost:
        run.path(EVALUATIONS).unlink()
    go(run, iterations=last)
    go(run, iterations=last)
    found = list(run.backwards(EVALUATIONS))
    assert [line["checkpoint"] for line in whole] == [line["checkpoint"] for line in found] == [1]
    assert found[0] | {"seconds": 0} == whole[0] | {"seconds": 0}


@pytest.fixture(scope="module")
def leduc_runs(tmp_path_factory):
    """Return {name: path} of two runs of Leduc, lossless and with merged suits, and of their policies."""
    root, found = tmp_path_factory.mktemp("leduc"), {}
    for name, merges in (("lossless", False), ("merged", True)):
        run = trained(make(root / name, game={"name": "leduc", "merge_suits": merges}), iterations=2000)
        found |= {name: run.directory, f"{name} policy": root / f"{name}-policy"}
        export_run(run, run.build_game(), root / f"{name}-policy")
    return found


def test_runs_and_policies_on_different_buckets_are_compared(leduc_runs):
    """Head-to-head values of runs and policies sum to 0, in either order."""

    def value_against(target, against):
        found = evaluate_target(leduc_runs[target], "head-to-head", against=Reference(leduc_runs[against]))
        return found["value_chips"]

    chips = value_against("lossless", "merged")
    assert value_against("merged", "lossless") == -chips != 0
    assert value_against("merged policy", "lossless policy") == pytest.approx(-chips, abs=1e-3)
    assert value_against("lossless", "merged policy") == pytest.approx(chips, abs=1e-3)
    assert value_against("merged", "merged policy") == pytest.approx(0, abs=1e-3)
    for name in ("uniform", "always-call"):
        for target in ("lossless", "merged"):
            found = evaluate_target(leduc_runs[target], "head-to-head", against=Reference(Path(name)))
            assert found["against"] == name and found["value_chips"] > 0.3


def evaluate(target, options, leduc_runs, capsys):
    refusing(("evaluate", leduc_runs[target], *options.split()), capsys)


def evaluate_against_checkpoint_of_policy(leduc_runs):
    evaluate_target(leduc_runs["merged"], "head-to-head", against=Reference(leduc_runs["merged policy"], 1))


test_options_without_effect_on_an_evaluation_are_refused = refusals(
    ("exact has no opponent: leave --against out", evaluate, "lossless", "--method exact --against always-call"),
    ("lbr has no opponent", evaluate, "lossless", "--method lbr --against-checkpoint 1"),
    ("uniform is no run", evaluate, "lossless", "--method head-to-head --against-checkpoint 1"),
    ("leave --checkpoint out", evaluate, "lossless policy", "--checkpoint 3"),
    ("leave --abstraction out", evaluate, "lossless policy", "--abstraction there"),
    ("leave --checkpoint out", evaluate_against_checkpoint_of_policy),
)
