"""The shipped configuration hunl-standard, stopped and resumed ten times, against an undisturbed run."""

import faulthandler
import random
import signal
import subprocess
import sys
import time

import pytest
from places import RUNS

from mccfr.api.evaluating import evaluate_target
from mccfr.config.toml_files import load_config
from mccfr.runs.directory.run import EVALUATIONS, JOURNAL, METRICS, create_run, open_run
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.reporter import Silent
from mccfr.runs.results.targets import Reference
from mccfr.runs.session.run_plan import planned_layout
from mccfr.runs.session.training_session import train
from mccfr.solvers.game_from_config import configured_game

NODES, FIRST = 6_000_000_000, 60_000_000
STOPS = 10

pytestmark = pytest.mark.slow


def new_run(directory, abstraction):
    """The recipe with fewer nodes, its curve measured at three points."""
    changes = [f"run.nodes={NODES}", f'abstraction.path="{abstraction}"', "evaluation.boards=300"]
    config = load_config(RUNS / "hunl-standard.toml", [*changes, f"evaluation.at_nodes=[{FIRST}, {NODES // 10}]"])
    game = configured_game(config, RUNS)
    return create_run(config, RUNS, directory, planned_layout(config, game)), game


def resume_until_stopped(run, nodes):
    """Run `mccfr resume` in a process, stop it after `nodes` nodes, and return its exit status."""
    command = [sys.executable, "-m", "mccfr", "resume", str(run.directory)]
    began = time.time()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        records = run.read(METRICS)
        if records and records[-1]["nodes_touched"] >= nodes and records[-1]["unix_seconds"] > began:
            process.send_signal(signal.SIGTERM)
            break
        time.sleep(0.2)
    return process.wait()


def curve(run):
    """Values at the recipe's points; a stopped session measures where it stops as well."""
    records = run.read(EVALUATIONS)
    return [next(r["value_chips"] for r in records if r["nodes_touched"] >= n) for n in (FIRST, NODES // 10, NODES)]


def test_stopped_and_resumed_ten_times(tmp_path, built_recipe):
    faulthandler.cancel_dump_traceback_later()  # a quarter of an hour is no hang
    abstraction = built_recipe("standard")
    whole, game = new_run(tmp_path / "whole", abstraction)
    train(whole, game, Silent())
    parts, _ = new_run(tmp_path / "parts", abstraction)
    dice = random.Random(3)
    for stop in sorted(dice.uniform(0.02, 0.9) for _ in range(STOPS)):
        assert resume_until_stopped(parts, stop * NODES) == 75
    assert resume_until_stopped(parts, 2 * NODES) == 0
    status, undisturbed = run_status(open_run(parts.directory)), run_status(open_run(whole.directory))
    assert status["state"] == "finished" and NODES <= status["nodes_touched"] < NODES + 1_000_000
    assert status["period"] == undisturbed["period"] == status["nodes_touched"] // 10_000_000 + 1
    events = [record["event"] for record in parts.read(JOURNAL) if "event" in record]
    assert events.count("stopped") == STOPS and events.count("finished") == 1
    assert problems_of(parts.directory) == []
    curves = [curve(run) for run in (whole, parts)]
    assert curves[0][1] > 0 and curves[1] == pytest.approx(curves[0], rel=0.1, abs=5)
    beside = evaluate_target(parts.directory, "head-to-head", against=Reference(whole.directory), boards=300)
    assert abs(beside["value_chips"]) < 0.1 * curves[0][2]
