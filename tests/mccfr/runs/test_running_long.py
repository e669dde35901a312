"""Long runs: trends, checkpoints while workers train, many resumes."""

import time
from contextlib import suppress
from itertools import pairwise
from weakref import WeakSet

import numpy as np
import pytest
import sessions
from commands import answer, call
from sessions import NO_EVALUATION, Listener, assert_same_tables, go, trained, wait_for

from mccfr.runs.directory.run import EVALUATIONS
from mccfr.runs.directory.run_status import recent_speed, run_status
from mccfr.runs.directory.trends import TRENDS, never_reached
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.reporter import Silent
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from mccfr.runs.session import checkpointing as saving_module
from mccfr.runs.session import training_session as run_module
from mccfr.tables.strategy import row_starts
from mccfr.tables.table_layout import table_name
from storage.memory_snapshot import Snapshot

PLAIN = {"discount": "none", "seed": 5}


def make(path, solver=PLAIN, game="leduc", evaluation=NO_EVALUATION, **settings):
    """Create a run directory of a small game, by default without evaluations."""
    return sessions.make(path, solver, game, evaluation=evaluation, **settings)


# --- trends ---


def shares_never_reached(game, tables):
    """Return the share of rows without strategy sums on each street, counted row by row."""
    shares = []
    for street in range(game.tree.streets):
        empty = rows = 0
        for block in (2 * street, 2 * street + 1):
            starts = row_starts(game, block)
            for bucket in tables[table_name("strategy_sum", block)]:
                for first, stop in pairwise(starts):
                    rows += 1
                    empty += not bucket[first:stop].any()
        shares.append(empty / rows)
    return shares


def test_trends_are_those_of_the_tables(tmp_path):
    run = trained(make(tmp_path / "run"), iterations=30)
    game, before = run.build_game(), read_tables(find_checkpoint(run, None))
    go(run, iterations=400)
    now = read_tables(find_checkpoint(run, None))
    first, last = run.read(TRENDS)
    assert first["checkpoint"] == 1 and last["checkpoint"] == 2
    assert first["never_reached_per_street"] == pytest.approx(shares_never_reached(game, before))
    assert last["never_reached_per_street"] == pytest.approx(shares_never_reached(game, now))
    assert 0 < last["never_reached_per_street"][1] < first["never_reached_per_street"][1]
    assert last["pause_seconds"] >= 0 and last["commit_seconds"] > 0


def test_counts_of_rows_never_reached_do_not_depend_on_the_memory_order(tmp_path, monkeypatch):
    monkeypatch.setattr("mccfr.runs.directory.trends._BLOCK_CELLS", 40)
    run = trained(make(tmp_path / "run"), iterations=50)
    game, tables = run.build_game(), read_tables(find_checkpoint(run, None))
    table, starts = tables[table_name("strategy_sum", 2)], row_starts(game, 2)
    counted = sum(not row[first:stop].any() for row in table for first, stop in pairwise(starts))
    assert never_reached(table, starts) == never_reached(np.asfortranarray(table), starts) == counted > 0


def test_status_shows_the_trend(tmp_path, capsys):
    run = trained(make(tmp_path / "run"), iterations=500)
    go(run, iterations=2000)
    status = run_status(run)
    last = run.read(TRENDS)[-1]
    assert status["never_reached_per_street"] == last["never_reached_per_street"] is not None
    assert status["trend_checkpoint"] == status["checkpoint"] == 2
    assert "never seen" in call(capsys, "status", run.directory).out
    assert answer(capsys, "status", run.directory) == status


def test_recent_speed_is_that_of_the_last_minutes():
    metrics = [{"training_seconds": 10.0 * k, "nodes_touched": 1000 * k * k} for k in range(20)]
    assert recent_speed(metrics, 0.001) == pytest.approx(1000 * (19**2 - 18**2) / 10)
    assert recent_speed(metrics, 50) == pytest.approx(1000 * (19**2 - 14**2) / 50)
    assert recent_speed(metrics, 1e9) == pytest.approx(1000 * 19**2 / 190)
    assert recent_speed(metrics[:1], 1) is None
    assert recent_speed([metrics[3], metrics[3]], 1) is None


# --- checkpoints while workers train ---


class Ticks(Silent):
    """Records the nodes of each progress tick."""

    def __init__(self):
        self.nodes = []

    def progress(self, progress):
        self.nodes.append(progress.nodes)


def test_workers_rest_for_the_copy_and_train_during_the_commit(tmp_path, monkeypatch):
    """No cell changes during the copy; workers train while it is written; then its memory is freed."""
    moved, reached, ticks, copies, alive = [], [], Ticks(), WeakSet(), []
    take, populate, commit = Snapshot.take, Snapshot.populate, saving_module.checkpoint_writer.commit

    def watched_populate(room):
        copies.add(room)
        alive.append(len(copies))
        populate(room)

    def watched_take(room, arrays):
        before = {name: array.copy() for name, array in arrays.items()}
        time.sleep(0.05)
        moved.extend(name for name, array in arrays.items() if not np.array_equal(array, before[name]))
        take(room, arrays)

    def slow_commit(root, number, specs, arrays, state, *more, **options):
        if options["background"]:
            began = len(ticks.nodes)
            with suppress(AssertionError):  # the session may end before
                wait_for(lambda: len(ticks.nodes) >= began + 12, 20)
            reached.append((state["nodes_touched"], ticks.nodes[-1]))
        return commit(root, number, specs, arrays, state, *more, **options)

    monkeypatch.setattr(Snapshot, "take", watched_take)
    monkeypatch.setattr(Snapshot, "populate", watched_populate)
    monkeypatch.setattr(saving_module.checkpoint_writer, "commit", slow_commit)
    run = make(tmp_path / "run", {"discount": "dcfr", "period_nodes": 1_000_000}, workers=2)
    go(run, ticks, seconds=4.0, checkpoint_seconds=0.3)
    assert moved == []
    assert len(alive) > 1 and set(alive) == {1}
    assert reached and all(later > saved for saved, later in reached)
    assert problems_of(run.directory) == []


def test_without_room_for_a_copy_workers_rest_and_the_result_is_the_same(tmp_path, monkeypatch):
    whole = trained(make(tmp_path / "whole"), iterations=3000)
    monkeypatch.setattr(run_module, "available_memory_bytes", lambda: 1000)

    def fail(*_):
        raise AssertionError("a copy was taken")

    monkeypatch.setattr(Snapshot, "take", fail)
    run = trained(make(tmp_path / "run", workers=1), iterations=3000, checkpoint_nodes=20_000)
    assert len(run.read(TRENDS)) > 3
    assert_same_tables(whole, run)


def test_the_time_limit_takes_effect_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    commit, finished, ticks = saving_module.checkpoint_writer.commit, [], Ticks()

    def slow_commit(*arguments, **options):
        if options["background"]:
            time.sleep(4.0)
            finished.append(len(ticks.nodes))
        return commit(*arguments, **options)

    monkeypatch.setattr(saving_module.checkpoint_writer, "commit", slow_commit)
    go(make(tmp_path / "run", workers=1), ticks, seconds=1.0, checkpoint_seconds=0.3)
    at_end = ticks.nodes[finished[0] - 10 : finished[0]]
    assert len(set(at_end)) == 1  # the workers rest long before the commit ends


def test_an_evaluation_that_does_not_fit_in_memory_is_skipped_with_a_message(tmp_path, monkeypatch):
    listener = Listener()
    monkeypatch.setattr(saving_module, "available_memory_bytes", lambda: 1000)
    run = trained(make(tmp_path / "run", evaluation={"at_end": True}), listener, iterations=100)
    assert run.read(EVALUATIONS) == []
    assert any("no evaluation" in text and "1,000 bytes" in text for text in listener.told)
