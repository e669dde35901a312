"""Which of a run's checkpoints is meant, and the tables in it."""

from collections.abc import Mapping
from typing import Any

from mccfr.runs.directory.run import CHECKPOINTS, EVALUATIONS, Run
from mccfr.runs.directory.state import open_own
from mccfr.tables.layout import TableSet
from storage.checkpoint import Checkpoint, list_checkpoints


def find_checkpoint(run: Run, number: int | None) -> Checkpoint:
    """Open a run's checkpoint, the newest without a number.

    Raises `ValueError` where there is no such checkpoint, and as `open_own`.
    """
    root = run.path(CHECKPOINTS)
    numbers = list_checkpoints(root)
    if not numbers:
        raise ValueError(
            f"{run.directory} has no checkpoint yet: a run gets one now and then, and whenever it is stopped"
        )
    if number is not None and number not in numbers:
        raise ValueError(f"{run.directory} has no checkpoint {number}; it has {', '.join(map(str, numbers))}")
    return open_own(run, numbers[-1] if number is None else number)


def measured_checkpoints(run: Run) -> dict[int, dict[str, Mapping[str, Any]]]:
    """The newest record of each method that found an exploitability, by checkpoint; of those that are still there."""
    kept = list_checkpoints(run.path(CHECKPOINTS))
    found: dict[int, dict[str, Mapping[str, Any]]] = {number: {} for number in kept}
    for line in run.read(EVALUATIONS):
        if line["checkpoint"] in found and line.get("exploitability_chips") is not None:
            found[line["checkpoint"]][line["method"]] = line
    return {number: records for number, records in found.items() if records}


def best_checkpoint(run: Run, method: str) -> int:
    """Number of the checkpoint, of those still there, whose strategy a method found least exploitable.

    By exploitability, or the bound on it.  Where a checkpoint was measured several times its newest figure counts; what
    others won from it head-to-head is a bound too: a method's responder may be no match for a strategy that has
    hardly been trained, where they are.  Raises `ValueError` where none was measured by it.
    """
    there = measured_checkpoints(run).items()
    found = {number: records[method]["exploitability_chips"] for number, records in there if method in records}
    lost: dict[str, float] = {}
    for line in run.read(EVALUATIONS):
        if line.get("against") is not None:
            lost[line["against"]] = max(lost.get(line["against"], 0.0), line["value_chips"])
    if not found:
        raise ValueError(
            f"{run.directory} has no checkpoint that is still there and whose exploitability was measured by {method}: "
            "name it in [evaluation] and keep the checkpoints of its points with keep = true"
        )
    bound = {number: max(value, lost.get(f"checkpoint {number}", value)) for number, value in found.items()}
    return min(bound, key=lambda number: (bound[number], -number))


def read_tables(checkpoint: Checkpoint, kind: str = "") -> TableSet:
    """A checkpoint's tables (of one kind: "strategy_sum"); every byte read is checked."""
    specs = [spec for spec in checkpoint.specs if spec.name.startswith(kind)]
    return TableSet({spec.name: checkpoint.read(spec.name) for spec in specs}, specs)
