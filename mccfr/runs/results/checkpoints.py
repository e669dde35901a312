"""Finds a run's checkpoints, and reads their tables."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mccfr.runs.directory.run import CHECKPOINTS, EVALUATIONS, Run
from mccfr.runs.directory.state import check_belongs_to_run
from mccfr.tables.table_layout import TableSet
from storage.checkpoint import Checkpoint, list_checkpoints
from storage.locked_checkpoints import open_locked

Found = TypeVar("Found")


def find_checkpoint(run: Run, number: int | None) -> Checkpoint:
    """Open a run's checkpoint.

    If the file system has locks, it stays on disk as long as the returned object exists.

    number  number of the checkpoint; None: the newest

    Raises `ValueError` if it does not exist, belongs to another run or has an invalid state, and `DamagedError` if it
    is damaged.
    """
    checkpoint = open_locked(run.path(CHECKPOINTS), number)
    if checkpoint is None:
        if not (numbers := list_checkpoints(run.path(CHECKPOINTS))):
            raise ValueError(
                f"{run.directory} has no checkpoint yet: wait for its first one, or stop the run, which writes one"
            )
        raise ValueError(f"{run.directory} has no checkpoint {number}: give one of {', '.join(map(str, numbers))}")
    return check_belongs_to_run(run, checkpoint)


def read_checkpoint(run: Run, number: int | None, read: Callable[[Checkpoint], Found]) -> Found:
    """Return `read(checkpoint)` for a run's checkpoint.

    On file systems without locks, a checkpoint may be removed during reading. It is then opened again, and `read` is
    called again: with the newest, if `number` is None.

    number  number of the checkpoint; None: the newest
    read    function that reads from the open checkpoint

    Raises `ValueError` if the checkpoint does not exist, belongs to another run or has an invalid state. Raises
    `DamagedError` for a damaged one, and passes on errors of `read`.
    """
    while True:
        checkpoint = find_checkpoint(run, number)
        try:
            return read(checkpoint)
        except (OSError, ValueError):
            if checkpoint.lock is None or checkpoint.lock.is_held or checkpoint.lock.is_in_place():
                raise


def measured_checkpoints(run: Run) -> dict[int, dict[str, Mapping[str, Any]]]:
    """Return {checkpoint number: {method: record}}, the newest exploitability record of each.

    A method is an evaluation method, such as "exact"; a record is a line of evaluations.jsonl. Checkpoints that are not
    on disk, or have no record, are left out.
    """
    numbers = list_checkpoints(run.path(CHECKPOINTS))
    records: dict[int, dict[str, Mapping[str, Any]]] = {number: {} for number in numbers}
    for line in run.read(EVALUATIONS):
        if line["checkpoint"] in records and line.get("exploitability_chips") is not None:
            records[line["checkpoint"]][line["method"]] = line
    return {number: records for number, records in records.items() if records}


def read_tables(checkpoint: Checkpoint, kind: str = "") -> TableSet:
    """Return a checkpoint's tables by name, read into memory; their checksums are verified.

    kind  beginning of the names of the tables to read, such as "strategy_sum"; "": all tables

    Raises `DamagedError` if a table is damaged.
    """
    specs = [spec for spec in checkpoint.specs if spec.name.startswith(kind)]
    return TableSet({spec.name: checkpoint.read(spec.name) for spec in specs}, specs)
