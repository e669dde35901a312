"""Reads, checks and repairs a run's journals: JSON lines on its progress, evaluations and events.

A valid line is JSON (without NaN) with every field that the commands read, of the right type. Readers skip damaged
lines. Before a run is trained, damaged lines near the end move to a file with the suffix `.damaged`, and are reported.
The lines of metrics, evaluations and trends are ordered by nodes touched. Training that resumes from a checkpoint
therefore finds later lines by reading from the end.
"""

from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Annotated, Any

import msgspec

from mccfr.evaluation.methods import EvaluationLine
from mccfr.evaluation.methods.registry import line_kind
from storage import durable
from storage.journal_reader import Line, lines, lines_backwards, replace_end

DAMAGED = ".damaged"

_CHECKED_BYTES = 1 << 20  # at least this much of a journal's end is checked for damaged lines

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Metrics(msgspec.Struct):
    nodes_touched: _Count
    iterations: _Count
    period: _Count
    nodes_per_second: float
    iterations_per_second: float
    training_seconds: float
    unix_seconds: float
    silent_workers: list[dict[str, Any]] = []


class _Disk(msgspec.Struct):
    moved_bytes: _Count
    moving_seconds: float
    waiting_seconds: float


class _Trends(msgspec.Struct):
    checkpoint: _Count
    nodes_touched: _Count
    iterations: _Count
    never_reached_per_street: list[float | None] | None = None
    saturated_rows: _Count | None = None
    disk: _Disk | None = None


class _Journal(msgspec.Struct):
    """A line of journal.jsonl: a checkpoint with its manifest's hash, or an event such as "started"."""

    unix_seconds: float
    checkpoint: _Count | None = None
    manifest: str | None = None
    event: str | None = None
    workers: _Count | None = None

    def __post_init__(self) -> None:
        if self.event is None and (self.checkpoint is None or self.manifest is None):
            raise ValueError("neither an event nor a checkpoint and its manifest")
        if self.event == "started" and self.workers is None:
            raise ValueError("an event 'started' without workers")


_SOUND: Mapping[str, Any] = {
    "metrics.jsonl": _Metrics,
    "evaluations.jsonl": EvaluationLine,  # for the method that it names
    "trends.jsonl": _Trends,
    "journal.jsonl": _Journal,
}

JOURNALS = tuple(_SOUND)
"""Names of a run's journals."""


def _parse(name: str, data: bytes) -> dict[str, Any]:
    """Return the record in a line of JSON; raises `ValueError` if the line is damaged.

    name  file name of the journal, such as "metrics.jsonl"
    """
    try:
        record = msgspec.json.decode(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    if not isinstance(record, dict):
        raise ValueError(f"a JSON object is needed, and it is a {type(record).__name__}")
    try:
        kind = _SOUND[name]
        if kind is EvaluationLine:
            method = record.get("method")
            kind = line_kind(method) if isinstance(method, str) else None
            if kind is None:
                raise ValueError(f"there is no evaluation method {method!r}")
        msgspec.convert(record, kind)
    except (ValueError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return record


def read(path: Path) -> list[dict[str, Any]]:
    """Return the valid lines of a journal, a file of JSON lines; [] if it does not exist."""
    return [record for line in lines(path) if (record := _sound(path.name, line)) is not None]


def backwards(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the valid lines of a journal, a file of JSON lines, the last one first.

    Reads the file only as far as needed.
    """
    return (record for line in lines_backwards(path) if (record := _sound(path.name, line)) is not None)


def _sound(name: str, line: Line) -> dict[str, Any] | None:
    try:
        return _parse(name, line.data)
    except ValueError:
        return None


def problems(path: Path) -> list[str]:
    """Return a sentence for every damaged line of a journal: file name, line number from 1, and reason.

    path  path of the journal; its file name determines the fields that a line must have
    """
    sentences = []
    for number, line in enumerate(lines(path), 1):
        try:
            _parse(path.name, line.data)
        except ValueError as error:
            sentences.append(f"{path.name}, line {number}: {error}")
    return sentences


def restore(path: Path, most_nodes: float = inf) -> list[str]:
    """Remove a journal's lines beyond `most_nodes`, and move damaged lines to another file beside it.

    path        path of the journal
    most_nodes  nodes touched at the checkpoint from which the run resumes; inf: remove only damaged lines

    Returns a list of one sentence on the damaged lines, or []. Reads backwards up to a valid line that stays, and at
    least 1 MiB. Damaged lines before that stay too; `problems` finds them.

    Raises `OSError` if the disk fails or is full.
    """
    kept: list[Line] = []
    damaged: list[tuple[Line, str]] = []
    first = end = None
    for line in lines_backwards(path):
        end = line.start if end is None else end
        try:
            record = _parse(path.name, line.data)
        except ValueError as error:
            damaged.append((line, str(error)))
        else:
            if record.get("nodes_touched", 0) <= most_nodes:
                kept.append(line)
                if end - line.start >= _CHECKED_BYTES:
                    break
                continue
        first = line.start
    if first is None:
        return []
    sentences = _set_aside(path, damaged[::-1])
    replace_end(path, first, [line.data for line in reversed(kept) if line.start > first])
    return sentences


def _set_aside(path: Path, damaged: list[tuple[Line, str]]) -> list[str]:
    """Append damaged lines to the file NAME.damaged beside the journal NAME.

    damaged  (line, reason) of each

    Returns a list of one sentence, or [] if there are none.
    """
    if not damaged:
        return []
    target, (_, reason) = path.with_name(path.name + DAMAGED), damaged[0]
    durable.append_lines(target, [line.data for line, _ in damaged])
    more = f", and {len(damaged) - 1:,} more damaged lines" if len(damaged) > 1 else ""
    return [f"{path.name}: {reason}: this line{more}: moved to {target.name}"]
