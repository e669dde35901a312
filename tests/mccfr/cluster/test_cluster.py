"""Runs on several machines: the same bits as on one, assignment of strata, refused set-ups.

Shows:

* A run has the same bits on any number of machines, also after kills
  (test_bits_are_the_same_for_any_number_of_machines,
  test_machines_of_one_host_train_the_same_bits_by_mpi_and_stop_on_a_signal,
  test_bits_are_the_same_after_twenty_kills_on_changing_and_slow_machines,
  test_bits_of_larger_games_are_the_same_on_one_two_and_four_machines)
* The test detects changes added twice and an interval on the wrong first street (planted:
  test_planted_errors_change_the_tables_and_late_answers_do_not)
* After damage the checkpoint before is used
  (test_after_damage_a_run_continues_from_the_checkpoint_before)
* A damaged block is restored from its second copy
  (test_a_second_copy_on_another_machine_replaces_damaged_or_missing_files)
"""

import errno
import json
import os
import re
import shutil
import subprocess
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from commands import answer, call, refusal
from machines import LEDUC, SOLVER, OneProcess, on_machines, stratified_run, train_alone_until, with_copies_in
from manifests import flip
from refusals import refusals, refused
from sessions import Listener, assert_same, content, go, make, newest, trained, with_limits
from stratified import LEDUC_12

from mccfr.api.evaluating import evaluate_target
from mccfr.cli.cluster_commands import _status_text
from mccfr.cluster import launch, mpi
from mccfr.cluster import rank_pool as pool_module
from mccfr.cluster.assignment import MachineCapacity, assign_strata, interval_time, reassign
from mccfr.cluster.capacity import coordinator_problem, fixed_bytes, strata_bytes
from mccfr.cluster.cluster_session import _problem, _refuse, check_machine_memory, rank_locations, with_memory
from mccfr.cluster.cluster_status import cluster_status
from mccfr.cluster.compatibility import disagreement, facts_of, new_token, shared_directory
from mccfr.cluster.messages import ANSWERED, READ, RankAnswer
from mccfr.cluster.rank_pool import cluster_pool_opener
from mccfr.config.examples import find_file
from mccfr.config.toml_files import load_config
from mccfr.runs.directory.run import lock
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.reporter import Silent
from mccfr.runs.session import checkpointing
from mccfr.runs.session.plan_time import _BARRIER_SECONDS, _MESSAGE_SECONDS
from mccfr.runs.session.run_plan import fixed_memory_bytes
from mccfr.runs.session.strata.block_slots import first_specs
from mccfr.runs.session.training_session import train
from mccfr.solvers.game_from_config import planned_game
from mccfr.solvers.strata_training import interval_count, stratum_buckets
from storage import free_space, live_tables
from storage.block_tables import BlockStore
from storage.damage import UnreadableError
from storage.free_space import bytes_text


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a run trained in this process, without machines."""
    return trained(stratified_run(tmp_path_factory.mktemp("cluster") / "whole", iterations=4_000))


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """Return a shorter run trained in this process."""
    return trained(stratified_run(tmp_path_factory.mktemp("cluster") / "short", iterations=500))


def test_bits_are_the_same_for_any_number_of_machines(tmp_path, whole):
    run = stratified_run(tmp_path / "run", checkpoint_nodes=80_000)
    on_machines(run, 2, iterations=1_000)
    on_machines(run, 1, workers=2, iterations=2_000)
    go(run, workers=0, iterations=3_000)
    on_machines(run, 4, iterations=4_000)
    assert_same(run, whole)
    assert not problems_of(run.directory)


def test_a_machine_trains_only_its_own_strata_and_all_strata_are_evaluated(tmp_path):
    run = make(tmp_path / "run", SOLVER, LEDUC_12, evaluation={"every_checkpoint": False}, strata=4)
    engine = on_machines(run, 3, iterations=300)
    game, owned = run.build_game(), []
    for trainer in engine._trainers:
        mine = trainer.strata()
        for name in (name for name in trainer.tables if "/street1/" in name):
            begin = stratum_buckets(game, name)
            used = [bool(trainer.tables[name][begin[s] : begin[s + 1]].any()) for s in range(4)]
            assert used == [stratum in mine for stratum in range(4)]
        owned += mine
    assert sorted(owned) == [0, 1, 2, 3]
    found = next(run.backwards("evaluations.jsonl"))["exploitability_chips"]
    assert found == evaluate_target(run.directory, "exact")["exploitability_chips"] < 2.5


def test_after_damage_a_run_continues_from_the_checkpoint_before(tmp_path, whole):
    run, listener = stratified_run(tmp_path / "run"), Listener()
    on_machines(run, 2, iterations=1_000)
    on_machines(run, 2, iterations=2_000)
    damage(run)
    on_machines(run, 2, listener, iterations=4_000)
    assert any("damaged checkpoint passed over" in text for text in listener.told)
    assert_same(run, whole)


def test_a_second_copy_on_another_machine_replaces_damaged_or_missing_files(tmp_path, whole):
    run = with_copies_in(stratified_run(tmp_path / "run"), tmp_path)
    train_alone_until(run, 1_000)
    first = {path.name for path in (tmp_path / "disk1").glob("*/blocks/*")}
    assert len(first) == 2 and first.isdisjoint(path.name for path in (tmp_path / "disk0").glob("*/blocks/*"))
    saved, damaged = newest(run), damage(run)
    shutil.rmtree(run.path("checkpoints"))
    listener = train_alone_until(run, 2_000)
    restored = [text for text in listener.told if "restored from its copy on machine" in text]
    assert any(damaged in text for text in restored) and any(f"{saved:06d} was" in text for text in restored)
    assert not any("passed over" in text for text in listener.told) and not problems_of(run.directory)
    kept = {path.name for path in run.path("checkpoints").iterdir()}
    for machine in range(2):
        assert {path.name for path in (tmp_path / f"disk{machine}").glob("*/checkpoints/*")} == kept
    (copy,) = tmp_path.glob(f"disk*/*/{damage(run)}")
    flip_a_bit(copy)
    assert any("damaged checkpoint passed over" in text for text in train_alone_until(run, 4_000).told)
    assert_same(run, whole)


def test_a_failed_second_copy_is_reported_and_the_checkpoint_is_complete(tmp_path):
    (tmp_path / "file").write_text("no directory")
    run = with_copies_in(stratified_run(tmp_path / "run"), tmp_path / "file")
    text = "".join(train_alone_until(run, 20).told)
    assert "checkpoint 1 is complete, but the step after it failed" in text and "Not a directory" in text
    assert newest(run) == 1


def damage(run):
    """Flip a bit in the newest version of a stratum's rows; return the version's path in the run."""
    version = sorted(run.path("blocks").glob("0002/*"))[-1]
    flip_a_bit(version)
    return f"blocks/0002/{version.name}"


def flip_a_bit(version):
    flip(max(version.rglob("*"), key=lambda path: path.is_file() and path.stat().st_size))


def trained_strata(run, engine, iterations):
    """Train to `iterations` on the machines of an engine; return the number of strata of each rank."""
    limited = with_limits(run, iterations=iterations)
    train(limited, limited.build_game(), Silent(), pools=cluster_pool_opener(engine))
    return [len(trainer.strata()) for trainer in engine._trainers]


def test_a_full_disk_on_a_machine_is_reported_and_the_write_is_repeated(tmp_path, monkeypatch):
    run, listener, write, writes = stratified_run(tmp_path / "run"), Listener(), BlockStore.write, []

    def fail_third(store, block, arrays):
        writes.append(block)
        if len(writes) == 3:
            raise OSError(errno.ENOSPC, "No space left on device", "there")
        write(store, block, arrays)

    monkeypatch.setattr(BlockStore, "write", fail_third)
    monkeypatch.setattr(checkpointing, "FINAL_WAITS_SECONDS", (0.0,))
    on_machines(run, 2, listener, iterations=100)
    assert "there: No space left on device" in "".join(listener.told) and len(writes) == 3 + 4
    assert content(run)


def test_strata_move_by_speed_and_no_rank_is_left_without_one(tmp_path, whole, monkeypatch):
    shares = np.array([3, 3, 3, 3], np.int64)
    owner = assign_strata(shares, [1.0, 1.0])
    assert sorted(owner.tolist()) == [0, 0, 1, 1]
    np.testing.assert_array_equal(reassign(shares, owner, [1.0, 0.95]), owner)
    slow = reassign(shares, owner, [8.0, 1.0])
    assert sorted(slow.tolist()) == [0, 0, 0, 1]
    assert interval_time(shares, slow, [8.0, 1.0]) < interval_time(shares, owner, [8.0, 1.0])
    monkeypatch.setattr(pool_module, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(pool_module, "reassign", lambda shares, owner, speeds, _: (owner + 1) % len(speeds))
    run = stratified_run(tmp_path / "run", checkpoint_nodes=50_000)
    on_machines(run, 3, iterations=4_000)
    assert_same(run, whole)
    found = cluster_status(run)
    assert not found["running"] and "process" not in _status_text(found)
    assert "process" in _status_text(found | {"running": True})
    assert found["moved_strata"] == 4 and found["barriers"] and found["sent_bytes"] > found["received_bytes"] > 0


def assert_no_exchange_ends_intervals_sooner(loads, owner, speeds, allowed=lambda _: True):
    """Check that no exchange of two strata between ranks would make an interval shorter."""
    best = interval_time(loads, owner, speeds)
    for one, other in combinations(range(len(loads)), 2):
        exchanged = owner.copy()
        exchanged[[one, other]] = owner[[other, one]]
        assert interval_time(loads, exchanged, speeds) >= best * (1 - 1e-8) or not allowed(exchanged)


@pytest.mark.parametrize("seed", range(5))
def test_no_exchange_of_two_strata_ends_intervals_sooner(seed):
    random_numbers = np.random.default_rng(seed)
    loads, speeds = random_numbers.integers(90, 220, 14), random_numbers.uniform(1, 3, 4)
    owner = assign_strata(loads, speeds)
    assert set(owner) == set(range(4)) and interval_time(loads, owner, speeds) >= loads.sum() / speeds.sum()
    assert_no_exchange_ends_intervals_sooner(loads, owner, speeds)


@pytest.mark.parametrize("seed", range(20))
def test_strata_are_assigned_within_the_unequal_memory_of_machines(seed):
    random_numbers = np.random.default_rng(seed)
    sizes = random_numbers.integers(90, 220, 14)
    machine, share = np.array([0, 0, 1, 1, 2]), random_numbers.permutation([0.2, 0.35, 0.65])
    memory = MachineCapacity(sizes, machine, share * sizes.sum())
    loads, speeds = random_numbers.integers(90, 220, 14), [1.0] * 5
    assert not memory.holds(assign_strata(loads, speeds))
    owner = assign_strata(loads, speeds, memory)
    assert memory.holds(owner) and set(owner) == set(range(5))
    assert_no_exchange_ends_intervals_sooner(loads, owner, speeds, memory.holds)


def test_strata_that_fit_nowhere_are_assigned_as_without_memory_limits():
    loads = np.array([5, 4, 3, 2])
    short = MachineCapacity(np.array([10, 10, 10, 10]), np.array([0, 1]), np.array([29.0, 9.0]))
    np.testing.assert_array_equal(assign_strata(loads, [1.0, 1.0], short), assign_strata(loads, [1.0, 1.0]))


def test_sessions_keep_strata_within_the_unequal_memory_of_machines(tmp_path):
    run = stratified_run(tmp_path / "run", checkpoint_nodes=50_000)
    game, layout = run.build_game(), run.layout(run.build_game())
    sizes, fixed = strata_bytes(game, layout), fixed_bytes(run.config, game, layout)
    memory = [fixed + int(sizes.max()), fixed + int(sizes.sum())]  # the first machine has memory for one stratum
    pairs = zip(rank_locations(["a", "b"], 1), memory, strict=True)
    places = [place._replace(memory_bytes=room) for place, room in pairs]
    check_machine_memory(run, game, places)
    for sessions in (1, 2):
        engine = OneProcess(run, game, 2, 1)
        engine.locations = places
        assert trained_strata(run, engine, 2_000 * sessions) == [1, 3]
    less = [places[0], places[1]._replace(memory_bytes=fixed + 2 * int(sizes.min()))]
    words = r"needs [\d,]+ bytes .* and has [\d,]+; no other assignment of the strata fits"
    refused(words, check_machine_memory, run, game, less)


def test_plan_takes_the_memory_of_each_machine(tmp_path, capsys):
    path = tmp_path / "leduc.toml"
    path.write_text(f"{LEDUC}[run]\nstrata = 4\nworkers = 1\nnodes = 10000\n")
    command = ("plan", path, "--speed", 3e7, "--json", "--machines", 2)
    table_bytes = answer(capsys, *command)
    fixed, whole = table_bytes["coordinator_bytes"], table_bytes["table_bytes"]
    small, large = fixed + table_bytes["largest_stratum_bytes"], fixed + whole
    found = call(capsys, *command, "--memory", f"{small}B,{large}B")
    assert found.status == 0 and json.loads(found.out)["unevenness"] > 1.2

    def lack(memory):
        ended = call(capsys, *command, "--memory", memory)
        return json.loads(ended.out)["reasons"][0] if ended.status == 1 else ""

    assert "take more machines, or" in lack(f"{small}B")
    reason = lack("1kB")
    needed = int(re.search(r"take machines of ([\d,]+) bytes or more", reason)[1].replace(",", ""))
    assert call(capsys, *command[:-1], 4, "--memory", f"{needed}B").status == 0
    assert call(capsys, *command[:-1], 4, "--memory", f"{needed - 1}B").status == 1
    message = refusal(capsys, *command, "--memory", f"{small}B,{large}B,{large}B")
    assert "--memory gives 3 amounts: give one for all 2 machines" in message


class Twice(OneProcess):
    """A planted error: the changes of one rank are added twice."""

    def answer(self, rank):
        found = super().answer(rank)
        if found is not None and rank == 0:
            found.changes *= 2
        return found


class Stale(OneProcess):
    """A planted error: an interval is trained with the first street of the interval before."""

    first = None

    def run(self, order):
        now, self.first = self.first, order.first.copy()
        if now is not None:
            order.first[:] = now
        super().run(order)


class Late(OneProcess):
    """Before each answer of rank 0, a late answer to the order before arrives."""

    newest_answered = 0

    def answer(self, rank):
        newest = self._trainers[rank].answer
        if rank == 0 and self.newest_answered < newest.head[ANSWERED]:
            self.newest_answered = int(newest.head[ANSWERED])
            late = RankAnswer(len(newest.rows), len(newest.changes))
            late.cells[:] = 7
            late.head[ANSWERED] = self.newest_answered - 1
            return late
        return super().answer(rank)


@pytest.mark.parametrize(("kind", "sound"), [(OneProcess, True), (Late, True), (Twice, False), (Stale, False)])
def test_planted_errors_change_the_tables_and_late_answers_do_not(tmp_path, short, kind, sound):
    run = stratified_run(tmp_path / "run")
    trained_strata(run, kind(run, run.build_game(), 2, 1), 500)
    expected = content(short)[0]
    assert all(np.array_equal(table, expected[name]) for name, table in content(run)[0].items()) == sound


FACTS = {"host": "a", **dict.fromkeys(("mccfr", "python", "numpy", "numba", "identity", "processor"), "1")}
FACTS["abstraction"] = None


@pytest.mark.parametrize("key", [key for key in FACTS if key != "host"])
def test_machines_that_differ_are_named_with_what_differs(key):
    assert disagreement([FACTS, {**FACTS, "host": "b"}]) is None
    message = disagreement([FACTS, {**FACTS, "host": "b", key: "other"}])
    assert message.startswith("a has ") and "b has" in message and "other" in message


def test_a_read_error_of_a_rank_is_not_reported_as_bad_input():
    """The error names the file, even if another rank refuses the input."""
    eio = OSError(errno.EIO, os.strerror(errno.EIO), "/disk/chunk")
    answers = [_problem(ValueError("no")), _problem(UnreadableError(eio))]
    with pytest.raises(RuntimeError, match="cannot take part: /disk/chunk: Input/output error: nothing was changed"):
        _refuse(answers)
    refused("cannot take part: no", _refuse, answers[:1])
    assert "/disk/chunk" in _problem(eio)["problem"]


def test_a_rank_reports_an_invalid_checkpoint():
    def obey():
        raise ValueError("checkpoint 3 is of another run")

    sent, order = [], SimpleNamespace(versions=np.zeros(2, np.int64))
    world = SimpleNamespace(send_text=lambda rank, report: sent.append((rank, report["problem"])))
    mpi._handle_files(world, SimpleNamespace(order=order, obey=obey), READ)
    assert sent == [(0, "checkpoint 3 is of another run")]


def test_the_coordinators_memory_counts_the_processes_of_mpi(whole, monkeypatch):
    game, config = whole.build_game(), whole.config
    needed = live_tables.live_bytes(first_specs(whole.layout(game)), format=config.tables.format)
    needed += fixed_memory_bytes(config, game, in_cluster=True)
    found = []
    for available in (needed / 0.8 + 1, needed / 0.8 - 1):
        monkeypatch.setattr(free_space, "available_memory_bytes", lambda *_, found=int(available): found)
        found.append(coordinator_problem(config, game, whole.layout(game), whole.directory))
    assert found[0] is None and bytes_text(needed) in found[1] and "workers take" not in found[1]


def test_a_directory_that_is_not_shared_is_found(tmp_path, whole):
    token = new_token(whole)
    with shared_directory(whole.directory, token) as held:
        assert held.current_path() == whole.directory
    refused("is not the coordinator's", shared_directory, tmp_path, token, seconds=0)
    assert facts_of(whole)["identity"] == whole.manifest["identity"][:12]


def test_a_machine_without_room_for_its_strata_is_named(whole):
    game, places = whole.build_game(), rank_locations(["a", "b", "b"], 1)
    check_machine_memory(whole, game, places)
    check_machine_memory(whole, game, with_memory(places, [10**12] * 3))
    words = r"b needs [\d,]+ bytes .* for the largest stratum\) and has 5,000"
    refused(words, check_machine_memory, whole, game, with_memory(places, [10**12, 10_000, 10_000]))


def test_strata_move_to_no_machine_without_room_for_them(tmp_path, monkeypatch):
    run = stratified_run(tmp_path / "run", checkpoint_nodes=50_000)
    game, layout = run.build_game(), run.layout(run.build_game())
    even = np.bincount(assign_strata(game.strata.shares, [1.0, 1.0]), strata_bytes(game, layout))
    needed = fixed_bytes(run.config, game, layout) + even.max()
    monkeypatch.setattr(pool_module, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(pool_module, "reassign", lambda shares, owner, speeds, _: np.array([0, 0, 0, 1]))
    for sessions, (memory, strata) in enumerate([(needed, [2, 2]), (2 * needed, [3, 1])], 1):
        engine = OneProcess(run, game, 2, 1)
        engine.locations = [place._replace(memory_bytes=memory) for place in engine.locations]
        assert trained_strata(run, engine, 2_000 * sessions) == strata


def test_ranks_of_a_host_are_grouped_into_machines_by_number_of_workers():
    places = rank_locations(["a", "a", "b", "a", "a", "b"], 2)
    assert [place.machine for place in places] == [0, 0, 1, 2, 2, 1]


def refused_command(arguments, tmp_path, capsys):
    config, run, (verb, *options) = tmp_path / "leduc.toml", tmp_path / "run", arguments
    config.write_text(LEDUC)
    message = refusal(capsys, "cluster", verb, config, *options, "--run", run)
    assert verb == "solve" or not run.exists()
    raise ValueError(message.strip())


FOUR = ("--set", "run.strata=4")
test_bad_input = refusals(
    ("run.strata is not set", ["local", "--machines", "2"]),
    ("more than run.strata", ["local", "--machines", "5", *FOUR]),
    ("allows 1 to 2", ["local", "--machines", "3", *FOUR, "--set", "cluster.machines=[1, 2]"]),
    ("there are no machines", ["solve", *FOUR]),
    ("reaches no other machine", ["solve", *FOUR, "--hosts", "a,b"]),
    ("'no0' reaches no other machine", ["solve", *FOUR, "--hosts", "a,b", "--set", 'cluster.network="no0"']),
    call=refused_command,
)


def test_hosts_that_ssh_does_not_reach_are_named_and_the_own_host_is_not_tested(monkeypatch):
    def fake_run(command, **options):
        return subprocess.CompletedProcess(command, 0 if command[-2] == "b" else 255)

    monkeypatch.setattr(launch.subprocess, "run", fake_run)
    assert launch.reachable_hosts(["a", "b", "c"]) == ["a", "b"]
    launch.check_reachable(["a", "b"])
    refused(r"c, d cannot be reached: 'ssh c true' must work", launch.check_reachable, ["a", "b", "c", "d"])


def test_a_locked_run_is_refused_and_missing_mpi_is_reported(tmp_path, capsys, monkeypatch):
    run = stratified_run(tmp_path / "run")
    with lock(run), pytest.raises(BlockingIOError, match="is locked by process"):
        on_machines(run, 1, iterations=10)
    monkeypatch.setattr(launch.shutil, "which", lambda name: None)
    monkeypatch.setattr(launch.sys, "prefix", str(tmp_path))
    config = tmp_path / "leduc.toml"
    config.write_text(LEDUC)
    command = ["cluster", "local", config, "--machines", 2, "--set", "run.strata=3", "--run", tmp_path / "other"]
    assert "tools/bootstrap cluster" in refusal(capsys, *command)


def test_plan_counts_bytes_and_seconds(tmp_path, capsys):
    config = tmp_path / "leduc.toml"
    config.write_text(LEDUC)
    found = answer(capsys, "plan", config, "--machines", 2, "--set", "run.strata=4", "--json")
    shared = 2 * 2 * 12 * 16 * 8  # regrets and strategy sums of two players, 12 cards, a cache line of cells, float64
    assert found["barrier_bytes"] == 2 * shared * 2
    assert found["barrier_seconds"] == pytest.approx(_MESSAGE_SECONDS + found["barrier_bytes"] / 2 * 8 / 1e9)
    assert 8 * found["largest_stratum_bytes"] > found["table_bytes"] > 2 * found["largest_stratum_bytes"]


def test_plans_count_the_time_of_barriers_between_machines(capsys):
    keys = ("--set", "run.strata=3", "--set", "run.nodes=1e9")
    one, two = (
        answer(capsys, "plan", "leduc", *keys, "--speed", "1e7", "--json", *how)
        for how in (("--workers", 2), ("--machines", 2, "--workers", 1))
    )
    config = load_config(find_file(Path("leduc")), keys[1::2])
    barriers = interval_count(two["iterations"], planned_game(config, Path()).strata.hottest, config.run.interval)
    assert one["iterations"] == two["iterations"]
    assert two["seconds"] - one["seconds"] == pytest.approx(barriers * (two["barrier_seconds"] - _BARRIER_SECONDS))
