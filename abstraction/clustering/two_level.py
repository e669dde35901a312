"""Clustering within groups, and two-level clustering for very many buckets.

Flat k-means costs more than linearly in k.  For large k the points are first clustered into about √k groups.  Each
group gets a share of the k buckets and is clustered alone.  Flat steps over all points and buckets then move points
between groups.

Shares: n buckets in a group of inertia I leave about I·n^(−2/d) of squared distance in d dimensions (Zador 1982), and
I·n^(−1/d) of distance.  The total is least for n ∝ I^(d/(d+2)) and I^(d/(d+1)).  We use d = 4, about the dimension in
which equity histograms vary.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.clustering.assign import Members, group_members, own_distances
from abstraction.clustering.centres import group_centres
from abstraction.clustering.kmeans import (
    ITERATIONS,
    TOLERANCE,
    Clustering,
    KMeansState,
    begin_or_resume,
    run,
    start,
    start_from,
    state_arrays,
    state_from_arrays,
    step,
)
from abstraction.clustering.metric import L2
from abstraction.clustering.points import Problem
from abstraction.clustering.progress_state import NOTHING, Arrays, StateSaver
from abstraction.kernels.parallel import run_ranges

_DIMENSIONS = 4
FLAT_STEPS = 2
"""Number of flat steps at the end.  Each costs about as much as one iteration of flat k-means."""

Progress = Callable[[str, int, int], None]
"""Called with the phase ("groups", "buckets" or "flat"), the completed part and the whole."""


def share_buckets(need: NDArray[np.floating[Any]], room: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Divide k buckets among groups in proportion to `need` [G], at least one and at most `room` [G] each.

    Uses the largest-averages method (Webster): the next bucket goes to the group with the largest need / (2·buckets +
    1), the lowest number among equals.  Raises `ValueError` if k is less than G or more than all room.
    """
    if not len(room) <= k <= room.sum():
        raise ValueError(f"k is {k}, but {len(room)} groups of {room.sum()} distinct points in all need a k in between")
    shares = np.ones(len(room), np.int64)
    # Most are given at once, by rounding down, and the rest one by one.
    ideal = np.floor(need / max(float(need.sum()), np.finfo(float).tiny) * (k - len(room))).astype(np.int64)
    shares = np.minimum(shares + ideal, room)
    while shares.sum() < k:
        average = np.where(shares < room, need / (2 * shares + 1), -1.0)
        shares[int(np.argmax(average))] += 1
    return shares


def group_needs(problem: Problem, members: Members) -> NDArray[np.float64]:
    """Return the `need` [G] of `share_buckets`: a power of each group's inertia about its own centre."""
    empty = np.zeros((len(members.starts) - 1, problem.points.shape[1]), np.float32)
    centres = group_centres(problem.points, problem.weights, members, empty, problem.metric, problem.workers)
    labels = np.empty(len(problem.points), np.int32)
    labels[members.order] = np.repeat(np.arange(len(empty), dtype=np.int32), np.diff(members.starts))
    nearest = own_distances(problem.points, centres, labels, problem.metric, problem.workers)
    return _needs(problem, labels, nearest.distances, len(empty))


def _needs(
    problem: Problem, labels: NDArray[np.int32], distances: NDArray[np.float32], groups: int
) -> NDArray[np.float64]:
    power = _DIMENSIONS / (_DIMENSIONS + (2 if problem.metric == L2 else 1))
    return np.asarray(np.bincount(labels, problem.weights * distances, groups) ** power, np.float64)


@dataclass
class _ClusterParts:
    """The groups that are already clustered, as saved in the phase "buckets"."""

    labels: NDArray[np.int32]
    centres: NDArray[np.float32]
    done: int = 0
    inertia: float = 0.0
    iterations: int = 0

    def arrays(self) -> dict[str, NDArray[Any]]:
        counters = np.array([self.done, self.iterations], np.int64)
        # copied, because other groups are being clustered at the same time
        return {
            "labels": self.labels.copy(),
            "centres": self.centres.copy(),
            "counters": counters,
            "inertia": np.array([self.inertia]),
        }


def _parts(problem: Problem, buckets: int, kept: Arrays | None) -> _ClusterParts:
    if kept is None:
        points, dimensions = problem.points.shape
        return _ClusterParts(np.zeros(points, np.int32), np.zeros((buckets, dimensions), np.float32))
    labels, centres = np.array(kept["labels"], np.int32), np.array(kept["centres"], np.float32)
    done, iterations = (int(value) for value in kept["counters"])
    return _ClusterParts(labels, centres, done, float(kept["inertia"][0]), iterations)


def cluster_within(
    problem: Problem,
    members: Members,
    shares: NDArray[np.int64],
    seed: int = 0,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
    keeper: StateSaver = NOTHING,
    more: Arrays | None = None,
) -> Clustering:
    """Cluster each group of distinct points into its share of buckets, groups in parallel.

    Buckets of group g follow those of group g − 1.  `iterations` of the result is the largest of any group.  In the
    phase "buckets" the finished groups are saved, with the arrays of `more`.

    Raises `ValueError` if a group has fewer points than buckets.
    """
    offsets = np.concatenate([[0], np.cumsum(shares)])
    found = _parts(problem, int(offsets[-1]), keeper.resume("buckets"))

    def cluster(first: int, last: int) -> tuple[float, int]:
        total, most = 0.0, 0
        for group in range(first, last):
            mine = members.order[members.starts[group] : members.starts[group + 1]]
            part = Problem(problem.points[mine], problem.weights[mine], problem.metric, 1)
            state = run(part, start(part, int(shares[group]), seed, group + 1), iterations, tolerance)
            found.centres[offsets[group] : offsets[group + 1]] = state.centres
            found.labels[mine] = state.labels + np.int32(offsets[group])
            total, most = total + state.inertia, max(most, state.iteration)
        return total, most

    for part, count in run_ranges(cluster, found.done, len(shares), 1, problem.workers):
        found.done, found.inertia = found.done + 1, found.inertia + part
        found.iterations = max(found.iterations, count)
        keeper.keep("buckets", lambda: {**found.arrays(), **(more or {})})
        if progress is not None:
            progress("buckets", found.done, len(shares))
    return Clustering(found.centres, found.labels, found.inertia, found.iterations)


def _within_groups(
    problem: Problem, k: int, groups: int, seed: int, limits: tuple[int, float], progress: Progress, keeper: StateSaver
) -> KMeansState:
    """Cluster in two levels, without the flat steps that follow; limits = (iterations, tolerance)."""
    kept = keeper.resume("buckets")
    if kept is None:
        state = begin_or_resume(problem, groups, seed, keeper, "groups")

        def tell(latest: KMeansState) -> None:
            keeper.keep("groups", lambda: state_arrays(latest))
            progress("groups", latest.iteration, limits[0])

        state = run(problem, state, *limits, tell)
    else:
        state = state_from_arrays(problem, {name[6:]: kept[name] for name in kept if name.startswith("group.")})
    members = group_members(state.labels, groups)
    shares = share_buckets(_needs(problem, state.labels, state.distances, groups), np.diff(members.starts), k)
    more = {f"group.{name}": array for name, array in state_arrays(state).items()}
    parts = cluster_within(problem, members, shares, seed, *limits, progress, keeper, more)
    return start_from(problem, parts.centres, parts.labels)


def _keep_flat(keeper: StateSaver, state: KMeansState) -> None:
    keeper.keep("flat", lambda: state_arrays(state))


def refine(
    problem: Problem,
    k: int,
    *,
    seed: int = 0,
    groups: int | None = None,
    flat_steps: int = FLAT_STEPS,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
    keeper: StateSaver = NOTHING,
) -> KMeansState:
    """Cluster distinct points into k buckets in two levels; `iteration` of the state counts flat steps.

    A saved state of the phases "groups", "buckets" or "flat" is resumed and gives the same bits.

    Raises `ValueError` for k larger than the number of points, or groups outside 1 to k.
    """
    first = round(k**0.5) if groups is None else groups
    if not 1 <= k <= len(problem.points):
        raise ValueError(
            f"k is {k}, but there are {len(problem.points)} distinct points: choose k at most that, at least 1"
        )
    if not 1 <= first <= k:
        raise ValueError(f"groups is {first}, but k is {k}: 1 to {k} groups are allowed")
    tell: Progress = progress or (lambda _phase, _done, _of: None)
    kept = keeper.resume("flat")
    if kept is None:
        state = _within_groups(problem, k, first, seed, (iterations, tolerance), tell, keeper)
        _keep_flat(keeper, state)
    else:
        state = state_from_arrays(problem, kept)
    while state.iteration < flat_steps or state.repaired:
        state = step(problem, state)
        _keep_flat(keeper, state)
        tell("flat", min(state.iteration, flat_steps), flat_steps)
    return state
