"""Measures a disk's sequential write and read speed in about a second."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from storage.contiguous_arrays import MOVING_THREADS, PIECE_BYTES, Piece, moving
from storage.mapping import map_anonymous
from storage.threads import ordered

_MOST_BYTES = 1 << 30
_SECONDS = 0.7


class DiskSpeed(NamedTuple):
    """Sequential speeds of a disk in bytes per second; `write` includes the final fsync."""

    write: float
    read: float


def disk_speed(directory: Path) -> DiskSpeed:
    """Measure the disk of `directory` with a temporary file of at most 1 GiB.

    Raises `OSError` if the file cannot be created, written or read.
    """
    cells = map_anonymous(PIECE_BYTES // 8, np.dtype(np.uint64))
    cells[:] = np.random.default_rng().integers(2**64, size=cells.size, dtype=np.uint64)  # incompressible
    with tempfile.NamedTemporaryFile(dir=directory) as named, moving(Path(named.name), os.O_RDWR) as file:
        began = time.perf_counter()
        length = _moved(file.write, cells, _MOST_BYTES)
        os.fsync(named.fileno())
        write = length / (time.perf_counter() - began)
        began = time.perf_counter()
        read_bytes = _moved(file.read, cells, length)
        return DiskSpeed(write, read_bytes / (time.perf_counter() - began))


def _moved(move: Callable[[Piece], np.ndarray], cells: np.ndarray, most: int) -> int:
    """Write or read one buffer again and again at consecutive offsets of a file; return the bytes moved.

    move   function that writes or reads cells at an offset: `MovingFile.write` or `MovingFile.read`
    cells  the buffer
    most   bytes after which to stop; it also stops after `_SECONDS` (0.7 s)
    """
    began = time.perf_counter()

    def pieces() -> Iterator[Piece]:
        for offset in range(0, most, cells.nbytes):
            if time.perf_counter() - began > _SECONDS:
                return
            yield Piece(cells, offset)

    return sum(part.nbytes for part in ordered(move, pieces(), threads=MOVING_THREADS))
