"""Reads journals forwards and backwards, and replaces the end of a journal."""

import pytest

from storage import durable, journal_reader


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 16])
@pytest.mark.parametrize(
    "text", [b"", b"\n", b"a\n", b"\n\n", b"a\n\nbcd\nef", b"torn", b"one\n" + b"x" * 50 + b"\nlast\n"]
)
def test_lines_read_backwards_equal_the_reversed_lines(tmp_path, monkeypatch, text, block):
    monkeypatch.setattr(journal_reader, "_BLOCK_BYTES", block)
    path = tmp_path / "journal"
    path.write_bytes(text)
    whole = text[: text.rfind(b"\n") + 1]
    forwards = list(journal_reader.lines(path))
    assert b"".join(line.data + b"\n" for line in forwards) == whole
    assert all(whole[line.start :].startswith(line.data + b"\n") for line in forwards)
    assert list(journal_reader.lines_backwards(path)) == forwards[::-1]


def test_a_missing_journal_has_no_lines(tmp_path):
    for read in (journal_reader.lines, journal_reader.lines_backwards):
        assert list(read(tmp_path / "none")) == []


def test_the_end_is_replaced_in_one_durable_step(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(b"one\ntwo\nthree\ntorn")
    for start, lines, content in ((8, [], b"one\ntwo\n"), (4, [b"2", b"3"], b"one\n2\n3\n")):
        with durable.recording() as operations:
            journal_reader.replace_end(path, start, lines)
        assert path.read_bytes() == content
        assert [operation.kind for operation in operations] == ["write_file", "fsync_file", "rename", "fsync_dir"]


def test_a_line_completed_during_the_read_is_left_out(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(b"one\ntwo\nthr")
    found = journal_reader.lines(path)
    assert next(found).data == b"one"
    with path.open("ab") as file:
        file.write(b"ee\n")
    assert [line.data for line in found] == [b"two"]


def test_a_reader_keeps_the_old_content_while_the_end_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_reader.io, "DEFAULT_BUFFER_SIZE", 4)
    path = tmp_path / "journal"
    path.write_bytes(b"one\n" + b"x" * 10_000 + b"\nlast\n")
    found = journal_reader.lines(path)
    assert next(found).data == b"one"
    journal_reader.replace_end(path, 4, [])
    durable.append_line(path, "other")
    assert [len(line.data) for line in found] == [10_000, 4]
