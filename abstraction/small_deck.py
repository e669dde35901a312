"""The `Deck` of games with a small deck: hold'em's features computed directly over all listed boards.

Strength is 2·wins + ties against every hand that shares no card (`abstraction.strength`).  OCHS (`abstraction.ochs`)
and potential-aware features (`abstraction.clustering.potential_aware`) are as in hold'em.

Boards are listed in order of dealing, so every street can be nested in the one before.  Isomorphic hands, and boards
that differ only in the order of their cards, have bit-identical features and so the same bucket.  Nested and lossless
buckets distinguish the order.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.buckets import bucket_dtype, unused
from abstraction.clustering.emd import cdf
from abstraction.clustering.kmeans import kmeans
from abstraction.clustering.potential_aware import VALUES, bucket_positions, potential_points
from abstraction.deck_models import Deck, EarlierStages
from abstraction.histograms import DEFAULT_BINS
from abstraction.next_street import NextStreet
from abstraction.ochs import BLOCKED_FEATURE, cluster_classes
from abstraction.recipe import STREETS
from abstraction.small_deck_hands import DeckListing
from abstraction.street_features import Features, ListedStreet, Rows, Share, StreetHands


class SmallDeck(Deck):
    """The listed deck of a recipe: H hands in C classes, B boards of a street, U distinct full card sets."""

    def __init__(self, listing: DeckListing, workers: int = 1) -> None:
        self.listing, self._workers = listing, workers

    def _street(self, street: str) -> int:
        return STREETS.index(street)

    def hands(self, street: str) -> StreetHands:
        """Return the hands of a street on its listed boards."""
        return ListedStreet(self.listing, self._street(street))

    # --- strengths ---

    @cached_property
    def _full_boards(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """One full board of each card set [U], and the card set of each full board [B]."""
        boards = np.sort(self.listing.boards[-1], axis=1)
        _, first, which = np.unique(boards, axis=0, return_index=True, return_inverse=True)
        return first, which.reshape(-1)

    @cached_property
    def _disjoint(self) -> NDArray[np.bool_]:
        """[H, H] bool: two hands share no card."""
        held = np.zeros((len(self.listing.hands), self.listing.cards), np.int64)
        for column in range(self.listing.hole_cards):
            held[np.arange(len(held)), self.listing.hands[:, column]] = 1
        return held @ held.T == 0

    def _wins2(self, board: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the n hands possible on a full board, and [n, n] 2 for a win, 1 for a tie of the row's hand."""
        strength = self.listing.strength[board]
        live = np.flatnonzero(strength >= 0)
        mine, other = strength[live][:, None], strength[live][None]
        return live, (2 * (mine > other) + (mine == other)) * self._disjoint[np.ix_(live, live)]

    @cached_property
    def river(self) -> NDArray[np.int64]:
        """[B, H] strength 2·wins + ties on full boards; 0 for a shared card."""
        first, which = self._full_boards
        found = np.zeros((len(first), len(self.listing.hands)), np.int64)
        for row, board in enumerate(first.tolist()):
            live, wins2 = self._wins2(board)
            found[row, live] = wins2.sum(axis=1)
        return found[which]

    def _summed(self, values: NDArray[np.int64], street: int) -> NDArray[np.int64]:
        """Return values [B, H] of full boards, summed over the full boards that follow each board of a street."""
        for later in range(self.listing.streets - 1, street, -1):
            parents = self.listing.parents[later]
            values = np.add.reduceat(values, np.flatnonzero(np.diff(parents, prepend=-1)), axis=0)
        return values

    def sums(self, street: str) -> NDArray[np.int64]:
        """Return the strength of each hand, summed over all full boards that can follow."""
        return self._summed(self.river, self._street(street))

    def squares(self, street: str) -> NDArray[np.int64]:
        """Return the squared strength of each hand, summed over all full boards that can follow."""
        return self._summed(np.square(self.river), self._street(street))

    # --- descriptions ---

    def lossless(self, street: str, share: Share) -> tuple[int, NDArray[Any]]:
        """Return the number of suit-isomorphism classes and the class of each hand.

        Boards are in order of dealing, so the classes have perfect recall.
        """
        share(0.0)
        numbers = self.listing.numbers(self._street(street), merge_suits=True)
        count = int(numbers.max()) + 1
        dtype = bucket_dtype(count)
        return count, np.where(numbers < 0, unused(dtype), numbers).astype(dtype)

    def features(self, document: dict[str, Any], near: EarlierStages) -> Features:
        """Return the features of a street; `ValueError` for `potential` without `near.following`."""
        street = document["street"]
        if document["features"] == "histogram":
            return self._histogram(street, document["bins"])
        if document["features"] == "ochs":
            return self._ochs(street, document["clusters"], document["seed"])
        if near.following is None:
            raise ValueError("potential-aware features need the buckets of the next street: build that street first")
        return self._potential(street, near.following)

    def _counts(self, street: int, bins: int, first: int, last: int) -> NDArray[np.uint32]:
        """Return [last − first, H, bins] counts of run-outs by river strength."""
        hands, above = len(self.listing.hands), np.arange(len(self.listing.boards[-1]), dtype=np.int32)
        for later in range(self.listing.streets - 1, street, -1):
            above = self.listing.parents[later][above]
        chosen = np.flatnonzero((above >= first) & (above < last))
        board, hand = np.nonzero(self.listing.strength[chosen] >= 0)
        full = chosen[board]
        bin_of = self.river[full, hand] * bins // (self.listing.most_strength + 1)
        cell = ((above[full] - first) * hands + hand) * bins + bin_of
        counts = np.bincount(cell, minlength=(last - first) * hands * bins)
        return counts.reshape(last - first, hands, bins).astype(np.uint32)

    def _histogram(self, street: str, bins: int) -> Features:
        number = self._street(street)

        def rows(first: int, last: int) -> NDArray[np.uint32]:
            return self._counts(number, bins, first, last)

        def strength(centres: NDArray[np.float32]) -> NDArray[np.float64]:
            return -centres.sum(axis=1, dtype=np.float64)

        return Features(self.hands(street), bins, np.dtype(np.uint32), rows, cdf, strength)

    @cached_property
    def _classes(self) -> NDArray[np.int64]:
        """[H] preflop class of each hand, up to a permutation of suits."""
        suits = self.listing.suits
        held = self.listing.hands[:, : self.listing.hole_cards].tolist()
        kinds = [(*sorted(card // suits for card in hand), len({card % suits for card in hand})) for hand in held]
        numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
        return np.array([numbers[kind] for kind in kinds])

    def _ochs(self, street: str, clusters: int, seed: int) -> Features:
        classes, weights = self._classes, np.bincount(self._classes)
        member = np.zeros((len(classes), len(weights)), np.int64)
        member[np.arange(len(classes)), classes] = 1
        # counts of a class over all full boards, also if the first street has board cards
        counts = self._counts(0, DEFAULT_BINS, 0, len(self.listing.boards[0])).sum(axis=0, dtype=np.int64)
        sums = self._summed(self.river, 0).sum(axis=0)
        cluster = cluster_classes(member.T @ counts, weights, sums @ member, clusters, seed)
        of_hand = np.zeros((len(classes), clusters), np.int64)
        of_hand[np.arange(len(classes)), cluster[classes]] = 1
        first, which = self._full_boards

        equities = np.full((len(first), len(classes), clusters), BLOCKED_FEATURE, np.float32)
        for row, board in enumerate(first.tolist()):
            live, wins2 = self._wins2(board)
            opponents = of_hand[live]
            hands2 = 2 * (self._disjoint[np.ix_(live, live)] @ opponents)
            wins = (wins2 @ opponents).astype(np.float32) / np.maximum(hands2, 1).astype(np.float32)
            equities[row, live] = np.where(hands2 > 0, wins, np.float32(0.5))

        def rows(low: int, high: int) -> NDArray[np.float32]:
            return equities[which[low:high]]

        def strength(centres: NDArray[np.float32]) -> NDArray[np.float64]:
            return centres.sum(axis=1, dtype=np.float64)

        return Features(self.hands(street), clusters, np.dtype(np.float32), rows, np.ascontiguousarray, strength)

    def _potential(self, street: str, following: NextStreet) -> Features:
        number = self._street(street)
        free = self.listing.free(number)
        count = self.listing.next_boards(number)
        positions = following.equity[:, None]
        if following.centres is not None:
            positions = bucket_positions(following.centres, following.hands, following.distance)
        starts = np.searchsorted(self.listing.parents[number + 1], np.arange(len(free) + 1))
        kept = min(VALUES, count)

        def rows(first: int, last: int) -> NDArray[np.float32]:
            out = np.zeros((last - first, free.shape[1], kept * positions.shape[1]), np.float32)
            for board in range(first, last):
                below = following.table[starts[board] : starts[board + 1]].astype(np.int64)
                # Shared cards have the largest number and are sorted to the end.
                buckets = np.sort(below, axis=0)[:count, free[board]].T
                out[board - first, free[board]] = potential_points(buckets, positions)
            return out

        weakest, strongest = int(following.equity.argmin()), int(following.equity.argmax())
        towards = np.repeat(np.sign(positions[strongest] - positions[weakest]), kept)
        return Features(
            self.hands(street),
            kept * positions.shape[1],
            np.dtype(np.float32),
            rows,
            np.ascontiguousarray,
            lambda centres: centres.astype(np.float64) @ towards,
        )

    # --- parents of nested buckets ---

    def parents(self, document: dict[str, Any], near: EarlierStages) -> Rows | None:
        """Return the parents of a street's buckets: buckets of the street before, clusters of boards, or None."""
        number = self._street(document["street"])
        if document.get("nested"):
            assert near.before is not None
            above, before = self.listing.parents[number], near.before
            return lambda first, last: before[above[first:last]]
        if not document.get("public"):
            return None
        slots, label = len(self.listing.hands), self._board_clusters(number, document["public"], document["seed"])
        return lambda first, last: np.broadcast_to(label[first:last, None], (last - first, slots))

    def _board_clusters(self, street: int, clusters: int, seed: int) -> NDArray[np.int32]:
        """Return the cluster of each board, [B], by the mean strength of each preflop class on it.

        A class without a possible hand has ½.
        """
        classes, free = self._classes, self.listing.free(street)
        member = np.zeros((len(classes), int(classes.max()) + 1), np.int64)
        member[np.arange(len(classes)), classes] = 1
        hands = free.astype(np.int64) @ member
        largest = float(self.listing.most_strength * self.listing.run_outs(street))
        total = self._summed(self.river, street) @ member
        boards = np.where(hands > 0, total / (np.maximum(hands, 1) * largest), 0.5).astype(np.float32)
        return kmeans(boards, None, clusters, seed=seed, workers=self._workers).labels
