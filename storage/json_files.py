"""Reads JSON from untrusted files: size and nesting are limited; bad content is a `ValueError`."""

import json
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from storage.damage import check_openable, reading

_Fields = TypeVar("_Fields")

MAX_JSON_BYTES = 64 << 20
"""Default limit of a file's size; the manifest of a terabyte of tables takes 40 MB."""
MAX_JSON_DEPTH = 64
"""Largest nesting of lists and objects; this program writes fewer than ten levels."""


def parse_json(data: bytes | str, where: Path | str) -> Any:
    """Return the value of a JSON text; `where` names it in messages.

    data  the text, or its bytes in UTF-8

    Raises `ValueError` for invalid JSON (which includes NaN, infinities and numbers of thousands of digits) and for
    nesting deeper than MAX_JSON_DEPTH.
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
    """Convert a JSON value to the type `kind`, such as a msgspec struct, after checking its fields.

    where  name of the value in messages, such as its file

    Raises `ValueError`, with `where` and the problem, if the value does not have the form of `kind`.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{where}: {str(error).replace('`', '')}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def read_bounded(path: Path, most_bytes: int = MAX_JSON_BYTES) -> bytes:
    """Return the content of a file; raises `ValueError`, before reading, if it exceeds `most_bytes`.

    Raises `FileNotFoundError` if there is no file, `DamagedError` if `path` is a directory, pipe or device, and
    `UnreadableError` if the system cannot read it.
    """
    with reading(path):
        check_openable(path)
        length = path.stat().st_size
        if length > most_bytes:
            raise ValueError(f"{path} has {length:,} bytes; at most {most_bytes:,} are allowed")
        return path.read_bytes()


def read_json(path: Path, most_bytes: int = MAX_JSON_BYTES) -> Any:
    """Return the value of a JSON file.

    Raises `ValueError` for a file longer than `most_bytes`, invalid JSON or too deep nesting. Raises
    `FileNotFoundError` if there is no file, `DamagedError` if `path` is a directory, pipe or device, and
    `UnreadableError` if the system cannot read it.
    """
    return parse_json(read_bounded(path, most_bytes), path)
