"""Potential-aware features: a hand described by the buckets it may be in on the next street.

With M next cards a hand is M buckets of the next street, each with mass 1/M.  The distance of two hands is the earth
mover's distance between those distributions, the work of moving mass between two buckets being the distance of their
centres (Ganzfried & Sandholm 2014).  In several dimensions that is a transport problem for each pair, far too slow for
clustering; they use a greedy approximation of it.

What we do instead: project the buckets' centres on a few directions, and on each take the exact one-dimensional
distance, which is the L1 distance of the M projections in order (Rabin et al. 2011, sliced transport, with directions
chosen instead of random).  So a hand is a point of sorted numbers, and k-medians under "emd" clusters it with all its
bounds and exact centres, which a greedy distance, neither symmetric nor a metric, does not allow.  Pair by pair the
greedy one is the nearer to exact transport; `tests/transport.py` measures both, up to a common factor, which clustering
does not see.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstraction.clustering.metric import EMD, distance_code

DIRECTIONS = 8
"""Directions of projection by default: more bring the error down slowly (16: by a tenth to a fifth)."""
VALUES = 8
"""Numbers kept for each direction by default: each the mean of a run of the sorted projections."""
_ROWS = 1 << 16  # hands projected at a time


def bucket_axes(centres: NDArray[Any], weights: ArrayLike | None = None, axes: int = 3) -> NDArray[np.float64]:
    """Positions [K, S] float64 of bucket centres [K, D] on their first S principal axes, centred, weights [K] given.

    Fewer axes if D is smaller.  Each axis points so that its largest component is positive.  Raises ValueError for
    `axes` less than 1 and weights of another length.
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
    """Positions [K, S] float64 of next-street bucket centres [K, D] on S directions, for `potential_points`.

    "emd", where the distance of centres is a sum over coordinates: S coordinates in even steps, all if D is smaller.
    "l2": directions spread evenly over a half-sphere about the first three principal axes (a half-circle, or one, if D
    is smaller), as the mean over directions is then the Euclidean distance up to a factor.  weights [K] for the axes.
    Raises ValueError for another distance, fewer than one direction, and as `bucket_axes`.
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
    angle = number * (math.pi * (3 - math.sqrt(5)))  # the golden angle: even whatever their number
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
    """Points [N, S·Q] float32 of hands with next-street buckets [N, M]: on each direction the positions in order.

    positions [K, S] of the buckets (`bucket_positions`, or mean equities as [K, 1]).  Q is `values`, each the sum of a
    run of sorted positions, over M; all M of them if None or if M is no more.  With all, the L1 distance of two points
    is the sum over directions of the one-dimensional earth mover's distances; with fewer, at most that.  Raises
    ValueError for a bucket outside 0 to K − 1 and `values` less than 1.
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
