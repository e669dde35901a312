"""What the first version wrote must load for ever: runs go on as they would have gone on then.

But for outcome sampling, which plays deals in groups since: its run goes on as one of today would from there.

Shows:

* What older versions wrote still loads and goes on (test_format1, test_policy_format2, test_run_versions)
"""

import shutil

import msgspec
import pytest
from archives import unpack

from abstraction.buckets import Abstraction
from mccfr.runs.directory import run as rundir
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.reporter import Silent
from mccfr.runs.results.evaluating import evaluate_target
from mccfr.runs.session.session import train

RUNS = {
    "kuhn-external": (0.0560576890850902, None, None),  # of dcfr with stamps: read, and refused (test_former)
    "kuhn-cfr": (0.002694483610490666, {"iterations": 100}, 0.0011118059419162885),  # lcfr+ with squared weights
    "leduc-outcome": (1.0694916030348094, {"nodes": 100_000, "workers": 1}, 0.7635568487763265),
    "leduc-public-chance": (0.10805606637922495, {"iterations": 400}, 0.06522769689810361),
}
"""Exploitability in chips that was recorded, limits of a second session, and what comes of them."""

POLICIES = {"kuhn": 0.055910547225426155, "leduc": 0.10805443063887527}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    return unpack("format1", tmp_path_factory.mktemp("format1"))


@pytest.mark.parametrize("name", RUNS)
def test_runs_are_sound_and_evaluate_as_they_did(unpacked, name):
    recorded, _, _ = RUNS[name]
    assert problems_of(unpacked / "runs" / name) == []
    assert evaluate_target(unpacked / "runs" / name, "exact")["exploitability_chips"] == pytest.approx(
        recorded, rel=1e-9
    )


@pytest.mark.parametrize("name", [name for name, (_, limits, _) in RUNS.items() if limits])
def test_runs_go_on_as_they_would_have(unpacked, tmp_path, name):
    _, limits, later = RUNS[name]
    shutil.copytree(unpacked / "runs" / name, tmp_path / name)
    run = rundir.open_run(tmp_path / name)
    settings = msgspec.structs.replace(run.config.run, **({"nodes": None, "iterations": None, "workers": 0} | limits))
    run = rundir.with_settings(run, run=settings)
    outcome = train(run, run.build_game(), Silent())
    assert outcome.evaluation["exploitability_chips"] == pytest.approx(later, rel=1e-9)
    assert problems_of(tmp_path / name) == []


@pytest.mark.parametrize("name", POLICIES)
def test_policies_evaluate_as_they_did(unpacked, name):
    path = unpacked / "policies" / name
    assert problems_of(path) == []
    assert evaluate_target(path, "exact")["exploitability_chips"] == pytest.approx(POLICIES[name], rel=1e-9)


def test_abstraction_answers(unpacked):
    path = unpacked / "abstraction"
    assert problems_of(path) == []
    assert Abstraction(path).bucket_of_text("AsKd", "Qs7h2d")["bucket"] == 2
