"""Starts, continues and reads trainings saved in directories, as `mccfr solve` and `resume` do."""

import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from mccfr.api.api_types import Evaluation, Pathlike, Progress, evaluation_of, toml_value
from mccfr.common.arguments import checked
from mccfr.config import plugins
from mccfr.config.examples import copy_of_example, find_file
from mccfr.config.toml_files import config_from, load_document, override
from mccfr.games.game import Game
from mccfr.runs import reporter as report
from mccfr.runs.directory import run as rundir
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.results.run_export import ExportOptions, export_run
from mccfr.runs.session.start import Terms, prepare_run, start_run
from mccfr.runs.session.train_and_export import limited, train_and_export

_LIMITS = ("nodes", "iterations", "seconds", "workers")


class Run:
    """A run directory, which `mccfr solve` or `mccfr.solve` has created: status, evaluations, export."""

    @checked
    def __init__(self, directory: Pathlike, *, abstraction: Pathlike | None = None) -> None:
        """Open the run in a directory.

        abstraction  path of the run's card abstraction, if it was moved

        Raises `ValueError` or `OSError` if there is no run, or a damaged one.
        """
        self.directory = Path(directory)
        self.abstraction = None if abstraction is None else Path(abstraction)
        self._open()

    def _open(self) -> rundir.Run:
        return rundir.open_run(self.directory, self.abstraction)

    def __repr__(self) -> str:
        return f"mccfr.Run({str(self.directory)!r})"

    def status(self) -> dict[str, Any]:
        """Return a dictionary of the run's state and progress, as `mccfr status --json` prints it.

        "state" is for instance "running"; "iterations", "nodes_touched" and "nodes_per_second" are progress. Raises
        `ValueError` or `OSError` if the directory is no run any more, or a damaged one.
        """
        return run_status(rundir.open_to_look(self.directory, self.abstraction))

    def evaluations(self) -> list[Evaluation]:
        """Return a list with an `Evaluation` for each evaluation that the run has recorded, oldest first."""
        return [evaluation_of(record) for record in self._open().read(rundir.EVALUATIONS)]

    @checked
    def export(
        self,
        out: Pathlike,
        *,
        format: str = "policy",  # noqa: A002 - the name of the command's option
        quantise: str = "uint16",
        checkpoint: int | None = None,
        purify: bool = False,
        threshold: float = 0.0,
        replace: bool = False,
        license: str | None = None,  # noqa: A002 - the name of the command's option
    ) -> Path:
        """Write the average strategy of a checkpoint, or its tables, as `mccfr export`; return the path.

        It replaces an earlier export of this run at `out`; with `replace`, of another run too.

        format      "policy", "csv", "parquet" or "openspiel" for the strategy; "zarr" or "hdf5" for the training
                    tables; "networks" for a run of Deep CFR
        quantise    "uint8" or "uint16": type of the stored probabilities
        checkpoint  number of the checkpoint; None: the newest
        purify      True: play only the most probable action of each infoset
        threshold   remove actions below this probability, and rescale the others
        license     license that the export states for its data; None: not stated

        Raises `ValueError` for options that do not fit together, `FileExistsError` if `out` may not be replaced.
        """
        opened = self._open()
        options = ExportOptions(
            format, quantise, checkpoint, purify=purify, threshold=threshold, replace=replace, license=license
        )
        return export_run(opened, opened.build_game(), Path(out), options)


@checked
def solve(
    config: Pathlike | Mapping[str, Any],
    run: Pathlike | None = None,
    *,
    nodes: int | None = None,
    iterations: int | None = None,
    seconds: float | None = None,
    workers: int | None = None,
    overrides: Mapping[str, Any] | None = None,
    force: bool = False,
    replace: bool = False,
    progress: Callable[[object], object] | None = None,
) -> Run:
    """Start the run of a configuration, or continue it, as `mccfr solve`.

    config                      a TOML file; the name of an example, which is copied to runs/ first; or a dictionary of
                                tables.  In a dictionary, files are relative to the current directory.  A function or
                                class may be given itself, in place of its name `module:function`
    run                         run directory; None: runs/NAME for NAME.toml
    nodes, iterations, seconds  limits: nodes and iterations of the whole run; seconds of training in this session
    workers                     number of processes; 0: train in this process
    overrides                   keys to change: `{"solver.seed": 3}`
    force                       start even if memory or disk are too small
    replace                     the final export may replace one of another run
    progress                    called with message texts, each `Evaluation`, and a `Progress` every ten seconds;
                                `print` is sufficient

    Returns when a limit is reached.  At a signal it writes a checkpoint for `mccfr.resume`, and raises
    `KeyboardInterrupt` for Ctrl-C or `SystemExit(75)` for SIGHUP, SIGTERM and SIGUSR1.

    Raises `ValueError` and `OSError` with a message of one sentence, `MemoryError` if the tables do not fit in memory,
    and `RuntimeError` if a worker dies.
    """
    require_main_thread()
    terms = Terms(CallbackReporter(progress), force=force, replace=replace)

    def started(document: dict[str, Any], source: str, base: Path, directory: Path) -> tuple[rundir.Run, Game]:
        for key, value in (overrides or {}).items():
            if "." not in key:
                raise ValueError(f"mccfr.solve: overrides = {key!r}: table.key is needed, such as 'solver.seed'")
            override(document, key, toml_value(value), f"overrides = {key!r}")
        settings = config_from(document, source, (base,))
        limits = dict(zip(_LIMITS, (nodes, iterations, seconds, workers), strict=True))
        settings = msgspec.structs.replace(settings, run=limited(settings.run, limits, overrides or ()))
        return start_run(settings, base, directory, terms)

    if isinstance(config, Mapping):
        if run is None:
            raise ValueError(
                "mccfr.solve: a configuration in a dictionary has no file name: give the run directory with run=..."
            )
        document = toml_value(config)
        for (table, key), group in plugins.NAMED.items():
            if key in (inside := document.get(table) or {}):
                inside[key] = plugins.name_of_object(group, inside[key])
        opened = started(document, "mccfr.solve", Path(), Path(run))
    else:
        with copy_of_example(find_file(Path(config))) as (path, _):
            opened = started(load_document(path), str(path), path.parent, Path(run or Path("runs") / path.stem))
    return trained(*opened, terms)


@checked
def resume(
    run: "Pathlike | Run",
    *,
    nodes: int | None = None,
    iterations: int | None = None,
    seconds: float | None = None,
    workers: int | None = None,
    abstraction: Pathlike | None = None,
    force: bool = False,
    replace: bool = False,
    progress: Callable[[object], object] | None = None,
) -> Run:
    """Continue a run from its newest intact checkpoint, as `mccfr resume`; return it.

    run                         a `Run`, or the path of a run directory
    nodes, iterations, seconds  new limits: nodes and iterations of the whole run; seconds of this session
    workers                     number of processes; 0: train in this process
    abstraction                 path of the run's card abstraction, if it was moved; None: the one that a `Run` was
                                opened with
    force                       continue even if memory or disk are too small
    replace                     the final export may replace one of another run
    progress                    called with message texts, each `Evaluation`, and a `Progress` every ten seconds

    Without a limit here, those of the run's configuration apply.  Returns when a limit is reached.  At a signal it
    writes a checkpoint, and raises `KeyboardInterrupt` for Ctrl-C or `SystemExit(75)` for SIGHUP, SIGTERM and SIGUSR1.

    Raises `ValueError` and `OSError` with a message of one sentence, `MemoryError` if the tables do not fit in memory,
    and `RuntimeError` if a worker dies.
    """
    require_main_thread()
    opened = rundir.open_run(path_of(run), abstraction_path_of(run) if abstraction is None else Path(abstraction))
    limits = dict(zip(_LIMITS, (nodes, iterations, seconds, workers), strict=True))
    opened = rundir.with_settings(opened, run=limited(opened.config.run, limits))
    terms = Terms(CallbackReporter(progress), force=force, replace=replace)
    return trained(*prepare_run(opened, terms), terms)


def path_of(run: "Pathlike | Run") -> Path:
    """Return the directory of a run that is given as a `Run` or a path."""
    return run.directory if isinstance(run, Run) else Path(run)


def abstraction_path_of(run: object) -> Path | None:
    """Return the path of the card abstraction that was given when a `Run` was opened.

    Returns None if there was none or `run` is a path: then the path in the run's configuration applies.
    """
    return run.abstraction if isinstance(run, Run) else None


def require_main_thread() -> None:
    """Raise `ValueError` outside of the main thread, which alone receives signals."""
    if threading.current_thread() is not threading.main_thread():
        raise ValueError("a run handles signals, which Python delivers to the main thread only: call this from there")


def trained(opened: rundir.Run, game: Game, terms: Terms) -> Run:
    """Train a run to its limits, export its strategy if the configuration says so; return the `Run`.

    opened  the run's opened directory
    game    the game on which the run trains
    terms   receiver of messages, and whether to train with too little memory or disk

    Raises `KeyboardInterrupt` after Ctrl-C, and `SystemExit(75)` after another signal. Raises `RuntimeError` if a
    worker dies, and `MemoryError` or `OSError` if the tables do not fit in memory.
    """
    outcome, exported = train_and_export(opened, game, terms.reporter, force=terms.force)
    if exported is not None:
        terms.reporter.message(f"exported to {exported}")
    if outcome.signal == signal.SIGINT:
        how = "before anything was trained" if outcome.checkpoint is None else "with a checkpoint"
        raise KeyboardInterrupt(f"{outcome.directory} has stopped {how}: mccfr.resume goes on")
    if outcome.signal is not None:
        raise SystemExit(75)
    return Run(outcome.directory, abstraction=opened.abstraction_path)


class CallbackReporter(report.Silent):
    """Passes messages, evaluations and, every ten seconds, progress of a run to a function."""

    _SECONDS = 10.0

    def __init__(self, callback: Callable[[object], object] | None) -> None:
        self._callback = callback or (lambda text: None)
        self._at = time.monotonic()

    def message(self, text: str) -> None:
        """Call the function with a message's text."""
        self._callback(text)

    def progress(self, progress: report.SessionProgress) -> None:
        """Call the function with a `Progress` of the run, at most once every ten seconds."""
        if time.monotonic() - self._at >= self._SECONDS:
            self._at = time.monotonic()
            share = 0.0 if progress.share_done is None else progress.share_done
            counts = progress.iterations, progress.nodes, progress.training_seconds
            self._callback(Progress(*counts, progress.nodes_per_second, share))

    def evaluation(self, record: Mapping[str, Any]) -> None:
        """Call the function with an `Evaluation`, made of the fields of an evaluation's record."""
        self._callback(evaluation_of(record))
