"""Fails each durable write once: acknowledged data stays, and the files verify.

A row of `WRITERS` is a writer, with the files before it, its writes, and what must hold after any failure.
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
    """A writer that finds nothing, unless `before` writes something."""

    def before(self, folder):
        """Write the files that the writer finds."""


class Checkpoints(Writer):
    """Three are there and two may stay; the fourth has a journal line."""

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
    """Two blocks are trained and written back twice around each of two checkpoints; each settles."""

    def write(self, folder):
        with block_store(folder) as store:
            for number in (1, 2):
                for value in (10 * number, 10 * number + 1):
                    for block in (0, 1):
                        self.step(folder, write_block, store, block, value)
                self.step(folder, self.commit, store, number)

    def step(self, folder, does, *given):
        """As a session does, that goes on after what has failed; each time all that is listed must be whole."""
        with suppress(OSError):
            does(*given)
        self.verified(folder)

    def commit(self, store, number):
        commit_with_blocks(store, number, keep=1, journal=store.root / "journal.jsonl")
        store.settle()

    def verified(self, folder):
        root = folder / "checkpoints"
        for number in checkpoint.list_checkpoints(root):
            found = block_tables.open_with_blocks(checkpoint.checkpoint_path(root, number))
            assert checkpoint.verify(found.path) == [] and block_problems(found, {}) == []

    def check(self, folder, done):
        checkpoint_writer.sweep(folder / "checkpoints")
        block_tables.drop_unnamed(folder)
        self.verified(folder)
        numbers = checkpoint.list_checkpoints(folder / "checkpoints")
        kept = {path for path in folder.glob("blocks/*/*") if path.name[0] != "."}
        assert not list(folder.glob("blocks/*/.*"))
        assert len(kept) == 2 * len(numbers)


class APolicy(Writer):
    """Written over an earlier one of the same run."""

    def before(self, folder):
        write_random(folder / "policy", KuhnGame(), None, 1)

    def write(self, folder):
        write_random(folder / "policy", KuhnGame(), None, 2)

    def check(self, folder, done):
        policy = Policy.open(folder / "policy")
        assert problems_of(folder / "policy") == []
        assert policy.meta["provenance"]["checkpoint"] == 2 or not done
        assert alone(folder, "policy")


class SomeNetworks(Writer):
    """Written where nothing is."""

    def before(self, folder):
        options = deep.options(units=4, layers=1, steps=2, strategy_steps=2, batch="all", horizon=2)
        learned = deep.record(build_game(LEDUC, None, None), options, 2, dtype="float32").cfr.state
        self.asked = Networks(learned.game, learned.config, network_tables(learned.tables))
        self.document = to_document(Config(game=LEDUC, solver=learned.config))

    def write(self, folder):
        write_networks(folder / "networks", self.asked, self.document, {})

    def check(self, folder, done):
        assert is_networks(folder / "networks") or not done
        assert not (folder / "networks").exists() or problems_of(folder / "networks") == []
        assert alone(folder, "networks")


class ARun(Writer):
    """Made below folders that are not there."""

    def write(self, folder):
        make(folder / "runs/deep/run", game="kuhn", evaluation=NO_EVALUATION)

    def check(self, folder, done):
        directory = folder / "runs/deep/run"
        assert is_run(directory) or not done
        if directory.exists():
            open_run(directory)
            assert problems_of(directory) == []
        else:
            self.write(folder)  # what is left of the first try is in nobody's way
        assert open_run(directory).config.game.__struct_config__.tag == "kuhn"


class ASession(Writer):
    """A run trains on, checkpoints and evaluates; it goes on after whatever fails, or ends as is said."""

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
    """Two machines of this process that continue and save: rows, second copies, and a checkpoint."""

    def before(self, folder):
        stratified_run(folder / "run")
        self.trained(folder, 20)

    def write(self, folder):
        self.trained(folder, 40)

    def trained(self, folder, iterations):
        run = with_copies_in(open_run(folder / "run"), folder)
        train_alone_until(run, iterations)

    def check(self, folder, done):
        run = open_run(folder / "run")
        assert problems_of(run.directory) == []
        reached = find_checkpoint(run, None).state["iterations"]
        assert reached >= (40 if done else 20)
        assert alone(folder, "run", "disk0", "disk1")


class AnAbstraction(Writer):
    """A small one, both streets."""

    def before(self, folder):
        small_recipe(folder / "small.toml")

    def write(self, folder):
        Builder(small_recipe(folder / "small.toml"), folder / "built", save_seconds=0).build()

    def check(self, folder, done):
        Builder(small_recipe(folder / "small.toml"), folder / "built").build()
        assert problems_of(folder / "built") == []
        assert not list((folder / "built").rglob(".tmp-*"))


def unlink_what_nobody_wrote(path, head):
    """Refuse less than a head, or zeros, with one sentence, if nothing was acknowledged."""
    if path.exists() and head.startswith(path.read_bytes().strip(b"\0")):
        path.unlink()


class ALog(Writer):
    """Of a match of four hands, which goes on where it stands."""

    def __init__(self):
        self.plan = plan(hands=4)
        at = dealer(self.plan, ("random", "min-raise"))
        self.hands = [at.play(number) for number in range(4)]

    def write(self, folder):
        self.told = 0
        log = MatchLog(folder / "log", self.plan.fields(), replay_of(self.plan))
        try:
            for hand in self.hands:
                log.add(hand)
                self.told += 1
        finally:
            log.close()

    def check(self, folder, done):
        path = folder / "log"
        unlink_what_nobody_wrote(path, b"")
        log = MatchLog(path, self.plan.fields(), replay_of(self.plan))
        log.close()
        assert len(log.hands) >= self.told and alone(folder, "log")


class Samples(Writer, SampledEvaluation):
    """Samples of an evaluation with --keep."""

    fields, least, identity_fields = 1, 1, {}

    def play(self, sample):
        return np.array([float(sample)])

    def write(self, folder):
        run_samples(self, 5, Effort(keep=folder / "units"))

    def check(self, folder, done):
        unlink_what_nobody_wrote(folder / "units", b"mccfr units 1")
        assert run_samples(self, 5, Effort(keep=folder / "units")).ravel().tolist() == [0, 1, 2, 3, 4]
        assert alone(folder, "units")


LEDUC = LeducGame(merge_suits=True)
CRASHED = "crashed"


def alone(folder, *names):
    """Return True if no other file exists; temporary names are removed after a day."""
    left = {path.name for path in folder.iterdir() if folder.name != CRASHED or path.name[:5] != ".tmp-"}
    return left <= set(names)


WRITERS = {
    "checkpoint, zarr": lambda: Checkpoints("zarr"),
    "checkpoint, hdf5": lambda: Checkpoints("hdf5"),
    "checkpoint, whole": lambda: Checkpoints("zarr whole"),
    "blocks": Blocks,
    "policy": APolicy,
    "networks": SomeNetworks,
    "run": ARun,
    "session": ASession,
    "machines": Machines,
    "abstraction": AnAbstraction,
    "match log": ALog,
    "kept units": Samples,
}


STRIDES = {"blocks": 61, "abstraction": 13, "policy": 11, "session": 9, "networks": 2, "machines": 197}
STRIDES |= {"checkpoint, zarr": 3, "checkpoint, hdf5": 2, "checkpoint, whole": 3}
"""Of writers that take long: how many steps lie between those that fail in the fast suite."""
SPARE = 10
"""Steps by which one writing differs from another of the same: what threads find left over, they remove."""


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
"""How many states of a disk after a power cut are looked at in the fast suite; checkpoints have tests of their own."""
MOMENTS = {"blocks": 4, "session": 8, "policy": 12, "machines": 2}
"""Of writers of many steps: before how many of them the power is cut, drawn by the name."""


def crash_states_of(name, folder):
    """(the writer, every state that a power cut may leave at the moments, each once)."""
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
        writer.told = 0
        writer.check(tmp_path / CRASHED, False)


@pytest.mark.parametrize("name", CRASHES)
def test_a_power_cut_at_any_moment(name, tmp_path):
    assert_recovers(name, tmp_path, CRASHES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", CRASHES)
def test_a_power_cut_at_any_moment_and_in_any_way(name, tmp_path):
    assert_recovers(name, tmp_path, 3_000)


@pytest.mark.parametrize("name", WRITERS)
def test_what_has_its_final_name_is_on_the_disk_with_all_that_it_holds(name, tmp_path):
    """Every file and folder of it, before the rename; the name, when the writer returns."""
    writer = WRITERS[name]()
    writer.before(tmp_path)
    there = set(tmp_path.rglob("*"))
    with durable.recording() as operations:
        writer.write(tmp_path)
    here = [operation for operation in operations if operation.path.is_relative_to(tmp_path)]
    assert crash_states.unsynced(here, there) == []


def test_every_step_of_the_layer_can_fail():
    """Check that all durable writes use these steps, except the measurement of a disk's speed."""
    callers = {
        path.relative_to(ROOT).as_posix()
        for package in ("mccfr", "abstraction", "storage")
        for path in (ROOT / package).rglob("*.py")
        if "os.fsync(" in path.read_text() or "os.replace(" in path.read_text()
    }
    assert callers == {"storage/durable.py", "storage/disk_speed.py"}
    assert all(step in (ROOT / "storage/durable.py").read_text() for step in STEPS)


def test_a_version_removed_that_is_named_is_caught(tmp_path, monkeypatch):
    """Plant the error: remove a version without reading which versions checkpoints name."""
    monkeypatch.setattr(block_tables, "versions_of_checkpoints", lambda *_: set())
    with pytest.raises(AssertionError):
        Blocks().write(tmp_path)


class AtOnce:
    """Replaces the removing thread, which would act later and remove the next checkpoint's versions too."""

    def __init__(self, *_):
        self.shutdown = lambda *, wait: None

    def submit(self, does, *given):
        done = Future()
        done.set_result(does(*given))
        return done


def test_settle_left_out_is_caught(tmp_path, monkeypatch):
    """... and versions that no checkpoint names any more stay for ever."""
    monkeypatch.setattr(block_tables, "ThreadPoolExecutor", AtOnce)
    writer = Blocks()
    for name in ("right", "wrong"):
        (tmp_path / name).mkdir()
    writer.write(tmp_path / "right")
    monkeypatch.setattr(BlockStore, "settle", lambda _: None)
    writer.write(tmp_path / "wrong")
    counts = [len(list((tmp_path / name).glob("blocks/*/*"))) for name in ("right", "wrong")]
    assert counts[0] == 2 < counts[1]
