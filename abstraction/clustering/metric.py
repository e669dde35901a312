"""The two distances of the clustering, in one fixed order of float32 operations.

    L2    d(x, c) = Σ_j (x_j − c_j)², the *squared* Euclidean distance; centres are weighted means
    EMD   d(x, c) = Σ_j |x_j − c_j|, the earth mover's distance if x and c are cumulative distributions over bins in
          order, the width of a bin being 1 (Vallender 1974); centres are weighted medians, coordinate by coordinate

Every distance that decides anything is this sum, each operation rounded to float32 and j ascending, wherever and with
however many others it is computed: so equal inputs give equal bits, and a slow twin can give the same ones.  Bounds
that save distances are loosened by more than that rounding: they never change a result.
"""

import math

import numpy as np

from abstraction.kernels.jit import inline_njit, part_njit

L2 = 0
EMD = 1
DISTANCES = {"l2": L2, "emd": EMD}

TINY = 1e-18
"""Bounds are loosened by this much besides: squares of differences below 1e-19 are lost in float32."""
LARGEST = 1e15
"""Coordinates are smaller than this, so that sums of squares stay within float32."""


def distance_code(distance: str) -> int:
    """L2 or EMD by name; ValueError for another one."""
    if distance not in DISTANCES:
        raise ValueError(f"distance is {distance!r}: allowed are 'l2' (means) and 'emd' (medians)")
    return DISTANCES[distance]


@inline_njit
def rounding_margin(dimensions):
    """Relative error, with room to spare, of a sum of `dimensions` float32 terms and of its square root."""
    return 4.0 * (dimensions + 8) * 2.0**-24


@inline_njit
def length(distance, metric):
    """A distance as one that keeps the triangle inequality, in float64: the square root of L2's."""
    return math.sqrt(np.float64(distance)) if metric == L2 else np.float64(distance)


@part_njit
def point_distance(point, centre, metric):
    """Distance of two float32 vectors: the definition."""
    total = np.float32(0.0)
    for j in range(point.shape[0]):
        difference = point[j] - centre[j]
        if metric == EMD:
            total += abs(difference)
        else:
            total += difference * difference
    return total
