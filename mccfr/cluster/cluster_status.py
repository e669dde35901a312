"""Reports the state of a run's machines from the run's files."""

import json
from typing import Any

import msgspec

from mccfr.cluster.rank_pool import RECORDS
from mccfr.runs.directory.run import Run
from storage.journal_reader import lines_backwards


class _RankFields(msgspec.Struct):
    machine: int
    host: str
    pid: int
    strata: list[int]
    nodes_per_second: float
    waiting_share: float


class _Fields(msgspec.Struct):
    """A line of `cluster.jsonl`."""

    nodes_touched: int
    barriers: int
    sent_bytes: int
    received_bytes: int
    moved_strata: int
    ranks: list[_RankFields]


def cluster_status(run: Run) -> dict[str, Any]:
    """Return the newest line of the run's `cluster.jsonl`; raises `ValueError` if there is none."""
    for line in lines_backwards(run.path(RECORDS)):
        try:
            found: dict[str, Any] = json.loads(line.data)
            msgspec.convert(found, _Fields)
            return found
        except (ValueError, RecursionError):  # the last line may be incomplete
            continue
    raise ValueError(f"{run.directory} has no {RECORDS}: no session on several machines has come to rest in it yet")
