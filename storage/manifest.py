"""JSON manifests: format, version and content of a checkpoint or other result, and a checksum.

A manifest is a JSON object with `format`, `format_version`, the caller's fields, and `content_hash`, the SHA-256 of the
others. A given manifest has exactly one text, and the reader compares bytes. Every flipped bit is therefore detected,
also in white space. The caller's fields describe a stored result, such as a list of its files.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from storage import durable
from storage.damage import DamagedError, reading
from storage.json_files import parse_json, read_bounded

_HASH = "content_hash"
_OWN_FIELDS = ("format", "format_version", _HASH)


def canonical_json(value: Any) -> bytes:
    """Return the canonical compact JSON of a value as bytes: sorted keys, ASCII, shortest exact floats.

    Raises:
        ValueError: a float is NaN or infinite.
        TypeError: the value contains something that is not JSON.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def content_hash(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON as 64 hexadecimal digits.

    Raises `ValueError` or `TypeError` for values that `canonical_json` rejects.
    """
    return hashlib.sha256(canonical_json(value)).hexdigest()


def exact_json(value: Any, document_name: str) -> bytes:
    """Return readable JSON text, as bytes, that reads back exactly as `value`.

    Integers of any size and finite floats are exact.

    Args:
        value: the value to write
        document_name: name of the value in messages

    Raises:
        ValueError: the value has tuples, non-string keys, NaN, or NumPy integers or arrays, which would change or
            cannot be written.
    """
    advice = "use dictionaries with string keys, lists, strings, integers, finite floats, booleans and None"
    try:
        text = msgspec.json.format(canonical_json(value), indent=1) + b"\n"  # json is 3 times slower
    except (TypeError, ValueError) as error:
        raise ValueError(f"{document_name} cannot be written as JSON ({error}); {advice}") from error
    if json.loads(text) != value:
        raise ValueError(f"{document_name} would change when written as JSON; {advice}")
    return text


def write_manifest(path: Path, format_name: str, format_version: int, fields: Mapping[str, Any]) -> str:
    """Write and fsync a manifest file; its name is durable after `fsync_dir` of the parent.

    Args:
        path:           the file
        format_name:    kind of artefact that the manifest describes, such as a checkpoint
        format_version: version of its format
        fields:         content of the manifest; must read back exactly from JSON

    Returns:
        The manifest's content hash.

    Raises:
        ValueError: a field is named `format`, `format_version` or `content_hash`, or is not exact in JSON.
    """
    reserved = [name for name in _OWN_FIELDS if name in fields]
    if reserved:
        raise ValueError(f"manifest {path}: field {reserved[0]!r} is set by the manifest itself; rename the field")
    content = {"format": format_name, "format_version": format_version, **fields}
    content[_HASH] = content_hash(content)
    durable.write_file(path, exact_json(content, f"manifest {path}"))
    return content[_HASH]


def read_manifest(
    path: Path, format_name: str, format_version: int, other_versions: Collection[int] = ()
) -> dict[str, Any]:
    """Read a manifest and check its integrity, then its format and version.

    Args:
        path:           the manifest's file
        format_name:    the required format
        format_version: the version that is written today
        other_versions: further versions that are accepted

    Returns:
        The JSON object: the fields given to `write_manifest`, and `format`, `format_version` and `content_hash`.

    Raises:
        FileNotFoundError: the file does not exist.
        DamagedError: the file is damaged, or a symbolic link.
        UnreadableError: the system cannot read it.
        ValueError: an intact manifest has another format or version; the message has both.
    """
    with reading(path):
        linked = path.is_symlink()
    if linked:
        raise DamagedError(
            f"{path} is a symbolic link, which a manifest may not be: its files would not be what it states"
        )
    try:
        data = read_bounded(path)
        content = parse_json(data, path)
        stated = content.pop(_HASH)
        intact = stated == content_hash(content) and data == exact_json({**content, _HASH: stated}, "manifest")
        problem = "its content does not match its own checksum"
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        intact, problem = False, str(error) if isinstance(error, ValueError) else "it is not a manifest"
    if not intact:
        raise DamagedError(f"{path} is damaged: {problem}")
    stated_format = content.get("format")
    if stated_format != format_name:
        raise ValueError(f"{path} has format {stated_format!r}; expected {format_name!r}")
    version = content.get("format_version")
    if version != format_version and version not in other_versions:
        readable = sorted({*other_versions, format_version})
        writer = f" ({content['created_by']})" if isinstance(content.get("created_by"), str) else ""
        raise ValueError(
            f"{path} has format_version {version} of {format_name!r}; this program reads format_version "
            f"{', '.join(map(str, readable))}: use the version of mccfr that wrote it{writer}"
        )
    content[_HASH] = stated
    return content
