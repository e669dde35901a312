"""Journals read from their end: what is read grows with what is wanted, not with the file.

A journal is a file of whole lines, in the order in which they were appended (`durable.append_line`); a torn last line,
left by a crash, is not one of them.
"""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from storage import durable
from storage.damage import reading

_BLOCK_BYTES = 1 << 16


class Line(NamedTuple):
    """One whole line of a journal: the offset of its first byte in the file, and its bytes without the line break."""

    start: int
    data: bytes


def lines(path: Path) -> Iterator[Line]:
    """Yield the lines that are whole now from a journal's beginning, none where it is absent.

    Raises `UnreadableError` where the system cannot read it.
    """
    with reading(path), _opened(path) as file:
        start, end = 0, durable.whole_lines_length(file)  # beyond it another process may be writing a line
        file.seek(0)
        while start < end:
            data = file.readline()
            yield Line(start, data[:-1])
            start += len(data)


def _opened(path: Path) -> BinaryIO:
    """A journal for reading; one that is absent is empty."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        return io.BytesIO()


def lines_backwards(path: Path) -> Iterator[Line]:
    """Yield the whole lines of a journal from its end, reading no more of it than is taken; raises as `lines`."""
    with reading(path), _opened(path) as file:
        end = durable.whole_lines_length(file)
        if end == 0:
            return
        pieces: list[bytes] = []  # of the line at hand, the last first
        start = stop = end - 1  # the last line break ends a line and begins none
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


def line_numbers(path: Path, starts: Sequence[int]) -> list[int]:
    """Return the numbers, from 1, of the lines that begin at the offsets `starts`, which ascend.

    An offset beyond the end of the journal, which may have been cut meanwhile, has the number after the last line's.
    """
    numbers, number, place = [], 1, 0
    with reading(path), path.open("rb") as file:
        for start in starts:
            while place < start:
                if not (block := file.read(min(_BLOCK_BYTES, start - place))):
                    break
                number += block.count(b"\n")
                place += len(block)
            numbers.append(number)
    return numbers


def replace_end(path: Path, start: int, kept: Sequence[bytes]) -> None:
    """Put the lines `kept` in the place of all that lies at byte `start` or after it, in one durable step.

    The file is written anew beside itself, and renamed: who reads it meanwhile reads it as it was.
    """

    def pieces() -> Iterator[bytes]:
        with reading(path), path.open("rb") as file:
            left = start
            while left > 0 and (block := file.read(min(io.DEFAULT_BUFFER_SIZE * 16, left))):
                left -= len(block)
                yield block
        yield b"".join(line + b"\n" for line in kept)

    durable.replace_file(path, pieces())
