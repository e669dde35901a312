"""The lines of a run's journals: which are sound, how they are read, and what becomes of those that are not.

A line is sound if it is JSON (which has no NaN) and holds every field that the commands read, of its kind.  Damaged
lines are passed over wherever journals are read; a session moves those that it meets to a file beside the journal,
named like it with `.damaged` after it, and tells of them.  The lines of metrics, evaluations and trends are in order
of their nodes, so a session finds what lies beyond its checkpoint from the end.
"""

from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Annotated, Any

import msgspec

from mccfr.evaluation.methods import EvaluationLine, line_kind
from storage import durable
from storage.journal import Line, line_numbers, lines, lines_backwards, replace_end

DAMAGED = ".damaged"

_CHECKED_BYTES = 1 << 20  # of a journal's end, at least, in which a session looks for damaged lines
_NAMED = 3  # damaged lines of one journal that are told of one by one

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Metrics(msgspec.Struct):
    nodes_touched: _Count
    iterations: _Count
    period: _Count
    nodes_per_second: float
    iterations_per_second: float
    training_seconds: float
    silent_workers: list[dict[str, Any]] = []


class _LostUpdates(msgspec.Struct):
    first_decisions: float | None
    first_decisions_error: float | None
    sentinels_per_street: list[float | None]
    sentinel_errors_per_street: list[float | None]

    def __post_init__(self) -> None:
        shares, errors = self.sentinels_per_street, self.sentinel_errors_per_street
        if [share is None for share in shares] != [error is None for error in errors]:
            raise ValueError("sentinels_per_street and sentinel_errors_per_street do not belong together")


class _Disk(msgspec.Struct):
    moved_bytes: _Count
    moving_seconds: float
    waiting_seconds: float


class _Trends(msgspec.Struct):
    checkpoint: _Count
    nodes_touched: _Count
    iterations: _Count
    never_reached_per_street: list[float | None] | None = None
    lost_updates: _LostUpdates | None = None
    preflop_change: float | None = None
    saturated_cells: _Count | None = None
    disk: _Disk | None = None


class _Journal(msgspec.Struct):
    """A checkpoint and the hash of its manifest, or an event; `started` has the number of workers."""

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
    "evaluations.jsonl": EvaluationLine,  # of the method that it names
    "trends.jsonl": _Trends,
    "journal.jsonl": _Journal,
}

JOURNALS = tuple(_SOUND)
"""The names of a run's journals."""


def _parse(name: str, data: bytes) -> dict[str, Any]:
    """The record of a line; `ValueError` of one clause where it is damaged."""
    try:
        record = msgspec.json.decode(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    if not isinstance(record, dict):
        raise ValueError(f"a JSON object is needed, and it is a {type(record).__name__}")
    try:
        kind = _SOUND[name]
        if kind is EvaluationLine:
            kind = line_kind(str(record.get("method")))
            if kind is None:
                raise ValueError(f"there is no evaluation method {record.get('method')!r}")
        msgspec.convert(record, kind)
    except (ValueError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return record


def read(path: Path) -> list[dict[str, Any]]:
    """The sound lines of a whole journal; [] where there is none."""
    return [record for line in lines(path) if (record := _sound(path.name, line)) is not None]


def backwards(path: Path) -> Iterator[dict[str, Any]]:
    """The sound lines of a journal, the last first; no more is read of it than is taken."""
    return (record for line in lines_backwards(path) if (record := _sound(path.name, line)) is not None)


def _sound(name: str, line: Line) -> dict[str, Any] | None:
    try:
        return _parse(name, line.data)
    except ValueError:
        return None


def problems(path: Path) -> list[str]:
    """A sentence for every damaged line of a whole journal."""
    found = []
    for number, line in enumerate(lines(path), 1):
        try:
            _parse(path.name, line.data)
        except ValueError as error:
            found.append(f"{path.name}, line {number}: {error}")
    return found


def restore(path: Path, most_nodes: float = inf) -> list[str]:
    """Drop the lines of work beyond `most_nodes` and set damaged ones aside, both durably; sentences about the latter.

    It reads from the end up to a line that stays, and a mebibyte at least; damage that lies farther back does no harm,
    and `problems` finds it.
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
    """Append damaged lines to the file beside the journal; sentences that name the first few."""
    if not damaged:
        return []
    beside = path.with_name(path.name + DAMAGED)
    durable.append_lines(beside, [line.data for line, _ in damaged])
    numbers = line_numbers(path, [line.start for line, _ in damaged[:_NAMED]])
    sentences = [
        f"{path.name}, line {number}: {why}; moved to {beside.name}"
        for number, (_, why) in zip(numbers, damaged, strict=False)
    ]
    if len(damaged) > _NAMED:
        sentences.append(f"{path.name}: {len(damaged) - _NAMED:,} more damaged lines were moved to {beside.name}")
    return sentences
