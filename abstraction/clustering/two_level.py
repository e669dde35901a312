"""Clustering within groups, and two-level clustering for very many buckets.

Flat k-means, which compares all points with all centres, costs more than linearly in k.  For large k the points are
first clustered into about √k groups.  Each group gets a share of the k buckets and is clustered alone.  *Flat steps*,
Lloyd's steps over all points and all k buckets, then move points between groups.

Shares: n buckets in a group of inertia I leave about I·n^(−2/d) of squared distance in d dimensions (Zador 1982), and
I·n^(−1/d) of distance.  The total is least for n ∝ I^(d/(d+2)) and I^(d/(d+1)).  We use d = 4, about the dimension in
which equity histograms vary.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.clustering.assign import Members, group_members, own_distances
from abstraction.clustering.centres import group_centres
from abstraction.clustering.kmeans import (
    ITERATIONS,
    NOTHING,
    Arrays,
    Clustering,
    KMeansState,
    StateSaver,
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
from abstraction.kernels.parallel import run_ranges

_DIMENSIONS = 4
FLAT_STEPS = 2
"""Number of flat steps at the end.  Each costs about as much as one iteration of flat k-means."""

Progress = Callable[[str, int, int], None]
"""Called with the phase ("groups", "buckets" or "flat"), the completed part and the whole."""


def share_buckets(need: NDArray[np.floating[Any]], distinct: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Divide k buckets among groups in proportion to `need` [G]: 1 to `distinct` [G] buckets each.

    need      [G] weight of each group in the division (`group_needs`)
    distinct  [G] number of distinct points of each group
    k         number of buckets in all

    Uses the largest-averages method (Webster): the next bucket goes to the group with the largest need / (2·buckets +
    1), the lowest number among equals.  Raises `ValueError` if k is less than G or more than the sum of `distinct`.
    """
    if not len(distinct) <= k <= distinct.sum():
        raise ValueError(
            f"k is {k}, but {len(distinct)} groups of {distinct.sum()} distinct points in all need a k in between"
        )
    shares = np.ones(len(distinct), np.int64)
    # Most are given at once, by rounding down, and the rest one by one.
    ideal = np.floor(need / max(float(need.sum()), np.finfo(float).tiny) * (k - len(distinct))).astype(np.int64)
    shares = np.minimum(shares + ideal, distinct)
    while shares.sum() < k:
        average = np.where(shares < distinct, need / (2 * shares + 1), -1.0)
        shares[int(np.argmax(average))] += 1
    return shares


def group_needs(problem: Problem, members: Members) -> NDArray[np.float64]:
    """Return [G] float64 weights in proportion to which G groups of points best share buckets.

    problem  the points, their weights and the metric
    members  indices of the points of each group

    A weight is the group's inertia, Σ weight · distance to its own centre, to the power 4/6 (L2) or 4/5 (EMD).
    """
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


def cluster_within(
    problem: Problem,
    members: Members,
    shares: NDArray[np.int64],
    seed: int,
    iterations: int,
    progress: Progress,
    saver: StateSaver,
    more: Arrays | None = None,
) -> Clustering:
    """Cluster each group of distinct points into its share of buckets, groups in parallel.

    Returns the centres of all buckets, the bucket of each point, the inertia and the number of iterations.

    problem     the points, their weights and the metric
    members     indices of the points of each group
    shares      [G] number of buckets of each group
    seed        of the random draws
    iterations  limit of Lloyd's steps in a group; up to 100 more may follow to fill empty buckets
    progress    called with ("buckets", number of finished groups, G) after each group
    saver       saves the finished groups under the name "buckets", from which a later call resumes
    more        further arrays by name, saved together with the finished groups

    Buckets of group g follow those of group g − 1.  `iterations` of the result is the largest of any group.

    Raises `ValueError` if a group has fewer points than buckets.
    """
    offsets = np.concatenate([[0], np.cumsum(shares)])
    points, dimensions = problem.points.shape
    arrays: dict[str, NDArray[Any]] = {
        "labels": np.zeros(points, np.int32),
        "centres": np.zeros((offsets[-1], dimensions), np.float32),
        "counters": np.zeros(2, np.int64),  # finished groups, most iterations of one
        "inertia": np.zeros(1),
    }
    saved = saver.resume("buckets")
    arrays.update({} if saved is None else {name: np.array(saved[name]) for name in arrays})

    def cluster(first: int, last: int) -> tuple[float, int]:
        total, most = 0.0, 0
        for group in range(first, last):
            mine = members.order[members.starts[group] : members.starts[group + 1]]
            part = Problem(problem.points[mine], problem.weights[mine], problem.metric, 1)
            state = run(part, start(part, int(shares[group]), seed, group + 1), iterations)
            arrays["centres"][offsets[group] : offsets[group + 1]] = state.centres
            arrays["labels"][mine] = state.labels + np.int32(offsets[group])
            total, most = total + state.inertia, max(most, state.iteration)
        return total, most

    for part, count in run_ranges(cluster, int(arrays["counters"][0]), len(shares), 1, problem.workers):
        finished, most = (int(value) for value in arrays["counters"])
        arrays["counters"][:], arrays["inertia"][0] = (finished + 1, max(most, count)), arrays["inertia"][0] + part
        # copied, because other groups are being clustered at the same time
        saver.save("buckets", lambda: {**{name: array.copy() for name, array in arrays.items()}, **(more or {})})
        progress("buckets", finished + 1, len(shares))
    return Clustering(arrays["centres"], arrays["labels"], float(arrays["inertia"][0]), int(arrays["counters"][1]))


def _within_groups(
    problem: Problem, k: int, seed: int, iterations: int, progress: Progress, saver: StateSaver
) -> KMeansState:
    """Cluster points into about √k groups, then each group alone into its share of the k buckets.

    problem     distinct points, their weights and the metric
    seed        of the random draws
    iterations  limit of Lloyd's steps to find the groups, and to find the buckets of a group
    progress    called with ("groups" or "buckets", completed part, whole)

    Returns the k-means state of all k buckets, in which each point has its nearest centre.  If `saver` holds the state
    of an interrupted call, that call is resumed.
    """
    groups = round(k**0.5)
    saved = saver.resume("buckets")
    if saved is None:
        state = begin_or_resume(problem, groups, seed, saver, "groups")

        def tell(latest: KMeansState) -> None:
            saver.save("groups", lambda: state_arrays(latest))
            progress("groups", latest.iteration, iterations)

        state = run(problem, state, iterations, progress=tell)
    else:
        state = state_from_arrays(problem, {name[6:]: saved[name] for name in saved if name.startswith("group.")})
    members = group_members(state.labels, groups)
    shares = share_buckets(_needs(problem, state.labels, state.distances, groups), np.diff(members.starts), k)
    more = {f"group.{name}": array for name, array in state_arrays(state).items()}
    parts = cluster_within(problem, members, shares, seed, iterations, progress, saver, more)
    return start_from(problem, parts.centres, parts.labels)


def _save_flat(saver: StateSaver, state: KMeansState) -> None:
    saver.save("flat", lambda: state_arrays(state))


def refine(
    problem: Problem,
    k: int,
    *,
    seed: int = 0,
    iterations: int = ITERATIONS,
    progress: Progress = lambda _phase, _done, _of: None,
    saver: StateSaver = NOTHING,
) -> KMeansState:
    """Cluster the points of `problem` into k buckets: first into groups, then into buckets in each group.

    seed        of the random draws
    iterations  limit of Lloyd's steps to find the groups, and to find the buckets of a group
    progress    called with (phase, completed part, whole); phases are "groups", "buckets" and "flat"

    Flat steps, Lloyd's steps over all points and buckets, follow; `iteration` of the returned state counts them.  A
    state that `saver` saved in the phase "groups", "buckets" or "flat" (flat steps) is resumed and gives the same bits.

    Raises `ValueError` for k larger than the number of points.
    """
    saved = saver.resume("flat")
    if saved is None:
        state = _within_groups(problem, k, seed, iterations, progress, saver)
        _save_flat(saver, state)
    else:
        state = state_from_arrays(problem, saved)
    while state.iteration < FLAT_STEPS or state.repaired:
        state = step(problem, state)
        _save_flat(saver, state)
        progress("flat", min(state.iteration, FLAT_STEPS), FLAT_STEPS)
    return state
