"""Earth mover's distances from their definition, to check clustering features."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.potential_aware import VALUES, potential_points


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


def transport_error(
    next_buckets: NDArray[Any],
    centres: NDArray[Any],
    positions: NDArray[np.float64],
    pairs: NDArray[Any],
    values: int | None = VALUES,
) -> tuple[float, float]:
    """Compare potential points (L1) with exact transport on pairs [P, 2] of hands with next buckets [N, M].

    Returns mean |scaled − exact| / mean exact, and the correlation.  The scale is the one that fits best, because
    clustering does not see it.
    """
    approximate, exact = np.empty((2, len(pairs)))
    for i, (one, other) in enumerate(next_buckets[pairs]):
        points = potential_points(np.stack([one, other]), positions, values).astype(np.float64)
        approximate[i], exact[i] = np.abs(points[0] - points[1]).sum(), exact_transport(one, other, centres)
    scale = float(approximate @ exact) / float(approximate @ approximate)
    error = float(np.abs(scale * approximate - exact).mean() / exact.mean())
    return error, float(np.corrcoef(approximate, exact)[0, 1])
