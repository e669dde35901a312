"""What cards an abstraction is of, as the stages of a build ask for them: strengths, descriptions, classes of hands.

Two decks answer: the standard one here, whose boards are canonical ones (`abstraction.boards`), and listed small ones
(`abstraction.small_deck`).  Whatever is made of the answers - percentiles, clustering, reports - is the same code.
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
from abstraction.features import (
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
from abstraction.history import Table
from abstraction.isomorphism import indexer
from abstraction.next_street import NextStreet, potential_features
from abstraction.recipe import LOSSLESS_BUCKETS
from abstraction.strength import preflop_strengths, runout_sums
from abstraction.values import ValueSource


class Near(NamedTuple):
    """Stages that another one is made of.

    following  the next street, whose buckets potential-aware features are made of
    before     [boards, slots] bucket that each hand had on the street before, inside which it is to stay
    values     what hands are worth, which is no stage
    earlier    tables and histories (`abstraction.history`) of all streets before, where buckets remember them
    """

    following: NextStreet | None = None
    before: NDArray[Any] | None = None
    values: ValueSource | None = None
    earlier: Sequence[tuple[NDArray[Any], Table]] = ()


class Deck(ABC):
    """Cards that are abstracted.  Arrays are [boards, slots] of a street."""

    @abstractmethod
    def hands(self, street: str) -> StreetHands:
        """All hands of a street."""

    @abstractmethod
    def sums(self, street: str) -> NDArray[Any]:
        """Strength of each hand, summed over the boards that may come."""

    @abstractmethod
    def squares(self, street: str) -> NDArray[Any]:
        """The same of squares; of streets before the last."""

    @abstractmethod
    def lossless(self, street: str, share: Share) -> tuple[int, NDArray[Any]]:
        """How many classes of hands there are up to a renaming of suits, and the class of each hand."""

    @abstractmethod
    def alike(self, street: str, boards: NDArray[np.int64]) -> NDArray[np.int64]:
        """[n, slots] class of each hand on boards [n] up to a renaming of suits; -1: hand and board share a card."""

    @abstractmethod
    def features(self, document: dict[str, Any], near: Near) -> Features:
        """Descriptions by `histogram`, `ochs` or `potential`."""

    @abstractmethod
    def parents(self, document: dict[str, Any], near: Near) -> Rows | None:
        """What buckets are nested in, for boards [first, last); None where in nothing."""


class StandardDeck(Deck):
    """52 cards, two hole cards, boards of 0, 3, 4 and 5 cards."""

    def __init__(self, workers: int) -> None:
        self._strengths, self._workers = Strengths(workers), workers

    def hands(self, street: str) -> StreetHands:
        """As `Deck.hands`."""
        return StandardStreet(STREET_CARDS[street]) if STREET_CARDS[street] else StandardPreflop()

    def sums(self, street: str) -> NDArray[Any]:
        """As `Deck.sums`."""
        if STREET_CARDS[street]:
            return self._strengths.sums(STREET_CARDS[street])
        counts = preflop_strengths(river=self._strengths.river, workers=self._workers)
        classes = preflop_classes()
        total = (counts @ np.arange(counts.shape[1])) / np.bincount(classes)
        found: NDArray[Any] = total[classes][None]
        return found

    def squares(self, street: str) -> NDArray[Any]:
        """As `Deck.squares`."""
        return runout_sums(self._strengths.river, STREET_CARDS[street], workers=self._workers)[1]

    def lossless(self, street: str, share: Share) -> tuple[int, NDArray[Any]]:
        """As `Deck.lossless`."""
        count = LOSSLESS_BUCKETS[street]
        if street == "preflop":
            return count, preflop_classes().astype(bucket_dtype(count))[None]
        return count, lossless_table(STREET_CARDS[street], share)

    def alike(self, street: str, boards: NDArray[np.int64]) -> NDArray[np.int64]:
        """As `Deck.alike`."""
        cards = STREET_CARDS[street]
        known = canonical_boards(cards)[boards]
        used, found = used_slots(known), np.full((len(boards), COMBO_COUNT), -1)
        board, combo = np.nonzero(used)
        found[used] = indexer((2, cards)).index_batch(np.concatenate([combo_table()[combo], known[board]], axis=1))
        return found

    def features(self, document: dict[str, Any], near: Near) -> Features:
        """As `Deck.features`."""
        if document["features"] == "histogram":
            return histogram_features(self._strengths, document["street"], document["bins"])
        if document["features"] == "ochs":
            return ochs_of_river(self._strengths, document["clusters"], document["seed"])
        if near.following is None:
            raise ValueError("potential-aware features need the buckets of the next street: build that street first")
        return potential_features(document["street"], near.following)

    def parents(self, document: dict[str, Any], near: Near) -> Rows | None:
        """As `Deck.parents`: public clusters, preflop classes, or nothing."""
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
    """[boards, 1326] class of each slot of the canonical boards of 3, 4 or 5 cards, from `abstraction.isomorphism`."""
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
