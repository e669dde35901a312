"""Reports the state of a run's machines from the run's files."""

import json
from typing import Any

from mccfr.cluster.rank_pool import RECORDS
from mccfr.runs.directory.run import Run, is_locked
from storage.journal_reader import lines_backwards

_FIELDS = {"nodes_touched", "barriers", "sent_bytes", "received_bytes", "moved_strata", "ranks"}


def cluster_status(run: Run) -> dict[str, Any]:
    """Return the newest valid line of a run's `cluster.jsonl` as a dictionary, with `running` added.

    `nodes_touched` counts the whole run. The other counts begin after the line before: `barriers`, `moved_strata`, and
    `sent_bytes` and `received_bytes` of the coordinator (the leading process). `ranks` lists each training process with
    its strata, nodes per second and share of time waited. `running` is True while a process works on the run. Lines
    that are cut off or lack one of these fields are skipped.

    Raises `ValueError` if there is no valid line.
    """
    for line in lines_backwards(run.path(RECORDS)):
        try:
            record = json.loads(line.data)
        except (ValueError, RecursionError):  # the last line may be incomplete
            continue
        if isinstance(record, dict) and record.keys() >= _FIELDS:
            return record | {"running": is_locked(run)}
    raise ValueError(f"{run.directory} has no {RECORDS} yet: training on several machines writes it at checkpoints")
