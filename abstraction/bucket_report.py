"""Statistics of a street's buckets: sizes, mean equity and its spread, variance explained.

E[HS] is a hand's mean equity against a random opponent hand over the cards to come, 0 to 1.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstraction.kernels.jit import njit
from abstraction.street_features import StreetHands

_ROWS = 1 << 17  # points whose variance is summed at a time


class BucketTotals(NamedTuple):
    """Size, mean equity and equity spread of each of the K buckets of one street.

    A build saves the sizes and mean equities with the buckets, and `summary` reduces all three to a few numbers.
    """

    hands: NDArray[np.int64]
    """[K] number of dealt pairs of board and hole cards"""
    equity: NDArray[np.float64]
    """[K] mean E[HS] (equity against a random hand), 0 to 1; ½ for an empty bucket"""
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
    """Return the `BucketTotals` of a street: for each bucket its size, mean equity and equity spread.

    The size is the number of dealt pairs of board and hand.  A board of the tables counts once for each dealt board
    that it stands for.  The mean equity is that of E[HS], ½ for an empty bucket.  The spread is the standard deviation
    of E[HS] within the bucket.

    street   `StreetHands`: numbers of boards and hands, and how many dealt boards each board in the tables stands for
    bucket   [boards, hands] unsigned: bucket of each hand; the largest value of the dtype marks impossible hands
    sums     [boards, hands] river strength (2·wins + ties against opponent hands), summed over the hand's run-outs
    buckets  number of buckets K
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


def variance_explained(points: NDArray[Any], labels: NDArray[Any], weights: NDArray[np.float64], k: int) -> float:
    """Return the share of the weighted variance of points [N, D] that lies between buckets 0 to k − 1.

    labels   [N] bucket of each point
    weights  [N] weight of each point, such as its number of hands

    The share is 1 − within / total, and 1 if the points do not vary.
    """
    mass = np.bincount(labels, weights, k)
    overall = np.zeros(points.shape[1])
    for first in range(0, len(points), _ROWS):
        overall += weights[first : first + _ROWS] @ points[first : first + _ROWS].astype(np.float64)
    overall /= mass.sum()
    sums, total = np.zeros((k, points.shape[1])), 0.0
    for first in range(0, len(points), _ROWS):
        part = slice(first, first + _ROWS)
        rows = points[part].astype(np.float64) - overall
        total += float(weights[part] @ np.square(rows).sum(axis=1))
        for j in range(rows.shape[1]):
            sums[:, j] += np.bincount(labels[part], weights[part] * rows[:, j], k)
    used = mass > 0
    between = float((np.square(sums[used]).sum(axis=1) / mass[used]).sum())
    return between / total if total > 0 else 1.0


def summary(totals: BucketTotals) -> dict[str, Any]:
    """Return {name: number}, the statistics of all buckets that `mccfr abstraction info` prints.

    They are numbers of hands (in all, and in the smallest, median and largest bucket) and of empty buckets.
    `equity_spread` is the mean standard deviation of E[HS] (0 to 1) within a bucket, weighted by hands.
    `equity_explained` is the share of the variance of E[HS] that lies between buckets.
    """
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
