"""Weighted points: merges duplicates, and checks and converts the input of the clustering."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstraction.clustering.metric import LARGEST, distance_code
from abstraction.kernels.jit import inline_njit, nogil_njit, part_njit


def _words(points: NDArray[Any]) -> tuple[NDArray[Any], Any]:
    """Return the bits of rows as unsigned integers, and the bits of negative zero (0 for integers)."""
    words = np.ascontiguousarray(points).view(f"u{points.dtype.itemsize}")
    return words, words.dtype.type(1 << (8 * points.dtype.itemsize - 1) if points.dtype.kind == "f" else 0)


class DistinctPoints(NamedTuple):
    """Points without duplicates, in order of first appearance."""

    points: NDArray[Any]
    """[M, D] distinct rows, dtype as given; the given array itself if all rows are distinct"""
    weights: NDArray[Any]
    """[M] total weight of each row: int64 for integer weights, else float64"""
    inverse: NDArray[np.int32]
    """[N] distinct row of each given row"""


@inline_njit
def _word(words, row, j, negative_zero):
    """Return the bits of words[row, j], with both zeros of a float as 0."""
    word = words[row, j]
    return np.uint64(0) if word == negative_zero else np.uint64(word)


@part_njit
def _row_hash(words, row, negative_zero):
    """Return a 64-bit hash of a row."""
    state = np.uint64(0x9E3779B97F4A7C15)
    for j in range(words.shape[1]):
        state = (state ^ _word(words, row, j, negative_zero)) * np.uint64(0xD6E8FEB86659FD93)
        state ^= state >> np.uint64(32)
    return state


@part_njit
def _same_rows(words, one, others, other, negative_zero):
    """Return whether words[one] and others[other] are equal rows."""
    for j in range(words.shape[1]):
        if _word(words, one, j, negative_zero) != _word(others, other, j, negative_zero):
            return False
    return True


@nogil_njit
def _number_rows(words, negative_zero, slots, tags, firsts, inverse):
    """Number distinct rows in order of appearance; return how many there are.

    Fills inverse [N] and firsts. slots [2^b] int32 is an open-addressed hash table of the numbers, −1 at first. tags
    [2^b] uint32 holds part of each hash.
    """
    mask = np.uint64(slots.shape[0] - 1)
    count = 0
    for row in range(words.shape[0]):
        state = _row_hash(words, row, negative_zero)
        tag = np.uint32(state >> np.uint64(32))
        place = state & mask
        while slots[place] >= 0:
            if tags[place] == tag and _same_rows(words, firsts[slots[place]], words, row, negative_zero):
                break
            place = (place + np.uint64(1)) & mask
        if slots[place] < 0:
            slots[place], tags[place], firsts[count] = count, tag, row
            count += 1
        inverse[row] = slots[place]
    return count


@nogil_njit
def _total_weights(weights, inverse, totals):
    for i in range(weights.shape[0]):
        totals[inverse[i]] += weights[i]


def distinct_points(points: NDArray[Any], weights: ArrayLike | None = None) -> DistinctPoints:
    """Merge equal rows of points [N, D], of any integer or float dtype, and add up their weights [N].

    `weights` None is 1 each.  Rows are compared in full; the two zeros of a float are equal.  Raises `ValueError` for
    shapes that do not fit, or 2^31 rows and more.
    """
    if points.ndim != 2 or points.dtype.kind not in "iuf":
        raise ValueError(f"points are {points.dtype} of shape {points.shape}: numbers of shape [N, D] are needed")
    rows = len(points)
    given = np.ones(rows, np.int64) if weights is None else np.asarray(weights)
    if given.shape != (rows,):
        raise ValueError(f"weights have shape {given.shape}, but there are {rows} points: one weight each is needed")
    if rows >= 2**31:
        raise ValueError(f"{rows} points were given: fewer than 2^31 are allowed")
    words, negative_zero = _words(points)
    size = 1 << max(4, (2 * rows - 1).bit_length()) if rows else 16
    slots, tags = np.full(size, -1, np.int32), np.empty(size, np.uint32)
    firsts, inverse = np.empty(rows, np.int32), np.empty(rows, np.int32)
    count = _number_rows(words, negative_zero, slots, tags, firsts, inverse)
    totals = np.zeros(count, np.int64 if given.dtype.kind in "iub" else np.float64)
    _total_weights(given.astype(totals.dtype, copy=False), inverse, totals)
    return DistinctPoints(points if count == rows else points[firsts[:count]], totals, inverse)


@nogil_njit
def _insert_rows(words, weights, negative_zero, store, table, numbers):
    """Number rows in order of appearance and add new ones to the store; return its size, −1 if it is full.

    store    (words [L, D], totals [L], count)
    table    (slots [2^b], tags [2^b])
    numbers  [N], filled
    """
    kept, totals, count = store
    slots, tags = table
    mask = np.uint64(slots.shape[0] - 1)
    for row in range(words.shape[0]):
        state = _row_hash(words, row, negative_zero)
        tag = np.uint32(state >> np.uint64(32))
        place = state & mask
        while slots[place] >= 0:
            if tags[place] == tag and _same_rows(kept, slots[place], words, row, negative_zero):
                break
            place = (place + np.uint64(1)) & mask
        if slots[place] < 0:
            if count == kept.shape[0]:
                return -1
            slots[place], tags[place] = count, tag
            for column in range(words.shape[1]):
                kept[count, column] = words[row, column]
            totals[count] = 0
            count += 1
        numbers[row] = slots[place]
        totals[slots[place]] += weights[row]
    return count


@nogil_njit
def _place_again(kept, count, negative_zero, slots, tags):
    """Fill a larger hash table with the rows of the store."""
    mask = np.uint64(slots.shape[0] - 1)
    for number in range(count):
        state = _row_hash(kept, number, negative_zero)
        place = state & mask
        while slots[place] >= 0:
            place = (place + np.uint64(1)) & mask
        slots[place], tags[place] = number, np.uint32(state >> np.uint64(32))


class PointSet:
    """Distinct rows that arrive in parts, numbered in order of first appearance.

    Memory for `limit` rows is reserved at once, but the system provides only the pages that are filled.
    """

    def __init__(self, limit: int, dimensions: int, dtype: np.dtype[Any]) -> None:
        if not 1 <= limit < 2**31:
            raise ValueError(f"limit is {limit}: 1 to 2^31 - 1 distinct points are allowed")
        self._rows = np.empty((limit, dimensions), dtype)
        self._totals = np.empty(limit, np.int64)
        self._count = 0
        self._slots, self._tags = np.full(1 << 16, -1, np.int32), np.empty(1 << 16, np.uint32)

    def add(self, rows: NDArray[Any], weights: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the numbers [N] of rows [N, D] and add their weights [N]; `ValueError` beyond the limit."""
        if rows.dtype != self._rows.dtype or rows.shape[1:] != self._rows.shape[1:] or weights.shape != (len(rows),):
            raise ValueError(
                f"rows are {rows.dtype} of shape {rows.shape}, weights have shape {weights.shape}: "
                f"{self._rows.dtype} [N, {self._rows.shape[1]}] and [N] are needed"
            )
        words, negative_zero = _words(rows)
        kept = self._rows.view(words.dtype)
        most = self._count + len(rows)
        if most > len(self._slots) // 2:
            size = 1 << (2 * most - 1).bit_length()
            self._slots, self._tags = np.full(size, -1, np.int32), np.empty(size, np.uint32)
            _place_again(kept, self._count, negative_zero, self._slots, self._tags)
        numbers = np.empty(len(rows), np.int32)
        store, table = (kept, self._totals, self._count), (self._slots, self._tags)
        count = _insert_rows(words, weights.astype(np.int64, copy=False), negative_zero, store, table, numbers)
        if count < 0:
            raise ValueError(f"there are more distinct points than the {len(kept)} that the set was made for")
        self._count = int(count)
        return numbers

    def finish(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the distinct rows [M, D] and their weights [M]; no rows can be added afterwards."""
        self._slots, self._tags = np.empty(0, np.int32), np.empty(0, np.uint32)
        return self._rows[: self._count], self._totals[: self._count]


@dataclass(frozen=True)
class Problem:
    """Checked points to cluster, with metric and number of threads."""

    points: NDArray[np.float32]
    """[N, D] C-contiguous"""
    weights: NDArray[np.float64]
    """[N] positive"""
    metric: int
    """L2 or EMD"""
    workers: int
    """maximum number of threads; does not change results"""


def clustering_problem(
    points: NDArray[Any], weights: ArrayLike | None = None, distance: str = "l2", workers: int = 1
) -> Problem:
    """Check points [N, D] and weights [N] (None: 1 each), and convert them to float32 and float64.

    `distance` is "l2" or "emd".  Merge duplicates first (`distinct_points`), because filling empty buckets needs
    distinct points.  Raises `ValueError` for shapes that do not fit, coordinates not finite or at least 1e15, or
    weights not positive and finite.
    """
    metric = distance_code(distance)
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(f"points have shape {points.shape}: [N, D] with at least one point and coordinate is needed")
    if workers < 1:
        raise ValueError(f"workers is {workers}: at least one is needed")
    taken = np.ascontiguousarray(points, dtype=np.float32)
    # Minimum and maximum are NaN if a coordinate is, so that no array of flags is needed.
    if not max(-float(taken.min()), float(taken.max())) < LARGEST:
        raise ValueError(f"points hold a coordinate that is not finite, or {LARGEST:g} and larger: smaller are allowed")
    given = np.ones(len(taken)) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != (len(taken),):
        raise ValueError(f"weights have shape {given.shape}, but there are {len(taken)} points: one each is needed")
    if not (float(given.min()) > 0 and float(given.max()) < np.inf):
        raise ValueError(f"weights lie between {given.min()} and {given.max()}: positive finite ones are needed")
    return Problem(taken, np.ascontiguousarray(given), metric, workers)
