"""Saves ranges under names, and offers the ranges of a strategy's preflop actions."""

import json
import threading
from pathlib import Path
from typing import Any

from mccfr.view.drills import preflop_lines
from mccfr.view.spot_view import Spots
from storage import durable
from storage.atomic_outputs import output
from storage.json_files import parse_json, read_bounded, typed

FILE = Path("runs") / "ranges.json"
"""Saved ranges as a JSON object of texts by name."""
MOST_SAVED = 500
_MOST_NAME = 60  # characters
_MOST_RAISES = 2  # before an action: opens, calls, three-bets, and the answers to these

_lock = threading.Lock()


def saved_ranges() -> dict[str, str]:
    """Return {name: range text} of the ranges in runs/ranges.json; `ValueError` for a damaged file."""
    return typed(parse_json(read_bounded(FILE), FILE), dict[str, str], FILE) if FILE.exists() else {}


def save_range(name: str = "", text: str = "") -> dict[str, Any]:
    """Save a range text under a name, replacing an earlier one; return all as {"saved": {name: text}}.

    Raises `ValueError` for a name that is empty or longer than 60 characters, and for more than 500 ranges. The text is
    not checked.
    """
    name = " ".join(name.split())
    if not 0 < len(name) <= _MOST_NAME:
        raise ValueError(f"name = {name[:_MOST_NAME]!r}: write 1 to {_MOST_NAME} characters")
    with _lock:
        found = saved_ranges() | {name: text}
        if len(found) > MOST_SAVED:
            raise ValueError(f"{MOST_SAVED} ranges are saved, the most there can be: delete one first")
        _write(found)
    return {"saved": found}


def delete_range(name: str) -> dict[str, Any]:
    """Delete a saved range and return the others as {"saved": {name: text}}.

    Raises `ValueError` for an unknown name.
    """
    with _lock:
        found = saved_ranges()
        if name not in found:
            raise ValueError(f"no range is saved as {name[:_MOST_NAME]!r}")
        del found[name]
        _write(found)
    return {"saved": found}


def _write(found: dict[str, str]) -> None:
    with output(FILE, lambda _: True) as temporary:
        durable.write_file(temporary, json.dumps(found, ensure_ascii=False, indent=1).encode())


def preset_ranges(spots: Spots) -> list[dict[str, str]]:
    """Return [{"name", "text"}]: for each preflop action of a strategy the range that takes it.

    Folds and empty ranges are left out. Only actions after at most `_MOST_RAISES` (2) raises are listed; [] for a
    strategy without preflop decisions. With three and more players only actions before any bet, and actions that face
    the first raise, are listed.
    """
    return [
        {"name": f"{name}: {action}", "text": text}
        for line, name in preflop_lines(spots)
        if line.count("b") <= _MOST_RAISES
        for action, text in spots.action_ranges(line)
        if text
    ]
