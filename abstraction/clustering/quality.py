"""How good buckets are: sizes, variance explained, spread of equity inside; and how alike two labelings are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_DENSE_CELLS = 1 << 24  # up to this many pairs of buckets are counted in a table
_ROWS = 1 << 17


@dataclass(frozen=True)
class Quality:
    """Report on the buckets of one street."""

    buckets: int
    """k, empty ones included"""
    empty: int
    """buckets without items"""
    smallest: float
    """share of the total weight in the smallest bucket"""
    median: float
    """in the median bucket"""
    largest: float
    """in the largest bucket"""
    variance_explained: float | None
    """share of the features' variance that lies between buckets, 0 to 1; None without features"""
    equity_spread: float | None
    """weighted mean over buckets of the standard deviation of equity inside; None without equities"""


def _checked(labels: NDArray[Any], weights: ArrayLike | None, k: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
    labels = np.asarray(labels)
    if labels.ndim != 1 or len(labels) == 0 or labels.dtype.kind not in "iu":
        raise ValueError(f"labels are {labels.dtype} of shape {labels.shape}: integers [N], at least one, are needed")
    if labels.min() < 0 or labels.max() >= k:
        raise ValueError(
            f"labels lie between {labels.min()} and {labels.max()}, but there are {k} buckets: 0 to {k - 1}"
        )
    given = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != labels.shape or not given.min() > 0:
        raise ValueError(f"weights of shape {given.shape} were given: one positive weight for each label is needed")
    return labels, given


def variance_explained(points: NDArray[Any], labels: NDArray[Any], weights: ArrayLike | None, k: int) -> float:
    """Share of the weighted variance of points [N, D] between buckets: 1 − within / total; 1 if none varies."""
    labels, given = _checked(labels, weights, k)
    if points.ndim != 2 or len(points) != len(labels):
        raise ValueError(f"points have shape {points.shape}, but there are {len(labels)} labels: [N, D] is needed")
    mass = np.bincount(labels, given, k)
    overall = np.zeros(points.shape[1])
    for first in range(0, len(points), _ROWS):
        overall += given[first : first + _ROWS] @ points[first : first + _ROWS].astype(np.float64)
    overall /= mass.sum()
    sums, total = np.zeros((k, points.shape[1])), 0.0
    for first in range(0, len(points), _ROWS):
        part = slice(first, first + _ROWS)
        rows = points[part].astype(np.float64) - overall
        total += float(given[part] @ np.square(rows).sum(axis=1))
        for j in range(rows.shape[1]):
            sums[:, j] += np.bincount(labels[part], given[part] * rows[:, j], k)
    used = mass > 0
    between = float((np.square(sums[used]).sum(axis=1) / mass[used]).sum())
    return between / total if total > 0 else 1.0


def equity_spread(equities: NDArray[Any], labels: NDArray[Any], weights: ArrayLike | None, k: int) -> float:
    """Weighted mean over buckets of the standard deviation of equities [N] inside a bucket, in units of equity."""
    labels, given = _checked(labels, weights, k)
    equities = np.asarray(equities, dtype=np.float64)
    if equities.shape != labels.shape:
        raise ValueError(
            f"equities have shape {equities.shape}, but there are {len(labels)} labels: one each is needed"
        )
    mass = np.bincount(labels, given, k)
    means = np.bincount(labels, given * equities, k) / np.where(mass > 0, mass, 1.0)
    squares = np.bincount(labels, given * np.square(equities - means[labels]), k)
    return float(np.sqrt(squares * mass).sum() / mass.sum())


def quality(
    labels: NDArray[Any],
    weights: ArrayLike | None,
    k: int,
    points: NDArray[Any] | None = None,
    equities: NDArray[Any] | None = None,
) -> Quality:
    """Report on labels [N] in 0 to k − 1 with weights [N] (1 each if None), points [N, D] and equities [N]."""
    labels, given = _checked(labels, weights, k)
    mass = np.bincount(labels, given, k)
    share = mass / mass.sum()
    return Quality(
        buckets=k,
        empty=int(np.count_nonzero(mass == 0)),
        smallest=float(share.min()),
        median=float(np.median(share)),
        largest=float(share.max()),
        variance_explained=None if points is None else variance_explained(points, labels, given, k),
        equity_spread=None if equities is None else equity_spread(equities, labels, given, k),
    )


def _pairs(counts: NDArray[np.int64]) -> int:
    """Σ n·(n − 1) / 2, exact: the halves of 64 bits are summed apart."""
    pairs = counts.astype(np.uint64) * (np.maximum(counts, 1) - 1).astype(np.uint64) // np.uint64(2)
    return (int((pairs >> np.uint64(32)).sum()) << 32) + int((pairs & np.uint64(0xFFFFFFFF)).sum())


def _integer_counts(keys: NDArray[Any], weights: NDArray[np.int64] | None, size: int) -> NDArray[np.int64]:
    if weights is None:
        return np.bincount(keys, minlength=size)
    # In two halves: np.bincount adds weights as float64, exact below 2^53 only.
    low = np.bincount(keys, (weights & 0xFFFF).astype(np.float64), size)
    high = np.bincount(keys, (weights >> 16).astype(np.float64), size)
    return (high.astype(np.int64) << 16) + low.astype(np.int64)


def adjusted_rand_index(first: NDArray[Any], second: NDArray[Any], weights: ArrayLike | None = None) -> float:
    """Agreement of two labelings [N] on which pairs share a bucket: 1 the same, 0 as by chance (Hubert & Arabie 1985).

    weights [N]: positive integers, an item counting as that many; below 2^32 in all.  Exact in integers up to the last
    division.  Raises ValueError for lengths that differ, negative labels, and weights that are not such integers.
    """
    first, second = np.asarray(first), np.asarray(second)
    if first.shape != second.shape:
        raise ValueError(f"labelings have shapes {first.shape} and {second.shape}: they must label the same items")
    sizes = [int(labels.max()) + 1 if labels.size else 0 for labels in (first, second)]
    first, _ = _checked(first, None, sizes[0])
    second, _ = _checked(second, None, sizes[1])
    given = None if weights is None else np.asarray(weights)
    if given is not None and (given.shape != first.shape or given.dtype.kind not in "iu" or given.min() < 1):
        raise ValueError(
            f"weights are {given.dtype} of shape {given.shape}: a positive integer for each item is needed"
        )
    total = len(first) if given is None else int(given.sum())
    if total >= 2**32:
        raise ValueError(f"weights add up to {total}: less than 2^32 is allowed")
    counted = None if given is None else given.astype(np.int64)
    keys = first.astype(np.int64) * sizes[1] + second
    cells = sizes[0] * sizes[1]
    if cells > _DENSE_CELLS:
        occurring, keys = np.unique(keys, return_inverse=True)
        cells = len(occurring)
    return rand_index_of_counts(
        _integer_counts(keys, counted, cells),
        _integer_counts(first, counted, sizes[0]),
        _integer_counts(second, counted, sizes[1]),
    )


def rand_index_of_counts(both: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Adjusted Rand index from how many items each pair of buckets shares and each bucket holds, in any order.

    Less than 2^32 items in all.
    """
    total = int(first.sum())
    pairs, in_first, in_second = _pairs(both), _pairs(first), _pairs(second)
    everything = total * (total - 1) // 2
    # (pairs − chance) / ((in_first + in_second) / 2 − chance) with chance = in_first·in_second / everything.
    numerator = 2 * (pairs * everything - in_first * in_second)
    denominator = (in_first + in_second) * everything - 2 * in_first * in_second
    return numerator / denominator if denominator else 1.0
