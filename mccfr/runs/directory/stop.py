"""Stops a run by a signal to the process that works on it."""

import os
import signal
import time
from collections.abc import Callable

from mccfr.runs.directory.run import Run, worker_of
from mccfr.runs.directory.run_status import run_status

_LOOK_SECONDS = 0.1


def stop_run(run: Run, say: Callable[[str], None]) -> None:
    """Send SIGTERM to the process that works on a run, and wait until it releases the run.

    say  receives a message with the process id

    Raises `ValueError` if no process works on it, or one on another machine.
    """
    worker = worker_of(run)
    if worker is None:
        raise ValueError(f"{run.directory} is {run_status(run)['state']}: no process works on it")
    if not worker.is_here:
        there = worker.machine or "a machine that it does not name"
        raise ValueError(
            f"{run.directory} is worked on by process {worker.process} of {there}: stop it there, with kill "
            f"{worker.process}"
        )
    say(f"asked process {worker.process} to write a checkpoint and end")
    os.kill(worker.process, signal.SIGTERM)
    while worker_of(run) == worker:
        time.sleep(_LOOK_SECONDS)
