"""Checksums of files and arrays, of two kinds: CRC-32C and XXH3-128.

A CRC-32C is an integer, an XXH3-128 (Yann Collet, https://xxhash.com) a text of 32 hexadecimal digits. Checkpoints with
chunks use XXH3-128. The reason is that a Zarr chunk ends with its own CRC-32C, and the CRC-32C of data followed by its
CRC-32C is a constant. All chunk files would have this checksum, so exchanged chunks would not be detected.

`joined` combines the CRC-32C of two parts, so that threads can share the work. A CRC is a polynomial remainder over
GF(2): the CRC of a concatenation is crc(first) * x^(bits of the second) + crc(second). Polynomials have their highest
power in bit 0 of an integer, as in CRC-32C.
"""

from functools import cache
from typing import TypeGuard

import crc32c
import numpy as np
import xxhash

_POLYNOMIAL = 0x82F63B78  # Castagnoli polynomial without x^32
_ONE, _X8 = 1 << 31, 1 << 23

Checksum = int | str
"""CRC-32C as an integer, or XXH3-128 as 32 hexadecimal digits."""
CRC32C, XXH3 = "crc32c", "xxh3_128"
"""Names of the checksum kinds in manifests."""


_TYPES = {CRC32C: int, XXH3: str}


class Sum:
    """Computes a checksum of the kind `CRC32C` or `XXH3` from data that arrives in parts."""

    def __init__(self, kind: str) -> None:
        self._crc, self._xxh3 = 0, xxhash.xxh3_128() if kind == XXH3 else None

    def update(self, piece: bytes | bytearray | memoryview) -> None:
        """Add the next bytes of the data to the checksum."""
        if self._xxh3 is None:
            self._crc = crc32c.crc32c(piece, self._crc)
        else:
            self._xxh3.update(piece)

    def found(self) -> Checksum:
        """Return the checksum of all bytes so far: an integer for CRC-32C, 32 hexadecimal digits for XXH3."""
        return self._crc if self._xxh3 is None else self._xxh3.hexdigest()


def new_sum(kind: str) -> Sum:
    """Return an incremental checksum of the kind `CRC32C` or `XXH3`, to which no bytes are added yet."""
    return Sum(kind)


def is_checksum(value: object, kind: str) -> TypeGuard[Checksum]:
    """Return whether a value has the type of a checksum of `kind`: int for `CRC32C`, str for `XXH3`.

    Returns False for another kind.
    """
    return type(value) is _TYPES.get(kind)


def cells_checksum(array: np.ndarray) -> str:
    """Return the XXH3-128, in hexadecimal, of an array's row-major, little-endian bytes."""
    cells = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return xxhash.xxh3_128_hexdigest(cells.reshape(-1).view(np.uint8).data)


def checksum(data: memoryview | bytes) -> int:
    """Return the CRC-32C of some bytes."""
    return int(crc32c.crc32c(data))


def joined(first: int, second: int, second_bytes: int) -> int:
    """Return the CRC-32C of two parts of data together, the first before the second.

    first, second  CRC-32C of each part
    second_bytes   length of the second part in bytes
    """
    return _product(_power(second_bytes), first) ^ second


def _product(first: int, second: int) -> int:
    """Return the product of two polynomials over GF(2), as integers, modulo that of CRC-32C."""
    product = 0
    while first:
        if first & _ONE:
            product ^= second
        first = first << 1 & 0xFFFFFFFF
        second = second >> 1 ^ (_POLYNOMIAL if second & 1 else 0)
    return product


@cache
def _power(count: int) -> int:
    """Return the polynomial x^(8 * count) modulo the polynomial of CRC-32C, over GF(2), as an integer.

    The CRC of data is multiplied by it when `count` bytes follow (`joined`).
    """
    power, square = _ONE, _X8
    while count:
        if count & 1:
            power = _product(power, square)
        square, count = _product(square, square), count >> 1
    return power
