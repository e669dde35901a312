"""Files listed in a manifest: regular files of the stated length and checksum, without links."""

import os

import crc32c
import pytest
from refusals import refusals

from storage.manifest_files import ListedFile, file_problem, file_problems, listed_files

CONTENT = b"content"
STATED = ListedFile(len(CONTENT), crc32c.crc32c(CONTENT))
ENTRY = {"length_bytes": 7, "crc32c": 5}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").write_bytes(CONTENT)
    return tmp_path


def pipe(file):
    file.unlink()
    os.mkfifo(file)


def linked(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("content", [True, False])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file.write_bytes(CONTENT + b"x"), "folder/file has 8 bytes; the manifest states 7"),
        (lambda file: file.write_bytes(CONTENT[:-1]), "folder/file has 6 bytes; the manifest states 7"),
        (lambda file: file.unlink(), "folder/file is missing"),
        (pipe, "folder/file is missing"),
        (linked, "folder/file is a symbolic link, which nothing below a manifest may be"),
        (lambda file: linked(file.parent), "folder is a symbolic link, which nothing below a manifest may be"),
    ],
)
def test_files_that_differ_from_the_manifest_are_reported_with_and_without_reading(root, change, message, content):
    assert file_problem(root, "folder/file", STATED, content=content) is None
    change(root / "folder/file")
    assert file_problem(root, "folder/file", STATED, content=content) == message


def test_checksums_are_compared_unless_a_file_is_listed_as_unread(root):
    (root / "folder/file").write_bytes(b"CONTENT")
    listed = {"folder/file": STATED}
    assert ["has checksum" in problem for problem in file_problems(root, listed)] == [True]
    assert file_problems(root, listed, ["folder/file"]) == []


WRONG = [{}, {"length_bytes": 7}, {"crc32c": 5}, ENTRY | {"crc32c": "5"}, ENTRY | {"xxh3_128": "0"}]
WRONG += [ENTRY | {"length_bytes": length} for length in (-1, True, 1.0)]
test_invalid_manifest_entries = refusals(
    *(("no length and one of the checksums", {"file": entry}) for entry in WRONG),
    ("an object is needed", [ENTRY]),
    (r"\.\./file", {"../file": ENTRY}),
    call=listed_files,
)


def test_an_entry_of_an_empty_file_is_valid():
    assert listed_files({"file": {"length_bytes": 0, "crc32c": 0}}) == {"file": ListedFile(0, 0)}
