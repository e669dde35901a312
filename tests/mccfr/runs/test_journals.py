"""Journals of a run: damaged lines are set aside and named; reading uses constant memory."""

import json
import shutil
from pathlib import Path

import pytest
from commands import call
from sessions import Listener, go, make

from mccfr.runs.directory.run import EVALUATIONS, JOURNAL, METRICS, open_run
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.directory.trends import TRENDS
from mccfr.runs.directory.verification import problems_of

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
    """A run of three sessions."""
    shutil.copytree(first_run.directory, tmp_path / "run", symlinks=True)
    return open_run(tmp_path / "run")


def damage(run, name, place, line):
    """Put a line into a journal, as line `place` (from 0); returns the lines that were there."""
    path = run.path(name)
    lines = path.read_bytes().splitlines(keepends=True)
    lines.insert(place, line + b"\n")
    path.write_bytes(b"".join(lines))
    return lines[:place] + lines[place + 1 :]


CASES = [(METRICS, kind) for kind in DAMAGED] + [
    (name, kind) for name in (EVALUATIONS, TRENDS, JOURNAL) for kind in ("garbage", "no count")
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_damaged_line_is_named_set_aside_and_stops_nobody(trained, capsys, name, kind):
    line = DAMAGED[kind]
    before = damage(trained, name, 1, line)
    [problem] = problems_of(trained.directory)
    assert problem.startswith(f"{name}, line 2: ")
    assert call(capsys, "status", trained.directory).status == 0
    listener = Listener()
    go(trained, listener, nodes=6_000)
    [told] = [text for text in listener.told if name in text]
    assert told.startswith(f"{name}: ") and told.endswith(f"moved to {name}.damaged") and "\n" not in told
    assert trained.path(f"{name}.damaged").read_bytes() == line + b"\n"
    assert trained.path(name).read_bytes().splitlines(keepends=True)[: len(before)] == before
    assert problems_of(trained.directory) == []


def test_many_damaged_lines_are_counted(trained):
    path = trained.path(METRICS)
    path.write_bytes(b"?\n" * 50 + path.read_bytes())
    listener = Listener()
    go(trained, listener, nodes=6_000)
    [told] = [text for text in listener.told if METRICS in text]
    assert "49 more damaged lines" in told
    assert trained.path(f"{METRICS}.damaged").read_bytes() == b"?\n" * 50


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
    """Bytes that this process has read through system calls, from files of all kinds."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_what_is_read_of_a_long_journal_is_bounded(trained):
    """30 MB of metrics, 1,000 lines beyond the checkpoint: `status` reads less than 4 MB in all.

    `resume` reads it once, to write it anew without these lines: a reader beside it never meets a journal that is cut.
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
