"""Runs: bit-identical resuming, limits and events, two workers, signals, kills, refused directories.

Shows:

* Stopping, resuming, checkpoints and evaluations do not change the trained tables
  (test_stopping_resuming_checkpoints_and_evaluations_do_not_change_the_tables)
* A signal before training leaves no checkpoint, and the run continues normally
  (test_a_signal_before_training_leaves_no_checkpoint_and_the_run_continues)
"""

import json
import os
import random
import shutil
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest
import zarr
from commands import call
from manifests import forge
from refusals import refused
from same import assert_same_arrays
from sessions import EXTERNAL, NO_EVALUATION, OUTCOME, assert_same, content, go, make, resuming, trained

from mccfr.api.evaluating import evaluate_target
from mccfr.config.run_tables import EvaluationConfig, RunSettings
from mccfr.runs.directory.run import EVALUATIONS, open_run
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.events import Events, Totals
from mccfr.runs.reporter import Silent
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from mccfr.runs.session import training_session as run_module
from mccfr.solvers.sampling.outcome.paths import DEALS_TOGETHER
from mccfr.solvers.solver import WorkerState
from storage.checkpoint import list_checkpoints

PUBLIC = {"algorithm": "public-chance-sampling", "discount": "dcfr", "period_nodes": 40_000}
PRUNING = {"negative_regret_pruning": True, "prune_after_nodes": 65_000, "prune_below_bb": 10.0, "floor_bb": 12.0}
PRUNED = {**EXTERNAL, **PRUNING}


def test_pruning_begins_at_its_node_count_and_saves_nodes(tmp_path):
    full, pruned = make(tmp_path / "full"), make(tmp_path / "pruned", PRUNED)
    for run in (full, pruned):
        go(run, nodes=65_000)
    assert_same(full, pruned)
    for run in (full, pruned):
        go(run, iterations=9_000)
    one, other = (find_checkpoint(run, None).state["nodes_touched"] for run in (full, pruned))
    assert other < 0.97 * one


@pytest.mark.parametrize(
    ("solver", "length"),
    [(EXTERNAL, 9_000), (OUTCOME, 9_000), (PRUNED, 9_000), (PUBLIC, 900)],
    ids=["external-linear", "outcome-dcfr", "pruned", "public-dcfr"],
)
def test_stopping_resuming_checkpoints_and_evaluations_do_not_change_the_tables(tmp_path, solver, length):
    """The strategy sums have the same bits too; they are float32 and rounded at random."""
    whole = trained(make(tmp_path / "whole", solver), iterations=length)
    parts = make(tmp_path / "parts", solver, evaluation={"at_nodes": [70_000], "at_iterations": [1, length // 2]})
    go(parts, iterations=length * 5 // 18, checkpoint_nodes=30_000)
    go(parts, nodes=60_001)
    go(parts, iterations=length * 7 // 8, checkpoint_seconds=0.01)
    go(parts, iterations=length)
    assert_same(whole, parts)
    states = [find_checkpoint(run, None).state for run in (whole, parts)]
    for key in ("nodes_touched", "iterations", "period", "workers"):
        assert states[0][key] == states[1][key]
    assert {t.dtype for name, t in content(whole)[0].items() if "_sum/" in name} == {np.dtype(np.float32)}
    iterations = [record["iterations"] for record in parts.read(EVALUATIONS)]
    group = DEALS_TOGETHER if solver is OUTCOME else 1  # evaluations are at the first end of a group after the point
    assert {-(-point // group) * group for point in (1, length // 2)} <= set(iterations)


def test_a_lost_position_inside_a_period_is_detected(tmp_path, monkeypatch):
    """Plant an error: a resumed session restarts its discounting period, and its tables differ."""
    whole, parts = make(tmp_path / "whole"), make(tmp_path / "parts")
    go(whole, iterations=5_000)
    go(parts, iterations=2_000)
    restore = run_module.Session._restore

    def forgetful(session, restored, views):
        return [WorkerState(state.iterations, 0, state.rng) for state in restore(session, restored, views)]

    monkeypatch.setattr(run_module.Session, "_restore", forgetful)
    go(parts, iterations=5_000)
    (tables, _), (other, _) = content(whole), content(parts)
    assert not np.array_equal(tables["regret/street1/player0"], other["regret/street1/player0"])


def test_limits_take_effect_at_the_first_iteration_boundary(tmp_path):
    run = make(tmp_path / "run")
    outcome = go(run, nodes=100_000)
    before = go(make(tmp_path / "less"), iterations=outcome.totals.iterations - 1)
    assert before.totals.nodes < 100_000 <= outcome.totals.nodes
    assert go(run, nodes=100_000).totals == outcome.totals  # the limit was reached before
    assert find_checkpoint(run, None).number == outcome.checkpoint


class Reader(Silent):
    """Reads the live tables at the last evaluation, when the workers rest and the tables still exist."""

    def __init__(self, run):
        self.directory, self.live, self.workers = run.directory / "live", {}, None

    def evaluation(self, record):
        self.live = read_plain(self.directory)
        self.workers = json.loads((self.directory / "assignment.json").read_text())["workers"]


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory):
    """Return a run of two workers, its outcome, and its live tables at the end."""
    run = make(tmp_path_factory.mktemp("two") / "run", {"discount": "none"}, workers=1, evaluation={"at_end": True})
    reader = Reader(run)
    outcome = go(run, reader, workers=2, nodes=20_000_000)
    assert reader.workers == 2  # with one worker, batches are longer
    return run, outcome, reader.live


def test_two_workers_end_close_to_the_limit_and_count_everything(tmp_path, two_workers):
    first, outcome, _ = two_workers
    assert 20_000_000 <= outcome.totals.nodes < 20_400_000  # at most one batch of each worker more
    shutil.copytree(first.directory, tmp_path / "run")
    run = open_run(tmp_path / "run")
    states = find_checkpoint(run, None).state["workers"]
    assert sum(state["nodes"] for state in states) == outcome.totals.nodes
    assert all(state["iterations"] > 0 for state in states)
    # A session of one worker keeps the other worker's state, so that no deal is sampled twice.
    go(run, workers=1, nodes=outcome.totals.nodes + 100_000)
    again = find_checkpoint(run, None).state["workers"]
    assert again[1] == states[1] and again[0]["iterations"] > states[0]["iterations"]


def test_two_workers_solve_leduc(two_workers):
    """Exploitability is below 0.05 chips; that of uniform play is 2.37, and with planted errors above 0.1.

    test_endgames.py tests linear discounting.
    """
    record = evaluate_target(two_workers[0].directory, "exact", 1)
    assert record["exploitability_chips"] < 0.05


def test_zarr_reads_the_tables_that_two_workers_wrote(two_workers):
    """The zarr library reads the live tables and the checkpoint of the run."""
    run, outcome, live = two_workers
    assert outcome.checkpoint == 1
    tables = read_tables(find_checkpoint(run, 1))
    assert any(np.any(table) for table in tables.values())
    for found in (live, read_plain(run.path("checkpoints/000001"))):
        assert_same_arrays(found, tables)
    assert not run.path("live").is_symlink()


def read_plain(directory):
    group = zarr.open(directory / "tables.zarr", mode="r")
    return {name: array[...] for name, array in group.members(max_depth=None) if isinstance(array, zarr.Array)}


def when_started(patch, do):
    """Call a function when a session writes its event `started`."""
    event = run_module.Session._event

    def event_and_call(session, name, **facts):
        event(session, name, **facts)
        if name == "started":
            do()

    patch.setattr(run_module.Session, "_event", event_and_call)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1], ids=["INT", "TERM", "USR1"])
def test_a_signal_stops_a_run_with_a_checkpoint_and_status_75(tmp_path, monkeypatch, capsys, number):
    run = make(tmp_path / "run", evaluation=NO_EVALUATION)
    with monkeypatch.context() as patch:
        when_started(patch, threading.Timer(0.3, os.kill, (os.getpid(), number)).start)
        code, _, errors = call(capsys, "resume", run.directory, "--nodes", 10**12)
    status = run_status(run)
    assert code == 75 and "mccfr resume" in errors
    assert status["state"] == "stopped" and status["checkpoint"] and status["live_dir"] is None
    whole = trained(make(tmp_path / "whole", evaluation=NO_EVALUATION), iterations=status["iterations"])
    assert_same(whole, run)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_signal_before_training_leaves_no_checkpoint_and_the_run_continues(tmp_path, monkeypatch, capsys, workers):
    run = make(tmp_path / "run", workers=workers, evaluation={"at_end": True})
    with monkeypatch.context() as patch:
        when_started(patch, partial(os.kill, os.getpid(), signal.SIGTERM))
        code, _, errors = call(capsys, "resume", run.directory, "--nodes", 50_000)
    assert code == 75 and "before anything was trained; continue with: mccfr resume" in errors
    status = run_status(run)
    assert (status["state"], status["checkpoint"], status["last_evaluation"]) == ("stopped", None, None)
    assert not problems_of(run.directory)
    whole = make(tmp_path / "whole", evaluation=NO_EVALUATION)
    for each in (run, whole):
        assert go(each, nodes=50_000).checkpoint == 1
    assert_same(run, whole)


def test_killed_at_three_random_moments(tmp_path):
    """A run of one worker that is killed ends with the bits of an undisturbed run."""
    target, dice = 10_000_000, random.Random(1)
    run = make(tmp_path / "run", workers=1, nodes=target, checkpoint_nodes=1_000_000, evaluation={"at_nodes": [10**6]})
    for _ in range(3):
        saved = run_status(run)["nodes_touched"]
        process = resuming(run, "--nodes", target)
        time.sleep(dice.uniform(0.3, 3.0))
        process.kill()
        process.wait()
        status = run_status(run)
        assert status["nodes_touched"] >= saved
        assert status["state"] in ("interrupted", "finished", "stopped")
    go(run, workers=0, nodes=target)
    nodes = [record["nodes_touched"] for record in run.read(EVALUATIONS)]
    assert nodes == sorted(set(nodes))
    whole = trained(make(tmp_path / "whole", workers=0), nodes=target)
    assert_same(whole, run)


def test_retention_keeps_the_newest_checkpoints_and_those_at_evaluation_points(tmp_path):
    points = {"at_nodes": [20_000, 40_000], "keep": True, "every_checkpoint": False}
    run = make(tmp_path / "run", evaluation=points, keep_checkpoints=2)
    for nodes in (10_000, 30_000, 50_000, 60_000, 70_000):
        go(run, nodes=nodes)
    states = [find_checkpoint(run, number).state for number in list_checkpoints(run.path("checkpoints"))]
    found = [(state["kept"], state["nodes_touched"] // 10_000) for state in states]
    assert found == [(True, 2), (True, 4), (False, 6), (False, 7)]


def test_events_are_functions_of_counts():
    limits = RunSettings(nodes=100, iterations=50, checkpoint_nodes=30)
    events = Events(limits, EvaluationConfig(at_nodes=(0, 40), at_iterations=(7,)))
    assert events.next_stop(Totals(0, 0)) == Totals(30, 7)
    assert events.next_stop(Totals(30, 7)) == Totals(40, 50)
    assert events.next_stop(Totals(95, 49)) == Totals(100, 50)
    assert events.evaluation_between(None, Totals(0, 0)) and not events.evaluation_between(Totals(0, 0), Totals(39, 6))
    assert events.evaluation_between(Totals(39, 6), Totals(40, 6))
    assert events.evaluation_between(Totals(1, 1), Totals(2, 7))
    assert events.checkpoint_between(Totals(29, 0), Totals(30, 0))
    assert not events.checkpoint_between(Totals(30, 0), Totals(59, 0))
    assert events.limit_reached(Totals(100, 0)) and events.limit_reached(Totals(0, 50))
    assert not events.limit_reached(Totals(99, 49))


def test_a_run_whose_config_file_was_changed_is_refused(tmp_path):
    run = make(tmp_path / "run")
    text = (run.directory / "config.toml").read_text()
    (run.directory / "config.toml").write_text(text.replace("seed = 5", "seed = 6"))
    refused("was changed", open_run, run.directory)
    assert json.loads((run.directory / "manifest.json").read_text())["format"] == "mccfr-run"


def test_symbolic_links_in_a_run_are_refused_except_to_the_live_tables(tmp_path):
    run = trained(make(tmp_path / "run", iterations=10, workers=0))
    for name in ("checkpoints", "config.toml", "manifest.json", "metrics.jsonl"):
        path = run.path(name)
        path.rename(tmp_path / name)
        path.symlink_to(tmp_path / name)
        refused(f"{name} is a symbolic link", open_run, run.directory)
        assert "is a symbolic link" in problems_of(run.directory)[0]
        path.unlink()
        (tmp_path / name).rename(path)
    (run.directory / "live").symlink_to(tmp_path)
    assert open_run(run.directory).config == run.config


HOSTILE_STATES = {
    "no nodes": {"nodes_touched": None},
    "text": {"nodes_touched": "12"},
    "negative": {"iterations": -1},
    "no workers": {"workers": {}},
    "worker": {"workers": [{"iterations": 1}]},
    "words": {"workers": [{"iterations": 1, "nodes": 1, "rng": [1, 2, 3]}]},
    "large words": {"workers": [{"iterations": 1, "nodes": 1, "rng": [2**64, 2, 3, 4]}]},
    "seconds": {"training_seconds": [1]},
}


@pytest.mark.parametrize("name", HOSTILE_STATES)
def test_a_checkpoint_with_an_invalid_state_is_named_and_refused(tmp_path, name):
    run = trained(make(tmp_path / "run", iterations=10, workers=0))
    path = next((run.directory / "checkpoints").iterdir())
    assert problems_of(run.directory) == []
    state = json.loads((path / "state.json").read_bytes()) | HOSTILE_STATES[name]
    (path / "state.json").write_text(json.dumps(state))
    forge(path)
    for found in (problems_of(run.directory), problems_of(path)):
        assert len(found) == 1
        assert found[0].startswith(f"{path.name}: state.json")
    for use, *given in ((go, run), (evaluate_target, run.directory, "exact"), (run_status, run)):
        refused(r"state\.json", use, *given)
