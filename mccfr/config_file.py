"""Run configurations from TOML files and back: overrides, checks, and messages that help.

A configuration error is a `ValueError` of one sentence that names the file, the key, the value and what is allowed.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mccfr.config import OPTIONS, Config, GameConfig, SampledConfig, SolverConfig
from mccfr.config_limits import limit_problems, shown

DEFAULT_ALGORITHM = "external-sampling"
"""Of a `[solver]` table that names none."""


def parse_override(text: str) -> tuple[str, Any]:
    """Split `table.key=value` (the value in TOML; a bare word is taken as a string); `ValueError` if it is not that."""
    path, sign, value = text.partition("=")
    if not sign or "." not in path:
        raise ValueError(f"--set {text}: expected table.key=value, for example --set solver.seed=3")
    try:
        found = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return path.strip(), value.strip()
    except (ValueError, RecursionError) as error:
        raise ValueError(f"--set {path}={shown(value)}: not a value of TOML: {error}") from None
    return path.strip(), found


def load_document(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """A run's TOML file as it stands, with `--set` overrides; `ValueError` for what is no TOML file."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"{path}: no such file; give the path of a run's TOML file, such as runs/subgame.toml"
        ) from None
    except RecursionError:
        raise ValueError(f"{path}: lists or tables are nested too deep") from None
    except (ValueError, IsADirectoryError) as error:  # bad TOML, bad UTF-8, numbers of thousands of digits
        raise ValueError(f"{path}: not a TOML file: {error}") from None
    for text in overrides:
        keys, value = parse_override(text)
        table = document
        for key in keys.split(".")[:-1]:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise ValueError(f"--set {text}: {key!r} is not a table")
        table[keys.rsplit(".", 1)[1]] = value
    return document


def load_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read a run's TOML file and apply `--set` overrides; `ValueError` naming file, key, value and what is allowed."""
    return config_from(load_document(path, overrides), str(path))


def config_from(document: Mapping[str, Any], source: str) -> Config:
    """A `Config` from parsed TOML; `source` names it in errors (`ValueError`)."""
    try:
        tables = _whole_numbers(document)
        solver = tables.pop("solver", {})
        config = msgspec.convert(tables, Config)
    except msgspec.ValidationError as error:
        raise ValueError(f"{source}: {_explain(str(error), document)}") from None
    except (OverflowError, RecursionError) as error:
        raise ValueError(f"{source}: a number is too large, or lists are nested too deep: {error}") from None
    config = msgspec.structs.replace(config, solver=_solver(solver, source))
    for problem in (*limit_problems(config), *_problems(config)):
        raise ValueError(f"{source}: {problem}")
    return config


def _whole_numbers(value: Any) -> Any:
    """The document with 2e10 as a whole number, which TOML takes for a float; keys for fractions take both."""
    if isinstance(value, Mapping):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def to_document(config: Config) -> dict[str, Any]:
    """Plain dictionary of a config, every default written out: what run directories and identities keep."""
    return msgspec.to_builtins(config)


def _plain(value: Any) -> Any:
    """A value in lists and dictionaries; tuples become lists."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is msgspec.NODEFAULT else msgspec.to_builtins(value)


def _solver(table: Any, source: str) -> SolverConfig:
    """The `[solver]` table of the algorithm it names; keys of other algorithms are left out (`ignored_keys`)."""
    if not isinstance(table, Mapping):
        raise ValueError(f"{source}: solver = {table!r}: expected a table")
    name = table.get("algorithm", DEFAULT_ALGORITHM)
    if not isinstance(name, str) or name not in OPTIONS:
        raise ValueError(f"{source}: solver.algorithm = {shown(name)} is not one of: {', '.join(map(repr, OPTIONS))}")
    options = OPTIONS[name]
    foreign = set(ignored_keys({"solver": table}))
    own = {key: value for key, value in table.items() if key not in foreign}
    try:
        return msgspec.convert({**own, "algorithm": name}, options)
    except msgspec.ValidationError as error:
        raise ValueError(f"{source}: {_explain(str(error), {'solver': own}, 'solver', options)}") from None
    except (OverflowError, RecursionError) as error:
        raise ValueError(f"{source}: a number is too large, or lists are nested too deep: {error}") from None


def ignored_keys(document: Mapping[str, Any]) -> list[str]:
    """Keys of a document's `[solver]` that are another algorithm's, or say nothing without `dcfr`."""
    table = document.get("solver", {})
    options = OPTIONS.get(str(table.get("algorithm", DEFAULT_ALGORITHM)), SolverConfig)
    known = {key for kind in OPTIONS.values() for key in kind.__struct_fields__}
    ignored = (set(table) & known) - set(options.__struct_fields__)
    if issubclass(options, SampledConfig) and table.get("discount") != "dcfr":
        ignored |= set(table) & {"alpha", "beta"}
    return sorted(ignored)


def changed_keys(table: msgspec.Struct) -> dict[str, Any]:
    """As `to_document`, without the keys that have their default."""
    document: dict[str, Any] = {}
    tag = table.__struct_config__.tag
    if tag is not None and tag != DEFAULT_ALGORITHM:
        document[str(table.__struct_config__.tag_field)] = tag
    for field in msgspec.structs.fields(table):
        value = getattr(table, field.name)
        if isinstance(value, msgspec.Struct):
            if (inside := changed_keys(value)) or not isinstance(field.default, msgspec.Struct):
                document[field.encode_name] = inside
        elif (given := _plain(value)) != _plain(field.default):
            document[field.encode_name] = given
    return document


def _explain(message: str, document: Mapping[str, Any], table: str = "", options: Any = Config) -> str:
    """Turn msgspec's message into one with the key's dotted path, its value and what is allowed.

    table, options  what was converted: a table of the document, and the struct for it; else all of it
    """
    text, _, where = message.partition(" - at `$")
    inside = [step for step in where.rstrip("`").replace("[", ".[").split(".") if step]
    steps = [table, *inside] if table else inside
    value: Any = document[table] if table else document
    kind: Any = options
    for step in inside:
        if step.startswith("["):
            value = value[int(step[1:-1])] if step[1:-1].isdigit() and isinstance(value, list) else value
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
            kind = _field_type(kind, step, document)
    key = ".".join(steps).replace(".[", "[") or "the top level"
    if "unknown field" in text:
        unknown = text.split("`")[1]
        fields = _fields(kind, document)
        return f"unknown key {shown(unknown)} in {key}; allowed: {', '.join(sorted(fields)) or 'none'}"
    if "Invalid enum value" in text or "Invalid value" in text:
        names = _choices(kind)
        return f"{key} = {shown(value)} is not one of: {', '.join(map(repr, names))}"
    if "missing required field" in text:
        return f"{key} needs the key {text.split('`')[1]!r}"
    return f"{key} = {shown(value)}: {text[0].lower()}{text[1:].replace('`', '')}"


def _game_class(document: Mapping[str, Any]) -> Any:
    """The struct that a document's `game.name` chooses, if any."""
    table = document.get("game")
    name = table.get("name") if isinstance(table, Mapping) else None
    return next((c for c in GameConfig.__args__ if c.__struct_config__.tag == name), None)


def _fields(kind: Any, document: Mapping[str, Any]) -> dict[str, Any]:
    """Field types of a struct (the chosen game's where the type is the union of games)."""
    if kind == GameConfig:
        kind = _game_class(document)
    kinds = [k for k in (kind, *getattr(kind, "__args__", ())) if hasattr(k, "__struct_fields__")]
    if not kinds:
        return {}
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kinds[0])}
    if kinds[0].__struct_config__.tag is not None:
        fields["name"] = str
    return fields


def _field_type(kind: Any, step: str, document: Mapping[str, Any]) -> Any:
    return _fields(kind, document).get(step)


def _choices(kind: Any) -> list[Any]:
    """What a key may be: the values of a `Literal`, or the names of the games."""
    if kind is None or kind == GameConfig:  # game.name itself is wrong: no struct is chosen yet
        return [c.__struct_config__.tag for c in GameConfig.__args__]
    return list(getattr(kind, "__args__", ()))


def _problems(config: Config) -> list[str]:
    """Checks that types cannot express, one sentence each."""
    solver, run, tables = config.solver, config.run, config.tables
    checks = [
        *((good, f"solver.{key}", getattr(solver, key), allowed) for key, good, allowed in solver.checks()),
        (0 <= run.workers <= 1024, "run.workers", run.workers, "0 (in this process) to 1024"),
        (run.nodes is None or run.nodes >= 0, "run.nodes", run.nodes, "at least 0"),
        (run.iterations is None or run.iterations >= 0, "run.iterations", run.iterations, "at least 0"),
        (run.seconds is None or 0 <= run.seconds < float("inf"), "run.seconds", run.seconds, "at least 0"),
        (run.checkpoint_seconds > 0, "run.checkpoint_seconds", run.checkpoint_seconds, "above 0"),
        (
            run.checkpoint_nodes is None or run.checkpoint_nodes >= 1,
            "run.checkpoint_nodes",
            run.checkpoint_nodes,
            "at least 1",
        ),
        (run.keep_checkpoints >= 1, "run.keep_checkpoints", run.keep_checkpoints, "at least 1"),
        (
            all(n >= 0 for n in config.evaluation.at_nodes),
            "evaluation.at_nodes",
            config.evaluation.at_nodes,
            "at least 0",
        ),
        (
            all(n >= 0 for n in config.evaluation.at_iterations),
            "evaluation.at_iterations",
            config.evaluation.at_iterations,
            "at least 0",
        ),
        (config.evaluation.boards >= 2, "evaluation.boards", config.evaluation.boards, "at least 2"),
        (0 <= config.evaluation.seed < 2**63, "evaluation.seed", config.evaluation.seed, "0 to 2**63 - 1"),
        (bool(tables.live_dir), "tables.live_dir", tables.live_dir, '"auto" or a directory'),
        (
            tables.strategy_sums == "all" or solver.averages_snapshots,
            "tables.strategy_sums",
            tables.strategy_sums,
            f"'all' with solver.algorithm = {solver.__struct_config__.tag!r}",
        ),
        (
            tables.strategy_sums == "all" or (tables.snapshot_nodes is not None and tables.snapshot_nodes >= 1),
            "tables.snapshot_nodes",
            tables.snapshot_nodes,
            "a number of nodes, at least 1, with tables.strategy_sums = 'preflop'",
        ),
        (
            tables.strategy_sums == "preflop" or tables.snapshot_nodes is None,
            "tables.snapshot_nodes",
            tables.snapshot_nodes,
            "left out unless tables.strategy_sums = 'preflop'",
        ),
    ]
    return [
        f"{key} = {value!r} is not allowed: it must be {allowed}" for good, key, value, allowed in checks if not good
    ]
