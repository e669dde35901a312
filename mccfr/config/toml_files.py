"""Reads run configurations from TOML files, applies overrides, validates, and writes them back.

A configuration error is a `ValueError` of one sentence that names the file, the key, the value and the allowed values.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mccfr.config import plugins
from mccfr.config.game_tables import GAMES, OpaqueGame
from mccfr.config.plugin_tables import loaded_options, plugin_options
from mccfr.config.run_tables import Config
from mccfr.config.solver_tables import OPTIONS, OpaqueSolver, SolverConfig
from mccfr.config.spot_table import spot_table
from mccfr.config.table_base import Check, Table, fields_of, first_refused
from mccfr.config.value_limits import did_you_mean, limit_problems, shown
from storage.damage import DamagedError, reading

DEFAULT_ALGORITHM = "external-sampling"
"""Algorithm of a `[solver]` table that names none."""
_TAGGED: dict[str, tuple[Mapping[str, Any], str, str | None]] = {
    "game": (GAMES, "name", None),
    "solver": (OPTIONS, "algorithm", DEFAULT_ALGORITHM),
}
"""Tables whose struct depends on a key: structs by name, the key, and its default."""
_OPAQUE = {"game": OpaqueGame, "solver": OpaqueSolver}
_BOUNDS = {">=": "at least", ">": "above", "<=": "at most", "<": "below", "of length >=": "of length at least"}


def parse_override(text: str) -> tuple[str, Any]:
    """Split a text `table.key=value` into "table.key" and the value; `ValueError` for another form.

    The value is parsed as TOML; a bare word is a string.
    """
    path, sign, value = text.partition("=")
    if not sign or "." not in path:
        raise ValueError(f"--set {text}: expected table.key=value, for example --set solver.seed=3")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return path.strip(), value.strip()
    except (ValueError, RecursionError) as error:
        raise ValueError(f"--set {path}={shown(value)}: not a value of TOML: {error}") from None
    return path.strip(), parsed


def load_document(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Read a run's TOML file and apply `--set` overrides, without validation: {table: {key: value}}.

    overrides  texts `table.key=value`

    Raises `ValueError` for a missing or invalid TOML file, and for an invalid override. Raises `UnreadableError` if the
    system cannot read the file.
    """
    try:
        with reading(path):
            document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ValueError(
            f"{path}: no such file; give the path of a run's TOML file, such as runs/subgame.toml"
        ) from None
    except RecursionError:
        raise ValueError(f"{path}: lists or tables are nested too deep") from None
    except (ValueError, DamagedError) as error:  # bad TOML, bad UTF-8, numbers of thousands of digits
        raise ValueError(f"{path}: not a TOML file: {error}") from None
    for text in overrides:
        override(document, *parse_override(text), f"--set {text}")
    return document


def override(document: dict[str, Any], path: str, value: Any, source: str) -> None:
    """Set the value of a dotted key such as "solver.seed" in parsed TOML, in place.

    Missing tables are added. If "solver.algorithm" becomes an algorithm of this package, keys of `[solver]` that only
    other algorithms have are deleted.

    document  {table: {key: value}}, changed in place
    path      the dotted key
    source    where the value comes from, such as "--set solver.seed=3"; begins the error message

    Raises `ValueError` if a part of the key before the last is no table.
    """
    *tables, last = path.split(".")
    table = document
    for key in tables:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ValueError(f"{source}: {key!r} is not a table")
    table[last] = _whole_numbers(value)
    if path == "solver.algorithm" and value in OPTIONS:
        for key in foreign_keys(table, OPTIONS[value]):
            del table[key]


def check_overrides(paths: Iterable[str], overrides: Iterable[str]) -> None:
    """Raise `ValueError` if a key of `paths` equals, contains or lies inside a key of `overrides`.

    The key "solver" contains "solver.seed".

    paths      dotted keys that --set gives
    overrides  dotted keys that other options of the command give
    """
    keys = list(overrides)
    for path in paths:
        if any(f"{path}.".startswith(f"{key}.") or key.startswith(f"{path}.") for key in keys):
            raise ValueError(f"{path} is overridden, and another option gives it as well: leave one of them out")


def load_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read and validate a run's TOML file with `--set` overrides.

    User code that the file names is imported, from the file's directory first.

    overrides  texts `table.key=value`

    Raises `ValueError` for a missing or invalid file, and `UnreadableError` if the system cannot read it.
    """
    return config_from(load_document(path, overrides), str(path), (path.parent,))


def config_from(
    document: Mapping[str, Any],
    source: str,
    search_directories: Sequence[Path] | None = None,
    artefact_code: plugins.NamedCode | None = None,
    *,
    opaque: bool = False,
) -> Config:
    """Convert parsed TOML to a validated `Config`.

    source              name of the document, such as its path, with which errors begin
    search_directories  if the user wrote the document: directories searched first for modules, which are executed, and
                        for files
    artefact_code       if the document comes from an artefact (a run, networks): its path and the hashes of its code.
                        Such code is executed only with the user's permission
    opaque              True: import no user code, but put `OpaqueGame` or `OpaqueSolver` in place of a table that
                        names such code

    Raises `ValueError` for an invalid document, and for user code that is missing, fails or may not be executed. Raises
    `UnreadableError` if the system cannot read a file of a range.
    """
    kinds = {field.encode_name: field.type for field in fields_of(Config)}
    try:
        tables = _whole_numbers(document)
        if opaque:
            _hide_user_tables(tables)
        else:
            plugins.load_user_code(document, search_directories, artefact_code)
        tables["game"] = spot_table(tables.get("game"), search_directories or ())
        for key in set(tables) - set(kinds):
            near = did_you_mean(key, kinds)
            raise ValueError(f"unknown key {shown(key)} in the top level; allowed: {', '.join(sorted(kinds))}{near}")
        if tables["game"] is None:
            raise ValueError("the top level needs the key 'game'")
        structs: dict[str, Any] = {key: table for key, table in tables.items() if isinstance(table, Table)}
        other_tables = {key: converted(table, key, kinds[key]) for key, table in tables.items() if key not in structs}
        config = Config(**structs, **other_tables)
        if problem := next(limit_problems(config), None) or first_refused(config, config_checks(config)):
            raise ValueError(problem)
    except (OverflowError, RecursionError) as error:
        raise ValueError(f"{source}: a number is too large, or lists are nested too deep: {error}") from None
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    return config


def _hide_user_tables(tables: dict[str, Any]) -> None:
    """Replace `[game]` and `[solver]` of user code by `OpaqueGame` and `OpaqueSolver`, in place.

    They keep only the table's `name` or `algorithm`, also if just the variant is user code. Keys of other tables that
    name user code, such as `evaluation.method`, are deleted.

    tables  parsed configuration {table: {key: value}}
    """
    for table, key in plugins.user_code_names(tables):
        if table in _OPAQUE:
            tables[table] = _OPAQUE[table](named=str(tables[table].get(_TAGGED[table][1], _TAGGED[table][2])))
        else:
            del tables[table][key]


def converted(table: Any, key: str, kind: Any) -> Any:
    """Convert a table of parsed TOML to its struct, and validate its types.

    key   name of the table, such as "run"
    kind  class of the struct; ignored for "game" and "solver", whose `name` or `algorithm` selects it

    Raises `ValueError` with key, value and allowed values.
    """
    if key in _TAGGED:
        kind, table = _chosen(table, key)
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise ValueError(_explain(str(error), table, key, kind)) from None


def _chosen(table: Any, key: str) -> tuple[Any, dict[str, Any]]:
    """Return (class of the struct that a table selects, the table with its `name` or `algorithm`).

    key  "game" or "solver", the name of the table

    Raises `ValueError` for a missing or unknown name, and for keys that belong to another algorithm only.
    """
    kinds, field, default = _TAGGED[key]
    if not isinstance(table, Mapping):
        raise ValueError(f"{key} = {shown(table)}: expected a table")
    name = table.get(field, default)
    if name is None:
        raise ValueError(f"{key} needs the key {field!r}")
    kind = options_struct(key, name) if isinstance(name, str) else None
    if kind is None:
        near = did_you_mean(name, kinds)
        raise ValueError(
            f"{key}.{field} = {shown(name)} is not one of: {', '.join(map(repr, kinds))}, or module:object{near}"
        )
    for foreign in foreign_keys(table, kind) if key == "solver" else ():
        raise ValueError(
            f"solver.{foreign} = {shown(table[foreign])} has no effect on solver.algorithm = {name!r}: leave it out"
        )
    return kind, {**table, field: name}


def options_struct(table: str, name: str) -> Any:
    """Return the class of the struct of a `[game]` or `[solver]` table, or None if its name is unknown.

    table  "game" or "solver"
    name   name of the game or algorithm; a user's own must be loaded already

    Raises `ValueError` if the user's object is no game or no algorithm.
    """
    kinds, field, _ = _TAGGED[table]
    return kinds.get(name) or plugin_options(plugins.NAMED[table, field], name)


def _whole_numbers(value: Any) -> Any:
    """Return a parsed document with whole floats such as 2e10 as integers, at any depth.

    Keys of type float accept integers too.
    """
    if isinstance(value, Mapping):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def to_document(config: Config) -> dict[str, Any]:
    """Convert a config to a dictionary of plain values, with all defaults: {table: {key: value}}."""
    return msgspec.to_builtins(config)


def _plain(value: Any) -> Any:
    """Convert a value to lists and dictionaries; tuples become lists."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is msgspec.NODEFAULT else msgspec.to_builtins(value)


def foreign_keys(table: Mapping[str, Any], own: type[SolverConfig]) -> list[str]:
    """Return the sorted keys of a `[solver]` table that its struct `own` lacks and another algorithm has."""
    kinds = (*OPTIONS.values(), *loaded_options(plugins.ALGORITHMS))
    all_keys = {key for kind in kinds for key in kind.__struct_fields__}
    return sorted((set(table) & all_keys) - {*own.__struct_fields__})


def changed_keys(table: msgspec.Struct) -> dict[str, Any]:
    """Return {key: value} of a configuration table without keys that have their default.

    Tables inside it are dictionaries too. The game's `name` is always included, `algorithm` unless it is the default.
    """
    document: dict[str, Any] = {}
    tag = table.__struct_config__.tag
    if tag is not None and tag != DEFAULT_ALGORITHM:
        document[str(table.__struct_config__.tag_field)] = tag
    for field in fields_of(type(table)):
        value = getattr(table, field.name)
        if isinstance(value, msgspec.Struct):
            if (inside := changed_keys(value)) or not isinstance(field.default, msgspec.Struct):
                document[field.encode_name] = inside
        elif (plain := _plain(value)) != _plain(field.default):
            document[field.encode_name] = plain
    return document


def _explain(message: str, table: Any, name: str, kind: Any) -> str:
    """Convert an error message of msgspec to one with dotted key, value and allowed values.

    table  the table of the document that msgspec could not convert
    name   name of the table, such as "run"
    kind   class of the struct to which it was to be converted
    """
    text, _, where = message.partition(" - at `$")
    inside = [step for step in where.rstrip("`").replace("[...]", "").replace("[", ".[").split(".") if step]
    value = table
    for step in inside:
        if step.startswith("["):
            value = value[int(step[1:-1])] if step[1:-1].isdigit() and isinstance(value, list) else value
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
            kind = _fields(kind).get(step)
    key = ".".join([name, *inside]).replace(".[", "[")
    if "unknown field" in text:
        unknown, allowed = text.split("`")[1], sorted(_fields(kind))
        near = did_you_mean(unknown, allowed)
        return f"unknown key {shown(unknown)} in {key}; allowed: {', '.join(allowed) or 'none'}{near}"
    if "Invalid enum value" in text or "Invalid value" in text:
        names = _choices(kind)
        return f"{key} = {shown(value)} is not one of: {', '.join(map(repr, names))}{did_you_mean(value, names)}"
    if bound := re.fullmatch(r"Expected `\w+` (of length >=|[<>]=?) (\S+)", text):
        return f"{key} = {shown(value)} is not allowed: it must be {_BOUNDS[bound[1]]} {float(bound[2]):g}"
    if "missing required field" in text:
        return f"{key} needs the key {text.split('`')[1]!r}"
    return f"{key} = {shown(value)}: {text[0].lower()}{text[1:].replace('`', '')}"


def _choices(kind: Any) -> list[str]:
    """Return the allowed texts of a field's type: those of a `Literal`, alone or in a union."""
    inside = [name for part in getattr(kind, "__args__", ()) for name in getattr(part, "__args__", (part,))]
    return [name for name in inside if isinstance(name, str)]


def _fields(kind: Any) -> dict[str, Any]:
    """Return {key: type} of the fields of a struct, alone or in a union; {} for other types."""
    kinds = [k for k in (kind, *getattr(kind, "__args__", ())) if hasattr(k, "__struct_fields__")]
    if not kinds:
        return {}
    fields = {field.encode_name: field.type for field in fields_of(kinds[0])}
    if kinds[0].__struct_config__.tag is not None:
        fields[str(kinds[0].__struct_config__.tag_field)] = str
    return fields


def config_checks(config: Config) -> Iterator[Check]:
    """Yield (dotted key, True if valid, allowed values as text) for all rules on a configuration's values.

    Rules on single tables come before those on several. A dotted key is such as "run.interval".
    """
    for field in fields_of(Config):
        table = getattr(config, field.name)
        if isinstance(table, Table):
            yield from ((f"{field.name}.{key}", good, allowed) for key, good, allowed in table.checks())
    yield from config.checks()
