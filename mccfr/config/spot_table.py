"""Prepares a `[game]` table for validation: reads range files, and replaces the names oop and ip.

Menus of bet sizes may call the player out of position "oop" or "big_blind", and the player in position "ip" or
"button". Only the second names remain.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mccfr.config.value_limits import MOST_RANGE, share_text, shown
from storage.damage import DamagedError, reading

SUBGAME = "holdem-subgame"
_POSITIONS = {"oop": "big_blind", "ip": "button"}
_SIZES = ("first", "later", "sizes", "donk")
STREETS = ("preflop", "flop", "turn", "river")


def spot_table(table: Any, search_directories: Sequence[Path]) -> Any:
    """Return a `[game]` table in which ranges "@FILE" are replaced by the text of the file.

    In its table of bet sizes (`menu`), the keys oop and ip (out of and in position) become big_blind and button.

    search_directories  the first is the folder of range files; none: the current directory

    Raises `ValueError` if a menu has both names of a player, and for oop and ip with more than two seats. Also for a
    range file that is missing, damaged, too large or no UTF-8 text. Raises `UnreadableError` if the system cannot read
    it.
    """
    if not isinstance(table, Mapping) or not isinstance(table.get("menu", {}), Mapping):
        return table
    table = dict(table)
    if table.get("seats", 2) != 2:
        for street, menu in table.get("menu", {}).items():
            if isinstance(menu, Mapping) and (names := _POSITIONS.keys() & menu.keys()):
                raise ValueError(f"game.menu.{street}.{min(names)} is for two seats: name a position, such as button")
    if "menu" in table:
        table["menu"] = {key: _positions(key, value) for key, value in table["menu"].items()}
    if table.get("name") != SUBGAME:
        return table
    if isinstance(table.get("ranges"), Mapping):
        folder = search_directories[0] if search_directories else Path()
        table["ranges"] = {key: _read(key, value, folder) for key, value in table["ranges"].items()}
    return table


def _positions(street: str, menu: Any) -> Any:
    """Return an entry of a table of bet sizes, with keys big_blind and button for oop and ip.

    street  key of the entry: a street, a player such as "button", or the name of a list of sizes
    menu    value of the entry

    Sizes that are numbers become texts, so that the parser of sizes refuses them with their possible meanings.
    """
    if street in _SIZES:
        return _texts(menu)
    if street not in (*STREETS, *_POSITIONS.values()) or not isinstance(menu, Mapping):
        return menu
    menu = {key: _positions(_POSITIONS.get(key, str(key)), value) for key, value in menu.items()}
    for name, other in _POSITIONS.items():
        if name in menu and other in menu:
            raise ValueError(f"game.menu.{street}.{name} and {other} are the same position: give one of them")
    return {_POSITIONS.get(key, key): value for key, value in menu.items()}


def _texts(sizes: Any) -> Any:
    if isinstance(sizes, list | tuple):
        return [_texts(size) for size in sizes]
    return str(sizes) if isinstance(sizes, int | float) and not isinstance(sizes, bool) else sizes


def _read(key: str, value: Any, folder: Path) -> Any:
    """Return the value of the range `key` (oop or ip); for "@FILE" the text of that file in `folder`.

    Raises `ValueError` for a file that is missing, damaged, too large or no UTF-8 text.
    """
    if not isinstance(value, str) or not value.strip().startswith("@"):
        return value
    path = folder / value.strip()[1:]
    try:
        with reading(path), path.open("rb") as file:
            data = file.read(MOST_RANGE + 1)
        if len(data) > MOST_RANGE:
            raise ValueError(f"game.ranges.{key}: {path} is larger than {MOST_RANGE} bytes: too large for a range")
        return " ".join(data.decode("utf-8-sig").split())
    except (FileNotFoundError, DamagedError, UnicodeDecodeError) as error:
        raise ValueError(f"game.ranges.{key} = {shown(value)}: {path} cannot be read: {error}") from None


MOST_ITERATIONS = 5_000
"""Most iterations of a spot that does not reach its target exploitability."""
AVERAGING_POWER = 4.0
"""Averaging power for spots; runs with it need 0.83 to 1 times the iterations of runs with 2, the value of `dcfr`.

Source: measurements in docs/measured/spots.md.
"""


def spot_document(game: Mapping[str, Any], to: float, workers: int, *, seconds: float | None = None) -> dict[str, Any]:
    """Return a configuration of a run that solves a hold'em endgame by full-width CFR in float32.

    game     {key: value} of `[game]`: board, ranges, pot, stack and more; keys of value None are left out
    to       exploitability at which to stop, as a share of the pot: 0.003 for 0.3%
    workers  value of `run.workers`, the number of threads that solve
    seconds  longest time to train; None: no limit

    The result is {table: {key: value}}, as from a TOML file. Evaluations become rarer as the run proceeds.
    """
    points, at = [], 10
    while at < MOST_ITERATIONS:
        points.append(at)
        at += max(10, at // 10)  # an evaluation takes no longer than an iteration
    run = {"workers": workers, "iterations": MOST_ITERATIONS, "exploitability_pot": share_text(to)}
    return {
        "game": {"name": SUBGAME, **{key: value for key, value in game.items() if value is not None}},
        "solver": {"algorithm": "cfr", "variant": "dcfr", "averaging_power": AVERAGING_POWER, "dtype": "float32"},
        "run": run if seconds is None else {**run, "seconds": seconds},
        "evaluation": {"at_iterations": points, "every_checkpoint": False},
    }


def sizes_of(text: str) -> list[str]:
    """Split a text at its commas into bet sizes, without blanks and empty parts."""
    return [size.strip() for size in text.split(",") if size.strip()]


def locks_of(texts: Sequence[str]) -> dict[str, str]:
    """Parse texts such as "cb94=c 60%" to locks {betting line: fixed strategy of who is to act}.

    Several texts of one line are joined. Raises `ValueError` for a text without "=".
    """
    locks: dict[str, str] = {}
    for text in texts:
        line, equals, lock = (part.strip() for part in text.partition("="))
        if not equals:
            raise ValueError(
                f"lock {shown(text)} has no =: write a betting line, =, and the actions there, as in 'cb94=c 60%'"
            )
        locks[line] = "; ".join(filter(None, (locks.get(line), lock)))
    return locks


FINE_SIZES = ("25%", "33%", "50%", "66%", "75%", "100%", "125%", "150%", "200%", "allin")
"""Sizes from which `auto:N` chooses."""
AUTO = "auto"
"""Beginning of `auto:N`, the text for N bet sizes that the program chooses."""


def auto_counts(option: str, text: str, streets: int) -> list[int | None]:
    """Return for each street the N of `auto:N` (the program chooses N bet sizes), or None for given sizes.

    option   name of the command's option that has the value `text`, for errors
    text     sizes such as "50%,100%/auto:2", streets separated by "/"; the last also applies to later streets
    streets  number of streets

    Raises `ValueError` for an N that is not from 1 to the number of `FINE_SIZES`. Also if a street has `auto:N` and
    other sizes.
    """
    found = [_auto_count(option, part) for part in text.split("/")]
    return [found[min(street, len(found) - 1)] for street in range(streets)]


def _auto_count(option: str, text: str) -> int | None:
    if AUTO not in text.lower():
        return None
    match, most = re.fullmatch(r"auto:([0-9]{1,3})", text.strip().lower()), len(FINE_SIZES)
    if match is None or not 1 <= int(match[1]) <= most:
        raise ValueError(
            f"{option}: {shown(text.strip())} is not allowed: auto:N stands alone on a street, and N is the number of "
            f"sizes to choose from {', '.join(FINE_SIZES)}: 1 to {most}, as in auto:2"
        )
    return int(match[1])


def with_sizes(text: str, sizes: Sequence[str]) -> str:
    """Return a text of bet sizes with each `auto:N` replaced by the sizes chosen for its street.

    text   sizes such as "50%,100%/auto:2", streets separated by "/"; the last also applies to later streets
    sizes  chosen sizes, one text for each street, such as "50%,100%"; the last also applies to later streets
    """
    parts = text.split("/")
    parts += parts[-1:] * (len(sizes) - len(parts))
    last = len(sizes) - 1
    return "/".join(sizes[min(street, last)] if AUTO in part.lower() else part for street, part in enumerate(parts))


def spot_menu(bets: str, raises: str, first_street: int) -> dict[str, Any]:
    """Return a `[game.menu]` table from bet sizes as typed, such as "50%,100%/75%".

    Streets are separated by "/", the last one also applies to later streets; sizes of a street are separated by commas.

    bets, raises  texts of the sizes of first bets and of later raises
    first_street  street on which the game begins: 1 for the flop

    The result is {street: {"first": list of sizes, "later": list of sizes}}. Raises `ValueError` for more streets than
    the game has.
    """
    names, menu = STREETS[first_street:], dict[str, Any]()
    for option, text, key in (("bets", bets, "first"), ("raises", raises, "later")):
        sizes = [sizes_of(part) for part in text.split("/")]
        if len(sizes) > len(names):
            raise ValueError(f"{option} = {shown(text)} has {len(sizes)} streets, where the spot has {len(names)}")
        for number, name in enumerate(names):
            menu.setdefault(name, {})[key] = sizes[min(number, len(sizes) - 1)]
    return menu
