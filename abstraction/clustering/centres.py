"""Centres of groups of weighted points: means for L2, medians for EMD.

One thread sums each group in order of point number, in float64, so results do not depend on the number of threads.  The
median of a coordinate is the smallest value v of the group with at least half the weight at x <= v.  It minimises Σ
w·|x − v|. Medians of cumulative distributions are cumulative distributions, because the coordinates of each point
ascend.
"""

import numpy as np
from numpy.typing import NDArray

from abstraction.clustering.assign import Members, share_out
from abstraction.clustering.metric import EMD
from abstraction.kernels.jit import nogil_allocating_njit, part_njit


@nogil_allocating_njit
def _means_range(first, last, points, weights, members, centres):
    """Write the weighted means of groups `first` to `last` − 1; empty groups keep their centre.

    points   [N, D] float32
    weights  [N] float64
    members  order [N] of the point indices by group, and starts [k + 1] of the groups
    centres  [k, D] float32, in place
    """
    dimensions = points.shape[1]
    sums = np.empty(dimensions)
    for c in range(first, last):
        mine = members.order[members.starts[c] : members.starts[c + 1]]
        if mine.shape[0] == 0:
            continue
        sums[:] = 0.0
        total = 0.0
        for x in mine:
            weight = weights[x]
            total += weight
            for j in range(dimensions):
                sums[j] += weight * points[x, j]
        for j in range(dimensions):
            centres[c, j] = sums[j] / total


@part_njit
def _count_below(points, weights, mine, pivot, below, under, above):
    """Sum, for each coordinate, the weight of values <= pivot, and find the values next to the pivot.

    points   [N, D] float32
    weights  [N] float64
    mine     [n] indices of the group's points
    pivot    [D] float32
    below    [D] float64, 0 at the start: weight of the values <= pivot
    under    [D] float32, a lower bound at the start: largest value <= pivot
    above    [D] float32, an upper bound at the start: smallest value > pivot
    """
    for x in mine:
        weight = weights[x]
        for j in range(pivot.shape[0]):
            value = points[x, j]
            inside = value <= pivot[j]
            below[j] += weight if inside else 0.0
            under[j] = max(under[j], value if inside else under[j])
            above[j] = min(above[j], above[j] if inside else value)


@nogil_allocating_njit
def _medians_range(first, last, points, weights, members, centres):
    """Write the weighted medians of groups `first` to `last` − 1; empty groups keep their centre.

    points   [N, D] float32
    weights  [N] float64
    members  order [N] of the point indices by group, and starts [k + 1] of the groups
    centres  [k, D] float32, in place

    The median of each coordinate is found by bisection between two values of the group, until they are equal.  All
    coordinates are bisected at the same time.
    """
    dimensions = points.shape[1]
    low, high = np.empty(dimensions, np.float32), np.empty(dimensions, np.float32)
    pivot = np.empty(dimensions, np.float32)
    under, above = np.empty(dimensions, np.float32), np.empty(dimensions, np.float32)
    below = np.empty(dimensions)
    for c in range(first, last):
        mine = members.order[members.starts[c] : members.starts[c + 1]]
        if mine.shape[0] == 0:
            continue
        half = 0.0
        for j in range(dimensions):  # element by element, because assigning a whole array takes seconds to compile
            low[j], high[j] = np.inf, -np.inf
        for x in mine:
            half += weights[x]
            for j in range(dimensions):
                low[j] = min(low[j], points[x, j])
                high[j] = max(high[j], points[x, j])
        half *= 0.5
        while True:
            open_ = 0
            for j in range(dimensions):
                middle = low[j] + (high[j] - low[j]) * np.float32(0.5)
                pivot[j] = middle if middle < high[j] else low[j]
                open_ += low[j] < high[j]
                below[j], under[j], above[j] = 0.0, low[j], high[j]
            if open_ == 0:
                break
            _count_below(points, weights, mine, pivot, below, under, above)
            for j in range(dimensions):
                if low[j] < high[j]:
                    if below[j] >= half:
                        high[j] = under[j]
                    else:
                        low[j] = above[j]
        for j in range(dimensions):
            centres[c, j] = low[j]


def group_centres(
    points: NDArray[np.float32],
    weights: NDArray[np.float64],
    members: Members,
    centres: NDArray[np.float32],
    metric: int,
    workers: int = 1,
) -> NDArray[np.float32]:
    """Return new centres [k, D] float32 of k groups of points: means for L2, medians for EMD.

    points   [N, D] float32
    weights  [N] float64 > 0
    members  order [N] of the point indices by group, and starts [k + 1] of the groups
    centres  [k, D] float32, the old centres, which empty groups keep
    metric   L2 (Euclidean) or EMD (earth mover's distance)
    workers  maximum number of threads; does not change the result
    """
    result = centres.copy()
    kernel = _medians_range if metric == EMD else _means_range
    share_out(lambda i, j: kernel(i, j, points, weights, members, result), len(result), workers)
    return result
