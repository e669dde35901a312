"""Runs in strata: the same bits for any number of workers and after kills, plans, seconds of training.

Shows:

* Runs in strata have the same bits for any workers, also after kills
  (test_bits_are_the_same_for_any_number_of_workers_and_after_a_worker_died,
  test_bits_are_the_same_after_twenty_kills_at_random_moments)
"""

import os
import signal
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from commands import call
from machines import stratified_run
from refusals import refused
from sessions import assert_same, content, go, kill_often, new_run, trained
from stratified import long_game

from mccfr.api.evaluating import evaluate_target
from mccfr.config.toml_files import config_from
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.runs.session import plan_trial
from mccfr.runs.session import training_session as run_module
from mccfr.runs.session.run_plan import make_plan
from mccfr.runs.session.strata import strata_pool
from mccfr.runs.session.strata.strata_pool import IntervalPool
from mccfr.solvers.strata_training import StratumWorker, interval_iterations


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a run trained in this process in one session."""
    return trained(stratified_run(tmp_path_factory.mktemp("strata") / "whole", iterations=20_000))


def test_bits_are_the_same_for_any_number_of_workers_and_after_a_worker_died(tmp_path, whole, monkeypatch):
    run = stratified_run(tmp_path / "run", checkpoint_nodes=100_000)
    train, killed = run_module.Session._train_to_next_event, []

    def kill_worker_and_train(session, pool):
        if pool.totals()[1] > 5_000 and not killed:
            killed.append(pool._processes[0].pid)
            os.kill(pool._processes[0].pid, signal.SIGKILL)
        return train(session, pool)

    monkeypatch.setattr(run_module.Session, "_train_to_next_event", kill_worker_and_train)
    refused("worker 0 died", go, run, workers=2, iterations=20_000, error=RuntimeError)
    assert 0 < find_checkpoint(run, None).state["iterations"] < 20_000
    go(run, workers=0, iterations=11_000)
    assert all(one != other for one, other in pairwise(content(run)[1]))
    go(run, workers=1, iterations=20_000)
    assert_same(run, whole)
    assert not list(problems_of(run.directory))


def test_a_stratified_run_is_evaluated_in_the_whole_game(whole):
    found = evaluate_target(whole.directory, "exact")
    assert found["exploitability_chips"] < 0.5
    assert content(whole)[0]["regret/street0/player0"].dtype == np.float64


@pytest.mark.parametrize("training", [True, False], ids=["training", "starting"])
def test_seconds_of_training_include_the_waits_at_barriers(monkeypatch, training):
    """Each wait takes three seconds of a fake clock; waits before the first interval do not count."""
    clock = [100.0]
    monkeypatch.setattr(strata_pool, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def later(*_):
        clock[0] += 3.0

    Waiting = type("Waiting", (IntervalPool,), {"_wait_for_barriers": later})
    Waiting.__abstractmethods__ = frozenset()
    pool = Waiting()
    pool._intervals = SimpleNamespace(interval=None, over=lambda: not training)
    for _ in range(2):
        pool.wait(0.1)
    assert pool.busy_seconds() == 6.0 * training


@pytest.mark.parametrize("fits", [True, False], ids=["in strata", "tables too large"])
def test_a_plan_measures_training_in_strata_if_the_tables_fit(tmp_path, monkeypatch, fits):
    """The plan trains all strata, in intervals as long as in the middle of the run."""
    trained, run = [], StratumWorker.run

    def counting(worker, stratum, state, quota, interval):
        trained.append((stratum, quota))
        return run(worker, stratum, state, quota, interval)

    monkeypatch.setattr(StratumWorker, "run", counting)
    if not fits:
        monkeypatch.setattr(plan_trial, "_MOST_BYTES", 1)
    document = {"game": {"name": "leduc", "ranks": 4}, "run": {"strata": 2, "iterations": 8_000_000}}
    plan = make_plan(config_from(document, "test"), tmp_path)
    assert plan["measured"] and plan["seconds"] > 0
    assert {stratum for stratum, _ in trained} == ({0, 1} if fits else set())
    if fits:
        of_first, of_second = (sum(quota for _, quota in trained[call : call + 2]) for call in (0, 2))
        assert of_first < interval_iterations(4_000_000, 1 / 8, 2) == pytest.approx(of_second, abs=2)


def test_plan_reports_shared_bytes_and_idle_workers(tmp_path, capsys):
    path = tmp_path / "leduc.toml"
    path.write_text('[game]\nname = "leduc"\nranks = 12\n[run]\nworkers = 6\nstrata = 4\n')
    text = call(capsys, "plan", path).out
    assert "strata       4:" in text and "2 workers would have none" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["leduc-12", "twin", "flop-holdem", "hunl-quick"])
def test_bits_are_the_same_after_twenty_kills_at_random_moments(tmp_path, slot_abstractions, name):
    document, nodes = long_game(name, slot_abstractions[0])
    document["run"] |= {"nodes": 10 * nodes, "checkpoint_nodes": nodes // 5}
    whole, run = new_run(tmp_path / "whole", document), new_run(tmp_path / "killed", document)
    go(whole, checkpoint_nodes=None)
    kill_often(run, 20, 0.15)
    go(run, workers=2)
    assert_same(run, whole)
