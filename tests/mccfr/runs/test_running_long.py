"""Long runs: trends, lost updates, checkpoints while workers train, many resumes."""

import time
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
import sessions
from commands import answer, call
from sessions import NO_EVALUATION, Listener, assert_same_tables, go, trained, wait_for

from mccfr.runs.directory.run import EVALUATIONS, METRICS
from mccfr.runs.directory.run_status import recent_speed, run_status
from mccfr.runs.directory.trends import TRENDS, block_totals
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.reporter import Silent
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from mccfr.runs.session import checkpointing as saving_module
from mccfr.runs.session import training_session as run_module
from mccfr.tables.strategy import row_starts
from mccfr.tables.table_layout import TableSet, table_name
from storage.memory_snapshot import Snapshot

PLAIN = {"discount": "none", "seed": 5}
FLOAT64 = {"sum_dtype": "float64"}


def make(path, solver=PLAIN, game="leduc", evaluation=NO_EVALUATION, **settings):
    """A new run directory of a small game, without evaluations unless told otherwise."""
    return sessions.make(path, solver, game, evaluation=evaluation, **settings)


# --- lost updates ---


@pytest.mark.parametrize("sum_dtype", ["auto", "float64"])
@pytest.mark.parametrize("discount", ["none", "linear", "initial"])
def test_one_worker_loses_nothing(tmp_path, discount, sum_dtype):
    solver = {"discount": discount, "period_nodes": 200_000}
    run = trained(make(tmp_path / "run", solver, tables={"sum_dtype": sum_dtype}), nodes=700_000)
    go(run, nodes=2_000_000, workers=int((discount, sum_dtype) == ("linear", "auto")))  # there in another process
    lost = run.read(TRENDS)[-1]["lost_updates"]
    if sum_dtype == "float64":
        assert abs(lost["first_decisions"]) < 1e-7 and lost["first_decisions_error"] == 0
    else:
        assert abs(lost["first_decisions"]) < 3 * lost["first_decisions_error"] < 3e-4


def test_two_workers_lose_little_and_what_they_lose_is_reported(tmp_path):
    run = trained(make(tmp_path / "run", tables=FLOAT64, workers=2), nodes=3_000_000)
    lost = run.read(TRENDS)[-1]["lost_updates"]
    game, tables = run.build_game(), read_tables(find_checkpoint(run, None))
    arrays, found = game.tree.arrays, []
    answers = int(arrays.first[0]) + np.arange(int(arrays.count[0]))
    for node in (0, *answers.tolist()):
        slots = slice(int(arrays.slot[node]), int(arrays.slot[node] + arrays.count[node]))
        found.append(tables[table_name("strategy_sum", int(arrays.block[node]))][:, slots].sum(dtype=np.float64))
    iterations = find_checkpoint(run, None).state["iterations"]
    assert lost["first_decisions"] == pytest.approx(1 - np.mean(found) / iterations, abs=1e-9)
    assert -1e-7 < lost["first_decisions"] < 0.05


def test_planted_losses_of_a_first_decision_are_found(tmp_path, monkeypatch):
    """15 % of player 0's sums on the first street are taken away before the trends are measured."""
    measure = saving_module.Trends.measure

    def robbed(trends, tables, *more):
        name = table_name("strategy_sum", 0)
        return measure(trends, TableSet({**tables, name: tables[name] * 0.85}), *more)

    monkeypatch.setattr(saving_module.Trends, "measure", robbed)
    run = trained(make(tmp_path / "run", tables=FLOAT64), nodes=1_000_000)
    assert run.read(TRENDS)[-1]["lost_updates"]["first_decisions"] > 0.01


@pytest.mark.parametrize(
    "solver",
    [{"discount": "dcfr"}, {"algorithm": "outcome-sampling"}, {"negative_regret_pruning": True}],
    ids=["dcfr", "outcome", "pruning"],
)
def test_lost_updates_are_none_where_additions_cannot_be_counted(tmp_path, solver):
    run = trained(make(tmp_path / "run", solver), iterations=500)
    assert run.read(TRENDS)[-1]["lost_updates"] is None


# --- trends ---


def never_reached(game, tables):
    """Shares by street, row by row."""
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
    assert first["never_reached_per_street"] == pytest.approx(never_reached(game, before))
    assert last["never_reached_per_street"] == pytest.approx(never_reached(game, now))
    assert 0 < last["never_reached_per_street"][1] < first["never_reached_per_street"][1]
    assert last["pause_seconds"] >= 0 and last["commit_seconds"] > 0


def test_totals_do_not_depend_on_the_order_of_the_axes(tmp_path, monkeypatch):
    monkeypatch.setattr("mccfr.runs.directory.trends._BLOCK_CELLS", 40)
    run = trained(make(tmp_path / "run"), iterations=50)
    game, tables = run.build_game(), read_tables(find_checkpoint(run, None))
    table = tables[table_name("strategy_sum", 2)]
    straight, turned = block_totals(game, 2, table), block_totals(game, 2, np.asfortranarray(table))
    for field, other in zip(straight, turned, strict=True):
        np.testing.assert_array_equal(field, other)
    assert straight.cells == pytest.approx(table.sum(axis=0)[: len(straight.cells)])


def test_games_without_cards_have_trends_too(tmp_path):
    run = trained(make(tmp_path / "run", PLAIN, {"name": "goofspiel", "cards": 3}), iterations=20)
    line = run.read(TRENDS)[-1]
    assert line["lost_updates"] is None  # chance and hidden moves are in the tree
    assert all(0 <= share < 1 for share in line["never_reached_per_street"])


def test_status_shows_the_trend(tmp_path, capsys):
    run = trained(make(tmp_path / "run"), iterations=500)
    go(run, iterations=2000)
    status = run_status(run)
    last = run.read(TRENDS)[-1]
    for key in ("never_reached_per_street", "lost_updates"):
        assert status[key] == last[key] is not None
    assert status["trend_checkpoint"] == status["checkpoint"] == 2
    text = call(capsys, "status", run.directory).out
    assert "never seen" in text and "lost" in text
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
    """Notes the nodes of every tick."""

    def __init__(self):
        self.nodes = []

    def progress(self, progress):
        self.nodes.append(progress.nodes)


def test_workers_rest_for_the_copy_and_train_during_the_commit(tmp_path, monkeypatch):
    """No cell changes while the copy is taken; the workers train while it is written."""
    moved, reached, ticks = [], [], Ticks()
    take, commit = Snapshot.take, saving_module.checkpoint_writer.commit

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
    monkeypatch.setattr(saving_module.checkpoint_writer, "commit", slow_commit)
    run = make(tmp_path / "run", {"discount": "dcfr", "period_nodes": 1_000_000}, workers=2)
    go(run, ticks, seconds=1.5, checkpoint_seconds=0.5)
    assert moved == []
    assert reached and all(later > saved for saved, later in reached)
    assert problems_of(run.directory) == []


def test_without_room_for_a_copy_workers_rest_and_the_result_is_the_same(tmp_path, monkeypatch):
    whole = trained(make(tmp_path / "whole"), iterations=3000)
    monkeypatch.setattr(run_module, "available_memory_bytes", lambda: 1000)

    def never(*_):
        raise AssertionError("a copy was taken")

    monkeypatch.setattr(Snapshot, "take", never)
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
    assert len(set(at_end)) == 1  # the workers rest long before the commit is done


def test_an_evaluation_that_does_not_fit_in_memory_is_skipped_with_a_message(tmp_path, monkeypatch):
    listener = Listener()
    monkeypatch.setattr(saving_module, "available_memory_bytes", lambda: 1000)
    run = trained(make(tmp_path / "run", evaluation={"at_end": True}), listener, iterations=100)
    assert run.read(EVALUATIONS) == []
    assert any("no evaluation" in text and "1,000 bytes" in text for text in listener.told)


# --- many sessions ---


def resumed(path, stops, **settings):
    run = make(path, {"discount": "linear", "period_nodes": 100_000, "seed": 2}, **settings)
    for stop in stops:
        go(run, nodes=stop)
    return run


def test_ten_resumes_end_with_the_nodes_and_periods_of_one_session(tmp_path):
    target = 1_100_000
    whole, parts = (
        resumed(tmp_path / "whole", [target]),
        resumed(tmp_path / "parts", range(100_000, target + 1, 100_000)),
    )
    states = [find_checkpoint(run, None).state for run in (whole, parts)]
    assert find_checkpoint(parts, None).number == 11
    assert [state["period"] for state in states] == [12, 12]
    for key in ("nodes_touched", "iterations", "workers", "iterations_weight"):
        assert states[0][key] == states[1][key]
    assert target <= states[1]["nodes_touched"] < target + 200
    assert_same_tables(whole, parts)
    lines = parts.read(TRENDS)
    lost = lines[-1]["lost_updates"]
    assert len(lines) == 11 and abs(lost["first_decisions"]) < 3 * lost["first_decisions_error"] < 3e-4
    nodes = [record["nodes_touched"] for record in parts.read(METRICS)]
    assert nodes == sorted(nodes)
    assert problems_of(parts.directory) == []
