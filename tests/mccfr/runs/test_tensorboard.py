"""TensorBoard event files: they have the values of the journals, also after a rollback of the run."""

import struct

import crc32c
import pytest
from commands import call, refusal
from sessions import go, make

from mccfr.runs.directory.run import EVALUATIONS, METRICS
from mccfr.runs.results.tensorboard import write_events


def fields(data):
    """Return [(field, value)] of a protocol buffer with the four wire types of events."""
    found, place = [], 0

    def varint():
        nonlocal place
        number, shift = 0, 0
        while True:
            byte = data[place]
            place, number, shift = place + 1, number | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return number

    while place < len(data):
        field, kind = divmod(varint(), 8)
        if kind == 0:
            found.append((field, varint()))
            continue
        width = {1: 8, 5: 4}.get(kind) or varint()
        raw, place = data[place : place + width], place + width
        found.append((field, struct.unpack({1: "<d", 5: "<f"}[kind], raw)[0] if kind != 2 else raw))
    return found


def events(folder):
    """Return [(step, {tag: value})] of the only event file in a folder; check every checksum."""
    (path,) = folder.iterdir()
    data, found = path.read_bytes(), []
    while data:
        (length,) = struct.unpack_from("<Q", data)
        head, record, rest = data[:8], data[12 : 12 + length], data[12 + length :]
        for part, stored in ((head, data[8:12]), (record, rest[:4])):
            turned = crc32c.crc32c(part)
            turned = (turned >> 15) | (turned << 17) & 0xFFFFFFFF
            assert struct.unpack("<I", stored)[0] == (turned + 0xA282EAD8) % 2**32
        found.append(dict(fields(record)))
        data = rest[4:]
    assert found[0][3] == b"brain.Event:2" and all(event[1] > 1.7e9 for event in found)
    return [(event[2], dict(map(tagged, fields(event[5])))) for event in found[1:]]


def tagged(field):
    """Return (tag, value) of a field of an event."""
    value = dict(fields(field[1]))
    return value[1].decode(), value[2]


@pytest.fixture
def run(tmp_path):
    run = make(tmp_path / "run", game="kuhn", evaluation={"at_iterations": [100, 2000, 5000]}, iterations=3000)
    go(run)
    return run


def test_event_files_have_the_values_of_the_journals(run, tmp_path, capsys):
    assert call(capsys, "tensorboard", tmp_path, tmp_path / "out").err.startswith(f"wrote {tmp_path / 'out'}: ")
    out = tmp_path / "out" / "run"
    lines, records = run.read(METRICS), run.read(EVALUATIONS)
    assert [step for step, _ in events(out / "training")] == [line["nodes_touched"] for line in lines]
    found = events(out / "evaluation")
    assert [step for step, _ in found] == [record["nodes_touched"] for record in records] and len(found) >= 3
    for (_, values), record in zip(found, records, strict=True):
        assert values.keys() == {"exploitability_chips", "value_chips"}
        assert values["exploitability_chips"] == pytest.approx(record["exploitability_chips"], rel=1e-6)
    assert "never_reached/street0" in events(out / "trends")[-1][1]


def test_new_lines_are_appended_and_files_are_rewritten_after_a_rollback(run, tmp_path):
    write_events(run, tmp_path / "out")
    (path,) = (tmp_path / "out" / "evaluation").iterdir()
    before, node = path.read_bytes(), path.stat().st_ino
    go(run, iterations=6000)
    count = write_events(run, tmp_path / "out")
    assert path.read_bytes().startswith(before) and len(path.read_bytes()) > len(before)
    assert path.stat().st_ino == node  # a reader that has the file open continues
    assert write_events(run, tmp_path / "out") == count and path.stat().st_ino == node
    journal = run.path(EVALUATIONS)
    journal.write_text("".join(f"{line}\n" for line in journal.read_text().splitlines()[1:]))
    write_events(run, tmp_path / "out")
    assert not path.read_bytes().startswith(before)
    assert len(events(path.parent)) == len(run.read(EVALUATIONS))


def test_a_folder_without_runs_is_refused(tmp_path, capsys):
    message = refusal(capsys, "tensorboard", tmp_path, tmp_path / "out")
    assert "is not a run directory, and contains none" in message and not (tmp_path / "out").exists()
