"""Strengths, features and classes of hands that an abstraction build needs, for each kind of deck.

`StandardDeck` has 52 cards; its boards are canonical, one for all boards that differ only by a permutation of suits.
`SmallDeck` has an array of every board of a small deck, and computes the same features directly over all of them.  The
*strength* of a hand on a full board (the board of the last street) is 2·wins + ties.  It counts the opponent hands that
share no card with hand or board.

A street is *nested* if each of its buckets lies inside one bucket of the street before.  *Lossless* buckets are the
classes of hands that differ only by a permutation of suits (in a small deck without flushes, only in suits).  A small
deck's boards are in order of dealing; nested and lossless buckets distinguish that order.  With other buckets, hands
that differ only by a permutation of suits or in that order have bit-identical features and so the same bucket.

Arrays are [boards, hands] of one street.  Entries of hands that share a card with the board have no meaning, unless
stated.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstraction.boards import STREET_CARDS, canonical_boards, preflop_classes, used_slots
from abstraction.buckets import bucket_dtype, unused
from abstraction.cards import COMBO_COUNT, combo_table
from abstraction.clustering.kmeans import kmeans
from abstraction.clustering.metric import cdf
from abstraction.histograms import DEFAULT_BINS, equity_histograms
from abstraction.ochs import BLOCKED_FEATURE, cluster_classes, ochs_features, opponent_clusters
from abstraction.potential_aware import NextStreet, potential_features
from abstraction.recall_buckets import Table
from abstraction.recipe import LOSSLESS_BUCKETS, STREETS
from abstraction.small_deck_hands import DeckListing, disjoint
from abstraction.street_features import Features, Rows, Share, StreetHands, listed_hands, standard_hands, total
from abstraction.strength import preflop_strengths, river_strengths, runout_sums
from abstraction.suit_isomorphism import indexer

_BOARDS = 1024  # boards described at a time


class StageInputs(NamedTuple):
    """Buckets of other streets, already built, from which a street's buckets are built.

    following  buckets of the next street, for features "potential" (distributions over them); else None
    before     [boards, hands] bucket of each hand on the street before, if each bucket of a small deck's street must
               lie inside one of them; else None
    earlier    one pair (table, history) for each earlier street, for perfect recall on the full deck; else empty.
               table: [boards, 1326] the street's buckets, or percentiles of E[HS] or E[HS²] if it has a history
               history: None, or the bucket for each bucket on the street before and each percentile,
               [buckets before, percentiles]
    """

    following: NextStreet | None = None
    before: NDArray[Any] | None = None
    earlier: Sequence[tuple[NDArray[Any], Table]] = ()


class StandardDeck:
    """Strengths and features of hold'em hands: 52 cards, two hole cards, boards of 0, 3, 4 and 5 cards."""

    def __init__(self, workers: int = 1) -> None:
        self._workers, self.hole_classes = workers, preflop_classes()

    @cached_property
    def river(self) -> NDArray[np.uint16]:
        """[134459, 1326] strength of each hand on each canonical river board.

        It is 2·wins + ties, 0 to 1,980, and is computed on first use.  65,535 marks hands that share a card with the
        board.
        """
        return river_strengths(workers=self._workers)

    def hands(self, street: str) -> StreetHands:
        """Return a street's `StreetHands`: numbers of canonical boards and of hands, 1,326.

        It also states how many dealt boards each canonical board represents, and which hands share no card with it.
        """
        return standard_hands(STREET_CARDS[street])

    def sums(self, street: str) -> NDArray[Any]:
        """Return [boards, 1326] strength of each hand, 2·wins + ties, summed over its run-outs.

        Run-outs to the river are unordered: 1 on the river, 46 on the turn, 1,081 on the flop and 2,118,760 preflop.
        Boards are canonical.  The dtype is uint16 on the river, int64 on flop and turn, and float64 preflop.
        """
        cards, classes = STREET_CARDS[street], preflop_classes()
        if cards:
            return self.river if cards == 5 else runout_sums(self.river, cards, workers=self._workers)[0]
        counts = preflop_strengths(river=self.river, workers=self._workers)
        means: NDArray[Any] = ((counts @ np.arange(counts.shape[1])) / np.bincount(classes))[classes][None]
        return means

    def squares(self, street: str) -> NDArray[Any]:
        """Return [boards, 1326] int64: squared strength of each hand, summed over its run-outs.

        The square is that of 2·wins + ties on the river.  The street is the flop or turn.
        """
        return runout_sums(self.river, STREET_CARDS[street], workers=self._workers)[1]

    def lossless(self, street: str, share: Share) -> tuple[int, NDArray[Any]]:
        """Return the number of suit-isomorphism classes of a street, and the class of each hand.

        Hands of one class differ only by a permutation of suits.  Classes are [boards, 1326], unsigned; hands that
        share a card with the board have the dtype's largest value.

        share  function called with the completed share of the work, 0 to 1; it is not called for the preflop
        """
        count = LOSSLESS_BUCKETS[street]
        if street == "preflop":
            return count, preflop_classes().astype(bucket_dtype(count))[None]
        return count, lossless_table(STREET_CARDS[street], share)

    def histogram(self, street: str, bins: int) -> Features:
        """Return a `Features`, which computes histograms of hands' strength over the run-outs.

        street  "flop" or "turn"
        bins    number of equal intervals of strength, 2·wins + ties

        For clustering, histograms become cumulative distributions, so their L1 distance is the earth mover's distance.
        """
        cards, river = STREET_CARDS[street], self.river

        def rows(first: int, last: int) -> NDArray[Any]:
            return equity_histograms(river, cards, first, last, bins=bins)

        return Features(self.hands(street), rows, cdf, lambda centres: -total(centres))

    def ochs(self, street: str, clusters: int, seed: int) -> Features:
        """Return a `Features`, which computes the river's opponent cluster hand strengths (OCHS).

        They are each hand's equities against clusters of opponent hands, computed for a range of boards at a time.

        street    "river"
        clusters  number of clusters into which the 169 preflop classes are divided
        seed      of the random draws of that clustering
        """
        cluster_of = opponent_clusters(preflop_strengths(river=self.river, workers=self._workers), clusters, seed)

        def rows(first: int, last: int) -> NDArray[np.float32]:
            return ochs_features(cluster_of, first, last)

        return Features(self.hands(street), rows, np.ascontiguousarray, total)

    def buckets_before(self, street: str, others: StageInputs) -> Rows:
        """Return a function that gives each hand's preflop class, 0 to 168.

        The flop's buckets may have to lie within these classes.  The function takes (first, last) and returns
        [last − first, 1326] for that range of boards, the same classes on every board.

        street, others  not used
        """
        return lambda first, last: np.broadcast_to(preflop_classes(), (last - first, COMBO_COUNT))


def lossless_table(cards: int, share: Share | None = None) -> NDArray[np.uint32]:
    """Return each hand's suit-isomorphism class on each canonical board, [boards, 1326] uint32.

    A canonical board stands for all boards that differ only by a permutation of suits.

    cards  number of cards on the board, 3, 4 or 5
    share  function called with the completed share of the work, 0 to 1

    Hands that share a card with the board have the largest value of the dtype.
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


class SmallDeck:
    """Strengths and features of a small deck, such as Leduc's, with arrays of all hands and boards.

    There are H hands and, in order of dealing, B boards of a street.  A full board is a board of the last street.  U
    counts full boards without regard to the order of dealing.
    """

    def __init__(self, listing: DeckListing, workers: int = 1) -> None:
        self.listing, self._workers = listing, workers

    def _street(self, street: str) -> int:
        return STREETS.index(street)

    def hands(self, street: str) -> StreetHands:
        """Return a street's `StreetHands`: numbers of boards and hands, and which of these share no card."""
        return listed_hands(self.listing, self._street(street))

    # --- strengths ---

    @cached_property
    def _full_boards(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Two arrays that merge full boards of the same set of cards, to evaluate each set once.

        They are [U] index of one full board for each set, and [B] index in the first array for each full board.
        """
        boards = np.sort(self.listing.boards[-1], axis=1)
        _, first, which = np.unique(boards, axis=0, return_index=True, return_inverse=True)
        return first, which.reshape(-1)

    @cached_property
    def _disjoint(self) -> NDArray[np.bool_]:
        """[H, H] bool: True if two hands share no card."""
        return disjoint(self.listing.hands, self.listing.hands)

    def _wins2(self, board: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the n hands possible on a full board, and their [n, n] results: 2 win, 1 tie, 0 loss.

        board  index of the full board

        The hands are [n] indices.  A result is that of the row's hand; it is 0 also for two hands that share a card.
        """
        strength = self.listing.strength[board]
        live = np.flatnonzero(strength >= 0)
        mine, other = strength[live][:, None], strength[live][None]
        return live, (2 * (mine > other) + (mine == other)) * self._disjoint[np.ix_(live, live)]

    @cached_property
    def river(self) -> NDArray[np.int64]:
        """[B, H] strength on full boards: 2·wins + ties against all hands that share no card.

        It is 0 if hand and board share a card.
        """
        first, which = self._full_boards
        wins2_of_hand = np.zeros((len(first), len(self.listing.hands)), np.int64)
        for row, board in enumerate(first.tolist()):
            live, wins2 = self._wins2(board)
            wins2_of_hand[row, live] = wins2.sum(axis=1)
        return wins2_of_hand[which]

    def _summed(self, values: NDArray[np.int64], street: int) -> NDArray[np.int64]:
        """Return [B, H] values summed over the full boards that follow each board of a street.

        values  [B of the last street, H] one value for each full board and hand
        street  number of the street, from 0
        """
        for later in range(self.listing.streets - 1, street, -1):
            parents = self.listing.parents[later]
            values = np.add.reduceat(values, np.flatnonzero(np.diff(parents, prepend=-1)), axis=0)
        return values

    def sums(self, street: str) -> NDArray[np.int64]:
        """Return [B, H] int64: strength, 2·wins + ties, summed over the full boards that can follow."""
        return self._summed(self.river, self._street(street))

    def squares(self, street: str) -> NDArray[np.int64]:
        """Return [B, H] int64: squared strength, (2·wins + ties)², summed over the full boards that follow."""
        return self._summed(np.square(self.river), self._street(street))

    # --- descriptions ---

    def lossless(self, street: str, share: Share) -> tuple[int, NDArray[Any]]:
        """Return the number of suit-isomorphism classes of a street, and [B, H] class of each hand.

        Pairs of hand and board in one class differ only by a permutation of suits.  If no hand can have five cards,
        suits do not count at all.  Boards are in order of dealing, so a class determines the class on the street
        before.  Hands that share a card with the board have the largest value of the dtype, uint16 or uint32.

        share  function called with the completed share of the work; here once, with 0
        """
        share(0.0)
        numbers = self.listing.numbers(self._street(street), merge_suits=True)
        count = int(numbers.max()) + 1
        dtype = bucket_dtype(count)
        return count, np.where(numbers < 0, unused(dtype), numbers).astype(dtype)

    def _counts(self, street: int, bins: int, first: int, last: int) -> NDArray[np.uint32]:
        """Return the histogram of each hand's strength over the full boards that can follow.

        The result is [last − first, H, bins] uint32 for boards `first` to `last` − 1 of street number `street`.  `bins`
        intervals divide the strengths 2·wins + ties evenly.
        """
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

    def histogram(self, street: str, bins: int) -> Features:
        """Return a `Features`, which computes histograms of hands' strength over the run-outs.

        street  any street but the last
        bins    number of equal intervals of strength, 2·wins + ties

        For clustering, histograms become cumulative distributions.
        """
        number = self._street(street)

        def rows(first: int, last: int) -> NDArray[np.uint32]:
            return self._counts(number, bins, first, last)

        return Features(self.hands(street), rows, cdf, lambda centres: -total(centres))

    @cached_property
    def hole_classes(self) -> NDArray[np.int64]:
        """[H] class of each hand; the hands of a class differ only by a permutation of suits."""
        suits = self.listing.suits
        held = self.listing.hands[:, : self.listing.hole_cards].tolist()
        kinds = [(*sorted(card // suits for card in hand), len({card % suits for card in hand})) for hand in held]
        numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
        return np.array([numbers[kind] for kind in kinds])

    def ochs(self, street: str, clusters: int, seed: int) -> Features:
        """Return a `Features` with the last street's opponent cluster hand strengths (OCHS).

        They are each hand's equities against clusters of opponent hands.

        street    name of the last street
        clusters  number of clusters into which the classes of hole cards are divided
        seed      of the random draws of that clustering
        """
        classes, weights = self.hole_classes, np.bincount(self.hole_classes)
        member = np.eye(len(weights), dtype=np.int64)[classes]
        # counts of a class over all full boards, also if the first street has board cards
        counts = self._counts(0, DEFAULT_BINS, 0, len(self.listing.boards[0])).sum(axis=0, dtype=np.int64)
        sums = self._summed(self.river, 0).sum(axis=0)
        cluster = cluster_classes(member.T @ counts, weights, sums @ member, clusters, seed)
        of_hand = np.eye(clusters, dtype=np.int64)[cluster[classes]]
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

        return Features(self.hands(street), rows, np.ascontiguousarray, total)

    def buckets_before(self, street: str, others: StageInputs) -> Rows:
        """Return a function that gives each hand's bucket on the street before `street`.

        The function takes (first, last), a range of boards of `street`, and returns [last − first, H].

        others  its field `before`, [B, H], holds the buckets of the street before
        """
        assert others.before is not None
        above, before = self.listing.parents[self._street(street)], others.before
        return lambda first, last: before[above[first:last]]


Deck = StandardDeck | SmallDeck


def features_of(deck: Deck, document: dict[str, Any], others: StageInputs) -> Features:
    """Return a `Features`, which computes the features by which a street's hands are clustered.

    deck      the deck, which computes the features "histogram" and "ochs"
    document  settings of the street's buckets by name, such as "features": "histogram", "ochs" or "potential"
    others    buckets of other streets; the features "potential" read those of the next street

    Raises `ValueError` for the features "potential" if `others` lacks the next street's buckets.
    """
    street = document["street"]
    if document["features"] == "histogram":
        return deck.histogram(street, document["bins"])
    if document["features"] == "ochs":
        return deck.ochs(street, document["clusters"], document["seed"])
    if others.following is None:
        raise ValueError("potential-aware features need the buckets of the next street: build that street first")
    return potential_features(street, others.following)


def parents_of(deck: Deck, document: dict[str, Any], others: StageInputs, workers: int) -> Rows | None:
    """Return a function that gives the parent within which each hand's bucket must lie, or None.

    document  settings of the street's buckets by name.  With "nested" a parent is a bucket of the street before; with
              "public": n it is one of n clusters of boards; without both the result is None
    others    buckets of other streets, for "nested"

    The function takes (first, last), a range of boards, and returns the parents' numbers [last − first, hands].
    """
    street, hands = document["street"], deck.hands(document["street"])
    if document.get("nested"):
        return deck.buckets_before(street, others)
    if not document.get("public"):
        return None
    boards, weights = board_features(deck, street), hands.times(0, hands.boards)
    label = kmeans(boards, weights, document["public"], seed=document["seed"], workers=workers).labels
    return lambda first, last: np.broadcast_to(label[first:last, None], (last - first, hands.slots))


def board_features(deck: Deck, street: str) -> NDArray[np.float32]:
    """Return the mean strength of each class of hole cards on each board, [boards, classes] float32.

    Strengths are mean E[HS] (equity against a random opponent hand), 0 to 1.  They are ½ if all hands of a class share
    a card with the board.  `parents_of` clusters boards by these strengths.
    """
    hands, sums, classes = deck.hands(street), deck.sums(street), deck.hole_classes
    member = np.eye(int(classes.max()) + 1)[classes]
    result = np.empty((hands.boards, member.shape[1]), np.float32)
    for first in range(0, hands.boards, _BOARDS):
        last = min(first + _BOARDS, hands.boards)
        used = hands.used(first, last)
        strengths = np.where(used, sums[first:last], 0).astype(np.float64) @ member
        count = used.astype(np.float64) @ member
        result[first:last] = np.where(count > 0, strengths / (np.maximum(count, 1) * hands.largest), 0.5)
    return result
