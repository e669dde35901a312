"""Value-based buckets (`features = "values"`): clusters hands by what they win under given policies.

A `ValueSource` gives D values for each slot of a board, [boards, slots, D].  They are projected on their principal
axes, which keep nearly all of the variance, and averaged over the isomorphic hands of a board.  On streets with many
boards k-means++ clusters a sample.  Every hand is then assigned to its nearest centre, with at most `_TOGETHER` boards
in memory.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from abstraction.buckets import bucket_dtype, unused
from abstraction.clustering.assign import nearest_centres
from abstraction.clustering.keeping import Keeper
from abstraction.clustering.metric import L2
from abstraction.features import Share, StreetHands
from abstraction.kernels.parallel import run_ranges

DIMENSIONS = 24
"""Maximum number of principal axes."""
SAMPLE = 1_000_000
"""Sampled hands on streets with more slots than `WHOLE`."""
WHOLE = 1 << 22
_AT_A_TIME, _TOGETHER, _FITTED = 16, 512, 64  # boards computed by a thread, assigned together, and used to fit the axes


class ValueSource(Protocol):
    """Computes D values of each hand."""

    identity: str
    """identifies what the values are computed from"""

    def __call__(self, street: str, boards: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the values [n, slots, D] of boards [n], given by number, of a street."""

    def check(self, streets: Sequence[str]) -> None:
        """Raise `ValueError` if the values of hands on these streets cannot be computed."""


class Alike(Protocol):
    """The function of a deck that gives suit-isomorphism classes, `abstraction.deck.Deck.alike`."""

    def __call__(self, street: str, boards: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the class of each hand up to a permutation of suits, [n, slots]; −1 marks a shared card."""


class Described(NamedTuple):
    """The hands of n boards as weighted points.

    points   [N, d] points of the suit-isomorphism classes
    weights  [N] dealt hands of each class
    numbers  [n, slots] class of each slot, N for a shared card
    """

    points: NDArray[np.float32]
    weights: NDArray[Any]
    numbers: NDArray[np.int64]


class ValuePoints:
    """Computes points of a street's hands from their values, for clustering."""

    def __init__(self, source: ValueSource, alike: Alike, of: tuple[str, StreetHands], seed: int, workers: int) -> None:
        """`of` is the name of the street and its hands.  Axes are fitted on boards that `seed` draws."""
        self._source, self._alike, (self._name, self.hands), self.workers = source, alike, of, workers
        count = self.hands.boards
        self._times = self.hands.times(0, count)
        self._drawn = np.random.default_rng((seed, 3)).permutation(count)
        self.whole = count * self.hands.slots <= WHOLE
        fitted = np.sort(self._drawn[:_FITTED])
        rows, used = np.concatenate(list(self._rows(fitted, None))), alike(self._name, fitted) >= 0
        values = rows[used].astype(np.float64)
        self._mean = values.mean(axis=0)
        values -= self._mean
        size, axes = np.linalg.eigh(values.T @ values)
        self._axes = axes[:, ::-1][:, : min(DIMENSIONS, len(size))]
        self.kept = float(size[::-1][:DIMENSIONS].sum() / size.sum()) if size.sum() > 0 else 1.0
        self.towards = self._axes.sum(axis=0)
        """[d] direction in which the sum of all values increases"""

    def _rows(self, boards: NDArray[np.int64], axes: NDArray[np.float64] | None) -> Iterator[NDArray[np.float32]]:
        def rows(first: int, last: int) -> NDArray[np.float32]:
            found = self._source(self._name, boards[first:last])
            return found if axes is None else ((found - self._mean) @ axes).astype(np.float32)

        return run_ranges(rows, 0, len(boards), _AT_A_TIME, self.workers)

    def sample(self, hands: int) -> NDArray[np.int64]:
        """Return the numbers, ascending, of drawn boards with about `hands` hands in all; 0 takes all boards."""
        each = max(1, int((self._alike(self._name, self._drawn[:1]) >= 0).sum()))
        return np.sort(self._drawn[: -(-hands // each)] if hands else self._drawn)

    def describe(self, boards: NDArray[np.int64], share: Share | None = None) -> Described:
        """Return the hands of some boards as points."""
        numbers, parts = self._alike(self._name, boards), []
        for part in self._rows(boards, self._axes):
            parts.append(part)
            if share is not None:
                share(len(parts) * _AT_A_TIME / len(boards))
        used = numbers >= 0
        rows, (known, inverse) = np.concatenate(parts)[used], np.unique(numbers[used], return_inverse=True)
        count = np.bincount(inverse)
        times = np.broadcast_to(self._times[boards][:, None], used.shape)[used]
        points = [np.bincount(inverse, column) / count for column in rows.T]
        found = np.full(numbers.shape, len(known))
        found[used] = inverse
        return Described(np.stack(points, axis=1).astype(np.float32), np.bincount(inverse, times), found)


def assign(
    points: ValuePoints, described: Described | None, centres: NDArray[np.float32], keeper: Keeper, share: Share
) -> NDArray[Any]:
    """Return the nearest centre of every hand, [boards, slots].

    `described` has the points of all hands on streets with few boards; None computes them board by board.  Assignments
    are saved at intervals and resumed.
    """
    street, dtype = points.hands, bucket_dtype(len(centres))
    bucket, first = np.empty((street.boards, street.slots), dtype), 0
    if (kept := keeper.resume("assignment")) is not None:
        first = len(kept["bucket"])
        bucket[:first] = kept["bucket"]
    step = street.boards if described is not None else _TOGETHER
    for start in range(first, street.boards, step):
        stop = min(start + step, street.boards)
        found = described or points.describe(np.arange(start, stop))
        labels = nearest_centres(found.points, centres, L2, points.workers).labels
        bucket[start:stop] = np.append(labels.astype(dtype), dtype.type(unused(dtype)))[found.numbers]
        done = bucket[:stop]
        keeper.keep("assignment", partial(dict, bucket=done))
        share(stop / street.boards)
    return bucket
