"""Fuzzed inputs of each format, and all earlier findings: read or refused with a sentence.

The fast suite takes 50 inputs of each format, the slow one 2,000.
"""

import time

import pytest
from fuzzing import FORMATS, Format, bounded_memory, corpus, damaged, feed, format_named, inputs, keep, search


@pytest.mark.parametrize("count", [50, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FORMATS)
def test_readers_accept_or_refuse_fuzzed_inputs(name, count):
    with bounded_memory():
        found = feed(format_named(name), inputs(name, range(count)))
    assert list(map(str, found.findings)) == []
    assert found.good + found.refused == count
    assert min(found.good, found.refused) >= count / 50  # some are read, and some are refused


@pytest.mark.parametrize("path", [path for name in FORMATS for path in corpus(name)], ids=lambda path: path.name)
def test_earlier_findings_stay_fixed(path):
    with bounded_memory():
        found = feed(format_named(path.parent.name), [path.read_bytes()])
    assert list(map(str, found.findings)) == []


def wrong(data):
    """A reader with each kind of defect that the search looks for."""
    match data[:1]:
        case b"i":
            raise IndexError("the list index is out of range")
        case b"k":
            raise KeyError("bets")
        case b"t":
            while True:
                time.sleep(0)
        case b"m":
            bytearray(1 << 31)
        case b"x":
            raise SystemExit(0)
        case b"r":
            raise ValueError("a sentence that says what is wrong")


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"i", "IndexError"), (b"k", "KeyError"), (b"t", "TooLong"), (b"m", "MemoryError"), (b"x", "SystemExit")],
)
def test_each_kind_of_defect_is_found(data, kind):
    with bounded_memory():
        found = feed(Format(damaged, wrong, seconds=0.1), [b"good", b"r", data])
    assert (found.good, found.refused) == (1, 1)
    assert [finding.place for finding in found.findings] == [f"{kind} in wrong"]
    assert found.findings[0].data == data


def test_a_search_keeps_the_first_input_of_each_place(tmp_path, monkeypatch):
    monkeypatch.setattr("fuzzing.CORPUS", tmp_path)
    monkeypatch.setattr("fuzzing.format_named", lambda _: Format(lambda rng: rng.choice([b"i", b"k", b"r"]), wrong))
    told = []
    found = search("planted", 0.05, 0, told.append)
    assert found.refused and len(found.findings) > 10
    assert len(told) == 2 and sorted(path.read_bytes() for path in corpus("planted")) == [b"i", b"k"]
    assert keep("planted", b"i") in corpus("planted")
