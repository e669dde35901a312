"""What is trained no longer: its runs and policies are read as ever, and refused where they would go on."""

import shutil

import pytest
from archives import unpack
from commands import call

import mccfr
from mccfr.config.file import config_from
from mccfr.config.solvers import FORMER_KEYS
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.evaluating import evaluate_target

FORMER = {
    "robust": (0.04696389149717169, "mccfr.gallery.robust:RobustSampling"),
    "targeted": (0.945832356695264, "mccfr.gallery.targeted:TargetedSampling"),
    "average-strategy": (0.012844556551659538, "mccfr.gallery.average_strategy:AverageStrategySampling"),
    "baselines": (0.035450799745036954, "mccfr.gallery.baselines:OutcomeWithBaselines"),
}
"""Exploitability in chips that was recorded, and where the algorithm is now."""
CELLS = {"brain": 1.076202092366351, "half": 1.0740138873158827}
"""The same of runs whose cells are bfloat16 and float16."""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    return unpack("former", tmp_path_factory.mktemp("former"))


@pytest.mark.parametrize("name", [*FORMER, *CELLS])
def test_its_runs_are_read_and_do_not_go_on(unpacked, tmp_path, capsys, name):
    chips, gallery = FORMER.get(name) or (CELLS[name], None)
    instead = "in whose place there is 'int16'" if gallery is None else f"which is {gallery}"
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
    status, _, said = call(capsys, "resume", run, "--iterations", 30)
    assert status == 2 and "mccfr.gallery.dream:Dream now, was last trained by mccfr 0.1.0" in said
    if name == "dream":
        kept = unpacked / "dream-networks", tmp_path / "networks"
        asked = [call(capsys, "query", at, "r", "--hand", "K", "--json").out for at in kept]
        assert asked[0] == asked[1]


def test_its_policies_are_read(unpacked):
    assert evaluate_target(unpacked / "robust-policy", "exact")["exploitability_chips"] < 0.06


def test_from_python_it_is_refused_by_the_same_sentence():
    with pytest.raises(ValueError, match="was last trained by mccfr 0"):
        mccfr.solver(mccfr.game("kuhn"), "robust-sampling")


def test_a_key_that_says_nothing_is_passed_over():
    """Every run has written its defaults out."""
    deep = {"algorithm": "deep-cfr"}
    for own, former in (({}, {"baseline_rate": 0.0}), (deep, FORMER_KEYS["deep-cfr"])):
        config = config_from({"game": {"name": "kuhn"}, "solver": {**own, **former}}, "a test")
        assert config == config_from({"game": {"name": "kuhn"}, "solver": own}, "a test")
