"""Options that would have no effect are refused.

Shows:

* An option without effect is refused in one sentence, also in Python (test_an_option_without_effect_is_refused,
  test_python_refuses_options_without_effect)
* An override of a key that another option gives is refused
  (test_an_override_of_a_key_that_an_option_sets_is_refused)
"""

import pytest
from commands import answer, command, refusal
from places import RUNS
from refusals import refused

import mccfr

SPOT = "spot QsJh2h7c3d --oop AA --ip QQ --pot 10 --stack 20"
TWO = "dealer --with random --with always-call"
LINES = (
    "evaluate RUN --seed 3",
    "evaluate RUN --method lbr --boards 9",
    "evaluate RUN --method lbr --keep k",
    "evaluate RUN --method head-to-head --seed 3",
    "evaluate RUN --method sampled-br --workers 2",
    "exploit RUN out --to 20%",
    "export RUN out --values-boards 5",
    "export RUN out --values --values-boards 5",
    "export RUN out --tabulate",
    "status RUN --every 5s",
    "tensorboard RUN out --every 5s",
    "view RUN --against-checkpoint 1",
    "view --abstraction none",
    f"{TWO} --wait 1s",
    f"{TWO} --purify",
)


TWICE = (
    ("solve kuhn.toml --nodes 9", "run.iterations=9"),
    ("solve kuhn.toml --workers 1", "run.workers=0"),
    (f"{SPOT} --to 1%", "run.exploitability_pot=2%"),
    (f"{SPOT} --workers 1", "run.workers=2"),
    (f"{SPOT} --time 1s", "run.seconds=2"),
    (f"{SPOT} --bets 1p", 'game.menu.river.first=["2p"]'),
    (SPOT, "game.pot=12"),
    ("compare compare.toml out", "run.iterations=9"),
    ("compare compare.toml out", "solver.seed=9"),
)
"""Command lines, and an override of a key that their options set."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options") / "run"
    assert command("solve", RUNS / "kuhn.toml", "--run", folder, "--iterations", 10) == 0
    return folder


@pytest.mark.parametrize("line", LINES)
def test_an_option_without_effect_is_refused(run, capsys, monkeypatch, tmp_path, line):
    monkeypatch.chdir(tmp_path)
    words = line.split()
    option = [word for word in words if word.startswith("--")][-1]
    assert f"{option} has no effect" in refusal(capsys, *(run if word == "RUN" else word for word in words))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("line", "override"), TWICE)
def test_an_override_of_a_key_that_an_option_sets_is_refused(capsys, monkeypatch, tmp_path, line, override):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kuhn.toml").write_text('[game]\nname = "kuhn"\n')
    (tmp_path / "compare.toml").write_text('[game]\nname = "kuhn"\n[compare]\nlast = 4\n')
    assert override.partition("=")[0] in refusal(capsys, *line.split(), "--set", override)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_target_set_by_an_override_is_reported(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    found = answer(capsys, *SPOT.split(), "--workers", 0, "--set", "run.exploitability_pot=20%")
    assert found["to_pot"] == 0.2


def test_blinds_above_the_stack_are_refused(capsys):
    for stack, blinds in ((60, (50, 100)), (900, (100, 50))):
        message = refusal(capsys, *TWO.split(), "--stack", stack, "--blinds", *blinds)
        assert f"blinds = {blinds[0]} {blinds[1]}, stack = {stack}: the small blind must not be above" in message


def test_python_refuses_options_without_effect(run):
    """Methods that sample no boards refuse the options of sampled methods."""
    for method, option in (("exact", "seed"), ("exact", "boards"), ("lbr", "keep")):
        refused(f"--{option} has no effect on {method} of kuhn", mccfr.evaluate, run, method, **{option: 9})
    river = {"board": "Qs Jh 2h 7c 3d", "oop": "AA", "ip": "QQ", "pot": 10, "stack": 20}
    refused("game.menu.donk has no effect on the game's first street", mccfr.spot, **river, menu={"donk": ["75%"]})


def test_a_missing_folder_of_code_is_refused(run, capsys):
    assert "--code nowhere is not a directory" in refusal(capsys, "evaluate", run, "--code", "nowhere")


def test_an_abstraction_of_a_run_without_one_is_refused(run, capsys):
    """The option is bad input, with status 2, and no damage of the run."""
    assert "leave --abstraction out" in refusal(capsys, "verify", run, "--abstraction", "no")
