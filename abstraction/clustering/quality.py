"""Quality of a clustering: variance explained, and the adjusted Rand index of two labelings."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_ROWS = 1 << 17


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
    """Return the share of the weighted variance of points [N, D] that lies between buckets.

    It is 1 − within / total, and 1 if the points do not vary.
    """
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


def _pairs(counts: NDArray[np.int64]) -> int:
    """Return Σ n·(n − 1) / 2 exactly, by adding the 32-bit halves separately."""
    pairs = counts.astype(np.uint64) * (np.maximum(counts, 1) - 1).astype(np.uint64) // np.uint64(2)
    return (int((pairs >> np.uint64(32)).sum()) << 32) + int((pairs & np.uint64(0xFFFFFFFF)).sum())


def rand_index_of_counts(both: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return the adjusted Rand index of two labelings of fewer than 2^32 items.

    `both` counts the items of each pair of buckets, `first` and `second` those of each bucket, in any order.
    """
    total = int(first.sum())
    pairs, in_first, in_second = _pairs(both), _pairs(first), _pairs(second)
    everything = total * (total - 1) // 2
    # (pairs − chance) / ((in_first + in_second) / 2 − chance) with chance = in_first·in_second / everything.
    numerator = 2 * (pairs * everything - in_first * in_second)
    denominator = (in_first + in_second) * everything - 2 * in_first * in_second
    return numerator / denominator if denominator else 1.0
