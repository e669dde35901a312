"""Potential-aware features: describes a hand by its distribution over next-street buckets.

With M next cards a hand is M next-street buckets of mass 1/M each.  The distance of two hands is the earth mover's
distance of these distributions, with the distance of bucket centres as ground distance.  Ganzfried & Sandholm (2014)
approximate it greedily, because it is a transport problem for each pair.

Our method uses sliced transport (Rabin et al.  2011) with chosen instead of random directions.  Bucket centres are
projected on a few directions.  On each, the exact one-dimensional distance is the L1 distance of the M sorted
projections.  So a hand is a point of sorted numbers, and k-medians with "emd" clusters it with exact bounds and
centres. The greedy distance, which is no metric, allows neither, but is closer for single pairs (`tests/transport.py`).
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstraction.clustering.metric import EMD, distance_code

DIRECTIONS = 8
"""Default number of directions.  More reduce the error slowly: 16 by a tenth to a fifth."""
VALUES = 8
"""Default number of values for each direction; each is the sum of a run of the sorted projections."""
_ROWS = 1 << 16  # hands projected at a time


def bucket_axes(centres: NDArray[Any], weights: ArrayLike | None = None, axes: int = 3) -> NDArray[np.float64]:
    """Return the positions of bucket centres [K, D] on their first S principal axes, [K, S] float64.

    S is `axes`, or D if that is smaller.  Positions are relative to the mean of the centres, weighed by `weights` [K].
    The largest component of each axis is positive.
    """
    given = np.ones(len(centres)) if weights is None else np.asarray(weights, dtype=np.float64)
    if axes < 1 or centres.ndim != 2 or given.shape != (len(centres),):
        raise ValueError(
            f"axes is {axes}, centres have shape {centres.shape}, weights {given.shape}: at least one axis, [K, D] "
            "and [K] are needed"
        )
    rows = centres.astype(np.float64)
    rows -= given @ rows / given.sum()
    _, vectors = np.linalg.eigh(rows.T @ (rows * given[:, None]))
    chosen = vectors[:, ::-1][:, : min(axes, rows.shape[1])]
    largest = chosen[np.abs(chosen).argmax(axis=0), np.arange(chosen.shape[1])]
    return rows @ (chosen * np.sign(largest))


def bucket_positions(
    centres: NDArray[Any], weights: ArrayLike | None = None, distance: str = "l2", directions: int = DIRECTIONS
) -> NDArray[np.float64]:
    """Return the positions of next-street bucket centres [K, D] on S directions, [K, S] float64.

    For "emd" the directions are S coordinates at even steps, or all D if D is smaller.  For "l2" they are spread evenly
    over a half-sphere of the first three principal axes (half-circle or line if D is smaller).  The mean over
    directions is then the Euclidean distance up to a factor.
    """
    if directions < 1:
        raise ValueError(f"directions is {directions}: at least one is needed")
    if distance_code(distance) == EMD:
        dimensions = centres.shape[1]
        steps = min(directions, dimensions)
        return centres[:, [(2 * i + 1) * dimensions // (2 * steps) for i in range(steps)]].astype(np.float64)
    axes = bucket_axes(centres, weights, 3)
    if axes.shape[1] == 1:
        return axes
    number = np.arange(directions)
    if axes.shape[1] == 2:
        angle = number * (math.pi / directions)
        return axes @ np.stack([np.cos(angle), np.sin(angle)])
    height = (number + 0.5) / directions
    angle = number * (math.pi * (3 - math.sqrt(5)))  # the golden angle spreads any number of directions evenly
    radius = np.sqrt(1 - np.square(height))
    return axes @ np.stack([height, radius * np.cos(angle), radius * np.sin(angle)])


def _checked_buckets(next_buckets: NDArray[Any], count: int) -> NDArray[np.int64]:
    buckets = np.asarray(next_buckets)
    if buckets.ndim != 2 or 0 in buckets.shape or buckets.dtype.kind not in "iu":
        raise ValueError(f"next buckets are {buckets.dtype} of shape {buckets.shape}: integers [N, M] are needed")
    if buckets.min() < 0 or buckets.max() >= count:
        raise ValueError(f"next buckets lie between {buckets.min()} and {buckets.max()}, but there are {count} of them")
    return buckets


def potential_points(
    next_buckets: NDArray[Any], positions: NDArray[np.float64], values: int | None = VALUES
) -> NDArray[np.float32]:
    """Return the points [N, S·Q] float32 of hands with next-street buckets [N, M].

    `positions` [K, S] are those of `bucket_positions`, or mean equities as [K, 1].  On each direction the positions are
    sorted and divided by M. Q = `values` runs of them are summed; None, or `values` >= M, takes all M. With all, the L1
    distance of two points is the sum of the one-dimensional earth mover's distances over directions.  With fewer it is
    at most that.

    Raises `ValueError` for a bucket outside 0 to K − 1, or `values` less than 1.
    """
    buckets = _checked_buckets(next_buckets, len(positions))
    count, cards = buckets.shape
    if values is not None and values < 1:
        raise ValueError(f"values is {values}: at least one for each direction is needed")
    kept = cards if values is None else min(values, cards)
    starts = np.arange(kept) * cards // kept
    directions = positions.shape[1]
    scaled = (np.asarray(positions, dtype=np.float64) / cards).astype(np.float32)
    points = np.empty((count, directions * kept), np.float32)
    for first in range(0, count, _ROWS):
        part = slice(first, first + _ROWS)
        for direction in range(directions):
            projected = np.sort(scaled[:, direction][buckets[part]], axis=1)
            runs = np.add.reduceat(projected, starts, axis=1)
            points[part, direction * kept : (direction + 1) * kept] = runs
    return points
