"""How the hands of a street are described, and all of its distinct descriptions with the hands that have them.

`collect` goes over every hole-card slot of every canonical board, in ranges shared out among threads, and merges equal
descriptions exactly, each weighing as many dealt hands as have it: of the turn's 18.5 million slots 1.3 million
histograms of 50 bins remain, of the river's 145 million slots 19 million vectors of equities against 8 clusters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.boards import BOARD_COUNTS, STREET_CARDS, board_classes, preflop_classes, used_slots
from abstraction.cards import COMBO_COUNT
from abstraction.clustering.emd import cdf
from abstraction.clustering.points import PointSet, distinct_points
from abstraction.histograms import COUNT_DTYPES, equity_histograms
from abstraction.ochs import ochs_features, opponent_clusters
from abstraction.parallel import run_ranges
from abstraction.strength import RUNOUTS, STRENGTH_LIMIT, preflop_strengths, river_strengths, runout_sums

HAND_CLASSES = {3: 1_286_792, 4: 13_960_050, 5: 123_156_254}
"""Classes of hands with an unordered board, by its number of cards: no street has more distinct descriptions."""
BOARDS_AT_A_TIME = {3: 32, 4: 128, 5: 512}
"""Boards that one thread describes at a time."""

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

    cards: int
    """on the board"""
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

    return Features(cards, bins, np.dtype(COUNT_DTYPES[cards]), rows, cdf, lambda c: -c.sum(axis=1, dtype=np.float64))


def ochs_of_river(strengths: Strengths, clusters: int, seed: int) -> Features:
    """Equities against clusters of opponent hands."""
    counts = preflop_strengths(river=strengths.river, workers=strengths.workers)
    cluster_of = opponent_clusters(counts, clusters, seed)

    def rows(first: int, last: int) -> NDArray[np.float32]:
        return ochs_features(cluster_of, first, last)

    return Features(
        5, clusters, np.dtype(np.float32), rows, np.ascontiguousarray, lambda c: c.sum(axis=1, dtype=np.float64)
    )


@dataclass(frozen=True)
class Hands:
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


def collect(features: Features, workers: int, parents: Rows | None = None, share: Share | None = None) -> Hands:
    """Describe all hands of a street; `parents` gives [boards, 1326] of the bucket that each slot's must lie in.

    Points are numbered by first appearance in the order of boards, whatever the number of workers.
    """
    cards, count = features.cards, BOARD_COUNTS[features.cards]
    classes = board_classes(cards)
    rows_of, columns = _with_parents(features, parents)
    found = PointSet(HAND_CLASSES[cards], columns, features.dtype)
    numbers = np.full((count, COMBO_COUNT), -1, np.int32)

    def describe(first: int, last: int) -> tuple[int, int, NDArray[np.bool_], Any]:
        used = used_slots(classes.boards[first:last])
        hands = np.repeat(classes.multiplicity[first:last], used.sum(axis=1))
        return first, last, used, distinct_points(rows_of(first, last)[used], hands)

    for first, last, used, part in run_ranges(describe, 0, count, BOARDS_AT_A_TIME[cards], workers):
        numbers[first:last][used] = found.add(part.points, part.weights)[part.inverse]
        if share is not None:
            share(last / count)
    rows, hands = found.finish()
    inside = None
    if parents is not None:
        inside = np.ascontiguousarray(rows[:, features.dimensions :]).view("<u4")[:, 0].astype(np.int32)
        rows = rows[:, : features.dimensions]
    return Hands(features.points(rows), hands.astype(np.float64), inside, numbers)


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
