"""Potential-aware features: a hand described by the buckets it may be in on the next street.

With M next cards a hand is M buckets of the next street, each with mass 1/M.  The distance of two hands is the earth
mover's distance between those distributions, the work of moving mass between two buckets being the distance of their
centres (Ganzfried & Sandholm 2014).  In several dimensions that is a transport problem for each pair, far too slow for
clustering; they use a greedy approximation of it.

What we do instead: project the buckets' centres on a few directions, and on each take the exact one-dimensional
distance, which is the L1 distance of the M projections in order (Rabin et al. 2011, sliced transport, with directions
chosen instead of random).  So a hand is a point of sorted numbers, and k-medians under "emd" clusters it with all its
bounds and exact centres, which a greedy distance, neither symmetric nor a metric, does not allow.  Pair by pair the
greedy one is the nearer to exact transport; `transport_error` measures both, up to a common factor, which clustering
does not see.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstraction.clustering.metric import EMD, L2, distance_code
from abstraction.clustering.seeding import uniform
from abstraction.jit import njit

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


def buckets_from_counts(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Next buckets [N, M] of rows of counts [N, K], all of which add up to one M; ValueError if they do not."""
    totals = counts.sum(axis=1, dtype=np.int64)
    if counts.ndim != 2 or counts.min() < 0 or (totals != totals[0]).any() or totals[0] < 1:
        raise ValueError(
            f"rows of counts add up to {totals.min()} to {totals.max()}: one total of at least 1 is needed"
        )
    buckets = np.tile(np.arange(counts.shape[1]), len(counts))
    return np.repeat(buckets, counts.ravel()).reshape(len(counts), int(totals[0]))


@njit
def _assignment_cost(cost):
    """Least Σ cost[i, p(i)] over permutations p, cost square: the Hungarian method with potentials (Kuhn 1955)."""
    size = cost.shape[0]
    row_potential, column_potential = np.zeros(size + 1), np.zeros(size + 1)
    row_of, before = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
    for row in range(1, size + 1):
        row_of[0] = row
        column = 0
        slack = np.full(size + 1, np.inf)
        seen = np.zeros(size + 1, np.bool_)
        while row_of[column] != 0:
            seen[column] = True
            here, least, following = row_of[column], np.inf, 0
            for j in range(1, size + 1):
                if not seen[j]:
                    reduced = cost[here - 1, j - 1] - row_potential[here] - column_potential[j]
                    if reduced < slack[j]:
                        slack[j], before[j] = reduced, column
                    if slack[j] < least:
                        least, following = slack[j], j
            for j in range(size + 1):
                if seen[j]:
                    row_potential[row_of[j]] += least
                    column_potential[j] -= least
                else:
                    slack[j] -= least
            column = following
        while column != 0:
            row_of[column] = row_of[before[column]]
            column = before[column]
    total = 0.0
    for j in range(1, size + 1):
        total += cost[row_of[j] - 1, j - 1]
    return total


@njit
def _greedy_cost(cost, supply, room):
    """Work of the greedy transport of Ganzfried & Sandholm (2014, algorithm 2); supply and room are used up.

    In round r each row that still has mass offers it to its r-th nearest column, which takes what it has room for.
    """
    rows, columns = cost.shape
    order = np.empty((rows, columns), np.int64)
    for i in range(rows):
        order[i] = np.argsort(cost[i], kind="mergesort")
    total = 0.0
    for rank in range(columns):
        for i in range(rows):
            j = order[i, rank]
            moved = min(supply[i], room[j])
            supply[i] -= moved
            room[j] -= moved
            total += moved * cost[i, j]
    return total


def ground_distances(first: NDArray[Any], second: NDArray[Any], distance: str) -> NDArray[np.float64]:
    """Distances [I, J] of centres [I, D] and [J, D]: Euclidean for "l2", Σ|·| for "emd"."""
    differences = first.astype(np.float64)[:, None] - second.astype(np.float64)[None]
    if distance_code(distance) == L2:
        return np.sqrt(np.square(differences).sum(axis=2))
    return np.abs(differences).sum(axis=2)


def exact_transport(first: NDArray[Any], second: NDArray[Any], centres: NDArray[Any], distance: str = "l2") -> float:
    """Earth mover's distance of two hands with next buckets [M] each, exact; `centres` [K, D] of those buckets."""
    buckets = _checked_buckets(np.stack([first, second]), len(centres))
    cost = ground_distances(centres[buckets[0]], centres[buckets[1]], distance)
    return float(_assignment_cost(cost)) / len(first)


def greedy_transport(first: NDArray[Any], second: NDArray[Any], centres: NDArray[Any], distance: str = "l2") -> float:
    """Ganzfried & Sandholm's approximation of `exact_transport`, never less; not symmetric."""
    buckets = _checked_buckets(np.stack([first, second]), len(centres))
    (rows, supply), (columns, room) = (np.unique(part, return_counts=True) for part in buckets)
    cost = ground_distances(centres[rows], centres[columns], distance)
    return float(_greedy_cost(cost, supply, room)) / len(first)


class TransportError(NamedTuple):
    """Error of two approximations over pairs of hands, each scaled by one factor to fit exact transport best."""

    pairs: int
    """pairs of hands measured"""
    points_error: float
    """mean |scaled − exact| / mean exact of the L1 distance of potential points"""
    points_correlation: float
    """with exact transport"""
    greedy_error: float
    """the same of the greedy approximation"""
    greedy_correlation: float
    """with exact transport"""


def _compare(approximate: NDArray[np.float64], exact: NDArray[np.float64]) -> tuple[float, float]:
    scale = float(approximate @ exact) / max(float(approximate @ approximate), np.finfo(float).tiny)
    error = float(np.abs(scale * approximate - exact).mean() / max(exact.mean(), np.finfo(float).tiny))
    varies = approximate.std() > 0 and exact.std() > 0
    return error, float(np.corrcoef(approximate, exact)[0, 1]) if varies else 1.0


def transport_error(
    next_buckets: NDArray[Any],
    centres: NDArray[Any],
    positions: NDArray[np.float64],
    distance: str = "l2",
    *,
    values: int | None = VALUES,
    pairs: NDArray[Any] | None = None,
    count: int = 1000,
    seed: int = 0,
) -> TransportError:
    """Measure the approximations against exact transport on pairs of hands.

    next_buckets [N, M], centres [K, D] of those buckets under `distance`, positions [K, S] and `values` as for
    `potential_points`.  pairs [P, 2] of hands; None draws `count` of them with `seed`.  Raises ValueError for no pairs
    and for what the functions it measures refuse.
    """
    buckets = _checked_buckets(next_buckets, len(centres))
    if pairs is None:
        pairs = np.array([[int(uniform(seed, 2, i, side) * len(buckets)) for side in (0, 1)] for i in range(count)])
    if len(pairs) < 1:
        raise ValueError("no pairs of hands were given: at least one is needed")
    found = np.empty((3, len(pairs)))
    for i, hands in enumerate(pairs):
        points = potential_points(buckets[hands], positions, values).astype(np.float64)
        one, other = buckets[hands]
        found[0, i] = exact_transport(one, other, centres, distance)
        found[1, i] = np.abs(points[0] - points[1]).sum()
        found[2, i] = greedy_transport(one, other, centres, distance)
    exact, on_points, greedy = found
    return TransportError(len(pairs), *_compare(on_points, exact), *_compare(greedy, exact))
