"""Earth mover's distances from their definition, to check clustering features."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def histograms_of(cumulative: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return histograms [N, B] float64 of total 1 from cumulative rows [N, B − 1]: the inverse of `cdf`."""
    rows = np.asarray(cumulative, dtype=np.float64)
    edges = np.ones((len(rows), 1))
    return np.diff(np.hstack([0.0 * edges, rows, edges]), axis=1)


def earth_movers_distance(first: NDArray[Any], second: NDArray[Any], width: float = 1.0) -> NDArray[np.float64]:
    """Return the EMD [N] of cumulative rows [N, B − 1] (`cdf`), which broadcast.

    width  distance between two bins

    In one dimension it is the area between the cumulative distributions (Vallender 1974).
    """
    return width * np.abs(np.asarray(first, np.float64) - np.asarray(second, np.float64)).sum(axis=-1)


def ground_distances(first: NDArray[Any], second: NDArray[Any], distance: str) -> NDArray[np.float64]:
    """Distances [I, J] of centres [I, D] and [J, D]: Euclidean for "l2", Σ|·| for "emd"."""
    differences = first.astype(np.float64)[:, None] - second.astype(np.float64)[None]
    return np.sqrt(np.square(differences).sum(axis=2)) if distance == "l2" else np.abs(differences).sum(axis=2)


def exact_transport(first: NDArray[Any], second: NDArray[Any], centres: NDArray[Any], distance: str = "l2") -> float:
    """Earth mover's distance of two hands with next buckets [M] each; `centres` [K, D] of those buckets."""
    from scipy.optimize import linear_sum_assignment

    cost = ground_distances(centres[first], centres[second], distance)
    return float(cost[linear_sum_assignment(cost)].mean())
