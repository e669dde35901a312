"""Verdicts of plans: what cannot work, what works with remarks, and advice that helps.

Shows:

* A plan finds a run that cannot work, and its advice removes the reason
  (test_checkpoints_that_take_longer_than_their_interval_are_found, test_too_few_nodes_are_found)
"""

import re
from pathlib import Path

import pytest
from commands import answer, call, refusal

from mccfr.config.toml_files import load_config
from mccfr.runs.session.plan_verdict import FITS, FITS_BUT, verdict
from storage import free_space

LEDUC = '[game]\nname = "leduc"\nranks = 12\n[run]\nworkers = 0\n'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written():
    Path("leduc.toml").write_text(LEDUC)
    return "leduc.toml"


def planned(capsys, *settings):
    """Exit status, first line and plan of Leduc with other keys."""
    overrides = [part for each in settings for part in ("--set", each)]
    ended = call(capsys, "plan", written(), *overrides)
    assert call(capsys, "plan", "leduc.toml", *overrides, "--json").status == ended.status
    return ended.status, ended.out.splitlines()[0]


def test_a_run_that_fits_says_so_first(capsys):
    assert planned(capsys, "run.nodes=1e8") == (0, "fits")
    assert planned(capsys) == (0, "fits, but the run has no limit: it trains until it is stopped")


def test_checkpoints_that_take_longer_than_their_interval_are_found(capsys):
    status, first = planned(capsys, "run.nodes=1e12", "run.checkpoint_seconds=1e-3")
    assert status == 1 and first.startswith("cannot work: a checkpoint of ")
    proposed = re.search(r"set (run\.checkpoint_seconds) = (\d+)$", first)
    assert planned(capsys, "run.nodes=1e12", f"{proposed[1]}={proposed[2]}") == (0, "fits")
    # A run that is over before: the proposed interval would write no checkpoint.
    assert "make the tables smaller" in planned(capsys, "run.nodes=1e6", "run.checkpoint_seconds=1e-3")[1]


def test_uncompressed_checkpoints_are_proposed_where_they_are_fast_enough(capsys):
    plan = answer(capsys, "plan", written(), "--set", "run.nodes=1e6")
    between = (plan["checkpoint_seconds"] + plan["plain_checkpoint_seconds"]) / 2
    keys = "run.nodes=1e6", f"run.checkpoint_seconds={between}"
    status, first = planned(capsys, *keys)
    assert status == 1 and first.endswith('set tables.checkpoint_compression = "none"')
    assert planned(capsys, *keys, "tables.checkpoint_compression='none'") == (0, "fits")


def test_too_few_nodes_are_found(capsys):
    status, first = planned(capsys, "run.nodes=60")
    assert status == 1 and "visited 0.0" in first
    nodes = float(re.search(r"([\d.e+]+) nodes, which take", first)[1])
    assert planned(capsys, f"run.nodes={nodes * 1.05}") == (0, "fits")
    status, first = planned(capsys, f"run.nodes={nodes / 20}")
    assert status == 0 and first.startswith("fits, but an infoset is visited")


def test_a_deadline_is_planned(capsys):
    plan = answer(capsys, "plan", written(), "--set", "run.seconds=30")
    assert plan["seconds"] == pytest.approx(30) and plan["visits_per_infoset_per_street"] is not None
    both = answer(capsys, "plan", "leduc.toml", "--set", "run.seconds=30", "--set", "run.nodes=3e7")
    assert both["seconds"] == pytest.approx(1)
    assert both["iterations"] == pytest.approx(plan["iterations"] / 30)


def test_too_little_disk_and_memory_are_told_in_the_words_of_solve(capsys, monkeypatch):
    real = free_space.free_bytes
    monkeypatch.setattr(free_space, "free_bytes", lambda path: real(path) if "shm" in str(path) else 5)
    status, first = planned(capsys, "run.nodes=1e8")
    told = first.removeprefix("cannot work: ")
    assert status == 1 and "5 bytes free" in told
    assert told in refusal(capsys, "solve", "leduc.toml", "--set", "run.nodes=1e8")
    monkeypatch.setattr(free_space, "free_bytes", real)
    monkeypatch.setattr(free_space, "available_memory_bytes", lambda *_: 1000)
    status, first = planned(capsys, "run.nodes=1e8")
    assert status == 1 and first.removeprefix("cannot work: ") in refusal(capsys, "solve", "leduc.toml")


def test_a_copy_that_does_not_fit_is_a_remark(capsys):
    plan = answer(capsys, "plan", written(), "--set", "run.nodes=1e8", "--set", "run.workers=1")
    config = load_config(Path("leduc.toml"), ("run.nodes=1e8",))
    assert verdict(config, plan, None) == {"verdict": FITS, "reasons": []}
    found = verdict(config, plan | {"memory_available_bytes": plan["memory_bytes"] - 1}, None)
    assert found["verdict"] == FITS_BUT and found["reasons"][0].startswith("checkpoints and evaluations need")


@pytest.mark.parametrize(
    "keys", [("export.out='leduc.toml'",), ("solver.algorithm='cfr'", "run.strata=2"), ("evaluation.hands=200",)]
)
def test_plan_refuses_what_solve_refuses_in_the_same_words(capsys, keys):
    path, overrides = written(), [part for key in keys for part in ("--set", key)]
    told = refusal(capsys, "solve", path, *overrides)
    assert refusal(capsys, "plan", path, *overrides) == told
    assert refusal(capsys, "cluster", "plan", path, "--machines", 2, "--set", "run.strata=2", *overrides) == told
