"""Identity of a run: the part of its configuration that determines its results."""

import math
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from abstraction.buckets import Abstraction
from mccfr.config import plugins
from mccfr.config.run_tables import Config
from mccfr.config.toml_files import changed_keys, to_document
from mccfr.games.registry import game_files
from mccfr.solvers.game_from_config import opponents_buckets
from mccfr.solvers.out_of_core import turns_of
from storage.damage import reading
from storage.manifest import content_hash


class IdentityFields(msgspec.Struct, frozen=True):
    """A run's identity in its manifest: the values of its configuration that determine its results.

    game, solver, tables, run  {key: value} of these tables of the configuration
    code                       {name of user code in the configuration, "module:object": SHA-256 of its file}
    abstraction                {street: hash} of the card abstraction's content; None: no abstraction
    """

    game: dict[str, Any]
    solver: dict[str, Any]
    tables: dict[str, Any] = {}
    run: dict[str, Any] = {}
    code: dict[str, str] = {}
    abstraction: dict[str, str] | None = None


def _finite(value: Any) -> Any:
    """Return a copy of a value in which infinite numbers are text, because JSON has no infinity."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def identity_document(config: Config, base: Path, buckets: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return {table: {key: value}}, the identity of a configuration's run: it determines the results.

    These are game, solver, formats and dtypes of the tables, user code, and the division of boards into strata. Hashes
    of files and of the card abstraction are included too. A stratum is a group of second-street boards with buckets of
    its own, trained by one worker at a time.

    Only values that differ from their defaults are included, so that new keys leave the identity of older runs
    unchanged.

    base     directory that the configuration's files are relative to
    buckets  {street: hash} of the card abstraction's content, if already known
    """
    document, game = _finite(changed_keys(config)), game_document(config, base)
    kept = ("format", "regret_dtype", "sum_dtype")
    tables = {key: value for key, value in document.get("tables", {}).items() if key in kept}
    solver = document.get("solver", {})
    if isinstance(solver.get("warm_start"), str):  # not in the identity: the initial tables may be moved or deleted
        del solver["warm_start"]
    if (opponents := opponents_buckets(config, base)) is not None and config.solver.opponents is not None:
        solver[config.solver.opponents[0]] = content_hash(Abstraction(Path(opponents.path)).content_hashes())
    identity = {"game": game, "solver": solver, "tables": tables}
    if code := {source.name: source.sha256 for source in trained_code(config)}:
        identity["code"] = code
    if config.run.strata is not None:
        identity["run"] = {"strata": config.run.strata}
        if "interval" in document.get("run", {}):
            identity["run"]["interval"] = config.run.interval
        if config.tables.memory_budget is not None:
            blocks, iterations = turns_of(config)
            identity["run"] |= {"blocks": blocks, "cycle_iterations": iterations}
    if config.abstraction is not None:
        identity["abstraction"] = buckets or Abstraction(base / config.abstraction.path).content_hashes()
    return identity


def game_document(config: Config, base: Path) -> dict[str, Any]:
    """Return {key: value}, the identity of a configuration's game.

    It has the keys of the `[game]` table that differ from their defaults. Keys that name files are left out; the key
    `files_sha256` has a list of the files' hashes instead.

    base  directory that the configuration's files are relative to

    Raises `OSError` if a file cannot be read.
    """
    changed = _finite(changed_keys(config))["game"]
    game = {key: value for key, value in changed.items() if key not in config.game.file_keys}
    game["files_sha256"] = [_sha256(path) for path in game_files(config.game, base).values()]
    return game


def _sha256(path: Path) -> str:
    with reading(path):
        return sha256(path.read_bytes()).hexdigest()


def trained_code(config: Config) -> list[plugins.Source]:
    """Return the user-defined Python modules that determine training, with files and SHA-256.

    These are all modules that the configuration names, except those of evaluation methods.
    """
    sources = plugins.sources(to_document(config))
    return [source for (table, _), source in sources.items() if table != "evaluation"]


def check_same_run(directory: Path, manifest: Mapping[str, Any], config: Config, base: Path) -> None:
    """Raise `ValueError`, naming the keys that differ, unless a configuration has the identity of a run.

    directory  directory of the run, for the message
    manifest   manifest of the run
    base       directory that the configuration's files are relative to
    """
    own, other = manifest["identity_document"], identity_document(config, base)
    if other == own:
        return
    if own["game"]["name"] != other["game"]["name"]:
        other, own = ({"game": {"name": document["game"]["name"]}} for document in (other, own))
    differences = [
        f"{table}.{key} = {_shown(config, own, table, key)} there and {_shown(config, other, table, key)} here"
        for table in sorted({*own, *other})
        for key in sorted({*own.get(table, {}), *other.get(table, {})})
        if own.get(table, {}).get(key) != other.get(table, {}).get(key)
    ]
    raise ValueError(f"{directory} holds another run: {'; '.join(differences)}; choose another directory with --run")


def _shown(config: Config, document: Mapping[str, Any], table: str, key: str) -> str:
    """Return the value of a key in an identity as text; for a key that it lacks, the default's text.

    config    configuration that has the defaults
    document  the identity: {table: {key: value}}
    table     name of the key's table, such as "solver"
    """
    if key in document.get(table, {}):
        return repr(document[table][key])
    fields = msgspec.structs.fields(getattr(config, table)) if hasattr(config, table) else ()
    default = next((field.default for field in fields if field.encode_name == key), msgspec.NODEFAULT)
    return "absent" if default is msgspec.NODEFAULT else repr(default)
