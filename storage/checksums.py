"""Checksums of files, and of what moves in pieces.

Of two kinds.  XXH3-128 (Yann Collet, https://xxhash.com) for the chunks of tables: a Zarr chunk ends with its own
CRC-32C, and the CRC-32C of a text followed by its CRC-32C is one number for all texts.  CRC-32C for all else; those of
pieces can be joined to that of the whole, so that threads share the work.

A CRC is the remainder of a polynomial over two elements, and a text of two parts is the first, times x to the number of
bits of the second, plus the second.  Polynomials are written as CRC-32C writes them, the highest power in bit 0.
"""

from functools import cache
from typing import Protocol, TypeGuard

import crc32c
import numpy as np
import xxhash

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, without its power 32
_ONE, _X8 = 1 << 31, 1 << 23

Checksum = int | str
"""A CRC-32C as an integer, or an XXH3-128 as 32 hexadecimal digits."""
CRC32C, XXH3 = "crc32c", "xxh3_128"
"""The kinds, by the names that manifests give them."""


class Sum(Protocol):
    """A checksum that is being taken, piece by piece."""

    def update(self, piece: bytes | bytearray | memoryview) -> None:
        """Take the next piece."""

    def found(self) -> Checksum:
        """Of all pieces so far."""


class _Crc32c:
    def __init__(self) -> None:
        self._value = 0

    def update(self, piece: bytes | bytearray | memoryview) -> None:
        self._value = crc32c.crc32c(piece, self._value)

    def found(self) -> int:
        return self._value


class _Xxh3:
    def __init__(self) -> None:
        self._sum = xxhash.xxh3_128()

    def update(self, piece: bytes | bytearray | memoryview) -> None:
        self._sum.update(piece)

    def found(self) -> str:
        return self._sum.hexdigest()


_KINDS: dict[str, type[Sum]] = {CRC32C: _Crc32c, XXH3: _Xxh3}


def new_sum(kind: str) -> Sum:
    """A checksum of one of the kinds, of nothing yet."""
    return _KINDS[kind]()


def is_checksum(value: object, kind: str) -> TypeGuard[Checksum]:
    """Whether what was read is a checksum, of a kind that there is."""
    return kind in _KINDS and type(value) is type(new_sum(kind).found())


def cells_checksum(array: np.ndarray) -> str:
    """XXH3-128 of an array's cells, row-major and little endian, however they are stored."""
    cells = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return xxhash.xxh3_128_hexdigest(cells.reshape(-1).view(np.uint8).data)


def checksum(data: memoryview | bytes) -> int:
    """CRC-32C of some bytes."""
    return int(crc32c.crc32c(data))


def joined(first: int, second: int, second_bytes: int) -> int:
    """CRC-32C of two parts, one behind the other, from those of both and the length of the second."""
    return _product(_power(second_bytes), first) ^ second


def _product(one: int, other: int) -> int:
    """Of two polynomials, modulo that of the checksum."""
    found = 0
    while one:
        if one & _ONE:
            found ^= other
        one = one << 1 & 0xFFFFFFFF
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return found


@cache
def _power(count: int) -> int:
    """x to the power of the bits of so many bytes, modulo the checksum's polynomial."""
    found, square = _ONE, _X8
    while count:
        if count & 1:
            found = _product(found, square)
        square, count = _product(square, square), count >> 1
    return found
