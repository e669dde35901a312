"""Detects silent worker processes: none of their batches of iterations has ended for long.

A worker writes the time into its row of the shared control cells. It does so at the end of each batch and at each look
at its orders. While it rests, it looks every few milliseconds. If this time stamp is old, the kernel's process state
gives the reason: stopped, computing, or waiting.
"""

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.runs.session import control

SILENT_SECONDS = 20.0
"""Time without progress, beyond two of its longest batches, after which a worker is reported."""

_LOOK_SECONDS = 1.0
_BUSY_SHARE = 0.1  # least share of a processor of a computing process
_TICKS = os.sysconf("SC_CLK_TCK")


class StalledWorker(NamedTuple):
    """A worker that has made no progress for `seconds`, and the reason (`why`).

    worker    index of the worker, from 0
    why       reason as a clause, such as "it waits for a disk or for memory"
    computes  whether its process uses the processor; else it is stopped, or waits
    """

    worker: int
    seconds: float
    why: str
    computes: bool = False

    def record(self) -> dict[str, Any]:
        """Return {"worker": index, "seconds": without progress, "why": reason}, for journals."""
        return {"worker": self.worker, "seconds": round(self.seconds, 1), "why": self.why}


class _Seen(NamedTuple):
    """A worker's last time stamp, and the processor time of its process at a later moment.

    The processor time is read when the stamp has half of the age at which the worker is reported as silent.

    stamp              time stamp of the worker's row, in nanoseconds
    since              monotonic seconds at which the stamp was first seen
    aged               monotonic seconds at which the processor time was read
    processor_seconds  processor time of the process then; None: not yet read
    """

    stamp: int
    since: float
    aged: float = 0.0
    processor_seconds: float | None = None


class StallWatch:
    """Finds workers whose time stamps are old, and reads from the kernel what their processes do.

    rows   [workers, columns] int64 in shared memory: a row for each worker, in which it writes its time stamp
    stats  the kernel's status file of each worker, /proc/PID/stat
    alive  takes the index of a worker, and returns whether it is not lost
    """

    def __init__(self, rows: npt.NDArray[np.int64], stats: Iterable[Path], alive: Callable[[int], bool]) -> None:
        self._rows, self._stats, self._alive = rows, list(stats), alive
        self._seen = [_Seen(-1, time.monotonic()) for _ in self._stats]
        self._looked_at = 0.0
        self._silent: list[StalledWorker] = []

    def silent(self) -> list[StalledWorker]:
        """Return the living workers that have made no progress for long, with the reasons.

        Long is `SILENT_SECONDS` plus twice the worker's longest batch. A worker that compiles its kernels at its start
        is left out. The workers are looked at once a second at most; other calls return the last result.
        """
        now = time.monotonic()
        if now - self._looked_at >= min(_LOOK_SECONDS, SILENT_SECONDS / 4):
            self._looked_at = now
            stalls = (self._look(worker, now) for worker in range(len(self._stats)) if self._alive(worker))
            self._silent = [stall for stall in stalls if stall is not None]
        return self._silent

    def patience(self, worker: int, seconds: float) -> float:
        """Return the seconds to wait for a worker: `seconds` plus twice its longest batch."""
        return seconds + 2e-9 * int(self._rows[worker, control.LONGEST_BATCH])

    def _look(self, worker: int, now: float) -> StalledWorker | None:
        stamp, seen, limit = int(self._rows[worker, control.PROGRESS]), self._seen[worker], SILENT_SECONDS
        if stamp != seen.stamp:
            self._seen[worker] = _Seen(stamp, now)
            return None
        limit = self.patience(worker, SILENT_SECONDS)
        seconds = now - seen.since
        if seconds < limit / 2:
            return None
        state, processor_seconds = _state(self._stats[worker])
        if seen.processor_seconds is None:
            self._seen[worker] = seen = seen._replace(aged=now, processor_seconds=processor_seconds)
        if seconds < limit or state == "":
            return None
        spent = processor_seconds - (seen.processor_seconds or 0.0)
        computes = state not in "Tt" and spent > _BUSY_SHARE * (now - seen.aged)
        if computes and stamp == 0:
            return None  # it compiles its kernels
        return StalledWorker(worker, seconds, _why(state, computes), computes)


def _why(state: str, computes: bool) -> str:
    if state in "Tt":
        return "it is stopped (SIGSTOP, or a debugger); SIGCONT lets it go on"
    if computes:
        return "it computes, and its batch does not end"
    if state == "D":
        return "it waits for a disk or for memory"
    return "it neither computes nor answers"


def _state(stat: Path) -> tuple[str, float]:
    """Return (state letter as in `ps`, processor seconds used); ("", 0) if there is no such process."""
    try:
        fields = stat.read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "", 0.0
    return fields[0], (int(fields[11]) + int(fields[12])) / _TICKS
