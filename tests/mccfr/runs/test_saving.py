"""Checkpoints of a session: ownership, retention, journal entries."""

import json

import pytest
from sessions import NO_EVALUATION, Listener, go, make

from mccfr.runs.directory.run import CHECKPOINTS, JOURNAL
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.runs.session import checkpointing
from storage import checkpoint_writer, durable
from storage.checkpoint import checkpoint_path, list_checkpoints

CFR = {"algorithm": "cfr"}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of Kuhn poker with a checkpoint, at 10 iterations."""
    monkeypatch.setattr(checkpointing, "FINAL_WAITS_SECONDS", (0.0,))
    made = make(tmp_path / "run", CFR, "kuhn", evaluation=NO_EVALUATION, keep_checkpoints=2)
    go(made, iterations=10)
    return made


def noted(run):
    """The numbers of checkpoints in the journal."""
    lines = map(json.loads, run.path(JOURNAL).read_text().splitlines())
    return [line["checkpoint"] for line in lines if "manifest" in line]


def test_a_checkpoint_of_other_counts_is_not_taken_for_the_one_that_failed(run, monkeypatch):
    commit = checkpoint_writer.commit

    def fail_once(root, number, specs, arrays, state, *more, **options):
        if number == 2:
            state = state | {"nodes_touched": state["nodes_touched"] + 1}
        path = commit(root, number, specs, arrays, state, *more, **options)
        if number == 2:
            raise OSError(5, "Input/output error")
        return path

    monkeypatch.setattr(checkpoint_writer, "commit", fail_once)
    listener = Listener()
    outcome = go(run, listener, iterations=20)
    assert [text for text in listener.told if text.startswith("no checkpoint at")]
    found = find_checkpoint(run, None)
    assert (found.number, found.state["iterations"]) == (3, 20)
    assert found.state["nodes_touched"] == outcome.totals.nodes


@pytest.mark.parametrize("step", ["append_line", "drop_trees"])
def test_a_checkpoint_whose_journal_or_retention_failed_is_noted_once_and_synced(run, monkeypatch, step):
    """The session syncs the directory of the checkpoint before it notes the checkpoint."""
    go(run, iterations=20)
    synced, fsync_dir = [], durable.fsync_dir

    def fail(*_):
        synced.clear()
        monkeypatch.setattr(durable, "fsync_dir", lambda path: (synced.append(path), fsync_dir(path)))
        raise OSError(5, "Input/output error")

    listener = Listener()
    with monkeypatch.context() as broken:
        broken.setattr(durable, step, fail)
        assert go(run, listener, iterations=30).checkpoint == 3
    assert [text for text in listener.told if text.startswith("checkpoint 3 is complete")]
    assert noted(run) == [1, 2, 3] and CHECKPOINTS in {path.name for path in synced}


def test_as_many_checkpoints_stay_as_were_asked_for(run):
    for iterations in (20, 30, 40):
        go(run, iterations=iterations)
    assert list_checkpoints(run.path(CHECKPOINTS)) == [3, 4] and noted(run) == [1, 2, 3, 4]
    assert find_checkpoint(run, 3).path == checkpoint_path(run.path(CHECKPOINTS), 3)
