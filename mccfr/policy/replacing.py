"""Whose export lies at a path: one takes the place of an earlier one of the same run, and of no other by itself."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from storage.damage import DamagedError
from storage.directory_lock import read_directory
from storage.json_files import read_json

RUN_ID = "run_id"
"""The key of a provenance that says which run it is; absent or null: nobody knows, so it is another's."""

FindProvenance = Callable[[Path], Mapping[str, Any] | None]
"""Where an export of one format at a path comes from; None: there is none of this format."""


def provenance_in(document: Any) -> Mapping[str, Any]:
    """The provenance in what an export says of itself; {} where it says nothing."""
    found = document.get("provenance") if isinstance(document, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def provenance_of(path: Path, manifest: str, form: str) -> Mapping[str, Any] | None:
    """Return the provenance in a directory's manifest; None where there is none that says that it is of a format.

    Raises `UnreadableError` where the system cannot read the manifest.
    """
    try:
        content = read_directory(path, lambda inside: read_json(inside / manifest))
    except (DamagedError, FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return provenance_in(content) if isinstance(content, dict) and content.get("format") == form else None


def replaceable(found: FindProvenance, run_id: str | None, *, replace: bool) -> Callable[[Path], bool]:
    """What `storage.outputs` asks before an export of the run `run_id` takes the place of what is at a path.

    It raises `FileExistsError` for an export of another run, unless `replace`.
    """

    def may(path: Path) -> bool:
        there = found(path)
        if there is None:
            return False
        if replace or (run_id is not None and there.get(RUN_ID) == run_id):
            return True
        raise FileExistsError(
            f"{path} is an export of another run, or does not say of which: give --replace (in Python replace=True) to "
            "have it replaced, or another out"
        )

    return may
