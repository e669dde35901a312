"""Buckets of hands that are worth alike (`features = "values"`): k-means++ of what policies make of every hand.

What a hand is worth comes from outside, [boards, slots, D]: D numbers for each slot of a board.  Of them are taken the
principal axes, which keep nearly all of their variance, and the mean over the hands of a board that a renaming of suits
makes alike.  Where there are many boards the centres are those of a sample, and every hand of every board is
assigned to its nearest, board by board, so that no more than `_TOGETHER` boards are ever described in memory.
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
"""Principal axes that are kept, at most."""
SAMPLE = 1_000_000
"""Hands whose centres are found, of streets with more slots than `WHOLE`."""
WHOLE = 1 << 22
_AT_A_TIME, _TOGETHER, _FITTED = 16, 512, 64  # boards: walked by a thread, assigned together, that axes are found on


class ValueSource(Protocol):
    """What hands are worth; D numbers each."""

    identity: str
    """of what it is made"""

    def __call__(self, street: str, boards: NDArray[np.int64]) -> NDArray[np.float32]:
        """[n, slots, D] of boards [n] of a street, by their numbers."""

    def check(self, streets: Sequence[str]) -> None:
        """Raise `ValueError` where it cannot tell what hands of these streets are worth."""


class Alike(Protocol):
    """What is asked of a deck."""

    def __call__(self, street: str, boards: NDArray[np.int64]) -> NDArray[np.int64]:
        """[n, slots] class of each hand up to a renaming of suits; -1: hand and board share a card."""


class Described(NamedTuple):
    """The hands of some boards: points [N, d] of their classes, how many dealt hands each has, and the class of each
    slot [n, slots], N where there is no hand."""

    points: NDArray[np.float32]
    weights: NDArray[Any]
    numbers: NDArray[np.int64]


class ValuePoints:
    """Points of a street's hands."""

    def __init__(self, source: ValueSource, alike: Alike, of: tuple[str, StreetHands], seed: int, workers: int) -> None:
        """`of` is the street, its name and its hands; axes are found on boards that the seed draws."""
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
        """[d] the direction in which the sum of all values grows"""

    def _rows(self, boards: NDArray[np.int64], axes: NDArray[np.float64] | None) -> Iterator[NDArray[np.float32]]:
        def rows(first: int, last: int) -> NDArray[np.float32]:
            found = self._source(self._name, boards[first:last])
            return found if axes is None else ((found - self._mean) @ axes).astype(np.float32)

        return run_ranges(rows, 0, len(boards), _AT_A_TIME, self.workers)

    def sample(self, hands: int) -> NDArray[np.int64]:
        """Numbers, ascending, of boards drawn with about so many hands, 0: all."""
        each = max(1, int((self._alike(self._name, self._drawn[:1]) >= 0).sum()))
        return np.sort(self._drawn[: -(-hands // each)] if hands else self._drawn)

    def describe(self, boards: NDArray[np.int64], share: Share | None = None) -> Described:
        """The hands of some boards."""
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
    """[boards, slots] nearest centre of every hand; `described` has all of them where there are few.

    What is done is kept on the way.
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
