"""Features of a street's hands, and the distinct feature rows with the hands that have them.

A table of a street has a row for each board and a *slot* for each combination of hole cards.  `collect` computes the
features of every slot of every board and merges equal feature rows exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.boards import BOARD_COUNTS, PREFLOP_CLASSES, board_classes, used_slots
from abstraction.cards import COMBO_COUNT
from abstraction.clustering.points import PointSet, distinct_points
from abstraction.kernels.parallel import run_ranges
from abstraction.small_deck_hands import DeckListing
from abstraction.strength import RUNOUTS, STRENGTH_LIMIT

HAND_CLASSES = {0: PREFLOP_CLASSES, 3: 1_286_792, 4: 13_960_050, 5: 123_156_254}
"""Suit-isomorphism classes of hands with an unordered board, by its number of cards."""
BOARDS_AT_A_TIME = {0: 1, 3: 32, 4: 128, 5: 512}
"""Boards whose features one thread computes in one call."""

Share = Callable[[float], None]
"""Called with the completed share of a task, 0 to 1."""
Rows = Callable[[int, int], NDArray[Any]]
"""Returns rows [boards, slots, ...] of boards [first, last).  Rows of unused slots have no meaning."""


@dataclass(frozen=True)
class StreetHands:
    """Boards and hands of a street, the axes [boards, slots] of its tables; a slot is one hand."""

    boards: int
    """number of rows"""
    slots: int
    """slots of a row"""
    at_a_time: int
    """boards whose features one thread computes in one call"""
    most: int
    """upper bound on the number of distinct feature rows"""
    largest: float
    """strength of a hand that always wins, summed over its run-outs; a summed strength divided by it is an equity"""
    used: Rows
    """[boards, slots] bool: hand and board share no card"""
    times: Rows
    """[boards] int64: the number of dealt boards that each row represents"""


def _one_each(first: int, last: int) -> NDArray[np.int64]:
    return np.ones(last - first, np.int64)


def standard_hands(cards: int) -> StreetHands:
    """Return the `StreetHands` of hold'em: the numbers of canonical boards and of hands.

    cards  number of cards on the board: 0, 3, 4 or 5
    """
    numbers = COMBO_COUNT, BOARDS_AT_A_TIME[cards], HAND_CLASSES[cards], float(STRENGTH_LIMIT * RUNOUTS[cards])
    if not cards:
        return StreetHands(1, *numbers, lambda first, last: np.ones((last - first, COMBO_COUNT), np.bool_), _one_each)
    boards, multiplicity, _ = board_classes(cards)
    return StreetHands(
        BOARD_COUNTS[cards],
        *numbers,
        lambda first, last: used_slots(boards[first:last]),
        lambda first, last: multiplicity[first:last].astype(np.int64),
    )


def listed_hands(listing: DeckListing, street: int) -> StreetHands:
    """Return the `StreetHands` of a small deck's street: numbers of boards and hands.

    listing  the small deck
    street   number of the street, from 0
    """
    free = listing.free(street)
    largest = float(listing.most_strength * listing.run_outs(street))
    boards, slots = free.shape
    return StreetHands(boards, slots, 64, int(free.sum()), largest, lambda first, last: free[first:last], _one_each)


@dataclass(frozen=True)
class Features:
    """Features by which a street's hands are clustered, computed for a range of boards at a time.

    hands  numbers of the street's boards and hands, and how many dealt boards each board represents
    rows   returns the D features of each hand, [last − first, hands, D], on boards [first, last)
    """

    hands: StreetHands
    rows: Rows
    points: Callable[[NDArray[Any]], NDArray[Any]]
    """converts distinct rows [N, D] to the points [N, D'] that are clustered, float32 for k-means"""
    strength_of_centre: Callable[[NDArray[np.float32]], NDArray[np.float64]]
    """returns [k] a number that increases with the strength of a centre; buckets are numbered by it, weakest first"""


def total(centres: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return [k] the sum of each row of `centres` [k, D], which orders buckets by strength."""
    return centres.sum(axis=1, dtype=np.float64)


@dataclass(frozen=True)
class HandPoints:
    """Result of `collect`: a street's N distinct points (features), and the point of each hand."""

    points: NDArray[Any]
    """[N, D] points, distinct within a parent"""
    weights: NDArray[np.float64]
    """[N] number of dealt hands with each point"""
    parents: NDArray[np.int32] | None
    """[N] parent of each point: a bucket of the street before or a cluster of boards; None without parents"""
    numbers: NDArray[np.int32]
    """[boards, slots] point of each slot; −1 if the slot shares a card with the board"""


def _with_parents(rows: Rows, parents: Rows) -> Rows:
    """Return a function like `rows` that appends the number of each hand's parent to the hand's features.

    parents  returns the number of each hand's parent: of a bucket of the street before, or of a cluster of boards

    Equal features of hands with different parents then differ.  Additional columns of the rows' dtype hold the bytes of
    the number.
    """

    def joined(first: int, last: int) -> NDArray[Any]:
        plain = rows(first, last)
        number = np.ascontiguousarray(parents(first, last), f"<u{max(4, plain.itemsize)}")[..., None]
        return np.concatenate([plain, number.view(f"<u{plain.itemsize}").view(plain.dtype)], axis=2)

    return joined


def collect(features: Features, workers: int, parents: Rows | None = None, share: Share | None = None) -> HandPoints:
    """Compute the features of all hands of a street and merge equal feature rows into one point.

    features  computes the features of a range of boards
    workers   number of threads
    parents   gives the parent of each hand, a bucket of the street before or a cluster of boards; points of different
              parents are not merged
    share     called with the completed share of the work, 0 to 1

    Points are numbered by first appearance.
    """
    street, count = features.hands, features.hands.boards
    rows_of = features.rows if parents is None else _with_parents(features.rows, parents)
    numbers = np.full((count, street.slots), -1, np.int32)
    point_set: PointSet | None = None

    def describe(first: int, last: int) -> tuple[int, int, NDArray[np.bool_], Any]:
        used = street.used(first, last)
        hands = np.repeat(street.times(first, last), used.sum(axis=1))
        return first, last, used, distinct_points(rows_of(first, last)[used], hands)

    for first, last, used, part in run_ranges(describe, 0, count, street.at_a_time, workers):
        point_set = point_set or PointSet(street.most, part.points.shape[1], part.points.dtype)
        numbers[first:last][used] = point_set.add(part.points, part.weights)[part.inverse]
        if share is not None:
            share(last / count)
    assert point_set is not None  # a street has a board
    rows, hands = point_set.finish()
    inside = None
    if parents is not None:
        dimensions = rows.shape[1] - max(1, 4 // rows.itemsize)
        inside = np.ascontiguousarray(rows[:, dimensions:]).view(f"<u{max(4, rows.itemsize)}")[:, 0].astype(np.int32)
        rows = rows[:, :dimensions]
    return HandPoints(features.points(rows), hands.astype(np.float64), inside, numbers)
