"""How fast a disk is: bytes a second of long sequential writes and reads, measured in about a second."""

import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

_PIECE_BYTES = 4 << 20
_MOST_BYTES = 512 << 20
_SECONDS = 0.7


class DiskSpeed(NamedTuple):
    """Bytes a second, what is written fsynced, what is read not from memory as far as the system lets go of it."""

    write: float
    read: float


def disk_speed(directory: Path) -> DiskSpeed:
    """Measure with a file without a name, which goes at once; `OSError` where none can be written."""
    piece = os.urandom(_PIECE_BYTES)
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        began, length = time.perf_counter(), 0
        while length < _MOST_BYTES and time.perf_counter() - began < _SECONDS:
            length += file.write(piece)
            os.fsync(file.fileno())
        write = length / max(time.perf_counter() - began, 1e-6)
        os.posix_fadvise(file.fileno(), 0, length, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        began, done = time.perf_counter(), 0
        while part := file.read(_PIECE_BYTES):
            done += len(part)
            if time.perf_counter() - began > _SECONDS:
                break
        return DiskSpeed(write, done / max(time.perf_counter() - began, 1e-6))
