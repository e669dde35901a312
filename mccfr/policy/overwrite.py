"""Decides whether an export may replace the one at its path.

An export of the same run is replaced; one of another run only with `--replace`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from storage.damage import DamagedError
from storage.directory_lock import read_directory
from storage.json_files import read_json

RUN_ID = "run_id"
"""Key of the run's id in a provenance; if it is absent or null, the export counts as another run's."""

FindProvenance = Callable[[Path], Mapping[str, Any] | None]
"""Returns the provenance of the export at a path; None if there is no export of this format."""


def provenance_in(document: Any) -> Mapping[str, Any]:
    """Return the field `provenance` of `document`, in which an export describes itself; {} if absent.

    A provenance states the run and checkpoint that an export is from.
    """
    found = document.get("provenance") if isinstance(document, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def provenance_of(path: Path, manifest: str, form: str) -> Mapping[str, Any] | None:
    """Return the provenance in a directory's manifest; None if it is not of format `form`.

    path      directory of the export
    manifest  file name of the manifest
    form      required value of the manifest's field `format`

    A missing or damaged manifest counts as another format.
    Raises `UnreadableError` if the system cannot read the manifest.
    """
    try:
        content = read_directory(path, lambda inside: read_json(inside / manifest))
    except (DamagedError, FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return provenance_in(content) if isinstance(content, dict) and content.get("format") == form else None


def replaceable(find_provenance: FindProvenance, run_id: str | None, *, replace: bool) -> Callable[[Path], bool]:
    """Return a function that checks, before an export is replaced, whether this is allowed.

    It takes the export's path, and returns True if it is. It returns False for a path that holds no export of this
    format.  It raises `FileExistsError` for an export of another or an unknown run, unless `replace`.

    find_provenance  returns the provenance of the export at a path
    run_id           of the run that is exported; None: unknown, so that only `replace` allows it
    """

    def may(path: Path) -> bool:
        there = find_provenance(path)
        if there is None:
            return False
        if replace or (run_id is not None and there.get(RUN_ID) == run_id):
            return True
        raise FileExistsError(
            f"{path} is an export of another run, or does not say of which: give --replace (in Python replace=True) to "
            "have it replaced, or another out"
        )

    return may
