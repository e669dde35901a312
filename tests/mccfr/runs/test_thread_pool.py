"""Runs whose workers are threads: the same bits as processes, stops, deaths, and what is refused.

Shows:

* A worker that is a thread trains what a process trains, to the bit; it stops, dies and hangs with a sentence, and
  the run resumes (test_thread_pool)
"""

import contextlib
import gc
import os
import signal
import threading
import weakref

import msgspec
import numpy as np
import pytest
import sessions
from commands import call
from sessions import EXTERNAL, NO_EVALUATION, OUTCOME, assert_same, content, go, wait_for

from mccfr.config.file import config_from
from mccfr.runs.directory.run import JOURNAL, LOG
from mccfr.runs.directory.status import run_status
from mccfr.runs.reporter import Silent
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.runs.session import session as run_module
from mccfr.runs.session.plan import beside_bytes, make_plan
from mccfr.runs.session.pools import open_pool
from mccfr.solvers.configured import configured_game
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.sampling.sampled import SampledSolver
from mccfr.tables.layout import private_tables
from storage import pages, space

PUBLIC = {"algorithm": "public-chance-sampling", "discount": "dcfr", "period_nodes": 40_000}
FULL_WIDTH = {"algorithm": "cfr"}


def make(path, solver=EXTERNAL, **settings):
    """A new run directory of Leduc whose worker is a thread, without evaluations."""
    return sessions.make(path, solver, evaluation=NO_EVALUATION, **{"workers": 1, "pool": "threads", **settings})


@pytest.mark.parametrize(
    ("solver", "length"),
    [(EXTERNAL, 4_000), (OUTCOME, 4_000), (PUBLIC, 300), (FULL_WIDTH, 20)],
    ids=["external-linear", "outcome-dcfr", "public-dcfr", "full-width"],
)
def test_a_thread_does_what_the_run_does_without_workers(tmp_path, solver, length):
    """And so what a worker process does (test_run.py); also over stops, and from one pool to another."""
    whole = make(tmp_path / "whole", solver, pool="processes", workers=0)
    go(whole, iterations=length)
    parts = make(tmp_path / "parts", solver)
    go(parts, iterations=length // 3)
    assert not parts.path("live").is_symlink()
    go(parts, pool="processes", workers=0, iterations=length // 2)
    go(parts, iterations=length, checkpoint_seconds=0.05)
    assert_same(whole, parts)


@pytest.mark.parametrize("pool", ["threads", "processes"])
def test_the_memory_of_a_pool_goes_with_its_session(tmp_path, pool):
    """And does not wait for a collector, which looks for circles: an experiment on hold'em had kept 3 GB of buckets."""
    seen = []

    @contextlib.contextmanager
    def opened(run, game, *, force=False):
        with open_pool(run, game, force=force) as made:
            seen.append(weakref.ref(made))
            yield made

    run = make(tmp_path / "run", pool=pool, iterations=100)
    gc.disable()
    try:
        run_module.train(run, run.build_game(), Silent(), pools=opened)
        assert [made() for made in seen] == [None]
    finally:
        gc.enable()


def test_two_threads_count_everything_and_stop_close_to_the_limit(tmp_path):
    run = make(tmp_path / "run", workers=2)
    go(run, nodes=2_000_000)
    state = find_checkpoint(run, None).state
    nodes, iterations = ([worker[key] for worker in state["workers"]] for key in ("nodes", "iterations"))
    assert sum(nodes) == state["nodes_touched"] and sum(iterations) == state["iterations"]
    assert min(nodes) > 0 and 2_000_000 <= sum(nodes) < 2_000_000 + 2 * 10_000
    assert content(run)[1][0] != content(run)[1][1]


@pytest.mark.parametrize("name", ["external-sampling", "outcome-sampling"])
@pytest.mark.parametrize("game", ["leduc", "goofspiel"])
def test_kernels_of_sampling_let_other_threads_run(name, game):
    """Else threads would train one after another, to the same result."""
    config = config_from({"game": {"name": game}, "solver": {"algorithm": name}}, "test")
    built = configured_game(config, None)
    solver = algorithm_of(config).solver(built, private_tables(algorithm_of(config).layout(built)))
    assert isinstance(solver, SampledSolver)
    assert solver._kernel.targetoptions["nogil"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_a_signal_stops_threads_with_a_checkpoint_and_status_75(tmp_path, monkeypatch, capsys, number):
    run, event = make(tmp_path / "run", workers=2), run_module.Session._event

    def noted(session, name, **facts):
        event(session, name, **facts)
        if name == "started":
            threading.Timer(0.3, os.kill, (os.getpid(), number)).start()

    monkeypatch.setattr(run_module.Session, "_event", noted)
    code, _, errors = call(capsys, "resume", run.directory, "--nodes", 10**12)
    assert code == 75 and "resume" in errors
    saved = run_status(run)
    assert (saved["state"], saved["pool"], saved["live_dir"]) == ("stopped", "threads", None)
    assert saved["nodes_touched"] > 0
    assert threads_left() == 0


def threads_left():
    """Threads of workers that are still there."""
    return sum(thread.name.startswith("worker ") for thread in threading.enumerate())


def failing(monkeypatch, worker, fail):
    """Have one worker's solver fail in its tenth batch, or do whatever `fail` does."""
    train, batches = SampledSolver.run, {}

    def train_or_fail(solver, *limits):
        if threading.current_thread().name == f"worker {worker}":
            batches[solver] = batches.get(solver, 0) + 1
            if batches[solver] == 10:
                fail()
        return train(solver, *limits)

    monkeypatch.setattr(SampledSolver, "run", train_or_fail)


def crash():
    raise ArithmeticError("planted")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_thread_that_dies_ends_the_run_with_a_sentence_and_it_resumes(tmp_path, monkeypatch, workers):
    """A single worker's tables are not kept, since they would not be repeatable; of two, the other's work is."""
    run = make(tmp_path / "run", workers=workers)
    go(run, nodes=20_000)
    failing(monkeypatch, workers - 1, crash)
    with pytest.raises(RuntimeError, match=rf"worker {workers - 1} died \(ArithmeticError; its last words are in"):
        go(run, nodes=10**9)
    monkeypatch.undo()
    assert "planted" in run.path(LOG).read_text() and threads_left() == 0
    saved = find_checkpoint(run, None).state["nodes_touched"]
    assert saved > 40_000 if workers == 2 else saved < 40_000
    go(run, nodes=saved + 50_000)
    assert find_checkpoint(run, None).state["nodes_touched"] >= saved + 50_000


def test_a_thread_that_hangs_is_left_behind_and_its_tables_are_not_saved(tmp_path, monkeypatch, capsys):
    run, wakes = make(tmp_path / "run", workers=2), threading.Event()
    go(run, nodes=20_000)
    before = find_checkpoint(run, None).state["nodes_touched"]

    def hang():
        os.kill(os.getpid(), signal.SIGINT)
        wakes.wait()

    failing(monkeypatch, 1, hang)
    monkeypatch.setattr(run_module, "REST_SECONDS", 0.5)
    try:
        code, _, errors = call(capsys, "resume", run.directory, "--nodes", 10**12)
    finally:
        wakes.set()
    assert code == 1 and "worker 1 did not rest within" in errors and "cannot be ended, being a thread" in errors
    assert find_checkpoint(run, None).state["nodes_touched"] == before
    wait_for(lambda: threads_left() == 0)


def test_the_journal_and_status_say_where_tables_lie(tmp_path, monkeypatch):
    run, seen = make(tmp_path / "run"), []
    monkeypatch.setattr(pages, "_SMAPS", tmp_path / "nowhere")

    class Looking(sessions.Silent):
        def progress(self, progress):
            seen.append(run_status(run))

    go(run, Looking(), nodes=20_000)
    assert seen[0]["state"] == "running" and (seen[0]["pool"], seen[0]["huge_bytes"]) == ("threads", 0)
    [started] = [line for line in run.read(JOURNAL) if line.get("event") == "started"]
    assert (started["pool"], started["huge_bytes"], started["workers"]) == ("threads", 0, 1)
    assert run_status(run)["huge_bytes"] is None


def test_tables_that_do_not_fit_are_refused_with_both_numbers(tmp_path, monkeypatch):
    run = make(tmp_path / "run")
    monkeypatch.setattr(space, "available_memory_bytes", lambda: 1_000)
    with pytest.raises(MemoryError, match="1,000 bytes of memory are available"):
        go(run, nodes=1_000)


@pytest.mark.parametrize(("own", "shared", "pool", "given", "advice"), [
    ("madvise", "never", "processes", False, "run.pool = 'threads' or 'echo advise >"),
    ("madvise", "advise", "processes", True, None),
    ("madvise", "never", "threads", True, None),
    ("never", "never", "threads", False, "'echo madvise >"),
])  # fmt: skip
def test_plans_say_what_to_switch_on(monkeypatch, own, shared, pool, given, advice):
    monkeypatch.setattr("mccfr.runs.session.huge_pages.page_settings", lambda: pages.PageSettings(own, shared))
    config = config_from({"game": {"name": "leduc", "ranks": 12}, "run": {"pool": pool}}, "test")
    game = configured_game(config, None)
    found = large_plan(monkeypatch, config)
    assert (found["given"], bool(found["advice"])) == (given, advice is not None)
    assert advice is None or advice in found["advice"]
    one = msgspec.structs.replace(config, run=msgspec.structs.replace(config.run, pool="processes"))
    assert (beside_bytes(config, game) < beside_bytes(one, game)) == (pool == "threads")


def large_plan(monkeypatch, config):
    """What a plan says of huge pages; of tables that are small, as if they were large."""
    from mccfr.runs.session import huge_pages

    small = make_plan(config, None)["huge_pages"]
    assert small["gain"] == 1.0 and small["advice"] is None
    monkeypatch.setattr(huge_pages, "_BYTES", tuple(np.array(huge_pages._BYTES) * 1e-6))
    return make_plan(config, None)["huge_pages"]
