"""Unusable checkpoints stay on disk, and training restarts from 0 only with `--from-scratch`.

* If all are damaged, `solve` and `resume` exit with status 1, change nothing and name the options
  (test_training_is_refused_if_no_checkpoint_can_be_used)
* A session skips a damaged checkpoint, and retention keeps it (test_retention_keeps_a_damaged_checkpoint)
* `--set-aside` moves a checkpoint, but never the last one (test_a_checkpoint_is_set_aside_but_never_the_last_one)
* A read error ends the session, and its message names the option (test_an_unreadable_checkpoint_ends_the_session)
* Retention keeps a damaged permanent checkpoint (test_a_permanent_checkpoint_is_kept_although_it_is_damaged)
"""

import errno
import io

import pytest
from commands import call, refusal
from failing import fails
from manifests import flip
from refusals import refused
from sessions import NO_EVALUATION, Listener, go, make, newest, trained

from mccfr.runs.directory.run import open_run
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.checkpoints import find_checkpoint
from storage.checkpoint import list_checkpoints
from storage.damage import UnreadableError
from storage.open_directory import shown

SOLVER = {"algorithm": "cfr", "variant": "cfr+"}


@pytest.fixture
def run(tmp_path):
    """Return a run with checkpoints 1 to 3, at 10, 20 and 30 iterations."""
    run = make(tmp_path / "run", SOLVER, "kuhn", evaluation=NO_EVALUATION, keep_checkpoints=3)
    for iterations in (10, 20, 30):
        go(run, iterations=iterations)
    return run


def damage(run, number, name="state.json"):
    path = run.path(f"checkpoints/{number:06d}/{name}")
    flip(path)
    return path


def numbers(run, folder="checkpoints"):
    return list_checkpoints(run.path(folder))


def iterations(run):
    return find_checkpoint(run, None).state["iterations"]


def test_training_is_refused_if_no_checkpoint_can_be_used(run, capsys):
    before = {number: damage(run, number).read_bytes() for number in (1, 2, 3)}
    for command in (["resume", run.directory], ["solve", run.path("config.toml"), "--run", run.directory]):
        ended = call(capsys, *command, "--iterations", 40)
        assert ended.status == 1 and "no checkpoint can be used" in ended.err and "--from-scratch" in ended.err
        assert "nothing was changed; restore a copy of one" in ended.err and "Traceback" not in ended.err
        assert sorted(path.name for path in run.path("checkpoints").iterdir()) == ["000001", "000002", "000003"]
    ended = call(capsys, "resume", run.directory, "--iterations", 5, "--from-scratch")
    assert ended.status == 0 and iterations(run) == 5 and numbers(run) == [1]
    assert numbers(run, "set-aside") == [1, 2, 3] and problems_of(run.directory) == []
    for number, data in before.items():
        assert run.path(f"set-aside/{number:06d}/state.json").read_bytes() == data


def test_retention_keeps_a_damaged_checkpoint(run):
    listener, kept = Listener(), damage(run, 3).read_bytes()
    damage(run, 1, "manifest.json")
    trained(run, listener, iterations=40, keep_checkpoints=1)
    assert [text for text in listener.told if text.startswith("damaged checkpoint passed over: 000003: ")]
    for more in (50, 60):
        go(run, iterations=more, keep_checkpoints=1)
    assert numbers(run) == [1, 3, 6] and iterations(run) == 60
    assert run.path("checkpoints/000003/state.json").read_bytes() == kept
    assert not any(text.startswith("000006") for text in problems_of(run.directory))


def test_a_checkpoint_is_set_aside_but_never_the_last_one(run, capsys):
    message = refusal(capsys, "resume", run.directory, "--set-aside", 7)
    assert "has no checkpoint 7 to set aside; it has 1, 2, 3" in message
    done = call(capsys, "resume", run.directory, "--iterations", 40, "--set-aside", 3)
    assert done.status == 0 and numbers(run) == [1, 2, 3] and numbers(run, "set-aside") == [3] and iterations(run) == 40
    everything = [word for number in (1, 2, 3) for word in ("--set-aside", number)]
    assert "leave one, or give --from-scratch" in refusal(capsys, "resume", run.directory, *everything)
    assert numbers(run) == [1, 2, 3]


@pytest.fixture
def unreadable(monkeypatch):
    """Return a function that makes the opening of one path fail with EIO; with None, no opening fails."""
    paths, opens = set(), io.open

    def choose(path):
        paths.clear()
        paths.add(str(path))

    def fail(path, *given, **named):
        return fails(errno.EIO)(path) if shown(str(path)) in paths else opens(path, *given, **named)

    monkeypatch.setattr(io, "open", fail)
    return choose


@pytest.mark.parametrize("number", [1, 3])
def test_an_unreadable_checkpoint_ends_the_session(run, capsys, unreadable, number):
    """This holds for older checkpoints too: the session cannot know whether they are permanent."""
    unreadable(run.path(f"checkpoints/{number:06d}/manifest.json"))
    ended = call(capsys, "resume", run.directory, "--iterations", 40)
    assert ended.status == 1 and numbers(run) == [1, 2, 3]
    *_, last = ended.err.splitlines()
    assert f"{number:06d}/manifest.json: Input/output error: nothing was changed; run the command again" in last
    assert f"mccfr resume {run.directory} --set-aside {number} puts this checkpoint aside" in last
    unreadable(None)
    ended = call(capsys, "resume", run.directory, "--iterations", 40, "--set-aside", number)
    assert ended.status == 0 and iterations(open_run(run.directory)) == 40 and numbers(run, "set-aside") == [number]


def test_a_permanent_checkpoint_is_kept_although_it_is_damaged(tmp_path, unreadable):
    points = {"at_iterations": [10], "keep": True, **NO_EVALUATION}
    run = make(tmp_path / "run", SOLVER, "kuhn", evaluation=points, keep_checkpoints=1)
    go(run, iterations=20)
    kept = numbers(run)[0]
    assert newest(run) > kept
    damage(run, kept, "state.json")
    for more in (30, 40):
        go(run, iterations=more)
    assert numbers(run)[0] == kept and numbers(run)[1:] == [newest(run)]
    unreadable(run.path(f"checkpoints/{newest(run):06d}/manifest.json"))
    refused("--set-aside", go, run, iterations=50, error=UnreadableError)
