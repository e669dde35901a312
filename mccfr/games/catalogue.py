"""The only list of games: from the name in `[game]` to what makes the game, and the example that `mccfr games` shows.

A function is named as `module:function` and imported when a game is made by it.  `register` adds one to the list.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from mccfr.config.file import config_from
from mccfr.config.tables import GAMES, AbstractionConfig, GameConfig
from mccfr.games.game import Game
from mccfr.games.histories import count_histories

Maker = Callable[..., Game]


@dataclass(frozen=True)
class Entry:
    """A game of the list.

    make     function, or its name, from the `[game]` table, and what `takes` names beside it, to the `Game`
    example  parameters of the example whose counts are shown; None: none can be
    takes    of `base` (the directory that files are relative to) and `abstraction` (the `[abstraction]` table or None)
    """

    make: str | Maker
    example: Mapping[str, Any] | None = None
    takes: tuple[str, ...] = ()


_CATALOGUE: dict[str, Entry] = {
    "kuhn": Entry("mccfr.games.poker:kuhn", {}),
    "leduc": Entry("mccfr.games.poker:leduc", {}),
    "goofspiel": Entry("mccfr.games.goofspiel:goofspiel", {}),
    "matrix": Entry("mccfr.games.matrix:matrix", {"payoffs": [[1.0, 0.9], [-0.7, 1.0]]}),
    "poker": Entry("mccfr.games.poker:poker", {"antes": [1.0, 1.0], "stack": 5.0}),
    "akq": Entry("mccfr.games.poker:akq", {}),
    "clairvoyance": Entry("mccfr.games.poker:clairvoyance", {"streets": 2, "bet": 1.0, "probability": 0.2}),
    "holdem-subgame": Entry("mccfr.games.holdem_subgame:holdem_subgame", takes=("base",)),  # needs the user's file
    "holdem": Entry("mccfr.games.holdem:holdem", takes=("abstraction", "base")),  # needs one: see runs/hunl-quick.toml
    "flop-holdem": Entry("mccfr.games.holdem:flop_holdem", {}, takes=("abstraction", "base")),
    "openspiel": Entry("mccfr.games.openspiel:import_openspiel"),  # needs an optional package
}


def register(
    options: type[GameConfig], make: Maker, example: Mapping[str, Any] | None = None, takes: tuple[str, ...] = ()
) -> None:
    """Add a game under the tag of its `[game]` table; `ValueError` where the name is taken by another.

    make, example, takes  as in `Entry`, `make` from a table of `options`
    """
    name = str(options.__struct_config__.tag)
    if GAMES.get(name, options) is not options:
        raise ValueError(f"there is a game {name!r} already: choose another tag for {options.__name__}")
    GAMES[name], _CATALOGUE[name] = options, Entry(make, example, takes)


def build_game(config: GameConfig, base: Path, abstraction: AbstractionConfig | None = None) -> Game:
    """Compile the game of a `[game]` table; files it names are relative to `base`, the directory of the TOML file.

    `abstraction` is for whole hold'em, which is nothing without one; other games ignore it.

    Raises `ValueError` for parameters no game can have, `OSError` for a file that cannot be read.
    """
    entry = _CATALOGUE[str(config.__struct_config__.tag)]
    make = entry.make
    if isinstance(make, str):
        module, _, function = make.partition(":")
        make = getattr(import_module(module), function)
    given = {"base": base, "abstraction": abstraction}
    return make(config, **{name: given[name] for name in entry.takes})


def game_files(config: GameConfig, base: Path) -> dict[str, Path]:
    """The files that a game is made from by the key that names them: part of a run's identity."""
    return {key: base / getattr(config, key) for key in config.file_keys}


def catalogue() -> list[dict[str, Any]]:
    """For each game: name, description, parameters (default, or None where required), example, counts."""
    return [
        {
            "name": name,
            "description": (GAMES[name].__doc__ or "").split("\n")[0],
            "parameters": {field.encode_name: _default(field) for field in msgspec.structs.fields(GAMES[name])},
            "example": entry.example,
            "counts": None if entry.example is None else _counts(name, entry.example),
        }
        for name, entry in _CATALOGUE.items()
    ]


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return None if field.required else msgspec.to_builtins(field.default)


def _counts(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    config = config_from({"game": {"name": name, **parameters}}, f"the example of {name}")
    game = build_game(config.game, Path())
    return {**game.counts(), "histories": count_histories(game)}
