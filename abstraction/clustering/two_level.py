"""Clustering inside groups, and with it very many buckets by two levels.

Flat k-means costs more than linearly in k.  For large k the points are first clustered into about √k groups; each group
gets its share of the k buckets and is clustered on its own; then flat steps over all points and buckets (exact, and
affordable as only near centres are measured) let points move between groups.  The inertia may be compared with flat
k-means' wherever both run.

The shares: quantising a group of inertia I with n buckets leaves about I·n^(−2/d) of squared distance in d dimensions
(Zador 1982), and I·n^(−1/d) of distance; the total is least for n ∝ I^(d/(d+2)) and I^(d/(d+1)).  d = 4 is taken, the
order of what equity histograms vary in.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstraction.clustering.assign import Members, group_members
from abstraction.clustering.kmeans import ITERATIONS, TOLERANCE, Clustering, run, start, start_from, step
from abstraction.clustering.metric import L2
from abstraction.clustering.points import Problem, clustering_problem, distinct_points
from abstraction.parallel import run_ranges

_DIMENSIONS = 4
FLAT_STEPS = 2
"""Flat steps at the end; each costs about as much as one iteration of flat k-means."""

Progress = Callable[[str, int, int], None]
"""Called with the stage ("groups", "buckets" or "flat"), how much of it is done, and of how much."""


def share_buckets(need: NDArray[np.floating[Any]], room: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Share k buckets among groups in proportion to `need` [G], at least one and at most `room` [G] each.

    Largest averages (Webster): each next bucket goes to the group of largest need / (2·buckets + 1), the lowest number
    among equals.  Raises ValueError if k is less than G or more than all room.
    """
    if not len(room) <= k <= room.sum():
        raise ValueError(f"k is {k}, but {len(room)} groups of {room.sum()} distinct points in all need a k in between")
    shares = np.ones(len(room), np.int64)
    # Most of it at once, by rounding down, and one by one only what is left.
    ideal = np.floor(need / max(float(need.sum()), np.finfo(float).tiny) * (k - len(room))).astype(np.int64)
    shares = np.minimum(shares + ideal, room)
    while shares.sum() < k:
        average = np.where(shares < room, need / (2 * shares + 1), -1.0)
        shares[int(np.argmax(average))] += 1
    return shares


def cluster_within(
    problem: Problem,
    members: Members,
    shares: NDArray[np.int64],
    seed: int = 0,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
) -> Clustering:
    """Cluster each group of distinct points into its share of buckets; groups side by side on the problem's workers.

    Buckets are numbered through: group g's follow those of the groups before it.  `iterations` of the result is the
    largest of any group.  Raises ValueError if a group has fewer points than buckets.
    """
    offsets = np.concatenate([[0], np.cumsum(shares)])
    labels = np.empty(len(problem.points), np.int32)
    centres = np.empty((int(offsets[-1]), problem.points.shape[1]), np.float32)

    def cluster(first: int, last: int) -> tuple[float, int]:
        total, most = 0.0, 0
        for group in range(first, last):
            mine = members.order[members.starts[group] : members.starts[group + 1]]
            part = Problem(problem.points[mine], problem.weights[mine], problem.metric, 1)
            state = run(part, start(part, int(shares[group]), seed, group + 1), iterations, tolerance)
            centres[offsets[group] : offsets[group + 1]] = state.centres
            labels[mine] = state.labels + np.int32(offsets[group])
            total, most = total + state.inertia, max(most, state.iteration)
        return total, most

    inertia, most = 0.0, 0
    for done, (part, count) in enumerate(run_ranges(cluster, 0, len(shares), 1, problem.workers), 1):
        inertia, most = inertia + part, max(most, count)
        if progress is not None:
            progress("buckets", done, len(shares))
    return Clustering(centres, labels, inertia, most)


def two_level(
    points: NDArray[Any],
    weights: ArrayLike | None,
    k: int,
    *,
    distance: str = "l2",
    seed: int = 0,
    groups: int | None = None,
    flat_steps: int = FLAT_STEPS,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
    workers: int = 1,
    progress: Progress | None = None,
) -> Clustering:
    """Cluster points [N, D] with weights [N] into k buckets by two levels; as `kmeans` otherwise.

    `groups` of the first level: √k rounded if None.  Every label is the nearest centre's.  Raises ValueError for k
    larger than the number of distinct points, groups outside 1 to k, and as `clustering_problem` does.
    """
    merged = distinct_points(points, weights)
    problem = clustering_problem(merged.points, merged.weights, distance, workers)
    distinct = len(problem.points)
    if not 1 <= k <= distinct:
        raise ValueError(f"k is {k}, but there are {distinct} distinct points: choose k at most that, at least 1")
    first = round(k**0.5) if groups is None else groups
    if not 1 <= first <= k:
        raise ValueError(f"groups is {first}, but k is {k}: 1 to {k} groups are allowed")
    state = start(problem, first, seed)
    tell = None if progress is None else (lambda s: progress("groups", s.iteration, iterations))
    state = run(problem, state, iterations, tolerance, tell)
    members = group_members(state.labels, first)
    power = _DIMENSIONS / (_DIMENSIONS + (2 if problem.metric == L2 else 1))
    need = np.bincount(state.labels, problem.weights * state.distances, first) ** power
    shares = share_buckets(need, np.diff(members.starts), k)
    parts = cluster_within(problem, members, shares, seed, iterations, tolerance, progress)
    state = start_from(problem, parts.centres, parts.labels)
    for done in range(flat_steps):
        state = step(problem, state)
        if progress is not None:
            progress("flat", done + 1, flat_steps)
    while state.repaired:
        state = step(problem, state)
    return Clustering(state.centres, state.labels[merged.inverse], state.inertia, parts.iterations)
