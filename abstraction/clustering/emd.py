"""Converts histograms to points whose "emd" distance is the histograms' earth mover's distance.

In one dimension that distance is the area between the cumulative distributions (Vallender 1974).  So k-medians of
cumulative rows with `distance="emd"` is exact, and its centres are cumulative distributions too.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROWS = 1 << 16  # rows converted at a time, so that the temporary float64 array stays small


def cdf(histograms: NDArray[Any]) -> NDArray[np.float32]:
    """Return the cumulative distributions of histograms [N, B], as [N, B − 1] float32.

    Histograms are counts or weights.  Column b is the share of the row in bins 0 to b; the last column, always 1, is
    left out.  Rows that differ only in scale give equal bits.

    Raises `ValueError` for fewer than two bins, a negative entry, or a row whose sum is 0.
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
