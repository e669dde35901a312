"""What is trained no longer: its runs and policies are read as ever, and refused where they would go on."""

import dataclasses
import shutil
from pathlib import Path

import pytest
from archives import unpack
from commands import answer, call, refusal
from msgspec.structs import replace
from refusals import refused

import mccfr
from mccfr.config.file import config_from
from mccfr.config.former import GONE_KEYS
from mccfr.games.catalogue import build_game
from mccfr.runs.directory.run import open_run
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.averages import checkpoint_average
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.runs.results.evaluating import evaluate_target
from mccfr.solvers.registry import algorithm_of

FORMER = {
    "robust": (0.04696389149717169, "mccfr.gallery.robust:RobustSampling"),
    "targeted": (0.945832356695264, "mccfr.gallery.targeted:TargetedSampling"),
    "average-strategy": (0.012844556551659538, "mccfr.gallery.average_strategy:AverageStrategySampling"),
    "baselines": (0.035450799745036954, "mccfr.gallery.baselines:OutcomeWithBaselines"),
}
"""Exploitability in chips that was recorded, and where the algorithm is now."""
CELLS = {"brain": 1.076202092366351, "half": 1.0740138873158827, "int16": 0.7342060257067419}
"""The same of runs whose cells are bfloat16, float16 and int16."""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = unpack("former", tmp_path_factory.mktemp("former"))
    shutil.copytree(unpack("runs3", tmp_path_factory.mktemp("runs3")) / "int16", folder / "runs/int16")
    return folder


@pytest.mark.parametrize("name", [*FORMER, *CELLS])
def test_its_runs_are_read_and_do_not_go_on(unpacked, tmp_path, capsys, name):
    chips, gallery = FORMER.get(name) or (CELLS[name], None)
    instead = "in whose place there are those of 32" if gallery is None else f"which is {gallery}"
    run = tmp_path / "run"
    shutil.copytree(unpacked / "runs" / name, run)
    assert problems_of(run) == []
    assert evaluate_target(run, "exact")["exploitability_chips"] == pytest.approx(chips, rel=1e-9)
    assert call(capsys, "status", run)[0] == 0
    assert call(capsys, "export", run, tmp_path / "policy")[0] == 0
    assert evaluate_target(tmp_path / "policy", "exact")["exploitability_chips"] == pytest.approx(chips, rel=0.01)
    for verb in (("resume", run, "--nodes", 30_000), ("solve", run / "config.toml", "--run", tmp_path / "new")):
        status, _, said = call(capsys, *verb)
        assert status == 2 and said.splitlines()[:-1] == [line for line in said.splitlines() if "is ignored by" in line]
        assert f"{instead} now, was last trained by mccfr 0.1.0" in said
    assert not (tmp_path / "new").exists()


def test_a_run_with_stamps_is_read_and_does_not_go_on(unpacked, tmp_path, capsys):
    """Rows of `dcfr` that were last touched long ago weigh less than their cells say."""
    run = tmp_path / "run"
    shutil.copytree(unpacked / "runs" / "stamped", run)
    assert problems_of(run) == []
    assert evaluate_target(run, "exact")["exploitability_chips"] == pytest.approx(1.0511615501223985, rel=1e-9)
    opened = open_run(run)
    average = checkpoint_average(opened.build_game(), opened.config, find_checkpoint(opened, None))
    weights = [2021.1220958582628, 2458.8515805827446, 3541.139793471164, 5848.788665010034]
    assert [weight.sum() for weight in average.weight] == pytest.approx(weights, rel=1e-9)
    assert call(capsys, "status", run)[0] == 0
    assert call(capsys, "export", run, tmp_path / "policy")[0] == 0
    for verb in (("resume", run, "--nodes", 60_000), ("solve", run / "config.toml", "--run", run)):
        status, _, said = call(capsys, *verb)
        assert status == 2
        assert "solver.discount = 'dcfr' with stamps, in whose place tables are swept now, was last trained by" in said


def test_what_has_sums_of_two_dtypes_does_not_go_on(unpacked):
    run = open_run(unpacked / "runs" / "stamped")
    config = config_from({"game": {"name": "leduc"}}, "a test")
    for strata, wide, goes_on in ((None, [0, 0, 3, 3], True), (None, [1, 1, 0, 0], False), (3, [1, 1, 0, 0], True)):
        other = replace(config, run=replace(config.run, strata=strata))
        found = dataclasses.replace(run, config=other, manifest={**run.manifest, "wide_sums": wide}).former
        assert (found is None) == goes_on
        assert goes_on or "some are in float32 and some in float64" in found


def test_what_cannot_be_swept_is_refused():
    document = {"game": {"name": "leduc"}, "solver": {"discount": "dcfr"}, "run": {"strata": 3}}
    problem = algorithm_of(config_from(document, "a test")).problem()
    assert "solver.discount = 'dcfr' is not allowed: it must be 'none', " in problem


DEEP = {"dream": {"sd": 1.9426902817588032, "network": 2.428168570136925}, "full": {"sd": 0.026916181597383106}}
"""The same of runs of deep-cfr: by outcome sampling with a baseline, and of whole histories from scratch."""


@pytest.mark.parametrize("name", DEEP)
def test_runs_of_deep_cfr_are_read_and_do_not_go_on(tmp_path, capsys, name):
    unpacked = unpack("former_deep", tmp_path)
    run = unpacked / "runs" / name
    assert problems_of(run) == []
    for average, chips in DEEP[name].items():
        found = evaluate_target(run, "exact", average=average)["exploitability_chips"]
        assert found == pytest.approx(chips, rel=1e-9 if average == "sd" else 0.01)
    assert call(capsys, "export", run, tmp_path / "networks")[0] == 0
    told = refusal(capsys, "resume", run, "--iterations", 30)
    assert "mccfr.gallery.dream:Dream now, was last trained by mccfr 0.1.0" in told
    if name == "dream":
        kept = unpacked / "dream-networks", tmp_path / "networks"
        asked = [call(capsys, "query", at, "r", "--hand", "K", "--json").out for at in kept]
        assert asked[0] == asked[1]


GONE = {
    "whole-br": (0.3929791478006364, "solver.variant = 'cfr+', whose full width is mccfr.gallery.cfr_br:CfrBest"),
    "averaging": (0.008055282301873391, "solver.averaging_power = 2, in whose place strategies weigh what regrets do"),
    "unfloored": (0.16554043286783562, "solver.skip_below = 0.01, in whose place every line is walked"),
    "warm": (0.018659012121319745, "solver.warm_start = '../../warm-policy', in whose place tables begin with zeros"),
    "deep": (0.13078985749680233, "solver.fallback = 'uniform', in whose place there is always 'argmax'"),
    "clairvoyance": (0.3432833582152731, "game.pot = 3, in whose place there is always 1"),
    "ante": (0.4944297037410762, "game.ante = 2, in whose place there is always 1"),
}
"""Of runs with a key that went, and says something else than what holds now: chips recorded, and what is said of it."""


@pytest.fixture(scope="module")
def gone(tmp_path_factory):
    return unpack("gone_keys", tmp_path_factory.mktemp("gone"))


@pytest.mark.parametrize("name", GONE)
def test_runs_with_keys_that_went_are_read_and_do_not_go_on(gone, tmp_path, capsys, name):
    """Shows: what a run learnt by a key that went since is evaluated, verified and exported as ever."""
    chips, told = GONE[name]
    run = gone / "runs" / name
    assert problems_of(run) == []
    assert evaluate_target(run, "exact")["exploitability_chips"] == pytest.approx(chips, rel=1e-9)
    assert call(capsys, "status", run)[0] == 0
    assert call(capsys, "export", run, tmp_path / "policy")[0] == 0
    for verb in (("resume", run, "--nodes", 10**6), ("solve", run / "config.toml", "--run", run)):
        status, _, said = call(capsys, *verb)
        assert (status, f"mccfr: {told}") == (2, said.splitlines()[-1][: len(told) + 7])
    assert call(capsys, "solve", run / "config.toml", "--run", tmp_path / "new").status == 2
    assert not (tmp_path / "new").exists()


def test_networks_and_policies_with_keys_that_went_are_read(gone, capsys):
    """Gradients of a fit are as short as they were; a pot of 4 is one in the policy too."""
    found = evaluate_target(gone / "runs/deep", "exact", average="network")["exploitability_chips"]
    assert found == pytest.approx(0.4180328688156175, rel=1e-3)
    said = answer(capsys, "query", gone / "deep-networks", "", "--hand", "K")
    assert [action["probability"] for action in said["actions"]] == [0.0, 1.0]
    found = evaluate_target(gone / "akq-policy", "exact")["exploitability_chips"]
    assert found == pytest.approx(0.05736502123547216, rel=1e-9)


def test_games_with_keys_that_went_are_made():
    for name, keys, pot in (("flop-holdem", {"blinds": [10, 20]}, 30), ("akq", {"pot": 4, "bet": 3}, 4)):
        config = config_from({"game": {"name": name, **keys}}, "a test")
        assert config.game.former is not None and build_game(config.game, Path()).pot_chips == pot


def test_its_policies_are_read(unpacked):
    assert evaluate_target(unpacked / "robust-policy", "exact")["exploitability_chips"] < 0.06


def test_from_python_it_is_refused_by_the_same_sentence():
    refused("was last trained by mccfr 0", mccfr.solver, mccfr.game("kuhn"), "robust-sampling")


@pytest.mark.parametrize(("pool", "lines"), [("processes", 0), ("threads", 1)])
def test_a_run_by_threads_goes_on_and_hears_what_trains_it(pool, lines, caplog):
    config = config_from({"game": {"name": "kuhn"}, "run": {"pool": pool}}, "a test")
    assert config == config_from({"game": {"name": "kuhn"}}, "a test")
    assert caplog.text.count("run.pool = 'threads' is passed over: processes train the same bits") == lines


def test_a_key_that_says_nothing_is_passed_over():
    """Every run has written its defaults out."""
    deep = {"algorithm": "deep-cfr"}
    gone = {key: gone.default for key, gone in GONE_KEYS["solver", "deep-cfr"].items()}
    for own, former in (({}, {"baseline_rate": 0.0}), (deep, gone)):
        config = config_from({"game": {"name": "kuhn"}, "solver": {**own, **former}}, "a test")
        assert config == config_from({"game": {"name": "kuhn"}, "solver": own}, "a test")
