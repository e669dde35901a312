"""Memories of regret or strategy samples: reservoirs of fixed size (Vitter 1985, algorithm R).

Every offered sample is in the memory with the same probability; its weight does not matter.  The index at which a new
sample is stored is a function of its number and the run's seed.  So a memory filled in several sessions equals one
filled at once.

Minibatches follow a walk over the memory with large steps (`SampleOrder`).  No sample is repeated before all others
were read.  Each minibatch is spread evenly over the memory, whose order is that of the iterations until it is full.
So the errors of consecutive minibatches compensate each other.

The loss of several samples of one infoset has the gradient of their weighted mean.  So samples of an infoset are
*merged* when they are read: weights are added up, and values times weights.
"""

from collections.abc import Sequence
from math import gcd
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import inline_njit, njit
from abstraction.kernels.prefetch import prefetch_to_read
from mccfr.common.rng import RESERVOIR, new_stream, random_at

Array = npt.NDArray[Any]
_UNIT = 1.0 / 9007199254740992.0  # 2^-53
AHEAD = 32
"""Samples that are prefetched before the first of them is read.

A memory is far larger than the caches, so each read would wait.  If a whole minibatch were prefetched at once, its
first samples would leave the cache before they are read.
"""
_GOLDEN = 0.6180339887498949  # the fractional parts of its multiples are spread evenly, for any number of them


class Memory(NamedTuple):
    """A memory of at most M samples of one player's regrets or strategies, for at most A actions.

    infoset  [M] int32     number of the infoset in the player's own list
    weight   [M] float     weight in the loss
    value    [M, A] float  regrets in chips, or probabilities
    """

    infoset: npt.NDArray[np.int32]
    weight: npt.NDArray[np.floating]
    value: npt.NDArray[np.floating]


class MergedSamples(NamedTuple):
    """Samples merged by infoset: I infosets of the player, A actions.

    Of `row`, `weight` and `total` only the first n entries are used.  n is the number of infosets found, which `merge`
    (as first result) and `merge_some` return.

    row     [I] int64       numbers of the infosets, in the order found
    weight  [I] float64     sum of the weights of infoset row[k], at index k
    total   [I, A] float64  sum of weight times value of infoset row[k], at index k
    place   [I] int64       scratch: the index k of each infoset; -1 between calls
    """

    row: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]
    total: npt.NDArray[np.float64]
    place: npt.NDArray[np.int64]


class SampleOrder:
    """Order in which minibatches take a memory's samples: a walk with steps of a fixed size."""

    def __init__(self, samples: int, start: int) -> None:
        """Prepare an order of samples 0 to `samples`-1; the first is `start` modulo `samples`."""
        self._held, self._at, self._stride = samples, start % samples, max(1, int(samples * _GOLDEN))
        while gcd(self._stride, samples) != 1:
            self._stride += 1

    def take(self, count: int) -> npt.NDArray[np.int64]:
        """Return [count] int64 the numbers of the next samples; after the last sample the order starts again."""
        numbers = (self._at + self._stride * np.arange(count)) % self._held
        self._at = (self._at + self._stride * count) % self._held
        return numbers


def new_merged(infosets: int, width: int) -> MergedSamples:
    """Return empty arrays for merged samples of `infosets` infosets, with at most `width` actions."""
    row, place = np.zeros(infosets, np.int64), np.full(infosets, -1)
    return MergedSamples(row, np.zeros(infosets), np.zeros((infosets, width)), place)


@njit
def reservoir_index(word, number):
    """Return the random index, 0 to `number`, at which a full reservoir stores an item.

    The caller drops the item if the index is not below the reservoir's size.

    word    uint64 random number of the reservoir
    number  number of the item, from 0, in the order in which items are offered
    """
    draw = random_at(word, np.uint64(number)) >> np.uint64(11)
    return np.int64(np.float64(draw) * _UNIT * np.float64(number + 1))


@njit
def _fill_places(word, offered, room, places):
    """Fill places [n] int64 with the indices at which a reservoir stores n new items, in place.

    word     uint64 random number of the reservoir
    offered  number of items offered before
    room     size of the reservoir; items with an index of `room` or above are dropped
    """
    for k in range(places.shape[0]):
        number = offered + k
        places[k] = number if number < room else reservoir_index(word, number)


def insert(memory: Sequence[Array], samples: Sequence[Array], offered: int, seed: int, number: int) -> int:
    """Offer n samples to a memory of M, in place; return the total number offered so far.

    All are stored while there is space; then each replaces a random sample or is dropped (reservoir sampling).

    memory   the memory's arrays, [M, ...] each, such as infoset, weight and value
    samples  the same arrays [n, ...] of the new samples
    offered  number of samples offered before
    seed     seed of the run
    number   number of the memory's random stream
    """
    room, places = len(memory[0]), np.zeros(len(samples[0]), np.int64)
    _fill_places(new_stream(seed, number, RESERVOIR)[0], offered, room, places)
    stored = np.flatnonzero(places < room)
    for column, added in zip(memory, samples, strict=True):
        column[places[stored]] = added[stored]  # if several have the same place, the last one stays
    return offered + len(places)


@inline_njit
def _add_sample(memory, sample, merged, infosets):
    """Add a sample to the sums of its infoset; return the number of infosets found so far.

    memory    Memory
    sample    index of the sample in the memory
    merged    MergedSamples, changed in place
    infosets  number of infosets found before
    """
    infoset = np.int64(memory.infoset[sample])
    at = merged.place[infoset]
    if at < 0:
        at = infosets
        infosets += 1
        merged.place[infoset], merged.row[at], merged.weight[at] = at, infoset, 0.0
        for k in range(memory.value.shape[1]):
            merged.total[at, k] = 0.0
    weight = np.float64(memory.weight[sample])
    merged.weight[at] += weight
    for k in range(memory.value.shape[1]):
        merged.total[at, k] += weight * memory.value[sample, k]
    return infosets


@njit
def merge(memory, samples, merged):
    """Sum up the first `samples` samples of a memory by infoset, into `merged` (MergedSamples).

    Returns (number of infosets found, sum of the weights, sum of weight times the squares of a sample's values).
    """
    infosets, weights, squares = 0, 0.0, 0.0
    for sample in range(samples):
        infosets = _add_sample(memory, sample, merged, infosets)
        weight = np.float64(memory.weight[sample])
        weights += weight
        for k in range(memory.value.shape[1]):
            squares += weight * np.float64(memory.value[sample, k]) ** 2
    for at in range(infosets):
        merged.place[merged.row[at]] = -1
    return infosets, weights, squares


@njit
def merge_some(memory, numbers, merged):
    """Sum up some samples of a memory by infoset, into `merged`; return the number of infosets.

    numbers  [K] indices of the samples in the memory
    merged   MergedSamples, overwritten with the sums
    """
    infosets, width, count = 0, memory.value.shape[1], len(numbers)
    for k in range(count + AHEAD):
        if k < count:
            prefetch_to_read(memory.infoset, numbers[k])
            prefetch_to_read(memory.weight, numbers[k])
            prefetch_to_read(memory.value, numbers[k] * width)
        if k >= AHEAD:
            infosets = _add_sample(memory, numbers[k - AHEAD], merged, infosets)
    for at in range(infosets):
        merged.place[merged.row[at]] = -1
    return infosets


def squared_error(
    memory: Memory, samples: int, output: npt.NDArray[np.float64], merged: MergedSamples
) -> tuple[float, float]:
    """Return (weighted mean squared error of `output` over a memory, share of squares explained).

    The error of a sample is summed over actions, in squared units of its values (chips or probability).  The share is 1
    minus the squared error over the square of the values, both summed by weight.  Both results are 0 if no sample has
    weight.

    samples  number of samples in the memory
    output   [I, A] float64 prediction of a network or table at the player's infosets
    merged   scratch
    """
    infosets, weights, squares = merge(memory, samples, merged)
    if not weights:
        return 0.0, 0.0
    rows, weight, total = merged.row[:infosets], merged.weight[:infosets, None], merged.total[:infosets]
    guess = output[rows]
    error = squares - 2 * float((guess * total).sum()) + float((weight * guess**2).sum())
    return error / weights, 1 - error / squares if squares else 0.0


def means(memory: Memory, samples: int, merged: MergedSamples) -> npt.NDArray[np.float64]:
    """Return [I, A] float64 the weighted mean of each infoset's samples; 0 at infosets without samples.

    samples  number of samples in the memory
    merged   scratch
    """
    infosets, _, _ = merge(memory, samples, merged)
    table = np.zeros_like(merged.total)
    table[merged.row[:infosets]] = merged.total[:infosets] / merged.weight[:infosets, None]
    return table
