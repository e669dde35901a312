"""Histograms over bins in order as points whose EMD clustering is the earth mover's distance.

In one dimension the least work that turns one histogram into another is the area between their cumulative
distributions (Vallender 1974).  So k-medians of cumulative rows under `distance="emd"` clusters by exact EMD, and its
centres, medians of cumulative rows, are cumulative distributions themselves.  Under "l2" the same rows give the
L2-of-CDFs (Cramér) distance.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROWS = 1 << 16  # converted at a time, so that the float64 in between stays small


def cdf(histograms: NDArray[Any]) -> NDArray[np.float32]:
    """Cumulative rows [N, B − 1] float32 of histograms [N, B] of counts or weights, without the last, always 1.

    Column b is the share of the row in bins 0 to b.  Equal histograms give equal bits, whatever their totals' scale.
    Raises ValueError for fewer than two bins, a negative entry and a row that adds up to nothing.
    """
    if histograms.ndim != 2 or histograms.shape[1] < 2:
        raise ValueError(f"histograms have shape {histograms.shape}: [N, B] with at least two bins is needed")
    result = np.empty((len(histograms), histograms.shape[1] - 1), np.float32)
    for first in range(0, len(histograms), _ROWS):
        part = histograms[first : first + _ROWS].astype(np.float64)
        sums = np.cumsum(part, axis=1)
        if not (part.min() >= 0 and sums[:, -1].min() > 0):
            row = first + int(np.argmin(np.where(part.min(axis=1) >= 0, sums[:, -1], -1.0)))
            raise ValueError(
                f"histogram {row} has a negative entry or none at all: counts of at least one item are needed"
            )
        result[first : first + _ROWS] = sums[:, :-1] / sums[:, -1:]
    return result
