"""Builds the `[game]` and `[solver]` structs of users' games and algorithms."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast, get_type_hints

import msgspec

from mccfr.config import plugins
from mccfr.config.game_tables import GameConfig
from mccfr.config.solver_tables import SolverConfig

_MADE: dict[tuple[str, str], tuple[Any, Any]] = {}


def plugin_options(group: str, name: str) -> Any:
    """Return the class of a user's `[game]` or `[solver]` struct; None if the object is not loaded.

    group  kind of object: `plugins.GAMES` or `plugins.ALGORITHMS`
    name   its name in the configuration, `module:object`

    Raises `ValueError`, with one sentence, if the object is no game or no algorithm.
    """
    loaded = plugins.find(group, name)
    if loaded is None:
        return None
    key = group, name
    if key not in _MADE or _MADE[key][0] is not loaded:
        make = game_options if group == plugins.GAMES else _algorithm_options
        _MADE[key] = loaded, make(loaded, name)
    return _MADE[key][1]


def loaded_options(group: str) -> list[Any]:
    """Return the classes of the configuration structs of all loaded and valid users' games or algorithms.

    group  kind of object: `plugins.GAMES` or `plugins.ALGORITHMS`
    """
    tables = []
    for name in plugins.loaded(group):
        with suppress(ValueError):
            tables.append(plugin_options(group, name))
    return tables


def game_options(function: Callable[..., Any], name: str) -> type[GameConfig]:
    """Return the `[game]` struct of a user's function that builds a game.

    The function's parameters are the keys, and their annotations the types. A parameter annotated as `Path` names a
    file.

    name  name of the game in the configuration, `module:object`, which selects the struct

    Raises `ValueError` for an object that is no function. Also for a parameter without an annotation, of a type that
    TOML does not have, or called "name".
    """
    if not callable(function) or isinstance(function, type):
        raise ValueError(f"game.name = {name!r} is not a function that returns a game")
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:  # names in text annotations that cannot be resolved
        raise ValueError(f"game.name = {name!r}: its annotations cannot be read: {error}") from error
    fields: list[Any] = []
    for key, parameter in inspect.signature(function).parameters.items():
        if key not in hints or parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ValueError(f"game.name = {name!r}: its parameter {key!r} needs an annotation: it is a key of [game]")
        if key == "name":
            raise ValueError(f"game.name = {name!r}: its parameter 'name' is reserved for the game's name: rename it")
        kind = str if hints[key] is Path else hints[key]
        default = parameter.default
        fields.append((key, kind) if default is parameter.empty else (key, kind, _plain(default)))
    files = tuple(key for key, hint in hints.items() if hint is Path and key != "return")
    namespace = {"__doc__": inspect.getdoc(function) or "", "file_keys": files}
    try:
        table = msgspec.defstruct(
            function.__name__,
            fields,
            bases=(GameConfig,),
            namespace=namespace,
            module=function.__module__,
            frozen=True,
            kw_only=True,
            tag=name,
        )
        msgspec.convert(
            {"name": name} | {field[0]: field[2] for field in fields if len(field) > 2}, table, strict=False
        )
    except msgspec.ValidationError:
        pass  # a key without default
    except (TypeError, ValueError) as error:
        raise ValueError(f"game.name = {name!r}: its parameters cannot be keys of a TOML file: {error}") from error
    return cast(type[GameConfig], table)


def _plain(default: Any) -> Any:
    """Return a default as the struct stores it: lists as tuples, so as not to share them; paths as text."""
    if isinstance(default, Path):
        return str(default)
    return tuple(map(_plain, default)) if isinstance(default, list | tuple) else default


def _algorithm_options(algorithm: Any, name: str) -> type[SolverConfig]:
    """Return the `[solver]` struct of a user's algorithm, derived from its attribute `options`.

    name  name of the algorithm in the configuration, which selects the struct

    Raises `ValueError` for an object without such `options`.
    """
    options = getattr(algorithm, "options", None)
    if not isinstance(options, type) or not issubclass(options, SolverConfig):
        raise ValueError(
            f"solver.algorithm = {name!r} is not an algorithm: a class derived from mccfr.solvers.solver.Algorithm is "
            "needed, whose `options` is the struct of its keys"
        )
    namespace = {"__doc__": options.__doc__}
    table = msgspec.defstruct(options.__name__, [], bases=(options,), namespace=namespace, frozen=True, tag=name)
    return cast(type[SolverConfig], table)
