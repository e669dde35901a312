"""How fast a disk is: bytes a second of long sequential writes and reads, moved as blocks are, measured in a second."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from storage.contiguous import MOVING_THREADS, PIECE_BYTES, Piece, moving
from storage.mapping import map_anonymous
from storage.threads import ordered

_MOST_BYTES = 1 << 30
_SECONDS = 0.7


class DiskSpeed(NamedTuple):
    """Bytes a second; what is written fsynced at its end."""

    write: float
    read: float


def disk_speed(directory: Path) -> DiskSpeed:
    """Measure with a file that goes at once; `OSError` where none can be written."""
    cells = map_anonymous(PIECE_BYTES // 8, np.dtype(np.uint64))
    cells[:] = np.random.default_rng().integers(2**64, size=cells.size, dtype=np.uint64)  # nothing to be compressed
    with tempfile.NamedTemporaryFile(dir=directory) as named, moving(Path(named.name), os.O_RDWR) as file:
        began = time.perf_counter()
        length = _moved(file.write, cells, _MOST_BYTES)
        os.fsync(named.fileno())
        write = length / (time.perf_counter() - began)
        began = time.perf_counter()
        done = _moved(file.read, cells, length)
        return DiskSpeed(write, done / (time.perf_counter() - began))


def _moved(move: Callable[[Piece], np.ndarray], cells: np.ndarray, most: int) -> int:
    """Move the same piece to or from one place after the other, for a while; how many bytes that were."""
    began = time.perf_counter()

    def pieces() -> Iterator[Piece]:
        for offset in range(0, most, cells.nbytes):
            if time.perf_counter() - began > _SECONDS:
                return
            yield Piece(cells, offset)

    return sum(part.nbytes for part in ordered(move, pieces(), threads=MOVING_THREADS))
