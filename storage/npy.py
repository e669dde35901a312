"""Reads and writes arrays as `.npy` files in one restricted form.

NumPy's reader evaluates the header as Python, so damage has arbitrary effects. This reader accepts only headers of
version 1.0 of row-major, little-endian integers or floats. It compares the file length with the shape before it
allocates.
"""

import io
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from storage.damage import DamagedError, reading

_MAGIC = b"\x93NUMPY\x01\x00"  # followed by two bytes: the length of the rest of the header
_PREFIX_BYTES = len(_MAGIC) + 2
_ALIGNMENT_BYTES = 16
_HEADER = re.compile(
    rb"\{'descr': '(?P<dtype>\|[iu]1|<[iu][248]|<f[48])', 'fortran_order': False, "
    rb"'shape': \((?P<shape>(?:[0-9]{1,18}, ?)*(?:[0-9]{1,18})?)\), \} *\n"
)


def npy_pieces(array: np.ndarray) -> Iterator[bytes | memoryview]:
    """Yield the bytes of an array's `.npy` file, in parts that `durable.write_file` takes.

    The file has version 1.0, row-major order and little-endian cells.
    """
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    yield header.getvalue()
    if array.size:
        yield array.data.cast("B")


def read_npy(path: Path, *, mapped: bool = False) -> np.ndarray:
    """Return the array of a `.npy` file written by `npy_pieces`: integers or floats, row-major.

    path    the file
    mapped  False: a writable copy in memory; True: a read-only memory map

    Raises `DamagedError` for another header or a wrong length, `FileNotFoundError` if there is no file, and
    `UnreadableError` if the system cannot read it.
    """
    with reading(path), path.open("rb") as file:
        prefix = file.read(_PREFIX_BYTES)
        header = file.read(int.from_bytes(prefix[-2:], "little"))
    start, match = _PREFIX_BYTES + len(header), _HEADER.fullmatch(header)
    if prefix[:-2] != _MAGIC or match is None or start % _ALIGNMENT_BYTES:
        raise DamagedError(f"{path} has no header of a .npy file, version 1.0, of numbers in row-major order")
    dtype = np.dtype(match["dtype"].decode())
    shape = tuple(int(length) for length in match["shape"].decode().split(",") if length.strip())
    with reading(path):
        needed, file_bytes = start + math.prod(shape) * dtype.itemsize, path.stat().st_size
    if file_bytes != needed or len(shape) > 8:
        raise DamagedError(f"{path} has {file_bytes:,} bytes; {needed:,} are needed for its shape {shape} of {dtype}")
    if file_bytes == start:
        return np.empty(shape, dtype)
    with reading(path):
        if mapped:
            # A plain array over the mapping: indexing numpy.memmap itself is several times slower.
            return np.asarray(np.memmap(path, dtype, "r", start, shape))
        cells = np.empty(shape, dtype)
        with path.open("rb") as file:  # numpy.fromfile would take a disk error for the end of the file
            file.seek(start)
            if file.readinto(cells.reshape(-1).view(np.uint8).data) != cells.nbytes:
                raise DamagedError(f"{path} became shorter while it was read")
        return cells
