"""Durable file operations and manifests: order of syncs, journals, removal, short writes."""

import errno
import json
import os
from io import FileIO

import crc32c
import pytest
import xxhash
from failing import fails
from places import journal_lines
from refusals import refusals, refused

from storage import durable, manifest
from storage.checksums import CRC32C, XXH3, is_checksum


@pytest.mark.parametrize(("kind", "checksum"), [(CRC32C, crc32c.crc32c), (XXH3, xxhash.xxh3_128_hexdigest)])
def test_files_are_written_whole_with_length_and_checksum(tmp_path, kind, checksum):
    path, expected = tmp_path / "file", (11, checksum(b"hello world"))
    assert durable.write_file(path, b"hello world", kind) == expected
    assert durable.write_file(path, (piece for piece in (b"hello", memoryview(b" "), b"world")), kind) == expected
    assert path.read_bytes() == b"hello world"
    assert durable.adopt_file(path, kind=kind) == durable.checksum_file(path, kind) == expected
    assert [each for each in (CRC32C, XXH3, "sha256") if is_checksum(expected[1], each)] == [kind]


def test_recording_has_every_step_in_order_with_its_data(tmp_path):
    with durable.recording() as operations:
        durable.make_dir(tmp_path / "a")
        durable.write_file(tmp_path / "a/x", [b"1", b"2"])
        durable.fsync_dir(tmp_path / "a")
        durable.rename(tmp_path / "a", tmp_path / "b")
        durable.replace_file(tmp_path / "b/x", b"3")
        durable.remove_tree(tmp_path / "b")
    durable.make_dir(tmp_path / "c")
    assert [operation.kind for operation in operations] == [
        "make_dir", "write_file", "fsync_file", "fsync_dir", "rename",
        "write_file", "fsync_file", "rename", "fsync_dir", "remove_file", "remove_dir",
    ]  # fmt: skip
    assert operations[1].data == b"12"
    assert operations[4].target == tmp_path / "b"
    assert not (tmp_path / "b").exists()


def test_adopted_trees_are_synced_from_the_deepest_directory_up(tmp_path):
    (tmp_path / "t/a/b").mkdir(parents=True)
    (tmp_path / "t/a/b/x").write_bytes(b"x")
    (tmp_path / "t/y").write_bytes(b"yy")
    with durable.recording() as operations:
        files = durable.adopt_tree(tmp_path / "t")
    assert {name: length for name, (length, _) in files.items()} == {"t/a/b/x": 1, "t/y": 2}
    synced = [operation.path.name for operation in operations if operation.kind == "fsync_dir"]
    assert synced == ["b", "a", "t"]
    assert {operation.path.name for operation in operations if operation.kind == "fsync_file"} == {"x", "y"}


def test_make_dirs_accepts_directories_created_meanwhile_but_not_files(tmp_path, monkeypatch):
    make_dir = durable.make_dir

    def after_another(path):
        if path.name == "file":
            path.touch()
        else:
            path.mkdir()
        make_dir(path)

    monkeypatch.setattr(durable, "make_dir", after_another)
    durable.make_dirs(tmp_path / "one" / "two")
    assert (tmp_path / "one" / "two").is_dir()
    with pytest.raises(FileExistsError):
        durable.make_dirs(tmp_path / "file" / "three")


def test_trees_are_removed_without_following_links(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_bytes(b"kept")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/link").symlink_to(tmp_path / "outside")
    durable.remove_tree(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()
    assert (tmp_path / "outside/file").read_bytes() == b"kept"


def test_a_failed_replacement_leaves_the_old_content_and_nothing_else(tmp_path, monkeypatch):
    durable.replace_file(tmp_path / "file", b"old")
    monkeypatch.setattr(durable, "rename", fails(errno.EIO))
    refused("Input/output error", durable.replace_file, tmp_path / "file", b"new", error=OSError)
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("torn", [b"half a li", b"\0" * 9000, b"x" * 4096])
def test_a_torn_last_line_is_not_read_and_cut_off_before_the_next(tmp_path, torn):
    journal = tmp_path / "journal"
    assert journal_lines(journal) == []
    durable.append_line(journal, "one\u2028still one")
    with journal.open("ab") as file:
        file.write(torn)
    assert journal_lines(journal) == ["one\u2028still one"]
    durable.append_line(journal, "two")
    assert journal_lines(journal) == ["one\u2028still one", "two"]
    assert journal.read_bytes().endswith(b"one\ntwo\n")
    refused("line break", durable.append_line, journal, "a\nb")


def steps(function, *arguments):
    """Return the kinds of the durable steps of a call."""
    with durable.recording() as operations:
        function(*arguments)
    return [operation.kind for operation in operations]


def test_a_journal_is_rewritten_after_a_failed_fsync(tmp_path, monkeypatch):
    """Write the whole file again after a failed fsync, because a second fsync does not restore lost data."""
    journal, fsync = tmp_path / "journal", os.fsync
    assert steps(durable.append_line, journal, "one") == ["append", "fsync_file", "fsync_dir"]
    monkeypatch.setattr(os, "fsync", fails(errno.EIO))
    refused("Input/output error", durable.append_line, journal, "two", error=OSError)
    monkeypatch.setattr(os, "fsync", fsync)
    assert journal_lines(journal) == ["one"], "the line whose append failed is cut off"
    assert steps(durable.append_line, journal, "three") == ["write_file", "fsync_file", "rename", "fsync_dir"]
    assert steps(durable.append_line, journal, "four") == ["append", "fsync_file"]
    assert journal_lines(journal) == ["one", "three", "four"]


def test_make_dirs_and_replace_file_sync_the_parent_folder(tmp_path):
    assert steps(durable.make_dirs, tmp_path / "one/two") == ["make_dir", "fsync_dir"] * 2
    assert steps(durable.replace_file, tmp_path / "file", b"a") == ["write_file", "fsync_file", "rename", "fsync_dir"]


def test_a_file_is_flushed_completely_before_its_fsync(tmp_path, monkeypatch):
    """Compare a file's length at its fsync with that of its content; check that a folder is synced too."""
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor)))
    durable.write_file(tmp_path / "file", [b"x" * 10, b"y"])
    durable.fsync_dir(tmp_path)
    assert [(facts.st_ino, facts.st_size) for facts in synced[:1]] == [((tmp_path / "file").stat().st_ino, 11)]
    assert os.path.samestat(synced[1], tmp_path.stat())


def test_manifest_round_trip_and_every_flipped_bit(tmp_path):
    path = tmp_path / "manifest.json"
    fields = {"numbers": [2**64 - 1, 0.1, -0.0, 1e-300], "name": "é\n{", "none": [{}, []]}
    stated = manifest.write_manifest(path, "thing", 3, fields)
    content = manifest.read_manifest(path, "thing", 3)
    assert content == {"format": "thing", "format_version": 3, "content_hash": stated, **fields}
    data = path.read_bytes()
    assert data.decode() == json.dumps(content, sort_keys=True, indent=1) + "\n"  # the form of all earlier versions
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        refused("damaged", manifest.read_manifest, path, "thing", 3, error=OSError)


def test_other_formats_and_versions_are_refused_with_both_values(tmp_path):
    path = tmp_path / "manifest.json"
    manifest.write_manifest(path, "thing", 3, {})
    refused(r"'thing'.*'other'", manifest.read_manifest, path, "other", 3)
    refused(r"format_version 3 .*format_version 4", manifest.read_manifest, path, "thing", 4)
    assert manifest.read_manifest(path, "thing", 4, other_versions=(2, 3))["format_version"] == 3
    older = r"reads format_version 1, 2, 4: use the version of mccfr that wrote it"
    refused(older, manifest.read_manifest, path, "thing", 4, other_versions=(1, 2))
    manifest.write_manifest(path, "thing", 3, {"created_by": "mccfr 9.1"})
    refused(r"2: use the version of mccfr that wrote it \(mccfr 9.1\)", manifest.read_manifest, path, "thing", 2)
    with pytest.raises(FileNotFoundError):
        manifest.read_manifest(tmp_path / "absent", "thing", 4)
    refused("format_version", manifest.write_manifest, path, "thing", 3, {"format_version": 1})


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"null", b"\0" * 50, b'{"content_hash": 1}', b"\xff"])
def test_a_file_that_is_no_manifest_is_damaged(tmp_path, content):
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    refused("damaged", manifest.read_manifest, path, "thing", 3, error=OSError)


test_values_that_json_would_change = refusals(
    *(
        ("the state .* use dictionaries", manifest.exact_json, value, "the state")
        for value in ((1, 2), {1: 2}, {"x": float("nan")}, {"x": float("inf")}, {"x": {1}}, {"x": b"1"})
    )
)


def steps_of_dropping(folder):
    (folder / "all/old").mkdir(parents=True)
    (folder / "all/old/file").write_bytes(b"x")
    return steps(durable.drop_trees, [folder / "all/old"])


def test_trees_are_renamed_durably_before_they_are_removed(tmp_path, monkeypatch):
    """Rename a tree durably before its removal, because a power cut may leave half of it."""
    right = ["rename", "fsync_dir", "remove_file", "remove_dir"]
    assert steps_of_dropping(tmp_path / "right") == right
    monkeypatch.setattr(durable, "fsync_dir", lambda _: None)  # planted: an fsync dropped in drop_trees
    assert steps_of_dropping(tmp_path / "wrong") != right


class Short(FileIO):
    """Writes half of each request, as a full disk or a signal may cause."""

    def write(self, data):
        return super().write(bytes(data)[: max(1, len(data) // 2)])


def test_short_writes_are_continued(tmp_path):
    path, data = tmp_path / "journal", b"a line of some length\n"
    with Short(path, "a") as file:
        durable.append(path, file, data)
    assert path.read_bytes() == data
    with Short(path, "a") as file:
        assert file.write(data) < len(data), "planted: without a loop, half is written"
