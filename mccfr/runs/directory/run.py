"""Run directories: creates, opens and locks them.

A run directory has `config.toml` with every default, copies of the game's files in `inputs/`, and `manifest.json` with
the run's identity. It is self-contained, except for card abstractions and user code, which stay in their places: the
run has their paths and hashes. The identity includes game, solver and table formats, but not limits, workers and
evaluation points. These may change; `config.toml` has the `[run]` table of the last training.

User code is named in a configuration (`mccfr.config.plugins`). The manifest has the SHA-256 of its file, and for
training code the hash is part of the identity. The copy in `inputs/` serves for comparison and restoring.
"""

import errno
import json
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from abstraction.buckets import Abstraction, is_abstraction
from mccfr.common.package import VERSION
from mccfr.config import plugins
from mccfr.config.game_tables import OpaqueGame
from mccfr.config.run_tables import AbstractionConfig, Config
from mccfr.config.solver_tables import OpaqueSolver
from mccfr.config.toml_files import config_from, load_document, to_document
from mccfr.games.game import Game
from mccfr.games.registry import game_files
from mccfr.runs.directory import journal_records
from mccfr.runs.directory.identity import IdentityFields, identity_document, trained_code
from mccfr.solvers.game_from_config import configured_game, opponents_buckets
from mccfr.solvers.out_of_core import turns_of
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.solver import Algorithm
from mccfr.tables.table_layout import TableLayout
from storage import durable
from storage.damage import reading
from storage.json_files import typed
from storage.manifest import content_hash, read_manifest, write_manifest
from storage.open_directory import errors_shown
from storage.run_lock import Holder, RunLock, holder_of, lock_is_held, noted

FORMAT, FORMAT_VERSION = "mccfr-run", 4
MANIFEST, CONFIG, INPUTS, LOCK = "manifest.json", "config.toml", "inputs", "run.lock"
METRICS, EVALUATIONS, JOURNAL, LOG = "metrics.jsonl", "evaluations.jsonl", "journal.jsonl", "log.txt"
STOP = "stop-after-checkpoint"
"""File that exists while the session is asked to end at its next regular checkpoint."""
CHECKPOINTS, LIVE = "checkpoints", "live"
_ID_BYTES = 16


class _ManifestFields(msgspec.Struct, frozen=True):
    """Fields of a run's manifest that are read, with their types."""

    identity: str
    identity_document: IdentityFields
    created_by: str
    run_id: str
    code_sha256: dict[str, str]


@dataclass(frozen=True)
class Run:
    """An opened run directory.

    config    configuration of the run, with every default
    manifest  content of manifest.json, with the run's identity
    replace   whether the export at the end of training may replace an export of another run
    lock      lock of the run directory, held by this process; None: the process only reads the run
    lacks     a sentence on the run's card abstraction, if it is missing or wrong and the run was opened without it
    """

    directory: Path
    config: Config
    manifest: Mapping[str, Any]
    replace: bool = False
    lock: RunLock | None = None
    lacks: str | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """Identity that each checkpoint of the run must state: hash of the run's identity, and game name."""
        return checkpoint_identity(self.manifest)

    @property
    def run_id(self) -> str:
        """Random id that tells apart runs of one configuration; copies of a directory have the same id."""
        return str(self.manifest["run_id"])

    @property
    def algorithm(self) -> Algorithm:
        """Training algorithm that the run's `[solver]` table names."""
        return algorithm_of(self.config)

    def path(self, name: str) -> Path:
        """Return the path of a file or directory of the run, by its name in the run's directory."""
        return self.directory / name

    def abstraction(self) -> Abstraction | None:
        """Return the run's card abstraction, if it has one."""
        return None if self.abstraction_path is None else Abstraction(self.abstraction_path)

    @property
    def is_opaque(self) -> bool:
        """True if the game or solver is user code that was not imported (`open_run(opaque=True)`)."""
        return isinstance(self.config.game, OpaqueGame) or isinstance(self.config.solver, OpaqueSolver)

    @property
    def abstraction_path(self) -> Path | None:
        """Path of the run's card abstraction, or None."""
        wanted = self.config.abstraction
        return None if wanted is None else self.directory / wanted.path

    def build_game(self) -> Game:
        """Compile the run's game."""
        return configured_game(self.config, self.directory)

    def layout(self, game: Game) -> TableLayout:
        """Return name, shape and dtype of each of the run's tables (`TableLayout`)."""
        return self.algorithm.layout(game)

    @property
    def cycle_iterations(self) -> int:
        """Iterations of an out-of-core cycle, which trains each block of boards once."""
        return turns_of(self.config)[1]

    def check_lock(self) -> None:
        """Raise `LostDirectoryError` if this process holds the run's lock, but has lost its directory.

        This is so if the directory or the lock file was removed or replaced.
        """
        if self.lock is not None:
            self.lock.check()

    def append(self, name: str, record: Mapping[str, Any]) -> None:
        """Append a line of JSON to a file of the run, and return once it is on disk.

        name    file name in the run directory, such as "evaluations.jsonl"
        record  fields of the line
        """
        durable.append_line(self.path(name), json.dumps(record, allow_nan=False))

    def read(self, name: str) -> list[dict[str, Any]]:
        """Return all valid lines of a file of JSON lines of the run; [] if it does not exist."""
        return journal_records.read(self.path(name))

    def backwards(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the valid lines of a file of JSON lines of the run, the last one first.

        Reads the file only as far as needed.
        """
        return journal_records.backwards(self.path(name))


def checkpoint_identity(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity that each checkpoint of a run must state, from the run's manifest.

    It has the hash of the run's identity, and the game's name.
    """
    return {"run_identity": manifest["identity"], "game": manifest["identity_document"]["game"]["name"]}


def _without_nothing(value: Any) -> Any:
    """Return a copy of a value without entries that are None, because TOML has no null."""
    if isinstance(value, Mapping):
        return {key: _without_nothing(item) for key, item in value.items() if item is not None}
    return [_without_nothing(item) for item in value] if isinstance(value, list | tuple) else value


def create_run(config: Config, base: Path, directory: Path) -> Run:
    """Create and open a run directory for a configuration, whose files are relative to `base`.

    The directory is written under a temporary name and renamed, so it is complete or absent. Raises `BlockingIOError`
    if another process has created the run or is creating it. Raises `FileExistsError` if `directory` exists, is not
    empty and holds no run.
    """
    # First what is there, then whether it is a run: another process may create the run between the two.
    occupied = directory.exists() and (not directory.is_dir() or any(directory.iterdir()))
    if is_run(directory):  # callers have checked before: another process has created it since
        raise _is_created_by_another_process(directory)
    if occupied:
        raise FileExistsError(f"{directory} exists and is not a run directory: choose another with --run, or remove it")
    temporary = directory.with_name(f"{durable.TEMPORARY_PREFIX}{directory.name}")
    lock_of_temporary = _temporary_run(temporary, directory)
    with durable.making_dirs(directory.parent), lock_of_temporary, durable.naming(directory):
        _write_run(temporary, config, base)
        if directory.exists():
            directory.rmdir()
        durable.rename(temporary, directory)
        durable.fsync_dir(directory.parent)
    return open_run(directory)


def _is_created_by_another_process(directory: Path) -> BlockingIOError:
    text = f"{directory} is being created by another process: wait for it, stop it, or use another directory with --run"
    return BlockingIOError(errno.EWOULDBLOCK, text)


@contextmanager
def _temporary_run(temporary: Path, directory: Path) -> Iterator[None]:
    """Create an empty directory under the temporary name, and hold its run lock for the `with` block.

    Raises `BlockingIOError` if another process holds the lock, or has created or renamed the directory.
    """
    with durable.naming(temporary):
        if temporary.is_symlink() or temporary.is_file():
            temporary.unlink()
        with suppress(FileExistsError):
            durable.make_dir(temporary)
    run_lock = RunLock(temporary / LOCK)
    try:
        with durable.naming(directory):
            run_lock.acquire()
    except (BlockingIOError, FileNotFoundError):
        raise _is_created_by_another_process(directory) from None
    try:
        if not run_lock.is_in_place():
            raise _is_created_by_another_process(directory)
        if is_run(directory):
            durable.discard(temporary)
            raise _is_created_by_another_process(directory)
        _remove_all_but(LOCK, temporary)
        try:
            yield
        except BaseException:  # an error, or a signal
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    finally:
        run_lock.release()


def _remove_all_but(name: str, directory: Path) -> None:
    """Remove all files of a directory that a dead process has left, except the file `name`."""
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != name:
            entry.unlink()


def _write_run(temporary: Path, config: Config, base: Path) -> None:
    """Write a new run directory: config.toml, manifest.json and copies of files in `inputs/`."""
    import tomli_w

    document = to_document(config)
    sources, code = game_files(config.game, base), plugins.sources(document)
    if sources or code:
        durable.make_dir(temporary / INPUTS)
        for key, source in sources.items():
            name = source.name if len(sources) == 1 else f"{key}-{source.name}"
            durable.write_file(temporary / INPUTS / name, source.read_bytes())
            document["game"][key] = f"{INPUTS}/{name}"
        for (_, key), module in code.items():
            durable.write_file(temporary / INPUTS / f"code-{key}-{module.file.name}", module.file.read_bytes())
        durable.fsync_dir(temporary / INPUTS)
    if config.abstraction is not None:  # too large to copy: the run has its path and hashes
        document["abstraction"] = {"path": str((base / config.abstraction.path).resolve())}
    if config.solver.opponents is not None and (opponents := opponents_buckets(config, base)) is not None:
        document["solver"][config.solver.opponents[0]] = opponents.path
    if isinstance(start := document["solver"].get("warm_start"), str):
        document["solver"]["warm_start"] = str((base / start).resolve())
    durable.write_file(temporary / CONFIG, tomli_w.dumps(_without_nothing(document)).encode())
    identity = identity_document(config, base)
    fields = {
        "created_by": f"mccfr {VERSION}",
        "run_id": secrets.token_hex(_ID_BYTES),
        "identity": content_hash(identity),
        "identity_document": identity,
        "code_sha256": {source.name: source.sha256 for source in code.values()},
    }
    write_manifest(temporary / MANIFEST, FORMAT, FORMAT_VERSION, fields)
    durable.fsync_dir(temporary)


def is_run(directory: Path) -> bool:
    """Return whether a directory holds a run: it has a manifest and a configuration."""
    with reading():
        return (directory / MANIFEST).is_file() and (directory / CONFIG).is_file()


def read_run_manifest(directory: Path) -> dict[str, Any]:
    """Read the manifest of a run, and check the types of its fields.

    Raises `FileNotFoundError` if it does not exist, `DamagedError` if it is damaged, and `UnreadableError` if the
    system cannot read it. Raises `ValueError` for another format or version, and values of a wrong type.
    """
    manifest = read_manifest(directory / MANIFEST, FORMAT, FORMAT_VERSION)
    fields = typed(manifest, _ManifestFields, directory / MANIFEST)
    if not isinstance(fields.identity_document.game.get("name"), str):
        raise ValueError(f"{directory / MANIFEST}: identity_document.game has no name")
    return manifest


@reading()
def open_to_look(directory: Path, abstraction: Path | None = None) -> Run:
    """Open a run for reading only, even if its card abstraction is missing (`Run.lacks` then says so).

    Raises `ValueError` or `DamagedError` for a directory that is not a run, or a damaged one. Raises `UnreadableError`
    if the system cannot read a file. A missing or wrong abstraction raises `AbstractionError` only if `abstraction`,
    its present path, is given.
    """
    try:
        return open_run(directory, abstraction, opaque=True)
    except AbstractionError as error:
        if abstraction is not None:
            raise
        document, source = load_document(directory / CONFIG), str(directory / CONFIG)
        config = config_from(document, source, opaque=True)
        return Run(directory, config, read_run_manifest(directory), lacks=" ".join(str(error).split()))


class AbstractionError(ValueError):
    """Raised if the card abstraction of a run is missing, damaged or not the one it was trained on.

    Also raised if the opponents' abstraction is missing: one that the solver uses for the opponents only (CFR-BR).
    """


@reading()
def open_run(directory: Path, abstraction: Path | None = None, *, opaque: bool = False) -> Run:
    """Open a run directory.

    abstraction  present path of the run's card abstraction, if it was moved; another one raises `AbstractionError`
    opaque       True: do not import user code, so that a user-defined game or solver is known by name only. False:
                 import the user code that `mccfr.config.plugins` allows; other user code raises `ValueError`

    Raises `ValueError` or `DamagedError` with one sentence for a directory that is not a run, or a damaged one. Raises
    `UnreadableError` if the system cannot read a file of it.
    """
    if not is_run(directory):
        raise ValueError(f"{directory} is not a run directory (it has no {MANIFEST}); give one that `mccfr solve` made")
    _refuse_links(directory)
    manifest = read_run_manifest(directory)
    document, source = load_document(directory / CONFIG), str(directory / CONFIG)
    if opaque and plugins.user_code_names(document):
        config = config_from(document, source, opaque=True)
        config = _with_abstraction(directory, config, manifest["identity_document"].get("abstraction"), abstraction)
        return Run(directory, config, manifest)
    config = config_from(document, source, artefact_code=plugins.NamedCode(directory, manifest.get("code_sha256", {})))
    config = _with_abstraction(directory, config, manifest["identity_document"].get("abstraction"), abstraction)
    known = manifest["identity_document"]
    if (other := opponents_buckets(config, directory)) is not None and not is_abstraction(Path(other.path)):
        raise AbstractionError(f"{other.path} (abstraction of the opponents of {directory}) is missing: put it there")
    identity = identity_document(config, directory, known.get("abstraction"))
    for module in trained_code(config):
        if known.get("code", {}).get(module.name) != identity["code"][module.name]:
            raise ValueError(
                f"{module.file} has changed since {directory} was created: restore it (a copy of it is in "
                f"{directory / INPUTS}), or start a new run"
            )
    if identity != known:
        raise ValueError(
            f"{directory / CONFIG} or {INPUTS}/ was changed: identity {content_hash(identity)[:12]} is not the run's "
            f"{manifest['identity'][:12]}; restore it, or start a new run"
        )
    return Run(directory, config, manifest)


def _with_abstraction(directory: Path, config: Config, hashes: Any, moved_to: Path | None) -> Config:
    """Return the configuration with the path of the run's card abstraction, after comparing its hashes.

    hashes    {street: content hash} of the abstraction that the run was trained on; None: the run has none
    moved_to  the abstraction's present path; None: it was not moved

    Raises `AbstractionError` if the abstraction is missing, damaged or another one. Raises `ValueError` if the run has
    no abstraction, and `moved_to` is given.
    """
    if config.abstraction is None:
        if moved_to is not None:
            raise ValueError(f"{directory} is played without a card abstraction: leave --abstraction out")
        return config
    path = directory / config.abstraction.path if moved_to is None else moved_to.resolve()
    if not is_abstraction(path):
        raise AbstractionError(
            f"{path} is not an abstraction: {directory} was trained on {content_hash(hashes)[:12]}; name its "
            "directory with --abstraction, or put it there"
        )
    try:
        content = Abstraction(path).content_hashes()
    except ValueError as error:
        raise AbstractionError(str(error)) from error
    if content != hashes:
        raise AbstractionError(
            f"{path} is the abstraction {content_hash(content)[:12]}, and {directory} was trained on "
            f"{content_hash(hashes)[:12]}: give that one"
        )
    return msgspec.structs.replace(config, abstraction=AbstractionConfig(path=str(path)))


def _refuse_links(directory: Path) -> None:
    """Raise `ValueError` for a symbolic link in the run directory or its `inputs/`, except `live`.

    Such a link could let training change files elsewhere. `live` leads to the tables of a run in training.
    """
    inputs = directory / INPUTS
    entries = [*directory.iterdir(), *(inputs.iterdir() if inputs.is_dir() else ())]
    for entry in sorted(entries):
        if entry.is_symlink() and entry.name != LIVE:
            raise ValueError(
                f"{entry} is a symbolic link, and a run may contain none except {LIVE}: replace it by its target"
            )


@contextmanager
def lock(run: Run) -> Iterator[Run]:
    """Lock a run for the `with` block, and yield the run.

    The yielded run has a path that stays valid if its directory is moved.

    Errors that leave the block name the run's real path. Raises `BlockingIOError` while another process works on the
    run, and `ValueError` if another run has replaced it since it was opened.
    """
    with RunLock(run.path(LOCK)) as run_lock, errors_shown():
        directory = run_lock.directory.path
        if read_run_manifest(directory)["content_hash"] != run.manifest["content_hash"]:
            raise ValueError(f"{directory} now holds another run: run the command again")
        yield replace(run, directory=directory, lock=run_lock)


@reading()
def is_locked(run: Run) -> bool:
    """Return whether a process holds the run's lock; changes nothing."""
    return lock_is_held(run.path(LOCK))


@reading()
def worker_of(run: Run) -> Holder | None:
    """Return id and machine of the process that works on a run and so holds its lock; None: there is none."""
    return holder_of(run.path(LOCK)) if is_locked(run) else None


def phase_of(run: Run) -> str | None:
    """Return the last phase that a process wrote to the run's lock file, such as "training".

    It is the present phase if a process holds the lock. Returns None if no phase is written there.
    """
    return noted(run.path(LOCK))


def save_settings(run: Run) -> None:
    """Write the run's present `[run]` table to config.toml, so that `open_run` uses it in later sessions."""
    import tomli_w

    document, table = load_document(run.path(CONFIG)), _without_nothing(msgspec.to_builtins(run.config.run))
    if document["run"] != table:
        durable.replace_file(run.path(CONFIG), tomli_w.dumps(document | {"run": table}).encode())


def with_settings(run: Run, /, **settings: Any) -> Run:
    """Return a copy of the run with other limits or evaluation settings, which its identity excludes.

    settings  tables of the configuration that replace the run's, by name, such as `run`; nothing is written to disk
    """
    return replace(run, config=msgspec.structs.replace(run.config, **settings))
