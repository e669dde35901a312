"""Checksums of what moves in pieces: those of pieces joined to that of the whole, so that threads can share the work.

A CRC is the remainder of a polynomial over two elements, and a text of two parts is the first, times x to the number of
bits of the second, plus the second.  Polynomials are written as CRC-32C writes them, the highest power in bit 0.
"""

from functools import cache

import crc32c

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, without its power 32
_ONE, _X8 = 1 << 31, 1 << 23


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
