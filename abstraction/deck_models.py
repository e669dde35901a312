"""The interface through which an abstraction build asks for strengths, features and classes of hands.

`StandardDeck` has 52 cards and canonical boards (`abstraction.boards`); `SmallDeck` (`abstraction.small_deck`) lists
all boards.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstraction.boards import STREET_CARDS, board_classes, canonical_boards, preflop_classes, used_slots
from abstraction.buckets import bucket_dtype, unused
from abstraction.cards import COMBO_COUNT, combo_table
from abstraction.clustering.kmeans import kmeans
from abstraction.next_street import NextStreet, potential_features
from abstraction.recall_buckets import Table
from abstraction.recipe import LOSSLESS_BUCKETS
from abstraction.street_features import (
    Features,
    Rows,
    Share,
    StandardPreflop,
    StandardStreet,
    StreetHands,
    Strengths,
    board_features,
    histogram_features,
    ochs_of_river,
    preflop_parents,
)
from abstraction.strength import preflop_strengths, runout_sums
from abstraction.suit_isomorphism import indexer


class EarlierStages(NamedTuple):
    """Results of other stages from which a stage is built.

    following  buckets of the next street, for potential-aware features
    before     [boards, slots] parent bucket of each hand, on the street before
    earlier    (table, history) of each earlier street, for perfect recall (`abstraction.recall_buckets`)
    """

    following: NextStreet | None = None
    before: NDArray[Any] | None = None
    earlier: Sequence[tuple[NDArray[Any], Table]] = ()


class Deck(ABC):
    """The cards of an abstraction.  Arrays are [boards, slots] of one street."""

    @abstractmethod
    def hands(self, street: str) -> StreetHands:
        """Return all hands of a street."""

    @abstractmethod
    def sums(self, street: str) -> NDArray[Any]:
        """Return the strength of each hand, summed over all run-outs to the last street."""

    @abstractmethod
    def squares(self, street: str) -> NDArray[Any]:
        """Return the squared strength of each hand, summed over run-outs, before the last street."""

    @abstractmethod
    def lossless(self, street: str, share: Share) -> tuple[int, NDArray[Any]]:
        """Return the number of suit-isomorphism classes of a street, and the class of each hand."""

    @abstractmethod
    def features(self, document: dict[str, Any], near: EarlierStages) -> Features:
        """Return the features `histogram`, `ochs` or `potential` of a street's hands."""

    @abstractmethod
    def parents(self, document: dict[str, Any], near: EarlierStages) -> Rows | None:
        """Return the parent bucket of each hand, as a function of boards [first, last); None without nesting."""


class StandardDeck(Deck):
    """52 cards, two hole cards, boards of 0, 3, 4 and 5 cards."""

    def __init__(self, workers: int) -> None:
        self._strengths, self._workers = Strengths(workers), workers

    def hands(self, street: str) -> StreetHands:
        """Return the hands of a street on its canonical boards."""
        return StandardStreet(STREET_CARDS[street]) if STREET_CARDS[street] else StandardPreflop()

    def sums(self, street: str) -> NDArray[Any]:
        """Return the summed strength of each hand on canonical boards."""
        if STREET_CARDS[street]:
            return self._strengths.sums(STREET_CARDS[street])
        counts = preflop_strengths(river=self._strengths.river, workers=self._workers)
        classes = preflop_classes()
        total = (counts @ np.arange(counts.shape[1])) / np.bincount(classes)
        found: NDArray[Any] = total[classes][None]
        return found

    def squares(self, street: str) -> NDArray[Any]:
        """Return the squared strength of each hand on the flop or turn, summed over run-outs."""
        return runout_sums(self._strengths.river, STREET_CARDS[street], workers=self._workers)[1]

    def lossless(self, street: str, share: Share) -> tuple[int, NDArray[Any]]:
        """Return the number of classes, and the class of each hand on canonical boards."""
        count = LOSSLESS_BUCKETS[street]
        if street == "preflop":
            return count, preflop_classes().astype(bucket_dtype(count))[None]
        return count, lossless_table(STREET_CARDS[street], share)

    def features(self, document: dict[str, Any], near: EarlierStages) -> Features:
        """Return the features of a street; `ValueError` for `potential` without `near.following`."""
        if document["features"] == "histogram":
            return histogram_features(self._strengths, document["street"], document["bins"])
        if document["features"] == "ochs":
            return ochs_of_river(self._strengths, document["clusters"], document["seed"])
        if near.following is None:
            raise ValueError("potential-aware features need the buckets of the next street: build that street first")
        return potential_features(document["street"], near.following)

    def parents(self, document: dict[str, Any], near: EarlierStages) -> Rows | None:
        """Return the parents of a street's buckets: clusters of boards, preflop classes, or None."""
        if document.get("nested"):
            return preflop_parents
        if not document.get("public"):
            return None
        cards = STREET_CARDS[document["street"]]
        boards = board_features(self._strengths, cards)
        weights = board_classes(cards).multiplicity
        seed, workers = document["seed"], self._workers
        label = kmeans(boards, weights, document["public"], seed=seed, workers=workers).labels
        return lambda first, last: np.broadcast_to(label[first:last, None], (last - first, COMBO_COUNT))


def lossless_table(cards: int, share: Share | None = None) -> NDArray[np.uint32]:
    """Return the suit-isomorphism class of each slot of the canonical boards, [boards, 1326] uint32.

    `cards` is 3, 4 or 5; `share` is called with the completed share.
    """
    boards, hole = canonical_boards(cards), combo_table()
    bucket = np.full((len(boards), COMBO_COUNT), unused(np.dtype(np.uint32)), np.uint32)
    index = indexer((2, cards))
    for first in range(0, len(boards), 128):
        used = used_slots(boards[first : first + 128])
        board, combo = np.nonzero(used)
        hands = np.concatenate([hole[combo], boards[first + board]], axis=1)
        bucket[first : first + 128][used] = index.index_batch(hands)
        if share is not None:
            share(first / len(boards))
    return bucket
