"""What is trained no longer: its runs and policies are read as ever, and refused where they would go on."""

import dataclasses
from pathlib import Path

import pytest
from archives import unpack
from commands import answer, call, refusal
from msgspec.structs import replace
from refusals import refusals

import mccfr
from mccfr.config.file import config_from
from mccfr.config.former import GONE_KEYS
from mccfr.games.catalogue import build_game
from mccfr.runs.directory.run import open_run
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.averages import checkpoint_average
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.runs.results.evaluating import evaluate_target

NOW = "now, was last trained by mccfr 0.1.0"
READ = {
    "former/runs/robust": (0.04696389149717169, f"which is mccfr.gallery.robust:RobustSampling {NOW}"),
    "former/runs/targeted": (0.945832356695264, f"which is mccfr.gallery.targeted:TargetedSampling {NOW}"),
    "former/runs/average-strategy": (
        0.012844556551659538,
        f"which is mccfr.gallery.average_strategy:AverageStrategySampling {NOW}",
    ),
    "former/runs/baselines": (0.035450799745036954, f"which is mccfr.gallery.baselines:OutcomeWithBaselines {NOW}"),
    "former/runs/brain": (1.076202092366351, f"in whose place there are those of 32 {NOW}"),  # cells in bfloat16
    "former/runs/half": (1.0740138873158827, f"in whose place there are those of 32 {NOW}"),
    "runs3/int16": (0.7342060257067419, f"in whose place there are those of 32 {NOW}"),
    "former/runs/stamped": (1.0511615501223985, f"'dcfr' with stamps, in whose place tables are swept {NOW}"),
    "preflop/run": (0.3814925081387218, f"in whose place all streets have sums {NOW}"),
    "gone_keys/runs/whole-br": (
        0.3929791478006364,
        "solver.variant = 'cfr+', whose full width is mccfr.gallery.cfr_br:CfrBest",
    ),
    "gone_keys/runs/averaging": (
        0.008055282301873391,
        "solver.averaging_power = 2, in whose place strategies weigh what regrets do",
    ),
    "gone_keys/runs/unfloored": (0.16554043286783562, "solver.skip_below = 0.01, in whose place every line is walked"),
    "gone_keys/runs/warm": (
        0.018659012121319745,
        "solver.warm_start = '../../warm-policy', in whose place tables begin with zeros",
    ),
    "gone_keys/runs/deep": (
        0.13078985749680233,
        "solver.fallback = 'uniform', in whose place there is always 'argmax'",
    ),
    "gone_keys/runs/clairvoyance": (0.3432833582152731, "game.pot = 3, in whose place there is always 1"),
    "gone_keys/runs/ante": (0.4944297037410762, "game.ante = 2, in whose place there is always 1"),
}
"""Exploitability in chips that was recorded, and what is said of who would go on; the last are of keys that went."""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("former")
    for name in ("former", "runs3", "preflop", "gone_keys"):
        unpack(name, folder)
    return folder


@pytest.mark.parametrize("name", READ)
def test_its_runs_are_read_and_do_not_go_on(unpacked, tmp_path, capsys, name):
    (chips, told), run = READ[name], unpacked / name
    assert problems_of(run) == []
    assert evaluate_target(run, "exact")["exploitability_chips"] == pytest.approx(chips, rel=1e-9)
    assert call(capsys, "status", run)[0] == 0
    assert call(capsys, "export", run, tmp_path / "policy")[0] == 0
    assert evaluate_target(tmp_path / "policy", "exact")["exploitability_chips"] == pytest.approx(chips, rel=0.01)
    anew = () if "stamped" in name else (("solve", run / "config.toml", "--run", tmp_path / "new"),)
    for verb in (("resume", run, "--nodes", 10**6), ("solve", run / "config.toml", "--run", run), *anew):
        status, _, said = call(capsys, *verb)
        assert status == 2 and (told in said.splitlines()[-1] or verb in anew), said
        assert all("is ignored by" in line for line in said.splitlines()[:-1])
    assert not (tmp_path / "new").exists()


def test_rows_of_stamps_that_were_last_touched_long_ago_weigh_less_than_their_cells_say(unpacked):
    opened = open_run(unpacked / "former/runs/stamped")
    average = checkpoint_average(opened.build_game(), opened.config, find_checkpoint(opened, None))
    weights = [2021.1220958582628, 2458.8515805827446, 3541.139793471164, 5848.788665010034]
    assert [weight.sum() for weight in average.weight] == pytest.approx(weights, rel=1e-9)


def test_what_has_sums_of_two_dtypes_does_not_go_on(unpacked):
    run = open_run(unpacked / "former/runs/stamped")
    config = config_from({"game": {"name": "leduc"}}, "a test")
    for strata, wide, goes_on in ((None, [0, 0, 3, 3], True), (None, [1, 1, 0, 0], False), (3, [1, 1, 0, 0], True)):
        other = replace(config, run=replace(config.run, strata=strata))
        found = dataclasses.replace(run, config=other, manifest={**run.manifest, "wide_sums": wide}).former
        assert (found is None) == goes_on
        assert goes_on or "some are in float32 and some in float64" in found


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


def test_networks_and_policies_with_keys_that_went_are_read(unpacked, capsys):
    """Gradients of a fit are as short as they were; a pot of 4 is one in the policy too."""
    gone = unpacked / "gone_keys"
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
    assert evaluate_target(unpacked / "former/robust-policy", "exact")["exploitability_chips"] < 0.06


test_from_python = refusals(("was last trained by mccfr 0", mccfr.solver, mccfr.game("kuhn"), "robust-sampling"))


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
