"""Where the machines of a run stand, from the run's files alone."""

import json
from typing import Any

from mccfr.cluster.pool import RECORDS
from mccfr.runs.directory.run import Run
from storage.journal import lines_backwards


def cluster_status(run: Run) -> dict[str, Any]:
    """The newest line of the run's record of machines; `ValueError` where there is none."""
    for line in lines_backwards(run.path(RECORDS)):
        try:
            return json.loads(line.data)
        except ValueError:  # the last one may be torn
            continue
    raise ValueError(f"{run.directory} has no {RECORDS}: no session on several machines has come to rest in it yet")
