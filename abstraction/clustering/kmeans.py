"""k-means and k-medians of weighted points by Lloyd's iteration, exact and resumable after any step.

One step moves every centre to the mean (L2) or median (EMD) of its points, then assigns every point to its nearest
centre (Lloyd 1982).  Labels, centres and inertia have the same bits for any number of workers, and after saving and
loading the state.  The inertia is the sum of weight · distance over all points.

Our addition: an empty bucket takes the point that contributes most to the inertia, which becomes its centre.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.clustering.assign import Nearest, group_members, nearest_centres, own_distances
from abstraction.clustering.centres import group_centres
from abstraction.clustering.metric import distance_code
from abstraction.clustering.points import Problem, distinct_points
from abstraction.clustering.seeding import seed_centres
from abstraction.kernels.jit import njit

ITERATIONS = 100
TOLERANCE = 1e-4
_MORE = 100  # maximum number of further steps while the last one filled an empty bucket

Arrays = Mapping[str, NDArray[Any]]


class StateSaver:
    """Base class that saves nothing.  Subclasses save the state of a clustering so that it can resume.

    A *phase* is the name of the part of the algorithm that a state belongs to, such as "lloyd" or "groups".
    """

    def resume(self, phase: str) -> Arrays | None:
        """Return the last saved arrays by name if they belong to `phase`, else None; here always None."""
        return None

    def save(self, phase: str, arrays: Callable[[], Arrays]) -> None:
        """Save the state of `phase` in place of the last saved one, or skip it; here do nothing.

        `arrays` returns the state's arrays by name.  It is called only when the state is saved.
        """


NOTHING = StateSaver()


@dataclass(frozen=True)
class KMeansState:
    """State of Lloyd's iteration between two steps, for N points of D coordinates and k buckets.

    Centres, labels and counters determine all further steps.
    """

    centres: NDArray[np.float32]
    """[k, D] centres"""
    labels: NDArray[np.int32]
    """[N] bucket of each point"""
    distances: NDArray[np.float32]
    """[N] distance of each point to its centre, squared for L2; computed from centres and labels"""
    iteration: int
    """number of completed steps"""
    inertia: float
    """Σ weight x distance"""
    previous_inertia: float
    """inertia before the last step; infinite at the start"""
    changed: int
    """number of points whose label the last step changed"""
    repaired: int
    """number of empty buckets that the last step filled"""


Progress = Callable[[KMeansState], None]


@njit
def _inertia(weights, distances):
    """Return the inertia: the sum of weights[i] · distances[i] over N points, added in order of number."""
    total = 0.0
    for i in range(weights.shape[0]):
        total += weights[i] * distances[i]
    return total


def _repair(problem: Problem, centres: NDArray[np.float32], nearest: Nearest) -> int:
    """Give every empty bucket a point as its centre, in place; return how many buckets were empty.

    problem  the points, distinct and no fewer than centres, and their weights
    centres  [k, D], changed in place
    nearest  label and distance of each point, changed in place

    The point has the largest weight · distance among points in buckets of two or more points.
    """
    counts = np.bincount(nearest.labels, minlength=len(centres))
    empty = np.flatnonzero(counts == 0)
    if len(empty) == 0:
        return 0
    order = np.argsort(-(problem.weights * nearest.distances), kind="stable")
    candidates = iter(order)
    for bucket in empty:
        point = next(x for x in candidates if nearest.distances[x] > 0 and counts[nearest.labels[x]] > 1)
        counts[nearest.labels[point]] -= 1
        counts[bucket] = 1
        centres[bucket] = problem.points[point]
        nearest.labels[point], nearest.distances[point] = bucket, 0.0
    return len(empty)


def start(problem: Problem, k: int, seed: int = 0, purpose: int = 0) -> KMeansState:
    """Return the state of k-means after k-means++ seeding of k centres: centres, labels, inertia.

    problem  distinct points, their weights, the metric and the number of threads
    seed     of the random draws
    purpose  any number; clusterings with one seed and different purposes draw independently

    Raises `ValueError` unless k is from 1 to the number of points.
    """
    seeds = seed_centres(problem, k, seed, purpose)
    inertia = float(_inertia(problem.weights, seeds.nearest.distances))
    return KMeansState(problem.points[seeds.chosen], *seeds.nearest, 0, inertia, np.inf, 0, 0)


def start_from(problem: Problem, centres: NDArray[np.float32], labels: NDArray[np.int32] | None = None) -> KMeansState:
    """Return the state of k-means for given centres, with each point at its nearest centre.

    problem  distinct points, their weights, the metric and the number of threads
    centres  [k, D], no more than points; an empty bucket takes a point as its new centre
    labels   [N], a guess of the result's labels that saves time and does not change the result
    """
    centres = np.array(centres, dtype=np.float32, order="C")
    nearest = nearest_centres(problem.points, centres, problem.metric, problem.workers, labels)
    repaired = _repair(problem, centres, nearest)
    return KMeansState(centres, *nearest, 0, float(_inertia(problem.weights, nearest.distances)), np.inf, 0, repaired)


def step(problem: Problem, state: KMeansState) -> KMeansState:
    """Return the state after one more k-means iteration: new centres, then new labels.

    problem  distinct points, their weights, the metric and the number of threads
    state    the state before, which is not changed
    """
    k = len(state.centres)
    members = group_members(state.labels, k)
    centres = group_centres(problem.points, problem.weights, members, state.centres, problem.metric, problem.workers)
    nearest = nearest_centres(problem.points, centres, problem.metric, problem.workers, state.labels)
    repaired = _repair(problem, centres, nearest)
    return KMeansState(
        centres,
        *nearest,
        iteration=state.iteration + 1,
        inertia=float(_inertia(problem.weights, nearest.distances)),
        previous_inertia=state.inertia,
        changed=int(np.count_nonzero(nearest.labels != state.labels)),
        repaired=repaired,
    )


def finished(state: KMeansState, iterations: int = ITERATIONS, tolerance: float = TOLERANCE) -> bool:
    """Return whether `iterations` are done, no label changed, or the inertia fell by at most `tolerance`.

    state       state after the last step
    iterations  limit of steps in all; a step that filled an empty bucket is followed by another, up to 100 more
    tolerance   share of the inertia before the last step

    The additional steps make every label that of the nearest centre.
    """
    if state.repaired and state.iteration < iterations + _MORE:
        return False
    if state.iteration >= iterations:
        return True
    fell = state.previous_inertia - state.inertia
    return state.iteration > 0 and (state.changed == 0 or fell <= tolerance * state.previous_inertia)


def run(
    problem: Problem,
    state: KMeansState,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
) -> KMeansState:
    """Run k-means steps until `iterations` are done or the state has converged; return the state.

    problem     distinct points, their weights, the metric and the number of threads
    state       the state to begin with
    iterations  limit of steps in all; a step that filled an empty bucket is followed by another, up to 100 more
    tolerance   the state has converged if the inertia falls by at most this share, or if no label changes
    progress    called with each new state, which it may save
    """
    while not finished(state, iterations, tolerance):
        state = step(problem, state)
        if progress is not None:
            progress(state)
    return state


def state_arrays(state: KMeansState) -> dict[str, NDArray[Any]]:
    """Return the arrays that determine a state, by name: centres, labels, counters and inertia."""
    return {
        "centres": state.centres,
        "labels": state.labels,
        "counters": np.array([state.iteration, state.changed, state.repaired], np.int64),
        # Saved values must be finite, so the infinite inertia before the first step is saved as -1.
        "inertia": np.array([state.inertia, state.previous_inertia if state.iteration else -1], np.float64),
    }


def state_from_arrays(problem: Problem, arrays: Arrays) -> KMeansState:
    """Restore a state from the arrays of `state_arrays`; distances are computed again.

    problem  the points, weights and metric for which the state was computed
    arrays   {name: array}

    Raises `ValueError` if the shapes do not fit the points, or if a label is not 0 to k − 1.
    """
    centres = np.array(arrays["centres"], dtype=np.float32, order="C")
    labels = np.array(arrays["labels"], dtype=np.int32)
    count, dimensions = problem.points.shape
    if centres.ndim != 2 or centres.shape[1] != dimensions or labels.shape != (count,):
        raise ValueError(
            f"the saved state has centres of shape {centres.shape} and labels of shape {labels.shape}, which do not "
            f"fit points of shape {problem.points.shape}: start again, or give the points it was made from"
        )
    if labels.min() < 0 or labels.max() >= len(centres):
        raise ValueError(f"saved labels lie between {labels.min()} and {labels.max()}, but k is {len(centres)}")
    nearest = own_distances(problem.points, centres, labels, problem.metric, problem.workers)
    iteration, changed, repaired = (int(value) for value in arrays["counters"])
    inertia, previous = (float(value) for value in arrays["inertia"])
    return KMeansState(centres, *nearest, iteration, inertia, previous if iteration else np.inf, changed, repaired)


def begin_or_resume(
    problem: Problem, k: int, seed: int = 0, saver: StateSaver = NOTHING, phase: str = "lloyd"
) -> KMeansState:
    """Return the saved state of `phase` if there is one, else the state after k-means++ seeding.

    problem  distinct points, their weights, the metric and the number of threads
    k, seed  number of buckets, and seed of the random draws
    saver    restores saved states; the default has none
    phase    name under which `saver` saved the state

    Raises `ValueError` if the saved state does not fit the points.  Without one, raises `ValueError` unless k is from 1
    to the number of distinct points.
    """
    saved = saver.resume(phase)
    return start(problem, k, seed) if saved is None else state_from_arrays(problem, saved)


@dataclass(frozen=True)
class Clustering:
    """Result of k-means with k buckets: their centres, and the bucket of each of N points in D dimensions."""

    centres: NDArray[np.float32]
    """[k, D] centres"""
    labels: NDArray[np.int32]
    """[N] bucket of each given point, duplicates included; no bucket is empty"""
    inertia: float
    """Σ weight x distance over all given points"""
    iterations: int
    """number of Lloyd's steps"""


def kmeans(
    points: NDArray[np.float32],
    weights: NDArray[np.int64],
    k: int,
    *,
    distance: str = "l2",
    seed: int = 0,
    workers: int = 1,
) -> Clustering:
    """Cluster points [N, D] with weights [N] into k buckets by k-means++ and Lloyd's iteration.

    Equal points are merged first.  `distance` is "l2" (means) or "emd" (medians).  `seed` is that of the random draws.
    Raises `ValueError` for another distance, and unless k is from 1 to the number of distinct points.
    """
    merged = distinct_points(points, weights)
    whole = Problem(merged.points, merged.weights.astype(np.float64), distance_code(distance), workers)
    state = run(whole, start(whole, k, seed))
    return Clustering(state.centres, state.labels[merged.inverse], state.inertia, state.iteration)
