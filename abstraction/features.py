"""How the hands of a street are described, and all of its distinct descriptions with the hands that have them.

`collect` goes over every hole-card slot of every canonical board, in ranges shared out among threads, and merges equal
descriptions exactly, each weighing as many dealt hands as have it: of the turn's 18.5 million slots 1.3 million
histograms of 50 bins remain, of the river's 145 million slots 19 million vectors of equities against 8 clusters.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.boards import (
    BOARD_COUNTS,
    PREFLOP_CLASSES,
    STREET_CARDS,
    board_classes,
    preflop_classes,
    used_slots,
)
from abstraction.cards import COMBO_COUNT
from abstraction.clustering.emd import cdf
from abstraction.clustering.points import PointSet, distinct_points
from abstraction.histograms import COUNT_DTYPES, equity_histograms
from abstraction.kernels.parallel import run_ranges
from abstraction.listing import DeckListing
from abstraction.ochs import ochs_features, opponent_clusters
from abstraction.strength import RUNOUTS, STRENGTH_LIMIT, preflop_strengths, river_strengths, runout_sums

HAND_CLASSES = {3: 1_286_792, 4: 13_960_050, 5: 123_156_254}
"""Classes of hands with an unordered board, by its number of cards: no street has more distinct descriptions."""
BOARDS_AT_A_TIME = {3: 32, 4: 128, 5: 512}
"""Boards that one thread describes at a time."""


class StreetHands(ABC):
    """All hands of a street: a row for each board, a slot for each pair of hole cards."""

    slots: int
    """of a row"""
    at_a_time: int
    """boards that one thread describes"""

    @property
    @abstractmethod
    def boards(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def most(self) -> int:
        """No street has more distinct descriptions than this."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """Sum of strengths of a hand that always wins: sums over it are equities."""

    @abstractmethod
    def used(self, first: int, last: int) -> NDArray[np.bool_]:
        """[last - first, slots] whether hand and board share no card, of boards [first, last)."""

    @abstractmethod
    def times(self, first: int, last: int) -> NDArray[np.int64]:
        """[last - first] boards dealt that each row stands for."""


class StandardStreet(StreetHands):
    """A street after the preflop with the deck of 52: canonical boards."""

    slots = COMBO_COUNT

    def __init__(self, cards: int) -> None:
        """`cards` on the board: 3, 4 or 5."""
        self._cards, self.at_a_time = cards, BOARDS_AT_A_TIME[cards]

    @property
    def boards(self) -> int:
        """As `StreetHands.boards`."""
        return BOARD_COUNTS[self._cards]

    @property
    def most(self) -> int:
        """As `StreetHands.most`."""
        return HAND_CLASSES[self._cards]

    @property
    def largest(self) -> float:
        """As `StreetHands.largest`."""
        return float(STRENGTH_LIMIT * RUNOUTS[self._cards])

    def used(self, first: int, last: int) -> NDArray[np.bool_]:
        """As `StreetHands.used`."""
        return used_slots(board_classes(self._cards).boards[first:last])

    def times(self, first: int, last: int) -> NDArray[np.int64]:
        """As `StreetHands.times`."""
        return board_classes(self._cards).multiplicity[first:last].astype(np.int64)


class StandardPreflop(StreetHands):
    """The preflop with the deck of 52: one row."""

    slots, at_a_time, boards, most = COMBO_COUNT, 1, 1, PREFLOP_CLASSES
    largest = float(STRENGTH_LIMIT * RUNOUTS[0])

    def used(self, first: int, last: int) -> NDArray[np.bool_]:
        """As `StreetHands.used`."""
        return np.ones((last - first, COMBO_COUNT), np.bool_)

    def times(self, first: int, last: int) -> NDArray[np.int64]:
        """As `StreetHands.times`."""
        return np.ones(last - first, np.int64)


class ListedStreet(StreetHands):
    """A street of a small deck: listed boards, in order of dealing."""

    at_a_time = 64

    def __init__(self, listing: DeckListing, street: int) -> None:
        self._free = listing.free(street)
        self._largest = float(listing.most_strength * listing.run_outs(street))
        self.slots = self._free.shape[1]

    @property
    def boards(self) -> int:
        """As `StreetHands.boards`."""
        return len(self._free)

    @property
    def most(self) -> int:
        """As `StreetHands.most`."""
        return int(self._free.sum())

    @property
    def largest(self) -> float:
        """As `StreetHands.largest`."""
        return self._largest

    def used(self, first: int, last: int) -> NDArray[np.bool_]:
        """As `StreetHands.used`."""
        return self._free[first:last]

    def times(self, first: int, last: int) -> NDArray[np.int64]:
        """As `StreetHands.times`."""
        return np.ones(last - first, np.int64)


Share = Callable[[float], None]
"""Called with the share of something that is done, 0 to 1."""
Rows = Callable[[int, int], NDArray[Any]]
"""Rows [boards, 1326, D] of canonical boards [first, last); those of slots that are not used do not matter."""


class Strengths:
    """Exact strengths that several stages need, computed once."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    @cached_property
    def river(self) -> NDArray[np.uint16]:
        """[134459, 1326] as `river_strengths`."""
        return river_strengths(workers=self.workers)

    def sums(self, cards: int) -> NDArray[Any]:
        """[boards, 1326] strength of each slot, summed over its run-outs; of boards of 3, 4 or 5 cards."""
        return self.river if cards == 5 else runout_sums(self.river, cards, workers=self.workers)[0]


@dataclass(frozen=True)
class Features:
    """A description of a street's hands."""

    hands: StreetHands
    """that are described"""
    dimensions: int
    """D of the rows"""
    dtype: np.dtype[Any]
    """of the rows"""
    rows: Rows
    points: Callable[[NDArray[Any]], NDArray[np.float32]]
    """float32 points [N, D'] of distinct rows [N, D]"""
    strength_of_centre: Callable[[NDArray[np.float32]], NDArray[np.float64]]
    """[k] something that rises with strength: buckets are numbered weakest first"""


def histogram_features(strengths: Strengths, street: str, bins: int) -> Features:
    """Equity histograms; points are cumulative distributions."""
    cards, river = STREET_CARDS[street], strengths.river

    def rows(first: int, last: int) -> NDArray[Any]:
        return equity_histograms(river, cards, first, last, bins=bins)

    return Features(
        StandardStreet(cards),
        bins,
        np.dtype(COUNT_DTYPES[cards]),
        rows,
        cdf,
        lambda c: -c.sum(axis=1, dtype=np.float64),
    )


def ochs_of_river(strengths: Strengths, clusters: int, seed: int) -> Features:
    """Equities against clusters of opponent hands."""
    counts = preflop_strengths(river=strengths.river, workers=strengths.workers)
    cluster_of = opponent_clusters(counts, clusters, seed)

    def rows(first: int, last: int) -> NDArray[np.float32]:
        return ochs_features(cluster_of, first, last)

    return Features(
        StandardStreet(5),
        clusters,
        np.dtype(np.float32),
        rows,
        np.ascontiguousarray,
        lambda c: c.sum(axis=1, dtype=np.float64),
    )


@dataclass(frozen=True)
class HandPoints:
    """All hands of a street by their distinct points."""

    points: NDArray[np.float32]
    """[N, D] distinct within a parent"""
    weights: NDArray[np.float64]
    """[N] dealt hands that have each"""
    parents: NDArray[np.int32] | None
    """[N] bucket that each lies in, where buckets are nested"""
    numbers: NDArray[np.int32]
    """[boards, 1326] point of each slot; −1 where the slot shares a card with the board"""


def _with_parents(features: Features, parents: Rows | None) -> tuple[Rows, int]:
    """Rows with the parent's number in further columns, and their number of columns."""
    if parents is None:
        return features.rows, features.dimensions
    bytes_each = features.dtype.itemsize
    extra = max(1, 4 // bytes_each)

    def rows(first: int, last: int) -> NDArray[Any]:
        plain = features.rows(first, last)
        number = np.ascontiguousarray(parents(first, last), dtype="<u4")[..., None]
        return np.concatenate([plain, number.view(f"<u{bytes_each}").view(features.dtype)], axis=2)

    return rows, features.dimensions + extra


def collect(features: Features, workers: int, parents: Rows | None = None, share: Share | None = None) -> HandPoints:
    """Describe all hands of a street; `parents` gives [boards, 1326] of the bucket that each slot's must lie in.

    Points are numbered by first appearance in the order of boards, whatever the number of workers.
    """
    street, count = features.hands, features.hands.boards
    rows_of, columns = _with_parents(features, parents)
    found = PointSet(street.most, columns, features.dtype)
    numbers = np.full((count, street.slots), -1, np.int32)

    def describe(first: int, last: int) -> tuple[int, int, NDArray[np.bool_], Any]:
        used = street.used(first, last)
        hands = np.repeat(street.times(first, last), used.sum(axis=1))
        return first, last, used, distinct_points(rows_of(first, last)[used], hands)

    for first, last, used, part in run_ranges(describe, 0, count, street.at_a_time, workers):
        numbers[first:last][used] = found.add(part.points, part.weights)[part.inverse]
        if share is not None:
            share(last / count)
    rows, hands = found.finish()
    inside = None
    if parents is not None:
        inside = np.ascontiguousarray(rows[:, features.dimensions :]).view("<u4")[:, 0].astype(np.int32)
        rows = rows[:, : features.dimensions]
    return HandPoints(features.points(rows), hands.astype(np.float64), inside, numbers)


# -- what buckets may be nested in -----------------------------------------------------------------------------------


def preflop_parents(first: int, last: int) -> NDArray[np.int16]:
    """[boards, 1326] preflop class of each slot."""
    return np.broadcast_to(preflop_classes(), (last - first, COMBO_COUNT))


def board_features(strengths: Strengths, cards: int) -> NDArray[np.float32]:
    """What describes a canonical board: [boards, 169] mean strength of each class of hole cards on it, 0 to 1.

    A class without a combination that avoids the board has ½.  It tells which hands the board helps: high boards,
    paired ones and those of one suit lie apart.
    """
    classes, boards = preflop_classes().astype(np.int64), board_classes(cards).boards
    sums = strengths.sums(cards)
    largest = float(STRENGTH_LIMIT * RUNOUTS[cards])
    result = np.empty((len(boards), int(classes.max()) + 1), np.float32)
    member = np.zeros((COMBO_COUNT, result.shape[1]))
    member[np.arange(COMBO_COUNT), classes] = 1
    for first in range(0, len(boards), 1024):
        used = used_slots(boards[first : first + 1024])
        total = np.where(used, sums[first : first + 1024], 0).astype(np.float64) @ member
        hands = used.astype(np.float64) @ member
        result[first : first + 1024] = np.where(hands > 0, total / (np.maximum(hands, 1) * largest), 0.5)
    return result
