"""Several evaluation methods at one point: one line each, bounds of exploitability first."""

import json

import pytest
from commands import call
from places import ROOT
from refusals import refusals
from sessions import make, trained

from mccfr.cli.progress_display import evaluation_text
from mccfr.cli.status_commands import _bound_lines
from mccfr.config.toml_files import config_from
from mccfr.evaluation.methods.registry import measure
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.directory.run import EVALUATIONS, open_run
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.results.average_strategies import checkpoint_average
from mccfr.runs.results.checkpoint_evaluator import check_evaluation
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.solvers.game_from_config import configured_game

POINTS = {
    "method": ["head-to-head", "sampled-br", "lbr", "exact"],
    "at_iterations": [100, 200],
    "every_checkpoint": False,
    "at_end": False,
    "keep": True,
    "boards": 6,
    "setting": "1",
    "hands": 100,
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A run that each method has measured at two points."""
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


def test_a_run_ends_with_what_is_known_of_its_checkpoints(tmp_path, capsys):
    config = tmp_path / "leduc.toml"
    points = "".join(f"{key} = {json.dumps(value)}\n" for key, value in POINTS.items())
    config.write_text(f'[game]\nname = "leduc"\n[run]\nworkers = 0\niterations = 200\n[evaluation]\n{points}')
    err = call(capsys, "solve", config, "--run", tmp_path / "run").err
    run = open_run(tmp_path / "run")
    exact = [record for record in run.read(EVALUATIONS) if record["method"] == "exact"]
    assert "exploitability of the kept checkpoints:" in err
    assert f"checkpoint 1, {exact[0]['nodes_touched']:,} nodes: sampled-br >= " in err
    assert f"exact {exact[0]['exploitability_chips']:.4g} chips" in err and "with --checkpoint N another" in err


def test_status_reports_a_bound_that_has_risen():
    def record(value, ci95=None):
        return {
            "method": "sampled-br",
            "exploitability_chips": value,
            "exploitability_mbb": None,
            "value_chips": value,
            "ci95_chips": ci95,
            "ci95_mbb": None,
            "from": "river",
            "boards": 10,
            "seconds": 1.0,
            "nodes_touched": 1000,
        }

    risen = {"now": record(3.0, [2.5, 3.5]), "before": record(2.0, [1.8, 2.2])}
    assert _bound_lines([risen])[1].strip() == "risen from 2 chips at 1,000 nodes"
    maybe = {"now": record(3.0, [1.5, 4.5]), "before": record(2.0, [1.8, 2.2])}
    assert _bound_lines([maybe])[1].strip().endswith("within the intervals")
    lost = evaluation_text(record(-3.0, [-4.0, -2.0]))
    assert "no bound on exploitability: a best response from street river on wins -3 chips" in lost
    assert len(_bound_lines([{"now": record(1.0, [0.5, 1.5]), "before": record(2.0, [1.8, 2.2])}])) == 1


test_invalid_evaluation_tables_are_refused = refusals(
    *(
        (words, config_from, {"game": {"name": "leduc"}, "evaluation": table}, "here")
        for words, table in (
            (r"evaluation.method = .* must be some of .'auto', 'exact'", {"method": ["exact", "magic"]}),
            (r"evaluation.method = .* must be some of .'auto', 'exact'", {"method": []}),
            ("evaluation.boards = 1 is not allowed", {"boards": 1}),
        )
    )
)


def checked(points):
    config = config_from({"game": {"name": "leduc"}, "evaluation": points}, "here")
    check_evaluation(config, configured_game(config, ROOT))


FEW = {"method": ["head-to-head", "sampled-br"], "boards": 4}
"""Leduc has six: from the first street on two of them would do for no interval, and all of them always do."""

test_unsuitable_evaluations_are_refused_before_training = refusals(
    ("setting = '5' is not allowed", checked, POINTS | {"setting": "5"}),
    (r"evaluation\.boards = 4: sampled-br needs at least 5, for an interval", checked, FEW),
)


def test_as_many_boards_as_an_interval_needs_are_enough():
    for enough in ({"boards": 5}, {"method": ["head-to-head"]}, {"boards": 6}):
        checked(FEW | enough)
