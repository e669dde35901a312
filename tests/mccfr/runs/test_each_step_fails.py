"""Failures of single durable writes, and power cuts: acknowledged data stays, and all files verify.

Each entry of `WRITERS` writes the files that exist before, then its own files, and checks them after a failure.
"""

import errno
import shutil
from concurrent.futures import Future
from contextlib import suppress
from random import Random

import crash_states
import deep
import numpy as np
import pytest
from acpc import dealer, plan
from failing import STEPS, failing
from machines import stratified_run, train_alone_until, with_copies_in
from places import ROOT
from policies import write_random
from sessions import NO_EVALUATION, go, make
from small_checkpoints import block_store, commit, commit_with_blocks, write_block
from small_games import small_recipe

from abstraction.build import Builder
from mccfr.config.game_tables import KuhnGame, LeducGame
from mccfr.config.run_tables import Config
from mccfr.config.toml_files import to_document
from mccfr.evaluation.samples import Effort, SampledEvaluation, run_samples
from mccfr.games.registry import build_game
from mccfr.matches.acpc_log import MatchLog
from mccfr.matches.dealer import replay_of
from mccfr.policy import Policy
from mccfr.policy.export.networks import is_networks, write_networks
from mccfr.runs.directory.run import is_run, open_run
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.solvers.deep.network_strategy import Networks, network_tables
from storage import block_tables, checkpoint, checkpoint_writer, durable
from storage.block_tables import BlockStore, block_problems

ERRORS = (errno.ENOSPC, errno.EIO, errno.EMFILE)


class Writer:
    """Base of the writers; by default the folder is empty before they write."""

    def before(self, folder):
        """Write the files that exist before the tested writes."""


class Checkpoints(Writer):
    """Commits checkpoint 3 with a journal line after checkpoints 1 and 2; retention keeps two."""

    def __init__(self, layout):
        self.options = {"format": layout.split()[0], "whole": "whole" in layout}

    def commit(self, folder, number):
        commit(folder / "all", number, keep=2, journal=folder / "journal.jsonl", **self.options)

    def before(self, folder):
        for number in (1, 2):
            self.commit(folder, number)

    def write(self, folder):
        self.commit(folder, 3)

    def check(self, folder, done):
        checkpoint_writer.sweep(folder / "all")
        numbers = checkpoint.list_checkpoints(folder / "all")
        assert all(checkpoint.verify(folder / f"all/{number:06d}") == [] for number in numbers)
        assert numbers[-1] >= 2 and (3 in numbers or not done)
        assert {path.name for path in folder.iterdir()} <= {"all", "journal.jsonl"}
        assert {path.name for path in (folder / "all").iterdir()} == {f"{number:06d}" for number in numbers}


class Blocks(Writer):
    """Writes each of two blocks twice before each of two checkpoints; each checkpoint calls `settle`."""

    def write(self, folder):
        with block_store(folder) as store:
            for number in (1, 2):
                for value in (10 * number, 10 * number + 1):
                    for block in (0, 1):
                        self.step(folder, write_block, store, block, value)
                self.step(folder, self.commit, store, number)

    def step(self, folder, call, *arguments):
        """Take one step, ignore an `OSError` as a session does, and check all listed checkpoints."""
        with suppress(OSError):
            call(*arguments)
        self.check_listed(folder)

    def commit(self, store, number):
        commit_with_blocks(store, number, keep=1, journal=store.root / "journal.jsonl")
        store.settle()

    def check_listed(self, folder):
        root = folder / "checkpoints"
        for number in checkpoint.list_checkpoints(root):
            found = block_tables.open_with_blocks(checkpoint.checkpoint_path(root, number))
            assert checkpoint.verify(found.path) == [] and block_problems(found, {}) == []

    def check(self, folder, done):
        checkpoint_writer.sweep(folder / "checkpoints")
        block_tables.drop_unnamed(folder)
        self.check_listed(folder)
        numbers = checkpoint.list_checkpoints(folder / "checkpoints")
        kept = {path for path in folder.glob("blocks/*/*") if path.name[0] != "."}
        assert not list(folder.glob("blocks/*/.*"))
        assert len(kept) == 2 * len(numbers)


class PolicyExport(Writer):
    """Exports a policy over an earlier export of the same run."""

    def before(self, folder):
        write_random(folder / "policy", KuhnGame(), None, 1)

    def write(self, folder):
        write_random(folder / "policy", KuhnGame(), None, 2)

    def check(self, folder, done):
        policy = Policy.open(folder / "policy")
        assert problems_of(folder / "policy") == []
        assert policy.meta["provenance"]["checkpoint"] == 2 or not done
        assert alone(folder, "policy")


class NetworksExport(Writer):
    """Exports networks to a path that does not exist."""

    def before(self, folder):
        options = deep.options(units=4, layers=1, steps=2, strategy_steps=2, batch="all", horizon=2)
        state = deep.record(build_game(LEDUC, None, None), options, 2, dtype="float32").cfr.state
        self.networks = Networks(state.game, state.config, network_tables(state.tables))
        self.document = to_document(Config(game=LEDUC, solver=state.config))

    def write(self, folder):
        write_networks(folder / "networks", self.networks, self.document, {})

    def check(self, folder, done):
        assert is_networks(folder / "networks") or not done
        assert not (folder / "networks").exists() or problems_of(folder / "networks") == []
        assert alone(folder, "networks")


class RunCreation(Writer):
    """Creates a run below folders that do not exist."""

    def write(self, folder):
        make(folder / "runs/deep/run", game="kuhn", evaluation=NO_EVALUATION)

    def check(self, folder, done):
        directory = folder / "runs/deep/run"
        assert is_run(directory) or not done
        if directory.exists():
            open_run(directory)
            assert problems_of(directory) == []
        else:
            self.write(folder)  # files of the failed attempt do not prevent a second one
        assert open_run(directory).config.game.__struct_config__.tag == "kuhn"


class Session(Writer):
    """Trains a run from 40 to 80 iterations, with a checkpoint and an evaluation at the end."""

    def before(self, folder):
        go(make(folder / "run", evaluation={"at_end": True}, checkpoint_seconds=60), iterations=40)

    def write(self, folder):
        go(open_run(folder / "run"), iterations=80)

    def check(self, folder, done):
        run = open_run(folder / "run")
        assert problems_of(run.directory) == []
        reached = find_checkpoint(run, None).state["iterations"]
        assert reached >= (80 if done else 40)


class Machines(Writer):
    """Trains a run on two simulated machines, which write rows, second copies and a checkpoint."""

    def before(self, folder):
        stratified_run(folder / "run")
        self.train(folder, 20)

    def write(self, folder):
        self.train(folder, 40)

    def train(self, folder, iterations):
        run = with_copies_in(open_run(folder / "run"), folder)
        train_alone_until(run, iterations)

    def check(self, folder, done):
        run = open_run(folder / "run")
        assert problems_of(run.directory) == []
        reached = find_checkpoint(run, None).state["iterations"]
        assert reached >= (40 if done else 20)
        assert alone(folder, "run", "disk0", "disk1")


class AbstractionBuild(Writer):
    """Builds a small abstraction of two streets."""

    def before(self, folder):
        small_recipe(folder / "small.toml")

    def write(self, folder):
        Builder(small_recipe(folder / "small.toml"), folder / "built", save_seconds=0).build()

    def check(self, folder, done):
        Builder(small_recipe(folder / "small.toml"), folder / "built").build()
        assert problems_of(folder / "built") == []
        assert not list((folder / "built").rglob(".tmp-*"))


def remove_unacknowledged_file(path, head):
    """Remove a file that holds less than its head, or zeros: nothing in it was acknowledged."""
    if path.exists() and head.startswith(path.read_bytes().strip(b"\0")):
        path.unlink()


class MatchLogWriter(Writer):
    """Writes the log of a match of four hands, and reopens it."""

    def __init__(self):
        self.plan = plan(hands=4)
        at = dealer(self.plan, ("random", "min-raise"))
        self.hands = [at.play(number) for number in range(4)]

    def write(self, folder):
        self.acknowledged = 0
        log = MatchLog(folder / "log", self.plan.fields(), replay_of(self.plan))
        try:
            for hand in self.hands:
                log.add(hand)
                self.acknowledged += 1
        finally:
            log.close()

    def check(self, folder, done):
        path = folder / "log"
        remove_unacknowledged_file(path, b"")
        log = MatchLog(path, self.plan.fields(), replay_of(self.plan))
        log.close()
        assert len(log.hands) >= self.acknowledged and alone(folder, "log")


class Samples(Writer, SampledEvaluation):
    """Keeps the samples of an evaluation, as `--keep` does."""

    fields, least, identity_fields = 1, 1, {}

    def play(self, sample):
        return np.array([float(sample)])

    def write(self, folder):
        run_samples(self, 5, Effort(keep=folder / "units"))

    def check(self, folder, done):
        remove_unacknowledged_file(folder / "units", b"mccfr units 1")
        assert run_samples(self, 5, Effort(keep=folder / "units")).ravel().tolist() == [0, 1, 2, 3, 4]
        assert alone(folder, "units")


LEDUC = LeducGame(merge_suits=True)
CRASHED = "crashed"


def alone(folder, *names):
    """Return True if no other file exists; after a power cut, temporary files may stay for a day."""
    left = {path.name for path in folder.iterdir() if folder.name != CRASHED or path.name[:5] != ".tmp-"}
    return left <= set(names)


WRITERS = {
    "checkpoint, zarr": lambda: Checkpoints("zarr"),
    "checkpoint, hdf5": lambda: Checkpoints("hdf5"),
    "checkpoint, whole": lambda: Checkpoints("zarr whole"),
    "blocks": Blocks,
    "policy": PolicyExport,
    "networks": NetworksExport,
    "run": RunCreation,
    "session": Session,
    "machines": Machines,
    "abstraction": AbstractionBuild,
    "match log": MatchLogWriter,
    "kept units": Samples,
}


STRIDES = {"blocks": 61, "abstraction": 13, "policy": 11, "session": 9, "networks": 2, "machines": 197}
STRIDES |= {"checkpoint, zarr": 3, "checkpoint, hdf5": 2, "checkpoint, whole": 3}
"""In the fast suite only every n-th step of these slow writers fails."""
SPARE = 10
"""Two executions of a writer differ by at most so many steps, because threads remove files."""


@pytest.mark.slow
@pytest.mark.parametrize("name", STRIDES)
def test_each_step_fails_once_and_none_is_left_out(name, tmp_path, monkeypatch):
    monkeypatch.setitem(STRIDES, name, 1)
    test_each_step_fails_once(name, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", WRITERS)
def test_each_step_fails_once(name, tmp_path, monkeypatch):
    monkeypatch.setattr("mccfr.runs.session.checkpointing.FINAL_WAITS_SECONDS", (0.0, 0.0))
    writer, cases = WRITERS[name](), 0
    (tmp_path / "before").mkdir()
    writer.before(tmp_path / "before")
    shutil.copytree(tmp_path / "before", tmp_path / "none")
    with failing(0) as counted:
        writer.write(tmp_path / "none")
    writer.check(tmp_path / "none", True)
    assert counted.count >= 3, "what it writes is not durable"
    stride = STRIDES.get(name, 1)
    for at in range(1 + counted.count % stride, counted.count + 1, stride):
        folder = tmp_path / str(at)
        shutil.copytree(tmp_path / "before", folder)
        done = False
        with failing(at, ERRORS[at % 3]) as found, suppress(OSError, ValueError, RuntimeError):
            writer.write(folder)
            done = True
        assert found.count >= min(at, counted.count - SPARE) and not found.synced_again, (name, at)
        writer.check(folder, done and name != "blocks")
        cases += found.count >= at
        shutil.rmtree(folder)
    assert cases >= len(range(counted.count % stride, counted.count - SPARE, stride))


CRASHES = {"networks": 30, "run": 40, "abstraction": 15, "match log": 40, "blocks": 20}
CRASHES |= {"policy": 30, "session": 20, "kept units": 40, "machines": 6}
"""Number of disk states after a power cut that the fast suite checks; storage/ tests those of checkpoints."""
MOMENTS = {"blocks": 4, "session": 8, "policy": 12, "machines": 2}
"""For writers of many steps: number of steps, sampled at random, after which the power is cut."""


def crash_states_of(name, folder):
    """Return the writer and the distinct disk states that power cuts after sampled steps may leave."""
    writer = WRITERS[name]()
    folder.mkdir()
    writer.before(folder)
    before = crash_states.load(folder)
    with durable.recording() as operations:
        writer.write(folder)
    done = [operation for operation in operations if operation.path.is_relative_to(folder)]
    found, lengths = {}, range(len(done) + 1)
    for length in Random(name).sample(lengths, min(MOMENTS.get(name, len(lengths)), len(lengths))):
        for state in crash_states.states_after(before, folder, done[:length]):
            found.setdefault(frozenset(state.items()), state)
    return writer, list(found.values())


def assert_recovers(name, tmp_path, count):
    writer, states = crash_states_of(name, tmp_path / "recorded")
    assert len(states) >= 5
    for state in Random(name).sample(states, min(count, len(states))):
        shutil.rmtree(tmp_path / CRASHED, ignore_errors=True)
        crash_states.write(state, tmp_path / CRASHED)
        writer.acknowledged = 0
        writer.check(tmp_path / CRASHED, False)


@pytest.mark.parametrize("name", CRASHES)
def test_a_power_cut_loses_no_acknowledged_data(name, tmp_path):
    assert_recovers(name, tmp_path, CRASHES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", CRASHES)
def test_a_power_cut_loses_no_acknowledged_data_in_up_to_3000_disk_states(name, tmp_path):
    assert_recovers(name, tmp_path, 3_000)


@pytest.mark.parametrize("name", WRITERS)
def test_files_are_synced_before_they_get_their_final_name(name, tmp_path):
    """Contents are synced before the rename, and the name before the writer returns."""
    writer = WRITERS[name]()
    writer.before(tmp_path)
    there = set(tmp_path.rglob("*"))
    with durable.recording() as operations:
        writer.write(tmp_path)
    here = [operation for operation in operations if operation.path.is_relative_to(tmp_path)]
    assert crash_states.unsynced(here, there) == []


def test_all_durable_writes_use_steps_that_tests_can_let_fail():
    """All fsyncs and renames are in `storage.durable`, except those that measure a disk's speed."""
    callers = {
        path.relative_to(ROOT).as_posix()
        for package in ("mccfr", "abstraction", "storage")
        for path in (ROOT / package).rglob("*.py")
        if "os.fsync(" in path.read_text() or "os.replace(" in path.read_text()
    }
    assert callers == {"storage/durable.py", "storage/disk_speed.py"}
    assert all(step in (ROOT / "storage/durable.py").read_text() for step in STEPS)


def test_removing_a_block_version_that_a_checkpoint_names_is_caught(tmp_path, monkeypatch):
    """Plant an error: versions are removed although checkpoints name them."""
    monkeypatch.setattr(block_tables, "versions_of_checkpoints", lambda *_: set())
    with pytest.raises(AssertionError):
        Blocks().write(tmp_path)


class AtOnce:
    """Replaces the removal thread by calls at once, so that a later removal cannot hide a missing one."""

    def __init__(self, *_):
        self.shutdown = lambda *, wait: None

    def submit(self, call, *arguments):
        done = Future()
        done.set_result(call(*arguments))
        return done


def test_a_missing_call_of_settle_is_caught(tmp_path, monkeypatch):
    """Plant an error: without `settle`, versions that no checkpoint names stay on disk."""
    monkeypatch.setattr(block_tables, "ThreadPoolExecutor", AtOnce)
    writer = Blocks()
    for name in ("right", "wrong"):
        (tmp_path / name).mkdir()
    writer.write(tmp_path / "right")
    monkeypatch.setattr(BlockStore, "settle", lambda _: None)
    writer.write(tmp_path / "wrong")
    counts = [len(list((tmp_path / name).glob("blocks/*/*"))) for name in ("right", "wrong")]
    assert counts[0] == 2 < counts[1]
