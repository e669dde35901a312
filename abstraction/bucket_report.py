"""Statistics of a street's buckets over all dealt hands: sizes, mean equity and its spread."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstraction.kernels.jit import njit
from abstraction.street_features import StreetHands

_DENSE_CELLS = 1 << 24  # up to this many pairs of buckets are counted in a dense table
_BOARDS = 1024  # boards whose hands are paired at a time if the table would be larger


class BucketTotals(NamedTuple):
    """Statistics of the buckets of one street."""

    hands: NDArray[np.int64]
    """[K] number of dealt hands"""
    equity: NDArray[np.float64]
    """[K] mean E[HS], 0 to 1; ½ for an empty bucket"""
    spread: NDArray[np.float64]
    """[K] standard deviation of E[HS] within the bucket"""


@njit
def _add_means(bucket, sums, multiplicity, unused, hands, totals):
    for board in range(bucket.shape[0]):
        weight = multiplicity[board]
        for slot in range(bucket.shape[1]):
            label = bucket[board, slot]
            if label != unused:
                hands[label] += weight
                totals[label] += weight * np.float64(sums[board, slot])


@njit
def _add_squares(bucket, sums, multiplicity, unused, means, squares):
    for board in range(bucket.shape[0]):
        weight = multiplicity[board]
        for slot in range(bucket.shape[1]):
            label = bucket[board, slot]
            if label != unused:
                difference = np.float64(sums[board, slot]) - means[label]
                squares[label] += weight * difference * difference


def bucket_totals(street: StreetHands, bucket: NDArray[Any], sums: NDArray[Any], buckets: int) -> BucketTotals:
    """Return the statistics of `bucket` [boards, slots], a street's table with `buckets` buckets.

    `sums` [boards, slots] are summed strengths.  Each board counts as often as it is dealt.
    """
    multiplicity = street.times(0, len(bucket))
    unused = bucket.dtype.type(np.iinfo(bucket.dtype).max)
    hands, totals, squares = np.zeros(buckets, np.int64), np.zeros(buckets), np.zeros(buckets)
    _add_means(bucket, sums, multiplicity, unused, hands, totals)
    means = totals / np.maximum(hands, 1)
    _add_squares(bucket, sums, multiplicity, unused, means, squares)
    largest = street.largest
    equity = np.where(hands > 0, means / largest, 0.5)
    return BucketTotals(hands, equity, np.sqrt(squares / np.maximum(hands, 1)) / largest)


@njit
def _add_pairs(first, second, multiplicity, unused, counts):
    for board in range(first.shape[0]):
        weight = multiplicity[board]
        for slot in range(first.shape[1]):
            label = first[board, slot]
            if label != unused:
                counts[label, second[board, slot]] += weight


def bucket_pairs(
    street: StreetHands, first: NDArray[Any], second: NDArray[Any], buckets: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of buckets that share hands, and the number of hands they share.

    `first` and `second` [boards, slots] are two tables of one street with `buckets` = (K1, K2).  The result is keys
    first·K2 + second [P], ascending, and counts [P].
    """
    multiplicity = street.times(0, len(first))
    mark = first.dtype.type(np.iinfo(first.dtype).max)
    if buckets[0] * buckets[1] <= _DENSE_CELLS:
        table = np.zeros(buckets, np.int64)
        _add_pairs(first, second, multiplicity, mark, table)
        keys = np.flatnonzero(table)
        return keys, table.ravel()[keys]
    found, counts = [], []
    for start in range(0, len(first), _BOARDS):
        part = slice(start, start + _BOARDS)
        used = first[part] != mark
        weight = np.broadcast_to(multiplicity[part, None], used.shape)[used]
        pairs, inverse = np.unique(
            first[part][used].astype(np.int64) * buckets[1] + second[part][used], return_inverse=True
        )
        found.append(pairs)
        counts.append(np.bincount(inverse, weight).astype(np.int64))
    keys, inverse = np.unique(np.concatenate(found), return_inverse=True)
    return keys, np.bincount(inverse, np.concatenate(counts)).astype(np.int64)


def summary(totals: BucketTotals) -> dict[str, Any]:
    """Return the bucket statistics that `mccfr abstraction info` prints."""
    hands = totals.hands.astype(np.float64)
    overall = float(hands @ totals.equity / hands.sum())
    within = float(hands @ np.square(totals.spread))
    between = float(hands @ np.square(totals.equity - overall))
    return {
        "hands": int(totals.hands.sum()),
        "smallest_bucket_hands": int(totals.hands.min()),
        "median_bucket_hands": float(np.median(hands)),
        "largest_bucket_hands": int(totals.hands.max()),
        "empty_buckets": int((totals.hands == 0).sum()),
        "equity_spread": float(hands @ totals.spread / hands.sum()),
        "equity_explained": between / (between + within) if between + within > 0 else 1.0,
    }
