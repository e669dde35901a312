"""Reads journals (files of lines) from either end, and replaces their end.

`durable.append_line` writes journals. Reading from the end costs time in proportion to the lines read, not to the file.
An incomplete last line, left by a crash, is ignored.
"""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from storage import durable
from storage.damage import check_openable, reading

_BLOCK_BYTES = 1 << 16


class Line(NamedTuple):
    """A complete line: offset of its first byte in the file, and its bytes without the line break."""

    start: int
    data: bytes


def lines(path: Path) -> Iterator[Line]:
    """Yield the complete lines of a journal from its beginning; none if it is absent.

    Raises `UnreadableError` if the system cannot read it.
    """
    with reading(path), _opened(path) as file:
        start, end = 0, durable.complete_lines_length(file)  # another process may be writing a line after `end`
        file.seek(0)
        while start < end:
            data = file.readline()
            yield Line(start, data[:-1])
            start += len(data)


def _opened(path: Path) -> BinaryIO:
    """Open a journal for reading; an absent one is empty."""
    try:
        check_openable(path)
        return path.open("rb")
    except FileNotFoundError:
        return io.BytesIO()


def lines_backwards(path: Path) -> Iterator[Line]:
    """Yield the complete lines of a journal, the last line first; none if the journal is absent.

    It reads the file in blocks, and only as far as the caller requests lines. Raises `UnreadableError` if the system
    cannot read it.
    """
    with reading(path), _opened(path) as file:
        end = durable.complete_lines_length(file)
        if end == 0:
            return
        pieces: list[bytes] = []  # of the current line, the last piece first
        start = stop = end - 1  # the final line break begins no line
        while stop > 0:
            file.seek(max(0, stop - _BLOCK_BYTES))
            *whole, last = file.read(stop - file.tell()).split(b"\n")
            pieces.append(last)
            start -= len(last)
            for data in reversed(whole):
                yield Line(start, b"".join(reversed(pieces)))
                pieces = [data]
                start -= 1 + len(data)
            stop = max(0, stop - _BLOCK_BYTES)
        yield Line(0, b"".join(reversed(pieces)))


def replace_end(path: Path, start: int, lines: Sequence[bytes]) -> None:
    """Replace everything from byte `start` on by the lines `lines`, atomically and durably.

    start  offset of the first byte to replace, the beginning of a line (`Line.start`)
    lines  without line breaks

    The journal is rewritten under a temporary name and renamed, so concurrent readers see the old content.
    """

    def pieces() -> Iterator[bytes]:
        with reading(path), path.open("rb") as file:
            remaining = start
            while remaining > 0 and (block := file.read(min(io.DEFAULT_BUFFER_SIZE * 16, remaining))):
                remaining -= len(block)
                yield block
        yield b"".join(line + b"\n" for line in lines)

    durable.replace_file(path, pieces())
