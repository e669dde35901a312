"""Reports the state of a run from its files, and stops the process that works on it."""

import os
import signal
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from mccfr.config.game_tables import GameConfig
from mccfr.config.solver_tables import SolverConfig
from mccfr.runs.directory.run import (
    CHECKPOINTS,
    EVALUATIONS,
    JOURNAL,
    LIVE,
    METRICS,
    STOP,
    Run,
    is_locked,
    is_run,
    open_to_look,
    phase_of,
    worker_of,
)
from mccfr.runs.directory.state import check_belongs_to_run
from mccfr.runs.directory.trends import TRENDS
from storage.damage import reading
from storage.durable import TEMPORARY_PREFIX
from storage.locked_checkpoints import open_locked

RECENT_SECONDS = 600.0
"""Training time, in seconds, over which the recent speed is measured."""
_RECENT_EVALUATIONS = 50
_LOOK_SECONDS = 0.1  # between two looks for the end of a stopped process
_RECENT_LINES = 2000  # most lines of metrics read for it: 600 seconds with long evaluations in between


def named(table: GameConfig | SolverConfig) -> str:
    """Return the name of a configuration's game or training algorithm.

    It is the `name` of a `[game]` table, or the `algorithm` of a `[solver]` table.
    """
    return str(getattr(table, "named", table.__struct_config__.tag))


def runs_on(abstraction: Path, folder: Path = Path("runs")) -> list[Path]:
    """Return the run directories below a folder that use a card abstraction.

    They are folder/RUN and folder/EXPERIMENT/runs/RUN, with any names RUN and EXPERIMENT.

    abstraction  path of the abstraction, which config.toml of such a run names

    Runs without a readable config.toml are left out.
    """
    runs = []
    for file in sorted({*folder.glob("*/config.toml"), *folder.glob("*/runs/*/config.toml")}):
        try:
            document = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # unreadable configurations are reported by other commands
        references = [document.get("abstraction", {}).get("path"), *document.get("solver", {}).values()]
        paths = [(file.parent / name).resolve() for name in references if isinstance(name, str)]
        if abstraction.resolve() in paths and is_run(file.parent):
            runs.append(file.parent)
    return runs


def recent_speed(metrics: Sequence[Mapping[str, Any]], seconds: float) -> float | None:
    """Return the training speed in nodes per second, over the newest metrics that span `seconds`.

    metrics  lines of metrics.jsonl, oldest first
    seconds  training time

    If the metrics span less time, all of them count. Returns None for fewer than two metrics, or without training
    time between them.
    """
    if len(metrics) < 2:
        return None
    last = metrics[-1]
    before = next(
        (m for m in reversed(metrics[:-1]) if last["training_seconds"] - m["training_seconds"] >= seconds), metrics[0]
    )
    seconds_spent = last["training_seconds"] - before["training_seconds"]
    return (last["nodes_touched"] - before["nodes_touched"]) / seconds_spent if seconds_spent > 0 else None


def _recent(metrics: Iterator[Mapping[str, Any]], seconds: float, since: float) -> list[Mapping[str, Any]]:
    """Return the newest metrics of the last training that span `seconds`, oldest first.

    metrics  lines of metrics.jsonl, newest first; at most `_RECENT_LINES` are read
    seconds  training time; if the lines read span less, all of them are returned
    since    time at which this training began, in seconds since 1970; earlier metrics are left out
    """
    recent: list[Mapping[str, Any]] = []
    for record in islice(metrics, _RECENT_LINES):
        if record["unix_seconds"] < since:
            break
        recent.append(record)
        if recent[0]["training_seconds"] - record["training_seconds"] >= seconds:
            break
    return recent[::-1]


def _session(journal: Iterator[Mapping[str, Any]]) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """Return the events (end, start) of the last training; None for an event that is missing.

    An event is a line of journal.jsonl, such as "failed" or "started".

    journal  lines of journal.jsonl, newest first

    If a process failed before its training started, its end is returned with the start of an earlier training.
    """
    ended = None
    for record in journal:
        if record.get("event") == "started":
            return ended, record
        ended = ended or (record if "event" in record else None)
    return ended, None


@reading()
def run_status(run: Run) -> dict[str, Any]:
    """Return the state, counts, speeds and newest evaluations of a run: the fields of `status --json`.

    Raises `DamagedError` if the newest checkpoint is damaged, and `ValueError` if it belongs to another run.
    """
    newest = open_locked(run.path(CHECKPOINTS))
    if newest is not None:
        check_belongs_to_run(run, newest)
    saved = newest.state if newest else {"nodes_touched": 0, "iterations": 0, "period": 1, "training_seconds": 0.0}
    running, worker = is_locked(run), worker_of(run)
    ended, started = _session(run.backwards(JOURNAL))
    is_starting = running and ended is not None
    metrics = _recent(run.backwards(METRICS), RECENT_SECONDS, started["unix_seconds"] if started else 0.0)
    last = metrics[-1] if metrics and not is_starting else None
    # Only while the run is running, the metrics may be newer than the newest checkpoint.
    counts = last if running and last and last["nodes_touched"] > saved["nodes_touched"] else saved
    state = ended["event"] if ended else "interrupted" if started else "stopped"
    trend = next(run.backwards(TRENDS), {})
    return {
        "phase": phase_of(run) if running else None,
        "state": "running" if running else state,
        "failure": ended.get("problem") if ended and not running else None,
        "abstraction_problem": run.lacks,
        "process": worker.process if worker else None,
        "machine": worker.machine if worker else None,
        "nodes_touched": counts["nodes_touched"],
        "iterations": counts["iterations"],
        "period": counts["period"],
        "workers": started["workers"] if started else run.config.run.workers,
        "nodes_per_second": last["nodes_per_second"] if last else None,
        "iterations_per_second": last["iterations_per_second"] if last else None,
        "nodes_per_second_recent": recent_speed(metrics, RECENT_SECONDS) if running and last else None,
        "speed_unix_seconds": last["unix_seconds"] if last else None,
        "checkpoint": newest.number if newest else None,
        "tables_bytes": _tables_bytes(run) if newest is None else sum(spec.nbytes for spec in newest.specs),
        "silent_workers": last.get("silent_workers", []) if running and last else [],
        "huge_bytes": started.get("huge_bytes") if running and started else None,
        "live_dir": _live_dir(run) if running else None,
        "training_seconds": counts["training_seconds"],
        "never_reached_per_street": trend.get("never_reached_per_street"),
        "saturated_rows": trend.get("saturated_rows"),
        "disk": trend.get("disk"),
        "trend_checkpoint": trend.get("checkpoint"),
        "last_evaluation": next(run.backwards(EVALUATIONS), None),
        "bounds": _bounds(run),
    }


def _live_dir(run: Run) -> str | None:
    """Return the directory of the tables in training; None if there is no link to it.

    The run's symbolic link `live` points to this directory, while a process trains the run.
    """
    try:
        return str(run.path(LIVE).readlink())
    except OSError:
        return None


def _tables_bytes(run: Run) -> int | None:
    """Return the size of all tables of the run in bytes.

    Returns None if the run was opened without its user code, or if its abstraction is missing or wrong.
    """
    return None if run.is_opaque or run.lacks else sum(spec.nbytes for spec in run.layout(run.build_game()).specs)


def _bounds(run: Run) -> list[dict[str, Any]]:
    """Return {"now": newest record, "before": second newest or None} for each evaluation method.

    Only methods that measure exploitability are included, those with exact figures first. A record is a line of
    evaluations.jsonl; only its last `_RECENT_EVALUATIONS` lines are read.
    """
    by_method: dict[str, list[dict[str, Any]]] = {}
    for line in islice(run.backwards(EVALUATIONS), _RECENT_EVALUATIONS):
        if line.get("exploitability_chips") is not None:
            by_method.setdefault(line["method"], []).append(line)
    newest = [{"now": lines[0], "before": lines[1] if len(lines) > 1 else None} for lines in by_method.values()]
    return sorted(newest, key=lambda pair: pair["now"]["bound"] != "exact")


def runs_in(directory: Path) -> list[Path]:
    """Return the run directories in a folder, sorted by name, without those being created."""
    return sorted(path for path in directory.iterdir() if is_run(path) and not path.name.startswith(TEMPORARY_PREFIX))


def run_list(directory: Path) -> list[dict[str, Any]]:
    """Return a row for each run in a folder: `run`, `game`, `algorithm` and the fields of `run_status`.

    A run that cannot be opened has `run` and `problem`, the reason as one sentence.
    """
    rows: list[dict[str, Any]] = []
    for path in runs_in(directory):
        row: dict[str, Any] = {"run": path.name}
        try:
            run = open_to_look(path)
            row |= {"game": named(run.config.game), "algorithm": named(run.config.solver), **run_status(run)}
        except (OSError, ValueError) as error:
            row |= {"problem": " ".join(str(error).split())}
        rows.append(row)
    return rows


def stop_run(run: Run, say: Callable[[str], None], *, after_checkpoint: bool = False) -> None:
    """Send SIGTERM to the process that works on a run, and wait until it releases the run.

    say               receives a message with the process id
    after_checkpoint  True: send no signal, but ask the process to end at its next regular checkpoint; it may then be on
                      another machine

    Raises `ValueError` if no process works on the run. Also for a process on another machine, unless
    `after_checkpoint`.
    """
    worker = worker_of(run)
    if worker is None:
        raise ValueError(f"{run.directory} is {run_status(run)['state']}: no process works on it")
    if after_checkpoint:
        run.path(STOP).touch()
        say(f"asked process {worker.process} to end at its next regular checkpoint")
    elif not worker.is_here:
        machine = worker.machine or "a machine that it does not name"
        raise ValueError(
            f"{run.directory} is in use by process {worker.process} of {machine}: stop it there, with kill "
            f"{worker.process}"
        )
    else:
        say(f"asked process {worker.process} to write a checkpoint and end")
        os.kill(worker.process, signal.SIGTERM)
    while is_locked(run) and worker_of(run) in (worker, None):  # None: it writes its phase into the lock's file
        time.sleep(_LOOK_SECONDS)
