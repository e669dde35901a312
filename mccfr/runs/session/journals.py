"""Appends lines to a run's journals (files of JSON lines); disk errors do not end the run.

Lines that cannot be written are kept in memory, the last 10,000 of each journal, and written with the next line. The
first failure is reported, and so is the first success after it.
"""

import json
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mccfr.runs.directory.run import Run
from mccfr.runs.reporter import Reporter
from storage import durable, free_space
from storage.damage import UnreadableError

_HELD_LINES = 10_000  # per journal; the oldest are dropped beyond it


def disk_problem(error: OSError, path: Path, needed_bytes: int, qualifier: str = "") -> str:
    """Return a sentence on a disk error: path, system message, bytes needed and bytes free.

    path          path that was written, if the error names none
    needed_bytes  bytes that were to be written
    qualifier     text before this number, such as "about "
    """
    error = error.cause if isinstance(error, UnreadableError) else error
    reason = error.strerror or str(error)
    text = f"{error.filename or path}: {' '.join(reason.split())}: {qualifier}{needed_bytes:,} bytes are needed"
    try:
        return f"{text} and {free_space.free_bytes(path if path.exists() else path.parent):,} bytes are free"
    except OSError:
        return text


class Journals:
    """Appends records to a run's journal, metrics, evaluations and trends files (.jsonl)."""

    def __init__(self, run: Run, reporter: Reporter) -> None:
        self._run, self._reporter = run, reporter
        self._held: dict[str, deque[bytes]] = {}

    def append(self, name: str, record: Mapping[str, Any]) -> None:
        """Append a line to a journal; if the disk fails, keep it in memory and write it with the next line.

        name    file name of the journal, such as "metrics.jsonl"
        record  fields of the line, written as JSON

        Raises `LostDirectoryError` if this process holds the run's lock, and the run's directory or lock file was
        removed or replaced.
        """
        waiting = self._held.setdefault(name, deque(maxlen=_HELD_LINES))
        failed_before = bool(waiting)
        waiting.append(json.dumps(record, allow_nan=False).encode())
        path, lines = self._run.path(name), list(waiting)
        try:
            self._run.check_lock()
            durable.append_lines(path, lines)
        except OSError as error:
            if not failed_before:
                problem = disk_problem(error, path, sum(len(line) + 1 for line in lines))
                self._reporter.message(f"{problem}; the run continues and writes the line later")
            return
        waiting.clear()
        if failed_before:
            self._reporter.message(f"{path}: written again, with {len(lines) - 1:,} lines that were held back")

    def unwritten_lines(self) -> str | None:
        """Return a sentence on the lines that are still kept in memory; None if there are none."""
        counts = [f"{len(lines):,} lines of {name}" for name, lines in self._held.items() if lines]
        return f"{', '.join(counts)} could not be written and are lost" if counts else None
