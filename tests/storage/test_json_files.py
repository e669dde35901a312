"""JSON files: valid values, depth and length limits, and files that are not regular."""

import json
import os

import pytest
from refusals import refused

from storage.damage import DamagedError
from storage.durable import checksum_file
from storage.journal_reader import lines
from storage.json_files import MAX_JSON_DEPTH, parse_json, read_json


def test_valid_json_is_read(tmp_path):
    value = {"a": [1, 2.5, None, True, "é"], "b": {"c": [[]]}, "large": 2**70}
    (tmp_path / "a.json").write_text(json.dumps(value))
    assert read_json(tmp_path / "a.json") == value
    deep = "[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH
    assert json.dumps(parse_json(deep, "x")) == deep


DEEP = ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000]
DEEP.append("[" * (MAX_JSON_DEPTH + 1) + "]" * (MAX_JSON_DEPTH + 1))


@pytest.mark.parametrize("text", [*DEEP, "", "{", "[NaN]", "[-Infinity]", "9" * 5000, b"\xff\xfe\xff"], ids=range(10))
def test_text_that_is_not_json_is_one_error_that_names_the_file(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(r"a\.json (is not JSON|nests lists)", read_json, path)


@pytest.mark.parametrize("read", [read_json, lambda path: [*lines(path)], checksum_file], ids=range(3))
def test_a_pipe_in_place_of_a_file_is_refused(tmp_path, read):
    """Opening a pipe would wait forever."""
    os.mkfifo(tmp_path / "a.json")
    refused("is a pipe or a device", read, tmp_path / "a.json", error=DamagedError)


def test_a_file_that_is_too_long_is_not_read(tmp_path):
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse
    refused("1,099,511,627,776 bytes; at most 67,108,864 are allowed", read_json, path)
