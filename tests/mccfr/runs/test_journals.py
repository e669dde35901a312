"""Journals of a run: damaged, dropped and delayed lines, and records of partly failed checkpoints.

A session names damaged lines and moves them to another file. `status` reads a bounded part of a long journal.
"""

import errno
import json
import shutil
from pathlib import Path

import pytest
from commands import call
from failing import fails
from sessions import NO_EVALUATION, Listener, go, make

from mccfr.runs.directory import journal_records
from mccfr.runs.directory.run import CHECKPOINTS, EVALUATIONS, JOURNAL, METRICS, open_run
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.directory.trends import TRENDS
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.runs.session import checkpointing
from mccfr.runs.session.journals import Journals
from storage import checkpoint_writer, durable

JOURNALS = (METRICS, EVALUATIONS, TRENDS, JOURNAL)
DAMAGED = {
    "garbage": b'{"nodes_touched": 12',
    "a list": b"[1, 2]",
    "no count": b'{"iterations": 3}',
    "a count in words": b'{"nodes_touched": "12"}',
    "not a number": b'{"nodes_touched": NaN}',
    "nested": b"[" * 100_000,
    "bytes": b"\xff\xfe\x00",
    "empty": b"",
}
LARGE_LINES = 60_000


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    run = make(tmp_path_factory.mktemp("journals") / "run", {}, "kuhn", evaluation={"at_nodes": [2_000, 4_000]})
    for nodes in (1_000, 3_000, 5_000):
        go(run, nodes=nodes)
    return run


@pytest.fixture
def trained(tmp_path, first_run):
    """Return a copy of a run of three sessions."""
    shutil.copytree(first_run.directory, tmp_path / "run", symlinks=True)
    return open_run(tmp_path / "run")


def damage(run, name, place, line):
    """Insert a line into a journal as line `place` (from 0); return the lines that were there before."""
    path = run.path(name)
    lines = path.read_bytes().splitlines(keepends=True)
    lines.insert(place, line + b"\n")
    path.write_bytes(b"".join(lines))
    return lines[:place] + lines[place + 1 :]


CASES = [(METRICS, kind) for kind in DAMAGED] + [
    (name, kind) for name in (EVALUATIONS, TRENDS, JOURNAL) for kind in ("garbage", "no count")
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_damaged_line_is_reported_and_set_aside_and_training_continues(trained, capsys, name, kind):
    line = DAMAGED[kind]
    before = damage(trained, name, 1, line)
    [problem] = problems_of(trained.directory)
    assert problem.startswith(f"{name}, line 2: ")
    assert call(capsys, "status", trained.directory).status == 0
    listener = Listener()
    go(trained, listener, nodes=6_000)
    [text] = [text for text in listener.told if name in text]
    assert text.startswith(f"{name}: ") and text.endswith(f"moved to {name}.damaged") and "\n" not in text
    assert trained.path(f"{name}.damaged").read_bytes() == line + b"\n"
    assert trained.path(name).read_bytes().splitlines(keepends=True)[: len(before)] == before
    assert problems_of(trained.directory) == []


def test_an_incomplete_last_line_is_not_reported_as_damage(trained):
    for name in JOURNALS:
        with trained.path(name).open("ab") as file:
            file.write(b'{"nodes_touched": 1')
    assert problems_of(trained.directory) == []
    listener = Listener()
    go(trained, listener, nodes=6_000)
    assert not [text for text in listener.told if "line" in text]
    assert problems_of(trained.directory) == []


def bytes_read():
    """Return the number of bytes that this process has read by system calls."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_status_and_resume_read_a_bounded_number_of_bytes_of_a_long_journal(trained):
    """`status` reads less than 4 MB of 30 MB of metrics, which have 1,000 lines after the checkpoint.

    `resume` reads the journal once, and writes a new file without these lines, so that no reader sees a cut journal.
    """
    path, saved = trained.path(METRICS), run_status(trained)["nodes_touched"]
    last = json.loads(path.read_bytes().splitlines()[-1])
    with path.open("wb") as file:
        for number in range(LARGE_LINES):
            nodes = max(0, saved + number - (LARGE_LINES - 1_000) + 1)
            record = last | {"nodes_touched": nodes, "training_seconds": 5.0 * number, "padding": "x" * 340}
            file.write(json.dumps(record).encode() + b"\n")
    assert path.stat().st_size > 27e6
    size, began = path.stat().st_size, bytes_read()
    status = run_status(trained)
    assert status["nodes_per_second"] is not None
    assert bytes_read() - began < 4e6
    began = bytes_read()
    go(trained, nodes=7_000)
    assert bytes_read() - began < 1.1 * size + 8e6
    with path.open("rb") as file:
        lines = sum(1 for _ in file)
    assert LARGE_LINES - 1_000 <= lines < LARGE_LINES - 990


# --- lines that a resumed session drops, sets aside or delays ---


SPEEDS = {"nodes_per_second": 1.0, "iterations_per_second": 1.0}
METRIC = {"iterations": 1, "period": 1, **SPEEDS, "training_seconds": 1.0, "unix_seconds": 1.0}


def line(nodes):
    return json.dumps({"nodes_touched": nodes, **METRIC}).encode() + b"\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / METRICS


def test_lines_after_the_checkpoint_are_dropped_and_the_line_at_the_checkpoint_is_kept(path):
    path.write_bytes(b"".join(map(line, (10, 20, 30, 40))))
    assert journal_records.restore(path, 20) == []
    assert path.read_bytes() == line(10) + line(20)
    assert not path.with_name(f"{METRICS}.damaged").exists()


def test_damaged_lines_are_set_aside_in_order_before_the_journal_loses_them(path):
    path.write_bytes(line(10) + b"one\n" + line(20) + b"two\n" + line(30))
    with durable.recording() as operations:
        messages = journal_records.restore(path, 20)
    [message] = messages
    assert message.startswith(f"{METRICS}: not JSON") and ", and 1 more damaged lines: moved" in message
    assert path.with_name(f"{METRICS}.damaged").read_bytes() == b"one\ntwo\n"
    assert path.read_bytes() == line(10) + line(20)
    kinds = [operation.kind for operation in operations]
    assert kinds.index("append") < kinds.index("rename"), "a power cut between both loses no line"


def test_a_session_looks_for_damage_only_in_the_last_mebibyte_of_a_journal(path, monkeypatch):
    monkeypatch.setattr(journal_records, "_CHECKED_BYTES", len(line(10)))
    path.write_bytes(b"far\n" + line(10) + line(20) + b"near\n" + line(30))
    assert len(journal_records.restore(path)) == 1
    assert path.read_bytes() == b"far\n" + line(10) + line(20) + line(30)


def test_lines_that_cannot_be_written_are_held_back_reported_once_and_written_once(tmp_path, monkeypatch):
    run, listener = make(tmp_path / "run", {"algorithm": "cfr"}, "kuhn"), Listener()
    journals = Journals(run, listener)
    with monkeypatch.context() as broken:
        broken.setattr(durable, "append_lines", fails(errno.ENOSPC))
        for number in (1, 2):
            journals.append(JOURNAL, {"event": f"{number}"})
    assert "2 lines of journal.jsonl could not be written" in journals.unwritten_lines()
    for number in (3, 4):
        journals.append(JOURNAL, {"event": f"{number}"})
    found = [json.loads(text)["event"] for text in run.path(JOURNAL).read_text().splitlines()]
    assert found == ["1", "2", "3", "4"] and journals.unwritten_lines() is None
    assert len(listener.told) == 2, listener.told
    assert "15 bytes are needed" in listener.told[0] and "with 2 lines that were held back" in listener.told[1]


# --- checkpoints whose last steps fail ---


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a run of Kuhn poker with a checkpoint at 10 iterations."""
    monkeypatch.setattr(checkpointing, "FINAL_WAITS_SECONDS", (0.0,))
    run = make(tmp_path / "run", {"algorithm": "cfr"}, "kuhn", evaluation=NO_EVALUATION)
    go(run, iterations=10)
    return run


def recorded_checkpoints(run):
    """Return the numbers of the checkpoints in the journal."""
    lines = map(json.loads, run.path(JOURNAL).read_text().splitlines())
    return [line["checkpoint"] for line in lines if "manifest" in line]


def test_a_checkpoint_with_other_counts_is_not_mistaken_for_the_failed_one(run, monkeypatch):
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
    """The session syncs the checkpoint's directory before it writes the journal line."""
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
    assert recorded_checkpoints(run) == [1, 2, 3] and CHECKPOINTS in {path.name for path in synced}
