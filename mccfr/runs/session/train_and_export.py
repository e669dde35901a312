"""Trains a run, and at its end writes the export that its table `[export]` asks for."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from mccfr.config.run_tables import RunSettings
from mccfr.config.table_base import first_refused
from mccfr.config.toml_files import check_overrides, converted
from mccfr.config.value_limits import limit_problems
from mccfr.games.game import Game
from mccfr.runs.directory.run import Run
from mccfr.runs.phases import naming_phases
from mccfr.runs.reporter import Reporter
from mccfr.runs.results.export_place import export_path
from mccfr.runs.session.pools import PoolOpener, open_pool
from mccfr.runs.session.training_session import Outcome, train
from storage.open_directory import OpenDirectory, errors_shown

_KINDS = {"nodes", "iterations", "seconds"}


def limited(settings: RunSettings, limits: Mapping[str, Any], overridden: Iterable[str] = ()) -> RunSettings:
    """Return the `[run]` settings with this session's limits and workers filled in.

    limits      {"nodes", "iterations", "seconds" or "workers": value}; a value None counts as not given
    overridden  keys that `--set` changes, such as "run.nodes"

    If a limit of nodes, iterations or seconds is given, the configured limits of all three kinds are dropped.

    Raises `ValueError` for a number that a configuration may not have. Also if `overridden` has a key that `limits`
    sets, or the key of a limit that is dropped.
    """
    given = {key: value for key, value in limits.items() if value is not None}
    if _KINDS & set(given):
        given = {**dict.fromkeys(_KINDS), **given}
    check_overrides(overridden, (f"run.{key}" for key in given))
    changed = converted(msgspec.to_builtins(settings) | given, "run", RunSettings)
    if problem := next(limit_problems(changed, "run"), None) or first_refused(changed, changed.checks()):
        raise ValueError(problem)
    return changed


def train_and_export(
    run: Run, game: Game, reporter: Reporter, *, force: bool = False, pools: PoolOpener = open_pool
) -> tuple[Outcome, Path | None]:
    """Train a run until a limit or a signal, and at a limit write the export of its `[export]` table.

    force  do not check memory
    pools  opens the pool of workers: on this machine, or on several

    Returns (`Outcome` of the session, path of the export). The path is None if a signal has ended the session, or if
    there is no `[export]` table.

    Raises `MemoryError` or `OSError` if the tables do not fit in memory. Raises `RuntimeError` if all checkpoints are
    damaged, a worker died, or the disk fails in training or at the last checkpoint. Raises `AbandonedError` after a
    second signal, and `BlockingIOError` while another process works on the run. Raises `FileExistsError` if the
    export's path is taken by other files.
    """
    with OpenDirectory(run.directory) as opened, errors_shown():
        run = replace(run, directory=opened.path)  # valid if the run is moved
        outcome = train(run, game, reporter, force=force, pools=pools)
        return outcome, _exported(run, game, reporter, outcome)


def _exported(run: Run, game: Game, reporter: Reporter, outcome: Outcome) -> Path | None:
    """Write the configured export unless a signal ended the session; return its path, or None."""
    export = run.config.export
    if outcome.signal is not None or export is None:
        return None
    # Imported here because most runs export nothing.
    from mccfr.runs.results.run_export import ExportOptions, export_run

    options = ExportOptions("policy", export.quantise, outcome.checkpoint, replace=run.replace)
    with naming_phases(reporter) as naming:
        return export_run(run, game, export_path(export, outcome.directory), options, naming)
