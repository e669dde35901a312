"""What an export states about its origin."""

import pytest
from commands import call, command
from sessions import make, trained

from mccfr import __version__
from mccfr.policy import Policy
from mccfr.policy.origin import origin_facts, unfinished_text
from mccfr.runs.directory import run as rundir
from mccfr.runs.results import run_export


def stopped_early(run):
    """Train 400 iterations of a run, with the length that it had before."""
    before = run.path(rundir.CONFIG).read_text()
    trained(run, iterations=400)
    run.path(rundir.CONFIG).write_text(before)
    return run.directory


@pytest.fixture(scope="module")
def early(tmp_path_factory):
    """A run of Leduc at a thousandth of its length, evaluated at its end."""
    return stopped_early(make(tmp_path_factory.mktemp("early") / "run", iterations=400_000))


def test_an_export_tells_that_its_run_is_not_finished(early, tmp_path, capsys):
    exported = call(capsys, "export", early, tmp_path / "policy", "--license", "CC-BY-4.0")
    assert exported.status == 0
    assert (
        "it states: unfinished: 0.1 % of its run; " in exported.err and "license of the data: CC-BY-4.0" in exported.err
    )
    asked = call(capsys, "query", tmp_path / "policy", "", "--hand", "Kc")
    assert asked.err == f"{tmp_path / 'policy'} is unfinished: 0.1 % of its run\n" and "weight" in asked.out
    origin = Policy.open(tmp_path / "policy").meta["provenance"]
    assert (origin["program"], origin["license"]) == (f"mccfr {__version__}", "CC-BY-4.0")
    assert origin["share_of_run"] == 400 / 400_000 and origin["running"] is False
    assert origin["recipe"]["run"] == {"iterations": 400_000} and origin["recipe"]["solver"]["seed"] == 5
    assert origin["training_seconds"] > 0
    (evaluation,) = origin["evaluations"]
    assert (evaluation["method"], evaluation["bound"]) == ("exact", "exact") and evaluation["exploitability_chips"] > 0


def test_an_export_tells_that_its_run_was_still_going(early, tmp_path, monkeypatch):
    monkeypatch.setattr(run_export, "is_locked", lambda run: True)
    run = rundir.open_run(early)
    policy = Policy.open(run_export.export_run(run, run.build_game(), tmp_path / "policy"))
    assert unfinished_text(policy.meta["provenance"]) == "unfinished: 0.1 % of its run, which was still going"
    assert "license of the data: not stated" in origin_facts(policy.meta["provenance"])


def test_a_finished_run_and_one_without_length_are_not_called_unfinished(tmp_path, capsys):
    for name, settings, share in (("whole", {"iterations": 400}, 1.0), ("endless", {}, None)):
        directory = stopped_early(make(tmp_path / name, **settings))
        assert command("export", directory, tmp_path / f"{name}-policy") == 0
        assert "unfinished" not in capsys.readouterr().err
        assert Policy.open(tmp_path / f"{name}-policy").meta["provenance"]["share_of_run"] == share
    assert call(capsys, "query", tmp_path / "whole-policy", "", "--hand", "Kc").err == ""


def test_evaluations_that_meet_another_strategy_are_told():
    record = {"method": "head-to-head", "bound": "estimate", "value_chips": 12.5, "against": "uniform"}
    assert origin_facts({"evaluations": [record]}) == [
        "head-to-head: wins 12.5 chips a game against uniform (estimate)"
    ]
    record = {"method": "trained-response", "bound": "lower", "value_chips": -3.0, "gains_chips": [0.5, 2.25, -1.0]}
    assert origin_facts({"evaluations": [record]}) == [
        "trained-response: responses of one player gain up to 2.25 chips a game (lower bound)"
    ]
