"""JSON that others may have written: bounded in size and depth, and whatever is wrong with it is a `ValueError`."""

import json
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from storage.damage import reading

_Fields = TypeVar("_Fields")

MAX_JSON_BYTES = 64 << 20
"""Of one file, unless the reader knows better; the manifest of a terabyte of tables takes 40 MB."""
MAX_JSON_DEPTH = 64
"""Lists and objects inside each other; what this program writes has fewer than ten."""


def parse_json(data: bytes | str, where: Path | str) -> Any:
    """The value of a JSON text; `where` names it in messages.

    Raises `ValueError` for text that is no JSON (NaN and infinities are none, numbers of thousands of digits neither),
    and for lists and objects nested deeper than MAX_JSON_DEPTH.
    """
    too_deep = f"{where} nests lists and objects deeper than {MAX_JSON_DEPTH}, the most allowed"
    try:
        value = json.loads(data, parse_constant=_refuse)
    except RecursionError:
        raise ValueError(too_deep) from None
    except ValueError as error:
        raise ValueError(f"{where} is not JSON: {error}") from None
    level, depth = [value], 0
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        if depth > MAX_JSON_DEPTH:
            raise ValueError(too_deep)
        level = [item for outer in level for item in (outer.values() if isinstance(outer, dict) else outer)]
    return value


def typed(value: Any, kind: type[_Fields], where: Path | str) -> _Fields:
    """Return a JSON value as a struct, without further fields; `ValueError` that names `where` and what is wrong."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{where}: {str(error).replace('`', '')}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def read_bounded(path: Path, most_bytes: int = MAX_JSON_BYTES) -> bytes:
    """The content of a file; `ValueError`, before anything is read, where it is longer than `most_bytes`.

    Raises `UnreadableError` where the system cannot read it.
    """
    with reading(path):
        length = path.stat().st_size
        if length > most_bytes:
            raise ValueError(f"{path} has {length:,} bytes; at most {most_bytes:,} are allowed")
        return path.read_bytes()


def read_json(path: Path, most_bytes: int = MAX_JSON_BYTES) -> Any:
    """The value of a JSON file; raises as `read_bounded` and `parse_json`."""
    return parse_json(read_bounded(path, most_bytes), path)
