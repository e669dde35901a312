"""Earth mover's distances from their definition, to check clustering features."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstraction.clustering.potential_aware import VALUES, potential_points


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


def greedy_transport(first: NDArray[Any], second: NDArray[Any], centres: NDArray[Any], distance: str = "l2") -> float:
    """The approximation of Ganzfried & Sandholm (2014, algorithm 2), never less than exact; not symmetric.

    In round r each bucket that still has mass offers it to its r-th nearest one, which takes what it has room for.
    """
    (rows, supply), (columns, room) = (np.unique(part, return_counts=True) for part in (first, second))
    cost = ground_distances(centres[rows], centres[columns], distance)
    order, total = np.argsort(cost, axis=1, kind="stable"), 0.0
    for rank in range(len(columns)):
        for i, j in enumerate(order[:, rank]):
            moved = min(supply[i], room[j])
            supply[i] -= moved
            room[j] -= moved
            total += moved * cost[i, j]
    return total / len(first)


class TransportError(NamedTuple):
    """Errors of two approximations: mean |scaled − exact| / mean exact over pairs, and correlation.

    Each is scaled by the factor that fits best, because clustering ignores scale.
    """

    points_error: float
    points_correlation: float
    greedy_error: float
    greedy_correlation: float


def _compare(approximate: NDArray[np.float64], exact: NDArray[np.float64]) -> tuple[float, float]:
    scale = float(approximate @ exact) / float(approximate @ approximate)
    error = float(np.abs(scale * approximate - exact).mean() / exact.mean())
    return error, float(np.corrcoef(approximate, exact)[0, 1])


def transport_error(
    next_buckets: NDArray[Any],
    centres: NDArray[Any],
    positions: NDArray[np.float64],
    pairs: NDArray[Any],
    values: int | None = VALUES,
) -> TransportError:
    """Potential points (L1) and greedy transport against exact transport on pairs [P, 2] of hands [N, M]."""
    found = np.empty((3, len(pairs)))
    for i, (one, other) in enumerate(next_buckets[pairs]):
        points = potential_points(np.stack([one, other]), positions, values).astype(np.float64)
        found[:, i] = (
            exact_transport(one, other, centres),
            np.abs(points[0] - points[1]).sum(),
            greedy_transport(one, other, centres),
        )
    exact, on_points, greedy = found
    return TransportError(*_compare(on_points, exact), *_compare(greedy, exact))
