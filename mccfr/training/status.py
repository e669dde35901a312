"""Where a run stands, from its files alone; also while another process works on it."""

from typing import Any

from mccfr.training.rundir import CHECKPOINTS, EVALUATIONS, JOURNAL, LIVE, METRICS, Run, is_locked
from storage.checkpoint import checkpoint_path, list_checkpoints, open_checkpoint


def run_status(run: Run) -> dict[str, Any]:
    """The fields of `status --json`."""
    numbers = list_checkpoints(run.path(CHECKPOINTS))
    newest = open_checkpoint(checkpoint_path(run.path(CHECKPOINTS), numbers[-1])) if numbers else None
    saved = newest.state if newest else {"nodes_touched": 0, "iterations": 0, "period": 1, "training_seconds": 0.0}
    metrics = run.read(METRICS)
    last = metrics[-1] if metrics else None
    running = is_locked(run)
    # While it runs, and only then, the metrics may be ahead of the newest checkpoint.
    counts = last if running and last and last["nodes_touched"] > saved["nodes_touched"] else saved
    events = [record for record in run.read(JOURNAL) if "event" in record]
    started = next((record for record in reversed(events) if record["event"] == "started"), None)
    ended = events[-1]["event"] if events and events[-1]["event"] != "started" else None
    live = run.path(LIVE)
    evaluations = run.read(EVALUATIONS)
    return {
        "state": "running" if running else ended or ("interrupted" if started else "stopped"),
        "nodes_touched": counts["nodes_touched"],
        "iterations": counts["iterations"],
        "period": counts["period"],
        "workers": started["workers"] if started else run.config.run.workers,
        "nodes_per_second": last["nodes_per_second"] if last else None,
        "iterations_per_second": last["iterations_per_second"] if last else None,
        "checkpoint": numbers[-1] if numbers else None,
        "tables_bytes": sum(spec.nbytes for spec in run.layout(run.build_game()).specs)
        if newest is None
        else sum(spec.nbytes for spec in newest.specs),
        "live_dir": str(live.readlink()) if running and live.is_symlink() else None,
        "training_seconds": counts["training_seconds"],
        "last_evaluation": evaluations[-1] if evaluations else None,
    }
