"""Where a run stands, from its files alone; also while another process works on it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from mccfr.config.games import GameConfig
from mccfr.config.solvers import SolverConfig
from mccfr.runs.directory.run import (
    CHECKPOINTS,
    EVALUATIONS,
    JOURNAL,
    LIVE,
    METRICS,
    Run,
    is_locked,
    is_run,
    open_run,
    phase_of,
    worker_of,
)
from mccfr.runs.directory.state import state_problem
from mccfr.runs.directory.trends import TRENDS
from storage.blocks import open_whole
from storage.checkpoint import checkpoint_path, list_checkpoints

RECENT_SECONDS = 600.0
"""Training time over which the recent speed is taken."""
_RECENT_EVALUATIONS = 50
_RECENT_LINES = 2000  # of metrics, at most, that are looked at for it: of 600 seconds and long evaluations between


def named(table: GameConfig | SolverConfig) -> str:
    """What chooses a `[game]` or `[solver]` table."""
    return str(getattr(table, "named", table.__struct_config__.tag))


def recent_speed(metrics: Sequence[Mapping[str, Any]], seconds: float) -> float | None:
    """Nodes a second of training time over the last metrics that span at least so many seconds, or over all of them.

    None where there are fewer than two.
    """
    if len(metrics) < 2:
        return None
    last = metrics[-1]
    before = next(
        (m for m in reversed(metrics[:-1]) if last["training_seconds"] - m["training_seconds"] >= seconds), metrics[0]
    )
    spent = last["training_seconds"] - before["training_seconds"]
    return (last["nodes_touched"] - before["nodes_touched"]) / spent if spent > 0 else None


def _recent(metrics: Iterator[Mapping[str, Any]], seconds: float) -> list[Mapping[str, Any]]:
    """Of metrics given last first: those that `recent_speed` needs, in order."""
    found: list[Mapping[str, Any]] = []
    for record in islice(metrics, _RECENT_LINES):
        found.append(record)
        if found[0]["training_seconds"] - record["training_seconds"] >= seconds:
            break
    return found[::-1]


def _session(journal: Iterator[Mapping[str, Any]]) -> tuple[str | None, Mapping[str, Any] | None]:
    """Of a journal given last first: how the last session ended, and the start; None where there is none."""
    ended = None
    for record in journal:
        if record.get("event") == "started":
            return ended, record
        ended = ended or record.get("event")
    return ended, None


def run_status(run: Run) -> dict[str, Any]:
    """The fields of `status --json`."""
    numbers = list_checkpoints(run.path(CHECKPOINTS))
    newest = open_whole(checkpoint_path(run.path(CHECKPOINTS), numbers[-1])) if numbers else None
    if newest is not None and (problem := state_problem(newest.state)) is not None:
        raise ValueError(f"{newest.path}: {problem}")
    saved = newest.state if newest else {"nodes_touched": 0, "iterations": 0, "period": 1, "training_seconds": 0.0}
    metrics = _recent(run.backwards(METRICS), RECENT_SECONDS)
    last = metrics[-1] if metrics else None
    running, worker = is_locked(run), worker_of(run)
    # While it runs, and only then, the metrics may be ahead of the newest checkpoint.
    counts = last if running and last and last["nodes_touched"] > saved["nodes_touched"] else saved
    ended, started = _session(run.backwards(JOURNAL))
    live = run.path(LIVE)
    trend = next(run.backwards(TRENDS), {})
    return {
        "phase": phase_of(run) if running else None,
        "state": "running" if running else ended or ("interrupted" if started else "stopped"),
        "process": worker.process if worker else None,
        "machine": worker.machine if worker else None,
        "nodes_touched": counts["nodes_touched"],
        "iterations": counts["iterations"],
        "period": counts["period"],
        "workers": started["workers"] if started else run.config.run.workers,
        "nodes_per_second": last["nodes_per_second"] if last else None,
        "iterations_per_second": last["iterations_per_second"] if last else None,
        "nodes_per_second_now": recent_speed(metrics, 0.001),
        "nodes_per_second_recent": recent_speed(metrics, RECENT_SECONDS),
        "checkpoint": numbers[-1] if numbers else None,
        "tables_bytes": _tables_bytes(run) if newest is None else sum(spec.nbytes for spec in newest.specs),
        "silent_workers": last.get("silent_workers", []) if running and last else [],
        "huge_bytes": started.get("huge_bytes") if running and started else None,
        "live_dir": str(live.readlink()) if running and live.is_symlink() else None,
        "training_seconds": counts["training_seconds"],
        "never_reached_per_street": trend.get("never_reached_per_street"),
        "lost_updates": trend.get("lost_updates"),
        "preflop_change": trend.get("preflop_change"),
        "saturated_cells": trend.get("saturated_cells"),
        "disk": trend.get("disk"),
        "trend_checkpoint": trend.get("checkpoint"),
        "last_evaluation": next(run.backwards(EVALUATIONS), None),
        "bounds": _bounds(run),
    }


def _tables_bytes(run: Run) -> int | None:
    """What its tables will take; None where only code of a user's knows."""
    return None if run.is_opaque else sum(spec.nbytes for spec in run.layout(run.build_game()).specs)


def _bounds(run: Run) -> list[dict[str, Any]]:
    """The newest record of each method that bounds exploitability, and the one before it: `now`, `before` or None.

    Exact figures first.  Only as many lines are read as a run's recent points have.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for line in islice(run.backwards(EVALUATIONS), _RECENT_EVALUATIONS):
        if line.get("exploitability_chips") is not None:
            found.setdefault(line["method"], []).append(line)
    newest = [{"now": lines[0], "before": lines[1] if len(lines) > 1 else None} for lines in found.values()]
    return sorted(newest, key=lambda pair: pair["now"]["bound"] != "exact")


def run_list(directory: Path) -> list[dict[str, Any]]:
    """A row for each run in a folder, by name: `run`, `game`, `algorithm` and the fields of `run_status`.

    A run that cannot be opened has `run` and `problem`, the reason as one sentence.
    """
    rows: list[dict[str, Any]] = []
    for path in sorted(path for path in directory.iterdir() if is_run(path)):
        row: dict[str, Any] = {"run": path.name}
        try:
            run = open_run(path, opaque=True)
            row |= {"game": named(run.config.game), "algorithm": named(run.config.solver), **run_status(run)}
        except (OSError, ValueError) as error:
            row |= {"problem": " ".join(str(error).split())}
        rows.append(row)
    return rows
