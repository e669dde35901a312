"""Weighted points: merges duplicates by a hash table of whole rows."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstraction.kernels.jit import inline_njit, nogil_njit, part_njit


def _words(points: NDArray[Any]) -> tuple[NDArray[Any], Any]:
    """Return the bits of rows [N, D] as unsigned integers, and the bits of −0.0 (0 for integers)."""
    words = np.ascontiguousarray(points).view(f"u{points.dtype.itemsize}")
    return words, words.dtype.type(1 << (8 * points.dtype.itemsize - 1) if points.dtype.kind == "f" else 0)


class DistinctPoints(NamedTuple):
    """Result of `distinct_points`: points without duplicates, in order of first appearance."""

    points: NDArray[Any]
    """[M, D] distinct rows, dtype as given"""
    weights: NDArray[np.int64]
    """[M] total weight of each row"""
    inverse: NDArray[np.int32]
    """[N] distinct row of each given row"""


@inline_njit
def _word(words, row, j, negative_zero):
    """Return words[row, j], the bits of a coordinate, as uint64; the bits of −0.0 become 0."""
    word = words[row, j]
    return np.uint64(0) if word == negative_zero else np.uint64(word)


@part_njit
def _row_hash(words, row, negative_zero):
    """Return a 64-bit hash of row `row` of words [N, D], the bits of the points.

    `negative_zero` are the bits of −0.0, which count as 0.
    """
    state = np.uint64(0x9E3779B97F4A7C15)
    for j in range(words.shape[1]):
        state = (state ^ _word(words, row, j, negative_zero)) * np.uint64(0xD6E8FEB86659FD93)
        state ^= state >> np.uint64(32)
    return state


@part_njit
def _same_rows(words, one, others, other, negative_zero):
    """Return whether row `one` of `words` equals row `other` of `others`; both hold bits of points.

    `negative_zero` are the bits of −0.0, which count as 0.
    """
    for j in range(words.shape[1]):
        if _word(words, one, j, negative_zero) != _word(others, other, j, negative_zero):
            return False
    return True


@nogil_njit
def _insert_rows(words, weights, negative_zero, store, table, numbers):
    """Number rows in order of first appearance and store new ones; return the number of stored rows.

    words          [N, D] bits of the rows as unsigned integers
    weights        [N] int64 weight of each row
    negative_zero  bits of −0.0, which count as 0
    store          (bits of the stored rows [L, D], their summed weights [L] int64, number of stored rows); arrays in
                   place
    table          open-addressed hash table, in place: slots [2^b] int32, the row numbers or −1; tags [2^b] uint32, the
                   upper half of each hash
    numbers        [N] int32, receives the number of each row
    """
    stored_words, totals, count = store
    slots, tags = table
    mask = np.uint64(slots.shape[0] - 1)
    for row in range(words.shape[0]):
        state = _row_hash(words, row, negative_zero)
        tag = np.uint32(state >> np.uint64(32))
        slot = state & mask
        while slots[slot] >= 0:
            if tags[slot] == tag and _same_rows(stored_words, slots[slot], words, row, negative_zero):
                break
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] < 0:
            slots[slot], tags[slot] = count, tag
            for column in range(words.shape[1]):
                stored_words[count, column] = words[row, column]
            totals[count] = 0
            count += 1
        numbers[row] = slots[slot]
        totals[slots[slot]] += weights[row]
    return count


@nogil_njit
def _insert_all(stored_words, count, negative_zero, slots, tags):
    """Insert rows 0 to `count` − 1 of stored_words [L, D] into an empty hash table, in place.

    stored_words   bits of distinct rows as unsigned integers
    negative_zero  bits of −0.0, which count as 0
    slots          [2^b] int32, −1 at the start, receives the row numbers
    tags           [2^b] uint32, receives the upper half of each hash
    """
    mask = np.uint64(slots.shape[0] - 1)
    for number in range(count):
        state = _row_hash(stored_words, number, negative_zero)
        slot = state & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot], tags[slot] = number, np.uint32(state >> np.uint64(32))


class PointSet:
    """Collects distinct rows that arrive in parts, such as features of a few boards at a time.

    Rows are numbered in order of first appearance.  Memory for all rows that there can be is reserved at once, but the
    system provides only the pages that are filled.

    limit       largest number of distinct rows
    dimensions  number D of values in a row
    dtype       dtype of the rows, integers or floats
    """

    def __init__(self, limit: int, dimensions: int, dtype: np.dtype[Any]) -> None:
        self._rows = np.empty((limit, dimensions), dtype)
        self._totals = np.empty(limit, np.int64)
        self._count = 0
        self._slots, self._tags = np.empty(0, np.int32), np.empty(0, np.uint32)

    def add(self, rows: NDArray[Any], weights: NDArray[np.int64]) -> NDArray[np.int32]:
        """Add rows [N, D] with weights [N] int64; return the number [N] of the distinct row that each equals."""
        words, negative_zero = _words(rows)
        stored_words = self._rows.view(words.dtype)
        most = self._count + len(rows)
        if most > len(self._slots) // 2:
            size = 1 << (2 * most - 1).bit_length()
            self._slots, self._tags = np.full(size, -1, np.int32), np.empty(size, np.uint32)
            _insert_all(stored_words, self._count, negative_zero, self._slots, self._tags)
        numbers = np.empty(len(rows), np.int32)
        store, table = (stored_words, self._totals, self._count), (self._slots, self._tags)
        self._count = int(_insert_rows(words, weights, negative_zero, store, table, numbers))
        return numbers

    def finish(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the distinct rows [M, D] and their weights [M]; no rows can be added afterwards."""
        self._slots, self._tags = np.empty(0, np.int32), np.empty(0, np.uint32)
        return self._rows[: self._count], self._totals[: self._count]


def distinct_points(points: NDArray[Any], weights: NDArray[np.int64]) -> DistinctPoints:
    """Merge equal rows of points [N, D], integers or floats, and add up their weights [N] int64.

    The result holds the distinct rows, their weights, and the number of the distinct row for each given row.  The two
    zeros of a float are equal.
    """
    point_set = PointSet(len(points), points.shape[1], points.dtype)
    numbers = point_set.add(points, weights)
    return DistinctPoints(*point_set.finish(), numbers)


@dataclass(frozen=True)
class Problem:
    """Distinct points to cluster, with weights, metric (L2 or EMD) and number of threads."""

    points: NDArray[np.float32]
    """[N, D] C-contiguous, distinct, finite and below 1e15, so that sums of squares stay within float32"""
    weights: NDArray[np.float64]
    """[N] positive"""
    metric: int
    """L2 or EMD"""
    workers: int
    """maximum number of threads; does not change results"""
