"""Journal lines that a resumed session drops, sets aside or delays."""

import json

import pytest
from sessions import Listener, make

from mccfr.runs.directory import journal_records
from mccfr.runs.directory.run import JOURNAL, METRICS
from mccfr.runs.session.journals import Journals
from storage import durable

SPEEDS = {"nodes_per_second": 1.0, "iterations_per_second": 1.0}
METRIC = {"iterations": 1, "period": 1, **SPEEDS, "training_seconds": 1.0, "unix_seconds": 1.0}


def line(nodes):
    return json.dumps({"nodes_touched": nodes, **METRIC}).encode() + b"\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / METRICS


def test_lines_beyond_a_checkpoint_are_dropped_and_that_of_its_own_count_stays(path):
    path.write_bytes(b"".join(map(line, (10, 20, 30, 40))))
    assert journal_records.restore(path, 20) == []
    assert path.read_bytes() == line(10) + line(20)
    assert not path.with_name(f"{METRICS}.damaged").exists()


def test_damaged_lines_are_set_aside_in_their_order_before_they_go(path):
    path.write_bytes(line(10) + b"one\n" + line(20) + b"two\n" + line(30))
    with durable.recording() as operations:
        said = journal_records.restore(path, 20)
    [told] = said
    assert told.startswith(f"{METRICS}: not JSON") and ", and 1 more damaged lines: moved" in told
    assert path.with_name(f"{METRICS}.damaged").read_bytes() == b"one\ntwo\n"
    assert path.read_bytes() == line(10) + line(20)
    kinds = [operation.kind for operation in operations]
    assert kinds.index("append") < kinds.index("rename"), "a power cut between both loses no line"


def test_a_session_looks_for_damage_in_a_mebibyte_of_the_end_and_no_more(path, monkeypatch):
    monkeypatch.setattr(journal_records, "_CHECKED_BYTES", len(line(10)))
    path.write_bytes(b"far\n" + line(10) + line(20) + b"near\n" + line(30))
    assert len(journal_records.restore(path)) == 1
    assert path.read_bytes() == b"far\n" + line(10) + line(20) + line(30)


def test_what_a_disk_does_not_take_is_held_back_told_of_once_and_written_once(tmp_path, monkeypatch):
    run, listener = make(tmp_path / "run", {"algorithm": "cfr"}, "kuhn"), Listener()
    journals, append = Journals(run, listener), durable.append_lines

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "append_lines", fail)
    for number in (1, 2):
        journals.append(JOURNAL, {"event": f"{number}"})
    assert "2 lines of journal.jsonl could not be written" in journals.unwritten_lines()
    monkeypatch.setattr(durable, "append_lines", append)
    for number in (3, 4):
        journals.append(JOURNAL, {"event": f"{number}"})
    found = [json.loads(text)["event"] for text in run.path(JOURNAL).read_text().splitlines()]
    assert found == ["1", "2", "3", "4"] and journals.unwritten_lines() is None
    assert len(listener.told) == 2, listener.told
    assert "15 bytes are needed" in listener.told[0] and "with 2 lines that were held back" in listener.told[1]
