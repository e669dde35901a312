"""Memories of samples: reservoirs of a fixed size (Vitter 1985, algorithm R), read as minibatches or as a whole.

Every sample that was ever offered is in the memory with the same chance, whatever its weight.  Which one it takes the
place of is a function of its number and the run's seed, so that a memory that is filled by several sessions is the same
as one that is filled at once.

A minibatch is taken by a walk over the memory (`SampleOrder`) whose neighbours lie far apart: no sample comes again
before all others have come, and any stretch of the walk is spread evenly over the memory, whose order is that of the
iterations.  So gradients of minibatches in a row make up for each other's errors, where independent draws only average
them out.

A loss of several samples of one infoset has the gradient of their weighted mean.  So samples of an infoset are *merged*
when they are read: their weights are added up, and their values times their weights.  It changes nothing but rounding.
"""

from collections.abc import Sequence
from math import gcd
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import inline_njit, njit
from abstraction.kernels.prefetch import prefetch_to_read
from mccfr.rng import RESERVOIR, new_stream, random_at

Array = npt.NDArray[Any]
_UNIT = 1.0 / 9007199254740992.0  # 2^-53
AHEAD = 32
"""Samples that are asked for before the first of them is read.  A memory is far larger than caches, so each would be
waited for; where all of a minibatch are asked for at once, the first are gone again when they are read."""
_GOLDEN = 0.6180339887498949  # multiples of it, less whole numbers, are spread evenly however many there are


class Memory(NamedTuple):
    """Samples of one player.  M of them at most, A actions.

    infoset  [M] int32       in the player's own list
    weight   [M] float       in the loss
    value    [M, A] float    regrets in chips, or probabilities
    """

    infoset: npt.NDArray[np.int32]
    weight: npt.NDArray[np.floating]
    value: npt.NDArray[np.floating]


class Merged(NamedTuple):
    """Samples, those of an infoset as one.  I infosets of the player, A actions.

    row     [I] int64       infosets in the order in which they were met, as many as `merge` or `merge_some` returns
    weight  [I] float64     sum of the weights, by place in `row`
    total   [I, A] float64  sum of weight times value
    place   [I] int64       scratch: where an infoset is in `row`; -1 outside of a call
    """

    row: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]
    total: npt.NDArray[np.float64]
    place: npt.NDArray[np.int64]


class SampleOrder:
    """Numbers of the samples that a memory holds, in the order in which minibatches take them."""

    def __init__(self, held: int, start: int) -> None:
        """`start`: any number; what the walk begins with follows from it."""
        self._held, self._at, self._stride = held, start % held, max(1, int(held * _GOLDEN))
        while gcd(self._stride, held) != 1:
            self._stride += 1

    def take(self, count: int) -> npt.NDArray[np.int64]:
        """[count] the next of them."""
        numbers = (self._at + self._stride * np.arange(count)) % self._held
        self._at = (self._at + self._stride * count) % self._held
        return numbers


def new_merged(infosets: int, width: int) -> Merged:
    """Room for the samples of a player's infosets."""
    row, place = np.zeros(infosets, np.int64), np.full(infosets, -1)
    return Merged(row, np.zeros(infosets), np.zeros((infosets, width)), place)


@njit
def reservoir_place(word, seen):
    """Where thing number `seen` (from 0) goes in a reservoir that is full; a place beyond its end is nowhere.

    word  uint64 random number of the reservoir
    """
    draw = random_at(word, np.uint64(seen)) >> np.uint64(11)
    return np.int64(np.float64(draw) * _UNIT * np.float64(seen + 1))


@njit
def _fill_places(word, offered, room, places):
    """Fill places [n] int64 with where the things after the first `offered` go, in place; as `reservoir_place`."""
    for k in range(places.shape[0]):
        seen = offered + k
        places[k] = seen if seen < room else reservoir_place(word, seen)


def insert(memory: Sequence[Array], samples: Sequence[Array], offered: int, seed: int, number: int) -> int:
    """Offer samples to a memory, in place; returns how many it has been offered by now.

    memory   its columns, [M, ...] each
    samples  the same columns of the samples, [n, ...]
    offered  samples before
    number   of the memory: each has a stream of its own
    """
    room, places = len(memory[0]), np.zeros(len(samples[0]), np.int64)
    _fill_places(new_stream(seed, number, RESERVOIR)[0], offered, room, places)
    kept = np.flatnonzero(places < room)
    for column, added in zip(memory, samples, strict=True):
        column[places[kept]] = added[kept]  # the last of those that go to one place stays
    return offered + len(places)


@inline_njit
def _add_sample(memory, sample, merged, found):
    """Add a sample to what is merged, in place; returns the number of infosets found."""
    infoset = np.int64(memory.infoset[sample])
    at = merged.place[infoset]
    if at < 0:
        at = found
        found += 1
        merged.place[infoset], merged.row[at], merged.weight[at] = at, infoset, 0.0
        for k in range(memory.value.shape[1]):
            merged.total[at, k] = 0.0
    weight = np.float64(memory.weight[sample])
    merged.weight[at] += weight
    for k in range(memory.value.shape[1]):
        merged.total[at, k] += weight * memory.value[sample, k]
    return found


@njit
def merge(memory, held, merged):
    """Merge the first `held` samples of a memory into `merged`, in place.

    Returns (infosets found, sum of the weights, sum of weight times squared values).
    """
    found, weights, squares = 0, 0.0, 0.0
    for sample in range(held):
        found = _add_sample(memory, sample, merged, found)
        weight = np.float64(memory.weight[sample])
        weights += weight
        for k in range(memory.value.shape[1]):
            squares += weight * np.float64(memory.value[sample, k]) ** 2
    for at in range(found):
        merged.place[merged.row[at]] = -1
    return found, weights, squares


@njit
def merge_some(memory, drawn, merged):
    """Merge the samples of numbers `drawn` [K] int64 into `merged`, in place; returns the number of infosets."""
    found, width, count = 0, memory.value.shape[1], len(drawn)
    for k in range(count + AHEAD):
        if k < count:
            prefetch_to_read(memory.infoset, drawn[k])
            prefetch_to_read(memory.weight, drawn[k])
            prefetch_to_read(memory.value, drawn[k] * width)
        if k >= AHEAD:
            found = _add_sample(memory, drawn[k - AHEAD], merged, found)
    for at in range(found):
        merged.place[merged.row[at]] = -1
    return found


def squared_error(memory: Memory, held: int, output: npt.NDArray[np.float64], merged: Merged) -> tuple[float, float]:
    """(weighted mean squared error of `output` [I, A] over a memory, share of the values' mean square it explains)."""
    found, weights, squares = merge(memory, held, merged)
    if not weights:
        return 0.0, 0.0
    rows, weight, total = merged.row[:found], merged.weight[:found, None], merged.total[:found]
    guess = output[rows]
    error = squares - 2 * float((guess * total).sum()) + float((weight * guess**2).sum())
    return error / weights, 1 - error / squares if squares else 0.0


def means(memory: Memory, held: int, merged: Merged) -> npt.NDArray[np.float64]:
    """[I, A] weighted mean of each infoset's samples, exact; 0 where there is none: a table in a network's place."""
    found, _, _ = merge(memory, held, merged)
    table = np.zeros_like(merged.total)
    table[merged.row[:found]] = merged.total[:found] / merged.weight[:found, None]
    return table
