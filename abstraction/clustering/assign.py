"""Assignment of every point to its nearest centre, exact, with most distances saved by the triangle inequality.

A point x whose centre so far is a can only be closer to centres c with d(a, c) <= d(x, a) + d(x, best found).  Points
are taken centre by centre: the centres near a are sorted by their distance to a and packed once, and each of a's
points measures them 32 at a time, nearest first, until the bound says that the rest cannot win (Phillips 2002,
"Acceleration of k-means and related clustering algorithms", sort-means, in vectors).  No bounds are kept between
iterations, so a state is centres and labels and nothing else.  The result does not depend on the labels it starts
from: each point gets the centre of least distance by `abstraction.clustering.metric`, the lowest number among equals.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstraction.clustering.lanes import AHEAD, LANES, closest_lane, lane_distances, pack_centres, prefetch_point
from abstraction.clustering.metric import L2, TINY, length, point_distance, rounding_margin
from abstraction.kernels.jit import allocating_njit, nogil_allocating_njit, nogil_njit, part_njit
from abstraction.kernels.parallel import run_ranges

_DENSE = 64  # up to this many centres, all distances are computed
_COARSER = 16  # centres for each one that gives the first guess
_CHUNKS = 64  # ranges of centres or points handed to threads
_NUMBER = 0xFFFFFFFF  # of the centre, in a sort key whose upper half is its distance


class Members(NamedTuple):
    """Points grouped by label; within a label in order of their number."""

    order: NDArray[np.int32]
    """[N] point numbers"""
    starts: NDArray[np.int64]
    """[k + 1] where each label's points start in `order`"""


class Nearest(NamedTuple):
    """Each point's centre and the distance to it."""

    labels: NDArray[np.int32]
    """[N] number of the nearest centre"""
    distances: NDArray[np.float32]
    """[N] its distance: squared for L2"""


@allocating_njit
def _group(labels, starts, order):
    """Fill starts [k + 1] and order [N]: a stable counting sort."""
    for label in labels:
        starts[label + 1] += 1
    for c in range(starts.shape[0] - 1):
        starts[c + 1] += starts[c]
    place = starts[:-1].copy()
    for i in range(labels.shape[0]):
        order[place[labels[i]]] = i
        place[labels[i]] += 1


def group_members(labels: NDArray[np.int32], k: int) -> Members:
    """Group points by label, labels being 0 to k − 1."""
    members = Members(np.empty(len(labels), np.int32), np.zeros(k + 1, np.int64))
    _group(labels, members.starts, members.order)
    return members


@part_njit
def _widest(points, mine, centre, metric, distances):
    """Fill distances of the points numbered `mine` to `centre`; the largest of them."""
    widest = np.float32(0.0)
    for i in range(mine.shape[0]):
        prefetch_point(points, mine[min(i + AHEAD, mine.shape[0] - 1)])
        x = mine[i]
        distances[x] = point_distance(points[x], centre, metric)
        widest = max(widest, distances[x])
    return widest


@allocating_njit
def _candidates(a, widest, metric, centres, packed, keys):
    """Fill keys with the other centres within twice `widest` of centre a, nearest first; how many there are."""
    margin = rounding_margin(centres.shape[1])
    reach = 2.0 * length(widest, metric) * (1.0 + 4.0 * margin) + TINY
    limit = np.float32((reach * reach if metric == L2 else reach) * (1.0 + margin))
    sums = np.empty(LANES, np.float32)
    bits = sums.view(np.int32)
    found = 0
    for panel in range(packed.shape[0]):
        lane_distances(centres, a, packed, panel, metric, sums)
        first = panel * LANES
        for lane in range(min(LANES, centres.shape[0] - first)):
            if sums[lane] <= limit and first + lane != a:
                keys[found] = (np.int64(bits[lane]) << 32) | (first + lane)
                found += 1
    keys[:found].sort()
    return found


@part_njit
def _pack_chunk(centres, numbers, first, count, panel):
    """Fill panel [D, 32] with centres numbers[first : first + count], and infinities."""
    for lane in range(LANES):
        if lane < count:
            number = numbers[first + lane]
            for j in range(centres.shape[1]):
                panel[j, lane] = centres[number, j]
        else:
            for j in range(centres.shape[1]):
                panel[j, lane] = np.inf


@nogil_allocating_njit
def _assign_range(first, last, metric, points, members, centres, packed, nearest):
    """Nearest centres of the points whose label so far is `first` to `last` − 1; fills `nearest`."""
    k, dimensions = centres.shape
    margin = rounding_margin(dimensions)
    keys = np.empty(k, np.int64)
    numbers = np.empty(k, np.int32)
    near = np.empty(k, np.float64)
    panels = np.empty((packed.shape[0], dimensions, LANES), np.float32)
    sums = np.empty(LANES, np.float32)
    for a in range(first, last):
        mine = members.order[members.starts[a] : members.starts[a + 1]]
        if mine.shape[0] == 0:
            continue
        widest = _widest(points, mine, centres[a], metric, nearest.distances)
        found = _candidates(a, widest, metric, centres, packed, keys)
        for i in range(found):
            numbers[i] = keys[i] & _NUMBER
            near[i] = length(np.int32(keys[i] >> 32).view(np.float32), metric) * (1.0 - 2.0 * margin)
        built = 0
        for i in range(mine.shape[0]):
            prefetch_point(points, mine[min(i + AHEAD, mine.shape[0] - 1)])
            x = mine[i]
            best, best_label = nearest.distances[x], np.int32(a)
            own = length(best, metric)
            done = 0
            while done < found and near[done] <= (own + length(best, metric)) * (1.0 + 2.0 * margin) + TINY:
                count = min(LANES, found - done)
                if done == built:
                    _pack_chunk(centres, numbers, done, count, panels[done // LANES])
                    built += LANES
                lane_distances(points, x, panels, done // LANES, metric, sums)
                best, best_label = closest_lane(sums, numbers, done, count, best, best_label)
                done += LANES
            nearest.labels[x] = best_label
            nearest.distances[x] = best


@nogil_allocating_njit
def _measure_range(first, last, metric, points, packed, numbers, nearest):
    """Nearest of all centres, without bounds, for points `first` to `last` − 1; fills `nearest`."""
    sums = np.empty(LANES, np.float32)
    for x in range(first, last):
        best, best_label = np.float32(np.inf), np.int32(0)
        for panel in range(packed.shape[0]):
            lane_distances(points, x, packed, panel, metric, sums)
            count = min(LANES, numbers.shape[0] - panel * LANES)
            best, best_label = closest_lane(sums, numbers, panel * LANES, count, best, best_label)
        nearest.labels[x] = best_label
        nearest.distances[x] = best


@nogil_njit
def _own_range(first, last, metric, points, centres, nearest):
    """Distances to the labelled centres, for points `first` to `last` − 1; fills `nearest.distances`."""
    for x in range(first, last):
        nearest.distances[x] = point_distance(points[x], centres[nearest.labels[x]], metric)


def share_out(work: Callable[[int, int], object], count: int, workers: int) -> None:
    """Call work(first, last) on ranges that cover 0 to `count`, on `workers` threads."""
    for _ in run_ranges(work, 0, count, -(-count // _CHUNKS), workers):
        pass


def own_distances(
    points: NDArray[np.float32], centres: NDArray[np.float32], labels: NDArray[np.int32], metric: int, workers: int = 1
) -> Nearest:
    """The labels as they are, with the distances to their centres; arrays as for `nearest_centres`."""
    nearest = Nearest(labels, np.empty(len(points), np.float32))
    share_out(lambda i, j: _own_range(i, j, metric, points, centres, nearest), len(points), workers)
    return nearest


def nearest_centres(
    points: NDArray[np.float32],
    centres: NDArray[np.float32],
    metric: int,
    workers: int = 1,
    labels: NDArray[np.int32] | None = None,
) -> Nearest:
    """Nearest centre of each point, the lowest number among equals.

    points [N, D] and centres [k, D] float32, C-contiguous and finite; `metric` L2 or EMD.  `labels` [N] int32, a guess,
    saves time and changes nothing.  Results do not depend on `workers`.
    """
    k = len(centres)
    nearest = Nearest(np.empty(len(points), np.int32), np.empty(len(points), np.float32))
    packed = pack_centres(centres)
    if k <= _DENSE:
        numbers = np.arange(k, dtype=np.int32)
        share_out(lambda i, j: _measure_range(i, j, metric, points, packed, numbers, nearest), len(points), workers)
        return nearest
    if labels is None:
        coarse = np.ascontiguousarray(centres[::_COARSER])
        labels = nearest_centres(points, coarse, metric, workers).labels * np.int32(_COARSER)
    members = group_members(labels, k)
    share_out(lambda i, j: _assign_range(i, j, metric, points, members, centres, packed, nearest), k, workers)
    return nearest
