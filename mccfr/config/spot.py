"""What a spot's `[game]` table is made of before it is checked: ranges out of files, positions by either name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from abstraction.ranges import read_range
from mccfr.config.limits import MOST_TEXT, shown
from storage.damage import DamagedError, reading

SUBGAME = "holdem-subgame"
_POSITIONS = {"oop": "big_blind", "ip": "button"}
_MAX_BYTES = 1 << 20
STREETS = ("preflop", "flop", "turn", "river")


def spot_table(table: Any, beside: Sequence[Path]) -> Any:
    """A `[game]` table with what people write: `oop` and `ip` in menus, ranges as "@FILE" (relative to `beside`).

    Raises `ValueError` for a menu that names a position twice, and for a range whose file cannot be read.
    """
    if not isinstance(table, Mapping) or not isinstance(table.get("menu", {}), Mapping):
        return table
    table = dict(table)
    if "menu" in table:
        table["menu"] = {key: _positions(key, value) for key, value in table["menu"].items()}
    if table.get("name") != SUBGAME:
        return table
    if isinstance(table.get("ranges"), Mapping):
        folder = beside[0] if beside else Path()
        table["ranges"] = {key: _short(key, _read(key, value, folder)) for key, value in table["ranges"].items()}
    return table


def _positions(street: str, menu: Any) -> Any:
    """A street's menu, with the names of positions that rules have."""
    if street not in STREETS or not isinstance(menu, Mapping):
        return menu
    for name, other in _POSITIONS.items():
        if name in menu and other in menu:
            raise ValueError(f"game.menu.{street}.{name} and {other} are the same position: give one of them")
    return {_POSITIONS.get(key, key): value for key, value in menu.items()}


def _read(key: str, value: Any, folder: Path) -> Any:
    """A range; where it is "@FILE", what the file says."""
    if not isinstance(value, str) or not value.strip().startswith("@"):
        return value
    path = folder / value.strip()[1:]
    try:
        with reading(path), path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise ValueError(f"game.ranges.{key}: {path} is larger than {_MAX_BYTES} bytes, so no range")
        return " ".join(data.decode("utf-8").split())
    except (FileNotFoundError, DamagedError, UnicodeDecodeError) as error:
        raise ValueError(f"game.ranges.{key} = {shown(value)}: {path} cannot be read: {error}") from None


def _short(key: str, value: Any) -> Any:
    """A range; where its text is longer than a configuration's may be, its 1,326 numbers."""
    if not isinstance(value, str) or len(value) <= MOST_TEXT:
        return value
    try:
        return read_range(value).tolist()
    except ValueError as error:
        raise ValueError(f"game.ranges.{key}: {error}") from None


MOST_ITERATIONS = 5_000
"""Of a spot that is solved to a share of the pot, if that is not reached before."""
AVERAGING_POWER = 4.0
"""Of spots: 0.83 to 1 of the iterations that the 2 of `dcfr` takes (docs/measured/spots.md)."""


def spot_document(game: Mapping[str, Any], to: float, workers: int, *, seconds: float | None = None) -> dict[str, Any]:
    """A configuration that solves a spot to a share of the pot: full width in float32, measured more rarely as it goes.

    game  of `[game]`, but for its name; keys that are None are left out
    """
    points, at = [], 10
    while at < MOST_ITERATIONS:
        points.append(at)
        at += max(10, at // 10)  # an evaluation takes no longer than an iteration
    run = {"workers": workers, "iterations": MOST_ITERATIONS, "exploitability_pot": to}
    return {
        "game": {"name": SUBGAME, **{key: value for key, value in game.items() if value is not None}},
        "solver": {"algorithm": "cfr", "variant": "dcfr", "averaging_power": AVERAGING_POWER, "dtype": "float32"},
        "run": run if seconds is None else {**run, "seconds": seconds},
        "evaluation": {"at_iterations": points, "every_checkpoint": False},
    }


def spot_menu(bets: str, raises: str, first_street: int) -> dict[str, Any]:
    """A menu from sizes as people write them: streets apart by "/", the last goes on, and sizes of one by commas.

    first_street  of the spot: 1 the flop.  Raises `ValueError` for more streets than there are.
    """
    names, menu = STREETS[first_street:], dict[str, Any]()
    for option, text, key in (("bets", bets, "first"), ("raises", raises, "later")):
        given = [[size.strip() for size in part.split(",") if size.strip()] for part in text.split("/")]
        if len(given) > len(names):
            raise ValueError(f"{option} = {shown(text)} has {len(given)} streets, where the spot has {len(names)}")
        for number, name in enumerate(names):
            menu.setdefault(name, {})[key] = given[min(number, len(given) - 1)]
    return menu
