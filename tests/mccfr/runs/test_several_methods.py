"""Runs with several evaluation methods: one record for each, and bounds of exploitability."""

import pytest
from commands import call
from places import ROOT
from refusals import refusals
from sessions import NO_EVALUATION, make, trained

from mccfr.cli.progress_display import evaluation_text
from mccfr.cli.status_commands import _bound_lines
from mccfr.config.toml_files import config_from
from mccfr.evaluation.methods.registry import measure
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.directory.run import EVALUATIONS
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.results.average_strategies import checkpoint_average
from mccfr.runs.results.checkpoint_evaluator import check_evaluation
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.solvers.game_from_config import configured_game

POINTS = {"method": ["head-to-head", "sampled-br", "lbr", "exact"], "at_iterations": [100, 200], "keep": True}
POINTS |= {**NO_EVALUATION, "boards": 6, "setting": "1", "hands": 100}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Return a run that each method evaluated at two points."""
    return trained(make(tmp_path_factory.mktemp("methods") / "run", evaluation=POINTS), iterations=200)


def test_each_method_writes_its_line_at_every_point(measured):
    run = measured
    records = run.read(EVALUATIONS)
    assert [record["method"] for record in records] == POINTS["method"] * 2
    assert [record["iterations"] for record in records] == [100] * 4 + [200] * 4
    game = run.build_game()
    side = Profile(game, checkpoint_average(game, run.config, find_checkpoint(run, records[-1]["checkpoint"])))
    again = measure("sampled-br", side, boards=6)
    assert records[5]["value_chips"] == pytest.approx(again["value_chips"], rel=1e-12)
    assert records[5]["value_chips"] <= records[7]["exploitability_chips"] + 1e-12
    assert (records[6]["setting"], records[6]["hands"]) == ("1", 100)
    bounds = run_status(run)["bounds"]
    assert [pair["now"]["method"] for pair in bounds] == ["exact", "lbr", "sampled-br"]
    assert [pair["before"]["iterations"] for pair in bounds] == [100, 100, 100]


def test_a_finished_run_prints_the_bounds_of_its_kept_checkpoints(tmp_path, capsys):
    run = make(tmp_path / "run", evaluation=POINTS, iterations=200)
    err = call(capsys, "resume", run.directory).err
    exact = [record for record in run.read(EVALUATIONS) if record["method"] == "exact"]
    assert "exploitability of the kept checkpoints:" in err
    assert f"checkpoint 1, {exact[0]['nodes_touched']:,} nodes: sampled-br >= " in err
    assert f"exact {exact[0]['exploitability_chips']:.4g} chips" in err and "with --checkpoint N another" in err


def test_status_reports_a_bound_that_has_risen():
    def record(value, ci95):
        figures = {"exploitability_chips": value, "exploitability_mbb": None, "value_chips": value, "ci95_mbb": None}
        cost = {"boards": 10, "seconds": 1.0, "nodes_touched": 1000}
        return {"method": "sampled-br", "from": "river", "ci95_chips": ci95, **figures, **cost}

    risen = {"now": record(3.0, [2.5, 3.5]), "before": record(2.0, [1.8, 2.2])}
    assert _bound_lines([risen])[1].strip() == "risen from 2 chips at 1,000 nodes"
    maybe = {"now": record(3.0, [1.5, 4.5]), "before": record(2.0, [1.8, 2.2])}
    assert _bound_lines([maybe])[1].strip().endswith("within the intervals")
    lost = evaluation_text(record(-3.0, [-4.0, -2.0]))
    assert "no bound on exploitability: a best response from street river on wins -3 chips" in lost
    assert len(_bound_lines([{"now": record(1.0, [0.5, 1.5]), "before": record(2.0, [1.8, 2.2])}])) == 1


def check_points(points):
    config = config_from({"game": {"name": "leduc"}, "evaluation": points}, "here")
    check_evaluation(config, configured_game(config, ROOT))


FEW = {"method": ["head-to-head", "sampled-br"], "boards": 4}
"""Leduc has six boards: four are too few for an interval of sampled-br, and all six are exact."""

test_unsuitable_evaluations_are_refused_before_training = refusals(
    ("setting = '5' is not allowed", check_points, POINTS | {"setting": "5"}),
    (r"evaluation\.boards = 4: sampled-br needs at least 5, for an interval", check_points, FEW),
)


def test_as_many_boards_as_an_interval_needs_are_enough():
    for enough in ({"boards": 5}, {"method": ["head-to-head"]}, {"boards": 6}):
        check_points(FEW | enough)
