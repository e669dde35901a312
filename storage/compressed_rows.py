"""Tables whose rows are compressed one by one, so that a reader unpacks only the row that it needs.

A table [R, C] is written as two arrays. `streams` [bytes] uint8 holds the rows one after the other. Each row is a zlib
stream (RFC 1950) of its cells, low byte first. `starts` [R+1] uint32 holds the index in `streams` of each row's first
byte, and at the end the length of `streams`.
"""

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from storage.damage import DamagedError
from storage.threads import ordered

_LEVEL = 9
_ROWS_AT_ONCE = 1 << 9


def pack_rows(
    table: npt.NDArray[Any], dtype: npt.DTypeLike | None = None
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32]]:
    """Compress each row of a table [R, C] of integers with zlib; return `streams` and `starts`.

    dtype  dtype to which the cells are cast before they are packed; None: the table's

    `streams` [bytes] uint8 has all compressed rows. `starts` [R+1] uint32 has the index in `streams` of each row's
    first byte, and at the end the length of `streams`. Raises `ValueError` if that is more than 4 GiB.
    """
    packed = np.dtype(table.dtype if dtype is None else dtype).newbyteorder("<")

    def some(first: int) -> list[bytes]:
        rows = np.ascontiguousarray(table[first : first + _ROWS_AT_ONCE], packed)
        return [zlib.compress(row, _LEVEL) for row in rows]

    parts = ordered(some, range(0, len(table), _ROWS_AT_ONCE), size_bytes=table.nbytes)
    streams = [stream for part in parts for stream in part]
    ends = np.cumsum([0, *map(len, streams)], dtype=np.int64)
    if ends[-1] > np.iinfo(np.uint32).max:
        raise ValueError(f"a table of {table.nbytes:,} bytes takes {ends[-1]:,} packed bytes: 4 GiB are the limit")
    return np.frombuffer(b"".join(streams), np.uint8), ends.astype(np.uint32)


class PackedRows:
    """Reads single rows of a table [R, C] whose rows `pack_rows` has compressed; len() is R."""

    def __init__(
        self,
        file: str,
        streams: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.uint32],
        width: int,
        dtype: np.dtype[Any],
        check: Callable[[int], None] = lambda byte: None,
    ) -> None:
        """Take the arrays that `pack_rows` returned; no row is unpacked yet.

        file     name of the file with `streams`, for messages
        streams  [bytes] uint8, the compressed rows one after the other
        starts   [R+1] uint32, index in `streams` of each row's first byte, and at the end the length of `streams`
        width    number C of cells in a row
        dtype    dtype to which the cells were cast for packing
        check    called before a row is unpacked, with the index in `streams` of the row's first byte, then with that
                 of its last byte. It should raise an error if the file is damaged there

        Raises `ValueError` if `starts` does not ascend from 0 to the length of `streams`.
        """
        if starts[0] != 0 or starts[-1] != len(streams) or (starts[1:] <= starts[:-1]).any():
            raise ValueError(f"{file}: the first bytes of its rows do not ascend from 0 to its {len(streams)} bytes")
        self.file, self._streams, self._starts, self._check = file, streams, starts, check
        self._width, self._dtype = width, dtype.newbyteorder("<")

    def __len__(self) -> int:
        return len(self._starts) - 1

    def rows(self, first: int, stop: int) -> npt.NDArray[Any]:
        """Return rows `first` to `stop` - 1 as [n, C], read-only; rows from R on are left out.

        Raises `DamagedError` if the compressed bytes of a row are damaged.
        """
        unpacked = b"".join(self._unpack(row) for row in range(first, min(stop, len(self))))
        return np.frombuffer(unpacked, self._dtype).reshape(-1, self._width)

    def _unpack(self, row: int) -> bytes:
        start, end = int(self._starts[row]), int(self._starts[row + 1])
        self._check(start)
        self._check(end - 1)
        length, unpacker = self._width * self._dtype.itemsize, zlib.decompressobj()
        try:
            found = unpacker.decompress(self._streams[start:end].tobytes(), length + 1)
        except zlib.error as error:
            raise DamagedError(f"{self.file}: row {row} cannot be unpacked ({error})") from None
        if len(found) != length or not unpacker.eof or unpacker.unused_data:
            raise DamagedError(f"{self.file}: row {row} does not unpack to {length} bytes")
        return found
