"""Writes a run's journals (files of JSON lines) as event files that TensorBoard can show.

An event file is a sequence of records. A record is the length (uint64), its checksum, the bytes, and their checksum,
all little endian. A checksum is a CRC-32C rotated by 15 bits, plus a constant.

The bytes are a protocol buffer `Event`. Its fields are wall time (1, float64), step (2, int64), the file version (3,
text; first record only) and a summary (5). A summary has values (1), each with a tag (1, text) and a simple value (2,
float32).

This suffices for scalars, and avoids the packages `tensorboard` and `tensorboardX` with their dependencies.
"""

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import crc32c

from mccfr.runs.directory.run import EVALUATIONS, METRICS, Run
from mccfr.runs.directory.trends import TRENDS
from storage import durable
from storage.atomic_outputs import check_output, contains

_MASK = 0xA282EAD8
_NAME = "events.out.tfevents.mccfr"
_VERSION = b"brain.Event:2"
_is_events = contains(_VERSION, 64)  # in the first record
Scalar = tuple[float, int, dict[str, float]]
"""Wall time in seconds since 1970, nodes touched, and a value for each tag."""


def write_events(run: Run, out: Path) -> int:
    """Write a run's journals as TensorBoard event files; return the number of events.

    The files are in the folders `training`, `trends` and `evaluation` of `out`; the step of an event is the nodes
    touched. New events are appended to earlier files, so that a running TensorBoard continues. If the run has gone back
    to a checkpoint, the file is replaced.

    out  folder of the three folders; created if missing

    Raises `FileExistsError` if one of the paths has a file that is no event file.
    """
    metrics, count = run.read(METRICS), 0
    for name, events in (
        ("training", _training(metrics)),
        ("trends", _trends(run.read(TRENDS))),
        ("evaluation", _evaluations(run.read(EVALUATIONS), metrics)),
    ):
        points = list(events)
        if points:
            _write(out / name / _NAME, b"".join(_records(points)))
            count += len(points)
    return count


def _training(metrics: Iterable[Mapping[str, Any]]) -> Iterator[Scalar]:
    for line in metrics:
        values = {key: line[key] for key in ("nodes_per_second", "iterations_per_second", "period", "iterations")}
        values["silent_workers"] = len(line.get("silent_workers", ()))
        yield line["unix_seconds"], line["nodes_touched"], values


def _trends(trends: Iterable[Mapping[str, Any]]) -> Iterator[Scalar]:
    for line in trends:
        shares = enumerate(line.get("never_reached_per_street") or ())
        values = {f"never_reached/street{street}": share for street, share in shares}
        values["saturated_rows"] = line.get("saturated_rows")
        known = {tag: value for tag, value in values.items() if value is not None}
        yield line.get("unix_seconds", 0.0), line["nodes_touched"], known


def _evaluations(records: Iterable[Mapping[str, Any]], metrics: list[dict[str, Any]]) -> Iterator[Scalar]:
    """Yield (seconds since 1970, nodes touched, {tag: figure}) for each evaluation.

    A figure is exploitability, a value or chips won against an opponent.

    Records have no time, so each gets that of the first line of `metrics` with at least as many nodes touched.
    Evaluations without such a line are left out.

    records  lines of evaluations.jsonl
    metrics  lines of metrics.jsonl
    """
    nodes = [line["nodes_touched"] for line in metrics]
    for record in records:
        position = bisect_left(nodes, record["nodes_touched"])
        if position == len(metrics):
            return
        prefix = "" if record["method"] in ("exact", "head-to-head") else f"{record['method']}/"
        values = {prefix + tag: record.get(tag) for tag in ("exploitability_chips", "exploitability_mbb")}
        against = record.get("against")
        values[f"{prefix}value_chips" if against is None else f"won_chips/against {against}"] = record["value_chips"]
        known = {tag: value for tag, value in values.items() if value is not None}
        yield metrics[position]["unix_seconds"], record["nodes_touched"], known


def _write(path: Path, content: bytes) -> None:
    """Make `content` an event file's content: append its new end if possible, else replace all.

    Raises `FileExistsError` if the file has content and is no event file.
    """
    before = path.read_bytes() if path.is_file() else None
    if before is not None and content.startswith(before):
        with durable.naming(path), path.open("ab") as file:
            file.write(content[len(before) :])
        return
    check_output(path, _is_events)
    with durable.making_dirs(path.parent):
        durable.replace_file(path, content)


def _records(events: list[Scalar]) -> Iterator[bytes]:
    yield _record(_double(1, events[0][0]) + _bytes(3, _VERSION))
    for seconds, step, values in events:
        summary = b"".join(_bytes(1, _bytes(1, tag.encode()) + _float(2, value)) for tag, value in values.items())
        yield _record(_double(1, seconds) + _varint(2 << 3) + _varint(step) + _bytes(5, summary))


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def _checksum(data: bytes) -> bytes:
    crc = crc32c.crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF)


def _varint(number: int) -> bytes:
    """Encode an integer as a protocol buffer varint: seven bits per byte, the lowest first."""
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _float(field: int, value: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value
