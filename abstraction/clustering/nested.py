"""Buckets inside buckets: private buckets within public-board clusters, or within the buckets of the street before.

Nested under public clusters, two hands share a bucket only if their boards share a cluster.  Nested street by street,
a bucket determines all earlier ones: an abstraction of perfect recall.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstraction.clustering.assign import group_members
from abstraction.clustering.kmeans import ITERATIONS, TOLERANCE, Clustering
from abstraction.clustering.points import clustering_problem, distinct_points
from abstraction.clustering.two_level import Progress, cluster_within


class Nested(NamedTuple):
    """Labels of pairs (parent, child), the parents' blocks one after the other."""

    labels: NDArray[np.int32]
    """[N] offsets[parent] + child"""
    offsets: NDArray[np.int64]
    """[P + 1] where each parent's labels start; the last is how many there are"""


def nested(parents: NDArray[Any], children: NDArray[Any], counts: NDArray[Any] | None = None) -> Nested:
    """Combine parents [N] in 0 to P − 1 and children [N], each numbered from 0 within its parent, to one label.

    counts [P]: children of each parent; None takes the largest number seen, plus one.  Raises ValueError for negative
    labels, lengths that differ, a child beyond its parent's count, and more than 2^31 − 1 labels.
    """
    if parents.shape != children.shape or parents.ndim != 1 or len(parents) == 0:
        raise ValueError(f"parents have shape {parents.shape}, children {children.shape}: one of each, [N], is needed")
    if parents.min() < 0 or children.min() < 0:
        raise ValueError("a label is negative: parents and children are numbered from 0")
    seen = np.zeros(int(parents.max()) + 1, np.int64)
    np.maximum.at(seen, parents, children.astype(np.int64) + 1)
    given = seen if counts is None else np.asarray(counts, dtype=np.int64)
    if len(given) < len(seen) or (given[: len(seen)] < seen).any():
        raise ValueError(f"counts allow {given.tolist()[:20]} children of each parent, but {seen.tolist()[:20]} occur")
    offsets = np.concatenate([[0], np.cumsum(given)])
    if offsets[-1] >= 2**31:
        raise ValueError(f"{offsets[-1]} labels would be needed: fewer than 2^31 are allowed")
    return Nested((offsets[parents] + children).astype(np.int32), offsets)


def nested_kmeans(
    points: NDArray[Any],
    weights: ArrayLike | None,
    parents: NDArray[np.int32],
    k: int,
    *,
    distance: str = "l2",
    seed: int = 0,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
    workers: int = 1,
    progress: Progress | None = None,
) -> tuple[Clustering, NDArray[np.int64]]:
    """Cluster the points of each parent on their own into k buckets, or as many as it has distinct points if fewer.

    points [N, D], weights [N] (1 each if None), parents [N] in 0 to P − 1, each of them occurring.  Returns the
    buckets, numbered parent by parent, and offsets [P + 1] of each parent's first.  Raises ValueError for k less
    than 1, a parent without points, and as `clustering_problem` does.
    """
    parents = np.asarray(parents, dtype=np.int32)
    if k < 1 or parents.shape != (len(points),) or parents.min() < 0:
        raise ValueError(
            f"k is {k} and parents have shape {parents.shape}: k >= 1 and a parent >= 0 a point are needed"
        )
    count = int(parents.max()) + 1
    outer = group_members(parents, count)
    given = np.ones(len(points), np.int64) if weights is None else np.asarray(weights)
    labels, offsets = np.empty(len(points), np.int32), np.zeros(count + 1, np.int64)
    # Duplicates are merged within each parent only.
    merged = [distinct_points(points[mine], given[mine]) for mine in np.split(outer.order, outer.starts[1:-1])]
    sizes = np.array([len(part.points) for part in merged])
    if sizes.min() == 0:
        raise ValueError(f"parent {int(np.argmin(sizes))} has no points: number parents from 0 without gaps")
    inside = np.repeat(np.arange(count, dtype=np.int32), sizes)
    problem = clustering_problem(
        np.concatenate([part.points for part in merged]),
        np.concatenate([part.weights for part in merged]),
        distance,
        workers,
    )
    shares = np.minimum(sizes, k)
    offsets[1:] = np.cumsum(shares)
    found = cluster_within(problem, group_members(inside, count), shares, seed, iterations, tolerance, progress)
    first = np.concatenate([[0], np.cumsum(sizes)])
    for parent, part in enumerate(merged):
        mine = outer.order[outer.starts[parent] : outer.starts[parent + 1]]
        labels[mine] = found.labels[first[parent] + part.inverse]
    return Clustering(found.centres, labels, found.inertia, found.iterations), offsets
