"""Reports the state of a run's machines from the run's files."""

import json
from typing import Any

from mccfr.cluster.rank_pool import RECORDS
from mccfr.runs.directory.run import Run, is_locked
from storage.journal_reader import lines_backwards

_FIELDS = {"nodes_touched", "barriers", "sent_bytes", "received_bytes", "moved_strata", "ranks"}


def cluster_status(run: Run) -> dict[str, Any]:
    """Return the newest complete line of a run's `cluster.jsonl` as a dictionary.

    It has the nodes touched, the bytes that the coordinator (the leading process) has sent and received, and the work
    of each training process. The key `running` is added: True while a process works on the run. Raises `ValueError` if
    there is no such line.
    """
    for line in lines_backwards(run.path(RECORDS)):
        try:
            record = json.loads(line.data)
        except (ValueError, RecursionError):  # the last line may be incomplete
            continue
        if isinstance(record, dict) and record.keys() >= _FIELDS:
            return record | {"running": is_locked(run)}
    raise ValueError(f"{run.directory} has no {RECORDS}: no cluster session of it has ended yet")
