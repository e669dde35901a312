"""Run directories: what they hold, what identifies a run, and how one is made and opened.

A run directory is self-contained: `config.toml` with every default written out, copies of the files that the game needs
under `inputs/`, `manifest.json` with the run's identity.  Limits, workers and evaluation points are no part of the
identity; game, solver and table formats are.

What a configuration names from outside of the package (`mccfr.config.outside`) is code, and stays where it is: the
manifest has the SHA-256 of its file, and that of what trains is a part of the identity.  The copy under `inputs/` is
there to be compared and restored.
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
from mccfr import __version__
from mccfr.config import outside
from mccfr.config.file import (
    config_from,
    load_document,
    opaque_config,
    to_document,
)
from mccfr.config.games import OpaqueGame
from mccfr.config.solvers import OpaqueSolver
from mccfr.config.tables import AbstractionConfig, Config
from mccfr.games.catalogue import game_files
from mccfr.games.game import Game
from mccfr.runs.directory import records
from mccfr.runs.directory.identity import IdentityFields, identity_document, trained_code
from mccfr.solvers.configured import configured_game, opponents_buckets
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.solver import Algorithm
from mccfr.tables.layout import TableLayout
from storage import durable
from storage.damage import reading
from storage.held_directory import errors_shown
from storage.json_files import typed
from storage.lock import Holder, RunLock, holder_of, is_held, noted
from storage.manifest import content_hash, read_manifest, write_manifest

FORMAT, FORMAT_VERSION = "mccfr-run", 4
MANIFEST, CONFIG, INPUTS, LOCK = "manifest.json", "config.toml", "inputs", "run.lock"
METRICS, EVALUATIONS, JOURNAL, LOG = "metrics.jsonl", "evaluations.jsonl", "journal.jsonl", "log.txt"
CHECKPOINTS, LIVE = "checkpoints", "live"
_ID_BYTES = 16


class _ManifestFields(msgspec.Struct, frozen=True):
    """A run's manifest."""

    identity: str
    identity_document: IdentityFields
    created_by: str
    run_id: str
    code_sha256: dict[str, str]


@dataclass(frozen=True)
class Run:
    """An opened run directory.

    replace  the export at the end of a session may take the place of another run's
    lock     that this process holds (`lock`); None: it only reads
    lacks    what is wrong with its card abstraction, of a run that was opened all the same; None: nothing
    """

    directory: Path
    config: Config
    manifest: Mapping[str, Any]
    replace: bool = False
    lock: RunLock | None = None
    lacks: str | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """What a checkpoint must have been made by: the hash of the identity document, and a readable part of it."""
        return checkpoint_identity(self.manifest)

    @property
    def run_id(self) -> str:
        """Return what tells the run from every other of its configuration; copies of its directory share it."""
        return str(self.manifest["run_id"])

    @property
    def algorithm(self) -> Algorithm:
        """What answers for the run's `[solver]`."""
        return algorithm_of(self.config)

    def path(self, name: str) -> Path:
        """A file or directory of the run."""
        return self.directory / name

    def abstraction(self) -> Abstraction | None:
        """The card abstraction that the run is played on, if there is one."""
        return None if self.abstraction_path is None else Abstraction(self.abstraction_path)

    @property
    def is_opaque(self) -> bool:
        """Return whether its game or solver is code of a user's that was not imported (`open_run(opaque=True)`)."""
        return isinstance(self.config.game, OpaqueGame) or isinstance(self.config.solver, OpaqueSolver)

    @property
    def abstraction_path(self) -> Path | None:
        """Where that lies."""
        wanted = self.config.abstraction
        return None if wanted is None else self.directory / wanted.path

    def build_game(self) -> Game:
        """Compile the run's game."""
        return configured_game(self.config, self.directory)

    def layout(self, game: Game) -> TableLayout:
        """Layout of the run's tables, with the dtypes chosen when it was created."""
        return self.algorithm.layout(game)

    def check_lock(self) -> None:
        """Raise `LostDirectoryError` where this process has locked the run, and its directory was removed since."""
        if self.lock is not None:
            self.lock.check()

    def append(self, name: str, record: Mapping[str, Any]) -> None:
        """Append one JSON line to a file of the run, durably."""
        durable.append_line(self.path(name), json.dumps(record, allow_nan=False))

    def read(self, name: str) -> list[dict[str, Any]]:
        """All sound lines of one of the run's journals; [] where there is none."""
        return records.read(self.path(name))

    def backwards(self, name: str) -> Iterator[dict[str, Any]]:
        """The sound lines of one of the run's journals, the last first; no more is read than is taken."""
        return records.backwards(self.path(name))


def checkpoint_identity(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity of the checkpoints of the run that has a manifest."""
    return {"run_identity": manifest["identity"], "game": manifest["identity_document"]["game"]["name"]}


def _without_nothing(value: Any) -> Any:
    """TOML has no null: absent keys mean the default, which is None for all that may be None."""
    if isinstance(value, Mapping):
        return {key: _without_nothing(item) for key, item in value.items() if item is not None}
    return [_without_nothing(item) for item in value] if isinstance(value, list | tuple) else value


def create_run(config: Config, base: Path, directory: Path, layout: TableLayout) -> Run:
    """Make a run directory for `config`, whose files are relative to `base`, with tables of the given layout.

    Everything is written under a temporary name and renamed, so that a run directory is whole or absent.  Raises
    `FileExistsError` where `directory` exists and is not empty, `BlockingIOError` where another process makes it.
    """
    if is_run(directory):  # by now: whoever makes a run has looked before
        raise _being_made_elsewhere(directory)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise FileExistsError(f"{directory} exists and is not a run directory: choose another with --run, or remove it")
    temporary = directory.with_name(f"{durable.TEMPORARY_PREFIX}{directory.name}")
    making = _being_made(temporary, directory)
    with durable.making_dirs(directory.parent), making, durable.naming(directory):
        _write_run(temporary, config, base, layout)
        if directory.exists():
            directory.rmdir()
        durable.rename(temporary, directory)
        durable.fsync_dir(directory.parent)
    return open_run(directory)


def _being_made_elsewhere(directory: Path) -> BlockingIOError:
    text = f"{directory} is being made by another process: wait for it, stop it, or use another directory with --run"
    return BlockingIOError(errno.EWOULDBLOCK, text)


@contextmanager
def _being_made(temporary: Path, directory: Path) -> Iterator[None]:
    """The directory of that name, made and empty but for the lock of a run, which this process holds meanwhile.

    Whoever comes second finds the lock held, or the directory renamed.
    """
    with durable.naming(temporary):
        if temporary.is_symlink() or temporary.is_file():
            temporary.unlink()
        with suppress(FileExistsError):
            durable.make_dir(temporary)
    held = RunLock(temporary / LOCK)
    try:
        with durable.naming(directory):
            held.acquire()
    except (BlockingIOError, FileNotFoundError):
        raise _being_made_elsewhere(directory) from None
    try:
        if not held.is_in_place():
            raise _being_made_elsewhere(directory)
        if is_run(directory):
            durable.discard(temporary)
            raise _being_made_elsewhere(directory)
        _remove_all_but(LOCK, temporary)
        try:
            yield
        except BaseException:  # an error, or a signal
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    finally:
        held.release()


def _remove_all_but(name: str, directory: Path) -> None:
    """What a process has left in a directory that died there."""
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != name:
            entry.unlink()


def _write_run(temporary: Path, config: Config, base: Path, layout: TableLayout) -> None:
    """Write what a new run directory holds."""
    import tomli_w

    document = to_document(config)
    sources, code = game_files(config.game, base), outside.sources(document)
    if sources or code:
        durable.make_dir(temporary / INPUTS)
        for key, source in sources.items():
            name = source.name if len(sources) == 1 else f"{key}-{source.name}"
            durable.write_file(temporary / INPUTS / name, source.read_bytes())
            document["game"][key] = f"{INPUTS}/{name}"
        for (_, key), module in code.items():
            durable.write_file(temporary / INPUTS / f"code-{key}-{module.file.name}", module.file.read_bytes())
        durable.fsync_dir(temporary / INPUTS)
    if config.abstraction is not None:  # far too large to copy: the run refers to it, and knows its hashes
        document["abstraction"] = {"path": str((base / config.abstraction.path).resolve())}
    if config.solver.opponents is not None and (opponents := opponents_buckets(config, base)) is not None:
        document["solver"][config.solver.opponents[0]] = opponents.path
    if isinstance(start := document["solver"].get("warm_start"), str):
        document["solver"]["warm_start"] = str((base / start).resolve())
    durable.write_file(temporary / CONFIG, tomli_w.dumps(_without_nothing(document)).encode())
    identity = identity_document(config, base)
    fields = {
        "created_by": f"mccfr {__version__}",
        "run_id": secrets.token_hex(_ID_BYTES),
        "identity": content_hash(identity),
        "identity_document": identity,
        "code_sha256": {source.name: source.sha256 for source in code.values()},
    }
    write_manifest(temporary / MANIFEST, FORMAT, FORMAT_VERSION, fields)
    durable.fsync_dir(temporary)


def is_run(directory: Path) -> bool:
    """Whether a directory holds a run (a checkpoint has a manifest too, but no config)."""
    with reading():
        return (directory / MANIFEST).is_file() and (directory / CONFIG).is_file()


def read_run_manifest(directory: Path) -> dict[str, Any]:
    """Read the manifest of a run; raises as `storage.manifest.read_manifest`, and `ValueError` for values of a wrong
    type.
    """
    manifest = read_manifest(directory / MANIFEST, FORMAT, FORMAT_VERSION)
    fields = typed(manifest, _ManifestFields, directory / MANIFEST)
    if not isinstance(fields.identity_document.game.get("name"), str):
        raise ValueError(f"{directory / MANIFEST}: identity_document.game has no name")
    return manifest


@reading()
def open_to_look(directory: Path, abstraction: Path | None = None) -> Run:
    """Open a run to read its own files alone: as `open_run`, also where its abstraction was moved (`lacks`)."""
    try:
        return open_run(directory, abstraction, opaque=True)
    except AbstractionError as error:
        if abstraction is not None:
            raise
        document, source = load_document(directory / CONFIG), str(directory / CONFIG)
        config = opaque_config(document, source) if outside.guests(document) else config_from(document, source)
        return Run(directory, config, read_run_manifest(directory), lacks=" ".join(str(error).split()))


class AbstractionError(ValueError):
    """The card abstraction of a run is not where it was, or another one."""


@reading()
def open_run(directory: Path, abstraction: Path | None = None, *, opaque: bool = False) -> Run:
    """Open a run directory.

    Raises `ValueError` or `DamagedError` of one sentence where it is none, or damaged, and `UnreadableError` where the
    system cannot read a file of it.

    abstraction  where the run's card abstraction lies now, if not where it was when the run was made; another one is
                 refused
    opaque       import nothing that it names from outside: such a game or solver has its name alone.  Otherwise
                 `mccfr.config.outside` says what may be imported; `ValueError` for all else
    """
    if not is_run(directory):
        raise ValueError(f"{directory} is not a run directory (it has no {MANIFEST}); give one that `mccfr solve` made")
    _refuse_links(directory)
    manifest = read_run_manifest(directory)
    document, source_of_it = load_document(directory / CONFIG), str(directory / CONFIG)
    if opaque and outside.guests(document):
        config = opaque_config(document, source_of_it)
        config = _with_abstraction(directory, config, manifest["identity_document"].get("abstraction"), abstraction)
        return Run(directory, config, manifest)
    config = config_from(document, source_of_it, kept=outside.Kept(directory, manifest.get("code_sha256", {})))
    config = _with_abstraction(directory, config, manifest["identity_document"].get("abstraction"), abstraction)
    known = manifest["identity_document"]
    if (other := opponents_buckets(config, directory)) is not None and not is_abstraction(Path(other.path)):
        raise AbstractionError(
            f"{other.path} is not an abstraction: the opponents of {directory} have it, put it there"
        )
    found = identity_document(config, directory, known.get("abstraction"))
    for source in trained_code(config):
        if known.get("code", {}).get(source.name) != found["code"][source.name]:
            raise ValueError(
                f"{source.file} has changed since {directory} was made: restore it (as it was, it is in "
                f"{directory / INPUTS}), or start a new run"
            )
    if found != known:
        raise ValueError(
            f"{directory / CONFIG} or {INPUTS}/ was changed: identity {content_hash(found)[:12]} is not the run's "
            f"{manifest['identity'][:12]}; restore it, or start a new run"
        )
    return Run(directory, config, manifest)


def _with_abstraction(directory: Path, config: Config, hashes: Any, given: Path | None) -> Config:
    """The configuration with the place `given` for its abstraction, whose streets must have the `hashes` of the run.

    Raises `ValueError` where there is none at its place, or another one; the message has both hashes.
    """
    if config.abstraction is None:
        if given is not None:
            raise ValueError(f"{directory} is played without a card abstraction: leave --abstraction out")
        return config
    path = directory / config.abstraction.path if given is None else given.resolve()
    if not is_abstraction(path):
        raise AbstractionError(
            f"{path} is not an abstraction: {directory} was trained on {content_hash(hashes)[:12]}; name its "
            "directory with --abstraction, or put it there"
        )
    try:
        found = Abstraction(path).content_hashes()
    except ValueError as error:
        raise AbstractionError(str(error)) from error
    if found != hashes:
        raise AbstractionError(
            f"{path} is the abstraction {content_hash(found)[:12]}, and {directory} was trained on "
            f"{content_hash(hashes)[:12]}: give that one"
        )
    return msgspec.structs.replace(config, abstraction=AbstractionConfig(path=str(path)))


def _refuse_links(directory: Path) -> None:
    """Nothing of a run is a symbolic link but the one to its live tables: files would change under its manifest."""
    inputs = directory / INPUTS
    entries = [*directory.iterdir(), *(inputs.iterdir() if inputs.is_dir() else ())]
    for entry in sorted(entries):
        if entry.is_symlink() and entry.name != LIVE:
            raise ValueError(
                f"{entry} is a symbolic link, as nothing of a run but {LIVE} may be: put what it leads to in its place"
            )


@contextmanager
def lock(run: Run) -> Iterator[Run]:
    """Lock a run and yield it for writing: its `directory` is a path that leads to it wherever it is moved.

    Errors that leave the block name the place where the run is.  Raises `BlockingIOError` while another process works
    on the run, and `ValueError` where another run has taken its place since it was opened.
    """
    with RunLock(run.path(LOCK)) as held, errors_shown():
        directory = held.directory.path
        if read_run_manifest(directory)["content_hash"] != run.manifest["content_hash"]:
            raise ValueError(f"{directory} holds another run than a moment ago: run the command again")
        yield replace(run, directory=directory, lock=held)


@reading()
def is_locked(run: Run) -> bool:
    """Whether some process works on the run; needs no more than to read."""
    return is_held(run.path(LOCK))


@reading()
def worker_of(run: Run) -> Holder | None:
    """The process that works on the run; None where there is none."""
    return holder_of(run.path(LOCK)) if is_locked(run) else None


def phase_of(run: Run) -> str | None:
    """What the process that works on the run is doing, in a few words; only while `is_locked` does it mean anything."""
    return noted(run.path(LOCK))


def with_settings(run: Run, /, **settings: Any) -> Run:
    """The run with other limits or evaluation settings: nothing that belongs to its identity."""
    return replace(run, config=msgspec.structs.replace(run.config, **settings))
