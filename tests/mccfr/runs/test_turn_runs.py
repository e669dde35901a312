"""Out-of-core runs: the same bits as with all blocks in memory, also after stops and failures.

Shows:

* Blocks on disk give the bits of blocks in memory (test_blocks_on_disk_have_the_bits_of_blocks_in_memory;
  planted: test_blocks_that_are_not_written_back_are_detected)
* The bits do not depend on workers, sessions, memory budget or kills
  (test_the_bits_do_not_depend_on_workers_sessions_or_memory_budget,
  test_a_session_stopped_between_blocks_continues_there, test_bits_are_the_same_after_five_kills_at_random_moments)
* After a flipped bit or short write, runs continue from the checkpoint before
  (test_after_a_flipped_bit_or_short_write_a_run_continues_from_the_checkpoint_before)
"""

import errno
import shutil
import signal
from functools import partial

import msgspec
import pytest
from commands import call
from manifests import flip, forge
from refusals import refused
from sessions import NO_EVALUATION, Listener, assert_same, content, go, kill_often, make, newest
from stratified import LEDUC_12

from mccfr.api.evaluating import evaluate_target
from mccfr.config.toml_files import config_from
from mccfr.runs.directory.identity import check_same_run
from mccfr.runs.directory.run import with_settings
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.runs.session.run_plan import make_plan
from mccfr.runs.session.strata import block_pools
from mccfr.runs.session.strata.block_cache import BlockCache
from mccfr.runs.session.strata.block_slots import live_specs
from storage import block_tables, checkpoint_writer, durable
from storage import checkpoint as checkpoints
from storage.disk_speed import DiskSpeed

SOLVER = {"period_nodes": 10_000, "seed": 5}
SMALL = "80kB"  # memory for two of four blocks


def out_of_core_run(path, resident=SMALL, solver=SOLVER, **settings):
    settings = {"strata": 6, "blocks": 4, "cycle_iterations": 400, "iterations": 800, **settings}
    return make(path, solver, LEDUC_12, tables={"memory_budget": resident}, evaluation=NO_EVALUATION, **settings)


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """Return a run with all blocks in memory, trained in one session."""
    run = out_of_core_run(tmp_path_factory.mktemp("turns") / "memory", "1GB")
    go(run)
    return run


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """Return the same run with two of four blocks in memory, and more checkpoints."""
    run = out_of_core_run(tmp_path_factory.mktemp("turns") / "disk", checkpoint_nodes=2_000)
    go(run)
    return run


@pytest.fixture
def copied(disk, tmp_path):
    """Return a copy of the run `disk`, which a test may damage."""
    shutil.copytree(disk.directory, tmp_path / "copy")
    return with_settings(type(disk)(tmp_path / "copy", disk.config, disk.manifest))


def test_blocks_on_disk_have_the_bits_of_blocks_in_memory(disk, memory):
    assert_same(disk, memory)
    assert not problems_of(disk.directory)
    assert len(live_specs(disk.config, disk.build_game(), disk.layout(disk.build_game()))) == 4 + 2 * 4
    found = [evaluate_target(run.directory, "exact")["exploitability_chips"] for run in (disk, memory)]
    assert found[0] == found[1] < 2.5


def test_the_bits_do_not_depend_on_workers_sessions_or_memory_budget(tmp_path, memory):
    run = out_of_core_run(tmp_path / "run", "1GB")
    go(run, workers=2, iterations=400)
    tables = msgspec.structs.replace(run.config.tables, memory_budget=SMALL)
    go(with_settings(run, tables=tables), workers=0)
    assert_same(run, memory)


def test_a_session_stopped_between_blocks_continues_there(tmp_path, memory, monkeypatch):
    from mccfr.runs.session.strata.block_pools import BlockIntervals

    run, pause, turns = out_of_core_run(tmp_path / "run"), BlockIntervals.pause, []
    end = BlockIntervals._add

    def stop_after_six(intervals, *args):
        end(intervals, *args)
        if intervals._turns.between:
            turns.append(intervals._turns.position.turns)
            if turns[-1] == 6:
                pause(intervals)
                signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(BlockIntervals, "_add", stop_after_six)
    assert go(run).signal == signal.SIGTERM
    state = find_checkpoint(run, None).state
    assert state["turns"]["ended"] == 6 and 0 < state["turns"]["cycle_nodes"] < state["nodes_touched"]
    go(run)
    assert turns == list(range(1, 9))
    assert_same(run, memory)


def test_only_versions_that_a_checkpoint_names_are_kept(disk):
    kept = checkpoints.list_checkpoints(disk.path("checkpoints"))
    named = {name for number in kept for name in find_checkpoint(disk, number).parents}
    found = {path.relative_to(disk.directory).as_posix() for path in disk.path("blocks").glob("*/*")}
    assert len(kept) == 2 and found == named


def test_after_a_flipped_bit_or_short_write_a_run_continues_from_the_checkpoint_before(copied, memory):
    last, before = (set(find_checkpoint(copied, newest(copied) - back).parents) for back in (0, 1))
    cells = next(file for file in sorted((copied.directory / min(last - before)).rglob("c/*/*")))
    flip(cells)
    half = copied.path("blocks") / "0001" / ".tmp-000099-0123abcd"
    half.mkdir()
    (half / "state.json").write_text("{")
    refused("checksum", content, copied, error=OSError)
    assert "checksum" in "".join(problems_of(copied.directory))
    listener = Listener()
    go(copied, listener)
    assert any("damaged checkpoint passed over" in text for text in listener.told) and not half.exists()
    assert_same(copied, memory)


def test_verify_reads_a_version_once_for_all_checkpoints_that_name_it(copied, monkeypatch):
    number, read, verify = newest(copied), [], checkpoints.verify
    last, again = (checkpoints.checkpoint_path(copied.path("checkpoints"), number + one) for one in (0, 1))
    shutil.copytree(last, again)
    forge(again, lambda manifest: manifest.update(number=number + 1))
    parents = checkpoints.open_checkpoint(again).parents
    monkeypatch.setattr(checkpoints, "verify", lambda path: read.append(path) or verify(path))
    assert not problems_of(copied.directory)
    assert len(read) == len(set(read)) and {last, again, *map(copied.path, parents)} <= set(read)


def test_training_waits_for_room_on_a_full_disk_with_a_message(tmp_path, memory, monkeypatch, caplog):
    """Another disk error ends the session, and the next session continues."""
    run, commit, writes = out_of_core_run(tmp_path / "run", checkpoint_nodes=20_000), checkpoint_writer.commit, []
    monkeypatch.setattr(block_pools, "ROOM_SECONDS", 0.01)

    def fail_sometimes(root, number, *args, **options):
        if root.parent.name == "blocks":
            writes.append(root.name)
            if len(writes) in (3, 4, 5):
                raise OSError(errno.ENOSPC, "No space left on device")
            if len(writes) == 8:
                raise OSError(errno.EIO, "Input/output error")
        return commit(root, number, *args, **options)

    monkeypatch.setattr(block_tables.checkpoint_writer, "commit", fail_sometimes)
    refused(r"Input/output error.*training since .* mccfr resume", go, run, error=RuntimeError)
    assert sum("no room for a block" in text for text in caplog.messages) == 3
    go(run)
    assert_same(run, memory)


def skip_write(cache, slot):
    cache._changed.discard(slot)


def test_blocks_that_are_not_written_back_are_detected(tmp_path, memory, monkeypatch):
    run = out_of_core_run(tmp_path / "run")
    monkeypatch.setattr(BlockCache, "_write", skip_write)
    go(run)
    with pytest.raises(AssertionError):
        assert_same(run, memory)


def test_blocks_and_cycle_are_part_of_the_identity(tmp_path, memory):
    for settings, words in [({"cycle_iterations": 500}, "cycle_iterations = 400 there"), ({"blocks": 2}, "blocks = 4")]:
        config = out_of_core_run(tmp_path / words[:6], **settings).config
        refused(words, check_same_run, memory.directory, memory.manifest, config, tmp_path)


@pytest.mark.parametrize(("module", "fails"), [(durable, "append_line"), (checkpoint_writer, "drop_older")])
def test_a_checkpoint_whose_journal_or_retention_fails_keeps_its_blocks(tmp_path, monkeypatch, module, fails):
    """After each later write, each committed checkpoint has all blocks that it names."""
    run, seen, calls = out_of_core_run(tmp_path / "run", checkpoint_nodes=8_000, iterations=800), [], []
    write, step = block_tables.BlockStore.write, getattr(module, fails)

    def failing(*arguments):
        if checkpoints.list_checkpoints(run.path("checkpoints")):  # only once a checkpoint exists
            calls.append(fails)
            if len(calls) == 1:
                raise OSError(28, "No space left on device")
        return step(*arguments)

    def write_and_check(store, *arguments, **options):
        write(store, *arguments, **options)
        while store._removing:
            store._removing.pop().result()
        for number in checkpoints.list_checkpoints(run.path("checkpoints")):
            seen.append(number)
            found = checkpoints.open_checkpoint(checkpoints.checkpoint_path(run.path("checkpoints"), number))
            assert block_tables.block_problems(found, {}) == []

    monkeypatch.setattr(block_tables.BlockStore, "write", write_and_check)
    monkeypatch.setattr(module, fails, failing)
    go(run)
    assert calls and len(seen) >= 3
    monkeypatch.undo()
    assert not problems_of(run.directory)


def test_plan_reports_the_seconds_and_the_written_bytes_of_cycles(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "leduc.toml"
    run = "run = {strata = 4, iterations = 100_000, cycle_iterations = 1000}"
    path.write_text(f'game = {{name = "leduc", ranks = 12}}\n{run}\ntables.memory_budget = "1MB"\n')
    text = call(capsys, "plan", path, "--speed", 3e7).out
    assert "4 blocks" in text and "100.0, which write" in text and "100 cycles are few" in text
    err = call(capsys, "solve", path, "--run", tmp_path / "run", "--nodes", 5, "--workers", 0).err
    assert "limits take effect at the end of a cycle of blocks: every 1,000 iterations, about 33,800 nodes" in err
    assert " 1,000 iterations, checkpoint" in err

    def planned(**run):
        document = {"game": LEDUC_12, "tables": {"memory_budget": "70kB"}, "run": {"strata": 4, **run}}
        return make_plan(config_from(document, "test"), tmp_path, speed=3e7)

    monkeypatch.setattr("mccfr.runs.session.plan_time.disk_speed", lambda _: DiskSpeed(2e6, 1e6))
    plan = planned(iterations=10**6, cycle_iterations=1000)
    later = sum(size for street, size in enumerate(plan["bytes_per_street"]) if street)
    assert plan["cycles"] == 1000 and plan["written_bytes"] == 1000 * later
    proposed = plan["proposed_cycle_iterations"]
    assert plan["cycle_moving_seconds"] == pytest.approx(1.5 * later / 1e6)
    assert proposed >= 1.2 * 1000 * plan["cycle_moving_seconds"] / plan["cycle_training_seconds"]
    (waits,) = plan["turn_warnings"]
    assert "training waits for the disk" in waits and f"run.cycle_iterations = {proposed} " in waits
    assert plan["cycle_seconds"] >= plan["cycle_moving_seconds"] > 0
    wearing = planned(iterations=10**17, cycle_iterations=100)
    assert "TB will be written" in wearing["turn_warnings"][-1]
    assert not planned(iterations=10**10, cycle_iterations=proposed)["turn_warnings"]


@pytest.mark.slow
@pytest.mark.parametrize("game", ["leduc-12", "flop-holdem"])
def test_bits_are_the_same_after_five_kills_at_random_moments(tmp_path, game):
    document = LEDUC_12 if game == "leduc-12" else {"name": "flop-holdem", "max_raises": 1}
    resident = SMALL if game == "leduc-12" else "200MB"
    settings = {"strata": 8, "blocks": 4, "cycle_iterations": 20_000, "iterations": 400_000}
    make_run = partial(make, solver=SOLVER, game=document, evaluation=NO_EVALUATION, **settings)
    whole = make_run(tmp_path / "whole", tables={"memory_budget": "2GB"})
    run = make_run(tmp_path / "killed", tables={"memory_budget": resident}, checkpoint_nodes=200_000)
    go(whole)
    kill_often(run, 5, 1.0)
    go(run, workers=2)
    assert_same(run, whole)
