"""The two distances of the clustering, with a fixed order of float32 operations.

    L2    d(x, c) = Σ_j (x_j − c_j)², the *squared* Euclidean distance; centres are weighted means
    EMD   d(x, c) = Σ_j |x_j − c_j|; centres are weighted medians of each coordinate

EMD is the earth mover's distance if x and c are cumulative distributions over bins of width 1 (Vallender 1974).

Every distance is this sum with each operation rounded to float32 and j ascending, so equal inputs give equal bits.
Pruning bounds are loosened by more than the rounding error, so they never change a result.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.kernels.jit import inline_njit, part_njit

L2 = 0
EMD = 1
DISTANCES = {"l2": L2, "emd": EMD}

TINY = 1e-18
"""Absolute slack of bounds, because float32 loses squares of differences below 1e-19."""
_ROWS = 1 << 16  # histograms converted at a time, so that the temporary float64 array stays small


def distance_code(distance: str) -> int:
    """Return the integer L2 or EMD (earth mover's) for "l2" or "emd"; `ValueError` for others."""
    if distance not in DISTANCES:
        raise ValueError(f"distance is {distance!r}: allowed are 'l2' (means) and 'emd' (medians)")
    return DISTANCES[distance]


def cdf(histograms: NDArray[Any]) -> NDArray[np.float32]:
    """Return the cumulative distributions of histograms [N, B], as [N, B − 1] float32.

    Histograms are counts, at least one in each row.  Column b is the share of the row in bins 0 to b; the last column,
    always 1, is left out.  Rows that differ only in scale give equal bits.  The EMD of two results is the earth mover's
    distance of the histograms.
    """
    result = np.empty((len(histograms), histograms.shape[1] - 1), np.float32)
    for first in range(0, len(histograms), _ROWS):
        sums = np.cumsum(histograms[first : first + _ROWS].astype(np.float64), axis=1)
        result[first : first + _ROWS] = sums[:, :-1] / sums[:, -1:]
    return result


@inline_njit
def rounding_margin(dimensions):
    """Return a bound on the relative error of a sum of `dimensions` float32 terms and of its square root."""
    return 4.0 * (dimensions + 8) * 2.0**-24


@inline_njit
def length(distance, metric):
    """Return a distance as a float64 that satisfies the triangle inequality.

    distance  of two points by the metric; for L2 it is squared, so the result is its square root
    metric    L2 or EMD (earth mover's distance, which is returned unchanged)
    """
    return math.sqrt(np.float64(distance)) if metric == L2 else np.float64(distance)


@part_njit
def point_distance(point, centre, metric):
    """Return Σ (x − c)² (L2) or Σ |x − c| (EMD) of two float32 vectors [D], added in order in float32."""
    total = np.float32(0.0)
    for j in range(point.shape[0]):
        difference = point[j] - centre[j]
        if metric == EMD:
            total += abs(difference)
        else:
            total += difference * difference
    return total
