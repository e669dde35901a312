"""Exact k-means++ seeding (Arthur & Vassilvitskii 2007), and its random numbers.

The first centre is drawn in proportion to weight.  Each further centre is drawn in proportion to weight times the
distance to the nearest chosen centre.  That distance is squared for L2 and plain for EMD, as in their section 5.  A
point with nearest centre a is measured against a new centre c only if d(a, c) < 2·d(x, a).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstraction.clustering.assign import Nearest
from abstraction.clustering.lanes import AHEAD, prefetch_point
from abstraction.clustering.metric import L2, TINY, length, point_distance, rounding_margin
from abstraction.clustering.points import Problem
from abstraction.kernels.jit import njit, nogil_allocating_njit, part_njit
from abstraction.kernels.parallel import run_ranges

_BLOCK = 4096  # points whose weighted distances are summed together, which fixes the order of summation
_MASK = (1 << 64) - 1


def uniform(seed: int, *numbers: int) -> float:
    """Return a pseudo-random number in [0, 1) that depends only on the seed and the numbers.

    numbers  identify one draw among those of a seed, such as its purpose and its index

    The generator is SplitMix64 (Steele, Lea & Flood 2014).
    """
    state = 0
    for number in (seed, *numbers):
        state = (state + (number & _MASK) + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return (state >> 11) * 2.0**-53


class Seeds(NamedTuple):
    """Result of k-means++ seeding: the points chosen as first centres, and each point's nearest."""

    chosen: NDArray[np.int64]
    """[k] indices of the points that are the first centres"""
    nearest: Nearest
    """label and distance of every point"""


@njit
def _gaps(points, chosen, count, metric, limits):
    """Write to limits[a] a distance to centre a within which no point is closer to a new centre.

    The new centre is number `count`, and a is each of 0 to `count` − 1.  By the triangle inequality that is half the
    distance of the two centres (for L2 the square of the half).  It is lowered by a margin for rounding.

    points  [N, D] float32
    chosen  [k] indices of the points that are centres
    metric  L2 (squared distance) or EMD (earth mover's distance)
    limits  [k] float32 distances; the first `count` are written
    """
    margin = rounding_margin(points.shape[1])
    for a in range(count):
        gap = 0.5 * length(point_distance(points[chosen[a]], points[chosen[count]], metric), metric)
        gap = max(0.0, gap * (1.0 - 4.0 * margin) - TINY)
        # The margin keeps the limit low after rounding to float32.
        limits[a] = (gap * gap if metric == L2 else gap) * (1.0 - margin)


@part_njit
def _mass(weights, distances, begin, end):
    """Return Σ weights[x] · distances[x] over points x from `begin` to `end` − 1.

    The terms are divided among four partial sums, whose additions the processor overlaps.
    """
    whole = begin + (end - begin) // 4 * 4
    first = second = third = fourth = 0.0
    for x in range(begin, whole, 4):
        first += weights[x] * distances[x]
        second += weights[x + 1] * distances[x + 1]
        third += weights[x + 2] * distances[x + 2]
        fourth += weights[x + 3] * distances[x + 3]
    for x in range(whole, end):
        first += weights[x] * distances[x]
    return (first + second) + (third + fourth)


@nogil_allocating_njit
def _measure_blocks(first, last, metric, count, problem, chosen, nearest, state):
    """Assign each point of blocks `first` to `last` − 1 to centre number `count` if it is closer.

    A block is 4,096 points.

    metric   L2 (squared distance) or EMD (earth mover's distance)
    problem  (points [N, D] float32, weights [N] float64)
    chosen   [k] indices of the points that are centres
    nearest  labels [N] and distances [N] to the nearest of centres 0 to `count` − 1, updated in place
    state    (limits [k] float32, masses [blocks] float64): points within limits[a] of their centre a are not measured;
             masses are each block's Σ weight · distance, updated in place
    """
    points, weights = problem
    limits, masses = state
    centre = points[chosen[count]]
    open_ = np.empty(_BLOCK, np.int64)
    for block in range(first, last):
        begin, end = block * _BLOCK, min((block + 1) * _BLOCK, points.shape[0])
        # Points to measure are collected first, without a branch. They are few, and each would cost a branch
        # misprediction.
        open_count = 0
        for x in range(begin, end):
            open_[open_count] = x
            open_count += nearest.distances[x] > limits[np.uint32(nearest.labels[x])]
        changed = False
        for i in range(open_count):
            prefetch_point(points, open_[min(i + AHEAD, open_count - 1)])
            x = open_[i]
            distance = point_distance(points[x], centre, metric)
            if distance < nearest.distances[x]:
                nearest.distances[x] = distance
                nearest.labels[x] = count
                changed = True
        if changed:
            masses[block] = _mass(weights, nearest.distances, begin, end)


@njit
def _draw(weights, distances, masses, share):
    """Draw a point in proportion to weight · distance: the one at `share`, in [0, 1), of the total.

    weights    [N] float64
    distances  [N] float32
    masses     [blocks] float64, Σ weight · distance of each block of 4,096 points

    Returns the index of the point, or −1 if the total is 0.
    """
    total = 0.0
    for mass in masses:
        total += mass
    target = share * total
    chosen = -1
    passed = 0.0
    for block in range(masses.shape[0]):
        if masses[block] <= 0.0:
            continue
        # If rounding puts the target beyond the end, the last block with mass is chosen.
        chosen = block
        if passed + masses[block] > target:
            break
        passed += masses[block]
    if chosen < 0:
        return -1
    begin, end = chosen * _BLOCK, min((chosen + 1) * _BLOCK, weights.shape[0])
    for x in range(begin, end):
        if distances[x] > 0:
            chosen = x
            passed += weights[x] * distances[x]
            if passed > target:
                break
    return chosen


def seed_centres(problem: Problem, k: int, seed: int = 0, purpose: int = 0) -> Seeds:
    """Choose k distinct points as first centres by k-means++; return also each point's nearest.

    problem  points, weights, metric and number of threads
    seed     of the random draws
    purpose  any number; with one seed and different purposes the draws are independent

    Raises `ValueError` unless k is from 1 to the number of distinct points.
    """
    count = len(problem.points)
    if not 1 <= k <= count:
        raise ValueError(f"k is {k}, but there are {count} distinct points: choose k at most that, at least 1")
    blocks = -(-count // _BLOCK)
    chosen = np.zeros(k, np.int64)
    nearest = Nearest(np.zeros(count, np.int32), np.full(count, np.inf, np.float32))
    state = (np.zeros(k, np.float32), np.zeros(blocks))
    starts = np.arange(0, count, _BLOCK)
    weight = np.add.reduceat(problem.weights, starts)
    ones = np.ones(count, np.float32)
    chosen[0] = _draw(problem.weights, ones, weight, uniform(seed, purpose, 0))
    inputs = (problem.points, problem.weights)
    chunk = max(1, -(-blocks // (2 * problem.workers)))
    for number in range(k):
        if number:
            chosen[number] = _draw(problem.weights, nearest.distances, state[1], uniform(seed, purpose, number))
            if chosen[number] < 0:
                raise ValueError(f"k is {k}, but there are {number} distinct points: choose k at most {number}")
            _gaps(problem.points, chosen, number, problem.metric, state[0])

        def measure(first: int, last: int, number: int = number) -> None:
            _measure_blocks(first, last, problem.metric, number, inputs, chosen, nearest, state)

        for _ in run_ranges(measure, 0, blocks, chunk, problem.workers):
            pass
    return Seeds(chosen, nearest)
