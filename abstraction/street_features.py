"""Features of a street's hands, and the distinct feature rows with the hands that have them.

`collect` computes the features of every hole-card slot of every canonical board and merges equal rows exactly.
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
from abstraction.ochs import ochs_features, opponent_clusters
from abstraction.small_deck_hands import DeckListing
from abstraction.strength import RUNOUTS, STRENGTH_LIMIT, preflop_strengths, river_strengths, runout_sums

HAND_CLASSES = {3: 1_286_792, 4: 13_960_050, 5: 123_156_254}
"""Suit-isomorphism classes of hands with an unordered board, by its number of cards."""
BOARDS_AT_A_TIME = {3: 32, 4: 128, 5: 512}
"""Boards whose features one thread computes in one call."""


class StreetHands(ABC):
    """All hands of a street: one row for each board, one slot for each hole-card combination."""

    slots: int
    """slots of a row"""
    at_a_time: int
    """boards whose features one thread computes in one call"""

    @property
    @abstractmethod
    def boards(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def most(self) -> int:
        """Upper bound on the number of distinct feature rows."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """Summed strength of a hand that always wins, the divisor that makes an equity."""

    @abstractmethod
    def used(self, first: int, last: int) -> NDArray[np.bool_]:
        """Return [last − first, slots] bool for boards [first, last): hand and board share no card."""

    @abstractmethod
    def times(self, first: int, last: int) -> NDArray[np.int64]:
        """Return [last − first]: the number of dealt boards that each row represents."""


class StandardStreet(StreetHands):
    """The flop, turn or river of the 52-card deck, on canonical boards."""

    slots = COMBO_COUNT

    def __init__(self, cards: int) -> None:
        """`cards` is the number of board cards, 3, 4 or 5."""
        self._cards, self.at_a_time = cards, BOARDS_AT_A_TIME[cards]

    @property
    def boards(self) -> int:
        """Number of canonical boards."""
        return BOARD_COUNTS[self._cards]

    @property
    def most(self) -> int:
        """Number of suit-isomorphism classes of hands."""
        return HAND_CLASSES[self._cards]

    @property
    def largest(self) -> float:
        """Summed strength of a hand that always wins."""
        return float(STRENGTH_LIMIT * RUNOUTS[self._cards])

    def used(self, first: int, last: int) -> NDArray[np.bool_]:
        """Return [last − first, 1326] bool, false for a shared card."""
        return used_slots(board_classes(self._cards).boards[first:last])

    def times(self, first: int, last: int) -> NDArray[np.int64]:
        """Return [last − first]: the multiplicity of each canonical board."""
        return board_classes(self._cards).multiplicity[first:last].astype(np.int64)


class StandardPreflop(StreetHands):
    """The preflop of the 52-card deck: one row."""

    slots, at_a_time, boards, most = COMBO_COUNT, 1, 1, PREFLOP_CLASSES
    largest = float(STRENGTH_LIMIT * RUNOUTS[0])

    def used(self, first: int, last: int) -> NDArray[np.bool_]:
        """Return [last − first, 1326] True, because the board is empty."""
        return np.ones((last - first, COMBO_COUNT), np.bool_)

    def times(self, first: int, last: int) -> NDArray[np.int64]:
        """Return [last − first] ones: the only row is one board."""
        return np.ones(last - first, np.int64)


class ListedStreet(StreetHands):
    """A street of a small deck: listed boards in order of dealing."""

    at_a_time = 64

    def __init__(self, listing: DeckListing, street: int) -> None:
        self._free = listing.free(street)
        self._largest = float(listing.most_strength * listing.run_outs(street))
        self.slots = self._free.shape[1]

    @property
    def boards(self) -> int:
        """Number of listed boards."""
        return len(self._free)

    @property
    def most(self) -> int:
        """Number of pairs of hand and board."""
        return int(self._free.sum())

    @property
    def largest(self) -> float:
        """Summed strength of a hand that always wins."""
        return self._largest

    def used(self, first: int, last: int) -> NDArray[np.bool_]:
        """Return [last − first, hands] bool, false for a shared card."""
        return self._free[first:last]

    def times(self, first: int, last: int) -> NDArray[np.int64]:
        """Return [last − first] ones: each row is one board."""
        return np.ones(last - first, np.int64)


Share = Callable[[float], None]
"""Called with the completed share of a task, 0 to 1."""
Rows = Callable[[int, int], NDArray[Any]]
"""Returns rows [boards, slots, D] of boards [first, last).  Rows of unused slots have no meaning."""


class Strengths:
    """Exact strengths that several stages need, computed once."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    @cached_property
    def river(self) -> NDArray[np.uint16]:
        """[134459, 1326] uint16 river strengths, as `river_strengths`."""
        return river_strengths(workers=self.workers)

    def sums(self, cards: int) -> NDArray[Any]:
        """Return the strength of each slot summed over its run-outs, [boards, 1326].

        `cards` is the number of board cards, 3, 4 or 5.
        """
        return self.river if cards == 5 else runout_sums(self.river, cards, workers=self.workers)[0]


@dataclass(frozen=True)
class Features:
    """Features of a street's hands, and their conversion to points for clustering."""

    hands: StreetHands
    """the hands"""
    dimensions: int
    """D of the rows"""
    dtype: np.dtype[Any]
    """dtype of the rows"""
    rows: Rows
    points: Callable[[NDArray[Any]], NDArray[np.float32]]
    """converts distinct rows [N, D] to the points [N, D'] float32 that are clustered"""
    strength_of_centre: Callable[[NDArray[np.float32]], NDArray[np.float64]]
    """returns [k] a number that increases with the strength of a centre; buckets are numbered by it, weakest first"""


def histogram_features(strengths: Strengths, street: str, bins: int) -> Features:
    """Return equity-histogram features of the flop or turn.  Points are cumulative distributions."""
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
    """Return OCHS features of the river: equities against opponent clusters (`abstraction.ochs`)."""
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
    """[N, D] points, distinct within a parent"""
    weights: NDArray[np.float64]
    """[N] number of dealt hands with each point"""
    parents: NDArray[np.int32] | None
    """[N] parent bucket of each point; None without nesting"""
    numbers: NDArray[np.int32]
    """[boards, slots] point of each slot; −1 if the slot shares a card with the board"""


def _with_parents(features: Features, parents: Rows | None) -> tuple[Rows, int]:
    """Return rows with the parent's number in additional columns, and their number of columns."""
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
    """Compute the features of all hands of a street and merge equal rows.

    `parents` gives the parent bucket of each slot, [boards, slots].  Points are numbered by first appearance.
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


# -- parents of nested buckets ---------------------------------------------------------------------------------------


def preflop_parents(first: int, last: int) -> NDArray[np.int16]:
    """Return the preflop class of each slot, [boards, 1326]."""
    return np.broadcast_to(preflop_classes(), (last - first, COMBO_COUNT))


def board_features(strengths: Strengths, cards: int) -> NDArray[np.float32]:
    """Return the mean strength of each preflop class on each canonical board, [boards, 169] float32.

    Strengths are 0 to 1, or ½ for a class without a combination that avoids the board.  They tell high, paired and
    one-suit boards apart.
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
