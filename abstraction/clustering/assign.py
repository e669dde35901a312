"""Exact assignment of points to their nearest centres, with triangle-inequality pruning.

A point x with current centre a can only be closer to a centre c if d(a, c) <= d(x, a) + d(x, best found).  So each
point measures the other centres in order of their distance to a, 32 at a time, until the bound excludes the rest. The
method is sort-means (Phillips 2002, "Acceleration of k-means and related clustering algorithms").

The state of a clustering is only centres and labels, without bounds.  The result does not depend on the initial labels.
Each point gets the centre of least distance (`abstraction.clustering.metric`), the lowest number among equals.
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
_COARSER = 16  # number of centres for each centre of the first guess
_CHUNKS = 64  # number of ranges of centres or points that threads share
_NUMBER = 0xFFFFFFFF  # mask of the centre's number in a sort key; the upper half is the distance


class Members(NamedTuple):
    """Point indices grouped by label; label c has order[starts[c] : starts[c + 1]], ascending."""

    order: NDArray[np.int32]
    """[N] point indices"""
    starts: NDArray[np.int64]
    """[k + 1] index in `order` of each label's first point"""


class Nearest(NamedTuple):
    """The nearest centre of each point and the distance to it."""

    labels: NDArray[np.int32]
    """[N] number of the nearest centre"""
    distances: NDArray[np.float32]
    """[N] distance to it, squared for L2"""


@allocating_njit
def _group(labels, starts, order):
    """Fill starts [k + 1] and order [N] of `Members` by a stable counting sort of the labels.

    labels  [N] int32, 0 to k − 1
    starts  [k + 1] int64, 0 at the start; receives the index in `order` of each label's first point
    order   [N] int32, receives the point indices by label
    """
    for label in labels:
        starts[label + 1] += 1
    for c in range(starts.shape[0] - 1):
        starts[c + 1] += starts[c]
    next_index = starts[:-1].copy()
    for i in range(labels.shape[0]):
        order[next_index[labels[i]]] = i
        next_index[labels[i]] += 1


def group_members(labels: NDArray[np.int32], k: int) -> Members:
    """Group the indices of points by their labels [N] int32, 0 to k − 1.

    In the result, label c has the points order[starts[c] : starts[c + 1]], ascending.
    """
    members = Members(np.empty(len(labels), np.int32), np.zeros(k + 1, np.int64))
    _group(labels, members.starts, members.order)
    return members


@part_njit
def _widest(points, mine, centre, metric, distances):
    """Write the distances of some points to one centre; return the largest.

    points     [N, D] float32
    mine       [n] indices of these points
    centre     [D] float32
    metric     L2 (squared distance) or EMD (earth mover's distance)
    distances  [N] float32, written at the entries `mine`
    """
    widest = np.float32(0.0)
    for i in range(mine.shape[0]):
        prefetch_point(points, mine[min(i + AHEAD, mine.shape[0] - 1)])
        x = mine[i]
        distances[x] = point_distance(points[x], centre, metric)
        widest = max(widest, distances[x])
    return widest


@allocating_njit
def _candidates(a, widest, metric, centres, packed, keys):
    """List the other centres that can be nearest to a point of label a; return how many there are.

    a        index of the points' current centre
    widest   largest distance of these points to it
    metric   L2 (squared distance) or EMD (earth mover's distance)
    centres  [k, D] float32
    packed   the same centres, [ceil(k / 32), D, 32] float32
    keys     [k] int64, receives for each centre listed, nearest to a first: float32 bits of its distance to a << 32 |
             its number
    """
    margin = rounding_margin(centres.shape[1])
    reach = 2.0 * length(widest, metric) * (1.0 + 4.0 * margin) + TINY
    limit = np.float32((reach * reach if metric == L2 else reach) * (1.0 + margin))
    sums = np.empty(LANES, np.float32)
    bits = sums.view(np.int32)
    candidates = 0
    for panel in range(packed.shape[0]):
        lane_distances(centres, a, packed, panel, metric, sums)
        first = panel * LANES
        for lane in range(min(LANES, centres.shape[0] - first)):
            if sums[lane] <= limit and first + lane != a:
                keys[candidates] = (np.int64(bits[lane]) << 32) | (first + lane)
                candidates += 1
    keys[:candidates].sort()
    return candidates


@part_njit
def _pack_chunk(centres, numbers, first, count, panel):
    """Copy centres numbers[first : first + count] to the first columns of panel [D, 32] float32.

    The other columns become infinite, so no point is nearest to them.  `centres` is [k, D] float32.
    """
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
    """Write the nearest centre of each point whose current label is `first` to `last` − 1 to `nearest`.

    metric   L2 (squared distance) or EMD (earth mover's distance)
    points   [N, D] float32
    members  order [N] of the point indices by current label, and starts [k + 1] of the labels
    centres  [k, D] float32
    packed   the same centres, [ceil(k / 32), D, 32] float32
    nearest  labels [N] int32 and distances [N] float32, in place
    """
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
        candidates = _candidates(a, widest, metric, centres, packed, keys)
        for i in range(candidates):
            numbers[i] = keys[i] & _NUMBER
            near[i] = length(np.int32(keys[i] >> 32).view(np.float32), metric) * (1.0 - 2.0 * margin)
        built = 0
        for i in range(mine.shape[0]):
            prefetch_point(points, mine[min(i + AHEAD, mine.shape[0] - 1)])
            x = mine[i]
            best, best_label = nearest.distances[x], np.int32(a)
            own = length(best, metric)
            checked = 0
            while checked < candidates and near[checked] <= (own + length(best, metric)) * (1.0 + 2.0 * margin) + TINY:
                count = min(LANES, candidates - checked)
                if checked == built:
                    _pack_chunk(centres, numbers, checked, count, panels[checked // LANES])
                    built += LANES
                lane_distances(points, x, panels, checked // LANES, metric, sums)
                best, best_label = closest_lane(sums, numbers, checked, count, best, best_label)
                checked += LANES
            nearest.labels[x] = best_label
            nearest.distances[x] = best


@nogil_allocating_njit
def _measure_range(first, last, metric, points, packed, numbers, nearest):
    """Write the nearest centre of points `first` to `last` − 1 to `nearest`, measuring all k centres.

    metric   L2 (squared distance) or EMD (earth mover's distance)
    points   [N, D] float32
    packed   [ceil(k / 32), D, 32] float32 centres, padded with infinities
    numbers  [k] int32: 0 to k − 1
    nearest  labels [N] int32 and distances [N] float32, in place
    """
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
def _distances_of_range(first, last, metric, points, centres, nearest):
    """Write the distance of points `first` to `last` − 1 to the centre of their label to `nearest`.

    metric   L2 (squared distance) or EMD (earth mover's distance)
    points   [N, D] float32
    centres  [k, D] float32
    nearest  labels [N] int32, read, and distances [N] float32, written
    """
    for x in range(first, last):
        nearest.distances[x] = point_distance(points[x], centres[nearest.labels[x]], metric)


def share_out(work: Callable[[int, int], object], count: int, workers: int) -> None:
    """Call work(first, last) for ranges [first, last) that cover [0, count), on at most `workers` threads."""
    for _ in run_ranges(work, 0, count, -(-count // _CHUNKS), workers):
        pass


def own_distances(
    points: NDArray[np.float32], centres: NDArray[np.float32], labels: NDArray[np.int32], metric: int, workers: int = 1
) -> Nearest:
    """Return the given labels with the distance of each point to the centre of its label.

    points   [N, D] float32
    centres  [k, D] float32
    labels   [N] int32, 0 to k − 1
    metric   L2 (squared distance) or EMD (earth mover's distance)
    workers  maximum number of threads; does not change the result
    """
    nearest = Nearest(labels, np.empty(len(points), np.float32))
    share_out(lambda i, j: _distances_of_range(i, j, metric, points, centres, nearest), len(points), workers)
    return nearest


def nearest_centres(
    points: NDArray[np.float32],
    centres: NDArray[np.float32],
    metric: int,
    workers: int = 1,
    labels: NDArray[np.int32] | None = None,
) -> Nearest:
    """Return the nearest centre of each point and the distance to it, the lowest number among equals.

    points   [N, D] float32, C-contiguous and finite
    centres  [k, D] float32, C-contiguous and finite
    metric   L2 (squared distance) or EMD (earth mover's distance)
    workers  maximum number of threads; does not change the result
    labels   [N] int32, a guess that saves time and does not change the result
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
