"""Registry of games: maps the name in `[game]` to the function that builds the game.

Functions are given as text, `module:function`, and imported when the game is built. A user's own game is named by such
a text in the configuration (`mccfr.config.plugins`). The parameters of a user's function are the keys of `[game]`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from mccfr.common.user_code import UserCodeError, user_error
from mccfr.config import plugins
from mccfr.config.game_tables import GAMES, GameConfig
from mccfr.config.run_tables import AbstractionConfig
from mccfr.config.toml_files import config_from
from mccfr.config.value_limits import did_you_mean
from mccfr.games.game import Game, game_problem

Maker = Callable[..., Game]


@dataclass(frozen=True)
class Entry:
    """A game of the registry: the function that builds it, and an example.

    make     function that builds the game, or its name `module:function`; it takes the `[game]` table and the arguments
             that `takes` names
    example  `[game]` table, without the name, of a small game; `mccfr games` shows the size of its tree. None: no
             example
    takes    further arguments of `make`: "base" (directory of relative file names), "abstraction" (the `[abstraction]`
             table or None)
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
    "holdem-subgame": Entry("mccfr.games.holdem_subgame:holdem_subgame", takes=("base",)),  # needs a file of the user
    "holdem": Entry("mccfr.games.holdem:holdem", takes=("abstraction", "base")),  # see runs/hunl-quick.toml
    "limit-holdem": Entry("mccfr.games.holdem:limit_holdem", takes=("abstraction", "base")),
    "flop-holdem": Entry("mccfr.games.holdem:flop_holdem", {}, takes=("abstraction", "base")),
    "openspiel": Entry("mccfr.games.openspiel_import:import_openspiel"),  # needs an optional package
}


def build_game(config: GameConfig, base: Path, abstraction: AbstractionConfig | None = None) -> Game:
    """Build the game of a `[game]` table.

    base         directory of the configuration, to which file names are relative
    abstraction  required for `holdem` and `limit-holdem`, optional for `flop-holdem`; other games ignore it

    Raises `ValueError` for invalid parameters, `OSError` for a file that cannot be read.
    """
    name = str(config.__struct_config__.tag)
    if name not in _CATALOGUE:
        return _game_of_user(config, name, base)
    entry = _CATALOGUE[name]
    make = entry.make
    if isinstance(make, str):
        module, _, function = make.partition(":")
        make = getattr(import_module(module), function)
    arguments = {"base": base, "abstraction": abstraction}
    return make(config, **{name: arguments[name] for name in entry.takes})


def _game_of_user(config: GameConfig, name: str, base: Path) -> Game:
    """Build a game by calling the user's function `name`, which must be annotated as returning a `Game`.

    config  the `[game]` table, whose keys are the function's arguments
    base    directory to which file names in the table are relative

    Raises `ValueError` for another return type, and `UserCodeError` if the function fails or the game is invalid.
    """
    function, key_text = plugins.find(plugins.GAMES, name), f"game.name = {name!r}"
    declared = get_type_hints(function).get("return")
    if not (isinstance(declared, type) and issubclass(declared, Game)):
        raise ValueError(f"{key_text} does not say that it returns a game: annotate it with -> mccfr.Game")
    keys = {key: getattr(config, key) for key in config.__struct_fields__}
    try:
        game = function(**(keys | game_files(config, base)))
    except Exception as error:
        failure = user_error(function, error)
        raise UserCodeError(f"{key_text}: {failure}") from error.__cause__ or error
    if not isinstance(game, Game):
        raise ValueError(f"{key_text} returned a {type(game).__name__}; an mccfr.Game is needed")
    if (problem := game_problem(game)) is not None:
        raise UserCodeError(f"{key_text}: {problem}")
    return game


def game_files(config: GameConfig, base: Path) -> dict[str, Path]:
    """Return {key: path} of the files that a `[game]` table names, such as the file of an endgame.

    base  directory to which file names are relative

    Their content is part of a run's identity: if it changes, the run cannot be continued.
    """
    return {key: base / name for key in config.file_keys if (name := getattr(config, key)) is not None}


def catalogue(only: str | None = None) -> list[dict[str, Any]]:
    """Return descriptions of all games, or of the game `only`, for `mccfr games` to print.

    A description is a dict. It has `name`, `description`, `parameters` with their defaults, and `required` parameters.
    It also has `example`, a `[game]` table without the name, and `counts`, such as the nodes of the example's tree.
    Without an example, `example` and `counts` are None. Raises `ValueError` for an unknown name.
    """
    names = list(_CATALOGUE)
    if only is not None and only not in names:
        raise ValueError(f"game {only!r} is not one of: {', '.join(names)}{did_you_mean(only, names)}")
    return [_described(name) for name in (names if only is None else [only])]


def _described(name: str) -> dict[str, Any]:
    options, example = GAMES[name], _CATALOGUE[name].example
    fields = msgspec.structs.fields(options)
    return {
        "name": name,
        "description": (options.__doc__ or "").split("\n")[0],
        "parameters": {field.encode_name: _default(field) for field in fields},
        "required": [field.encode_name for field in fields if field.required],
        "example": example,
        "counts": None if example is None else _counts(name, example),
    }


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return None if field.required else msgspec.to_builtins(field.default)


def _counts(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    config = config_from({"game": {"name": name, **parameters}}, f"the example of {name}")
    return build_game(config.game, Path()).counts()
