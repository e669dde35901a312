"""The two distances of the clustering, with a fixed order of float32 operations.

    L2    d(x, c) = Σ_j (x_j − c_j)², the *squared* Euclidean distance; centres are weighted means
    EMD   d(x, c) = Σ_j |x_j − c_j|; centres are weighted medians of each coordinate

EMD is the earth mover's distance if x and c are cumulative distributions over bins of width 1 (Vallender 1974).

Every distance is this sum with each operation rounded to float32 and j ascending, so equal inputs give equal bits.
Pruning bounds are loosened by more than the rounding error, so they never change a result.
"""

import math

import numpy as np

from abstraction.kernels.jit import inline_njit, part_njit

L2 = 0
EMD = 1
DISTANCES = {"l2": L2, "emd": EMD}

TINY = 1e-18
"""Absolute slack of bounds, because float32 loses squares of differences below 1e-19."""
LARGEST = 1e15
"""Coordinates must be smaller than this, so that sums of squares stay within float32."""


def distance_code(distance: str) -> int:
    """Return L2 or EMD by name; `ValueError` for another name."""
    if distance not in DISTANCES:
        raise ValueError(f"distance is {distance!r}: allowed are 'l2' (means) and 'emd' (medians)")
    return DISTANCES[distance]


@inline_njit
def rounding_margin(dimensions):
    """Return a bound on the relative error of a sum of `dimensions` float32 terms and of its square root."""
    return 4.0 * (dimensions + 8) * 2.0**-24


@inline_njit
def length(distance, metric):
    """Return a distance in float64 that satisfies the triangle inequality: for L2 the square root."""
    return math.sqrt(np.float64(distance)) if metric == L2 else np.float64(distance)


@part_njit
def point_distance(point, centre, metric):
    """Return the distance of two float32 vectors, by its definition."""
    total = np.float32(0.0)
    for j in range(point.shape[0]):
        difference = point[j] - centre[j]
        if metric == EMD:
            total += abs(difference)
        else:
            total += difference * difference
    return total
