"""Divides the boards of the second street into groups, *strata*, which are trained separately.

The second street is the flop in hold'em. Training out of core keeps only some strata's part of the tables in memory.
After the first street every row of the regret and strategy tables belongs to one stratum. Boards that differ only by a
permutation of suits stay in one stratum. From the second street on, a bucket becomes a (stratum, bucket) pair, numbered
stratum by stratum. So a stratum trains one contiguous range of rows in every table. Tables do not grow if buckets
already differ from board to board, as in games without an abstraction.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, singledispatch
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.boards import (
    _PERMUTATION_BITS,
    PREFLOP_CLASSES,
    board_classes,
    canonical_boards,
    hole_permutations,
    suit_permutations,
    used_slots,
)
from abstraction.buckets import bucket_dtype, unused
from abstraction.cards import CARD_COUNT, COMBO_COUNT
from abstraction.lookup import NO_BUCKET, BucketLayout, board_rows
from abstraction.recipe import LOSSLESS_BUCKETS
from mccfr.cards.base import BucketPairs, Cards, Dealer
from mccfr.cards.card_lists import ListedCards, deal_arrays
from mccfr.cards.deals import card_masks
from mccfr.cards.full_deck import STREET_NAMES, WholeDeck
from mccfr.cards.strata_deals import DeckStratumDealer, ListedStratumDealer, board_alias_table
from mccfr.cards.suit_symmetry import alike_boards

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_MOST_COMBOS = 12  # combinations of the largest class of hole cards, such as AKo
_BOARDS_AT_A_TIME = 512
_SHARE_BITS = 40  # resolution of shares that are not integer multiples of the lightest board's weight


@dataclass(frozen=True)
class Strata:
    """N groups (strata) of a game's deals, by the second street's board. S streets, P players.

    Training out of core keeps only some groups' part of the tables in memory.

    shares   [N] int64          probability of each stratum, up to a common factor
    first    [N+1, S, P] int64  buckets of stratum s on a street for a player: first[s] .. first[s+1]-1; 0 on street 0
    boards   N arrays [F]       indices of the stratum's boards; the full deck has canonical boards only
    weights  N arrays [F]       float64 probability of each board, up to a common factor
    hottest  float              largest probability of a first-street bucket, over buckets and players; it determines
                                after how many iterations the first street's tables of all strata are combined
    """

    shares: Ints
    first: Ints
    boards: Sequence[Ints]
    weights: Sequence[Floats]
    hottest: float

    @property
    def count(self) -> int:
        """Number of strata, the groups of second-street boards that are trained separately."""
        return len(self.shares)


@singledispatch
def in_strata(cards: Cards, count: int) -> tuple[Cards, Strata]:
    """Divide the boards of the second street into `count` groups (strata) for separate training.

    Returns (cards, strata). From the second street on, the returned cards number buckets group by group. Raises
    `ValueError` for cards whose boards cannot be divided, or not into so many groups.
    """
    del count
    raise ValueError(f"run.strata needs cards dealt outside of the tree, and here they are dealt from {cards.source}")


@singledispatch
def stratum_dealers(cards: Cards, strata: Strata, seed: int) -> list[Dealer]:
    """Return a dealer of training deals for each stratum, a group of boards of the second street.

    A deal depends on (seed, stratum, iteration) alone; its board is in the stratum.

    cards   the game's cards, with buckets numbered stratum by stratum
    strata  the boards and weights of all strata
    seed    random seed of the run

    Raises `ValueError` for cards that cannot be divided into strata.
    """
    del strata, seed
    raise ValueError(f"cards dealt from {cards.source} cannot be dealt by stratum: leave out run.strata")


# --- shares ---


def _share_out(weights: Floats, count: int, noun: str) -> Ints:
    """Divide F classes of isomorphic boards, in order, among groups (strata) of about equal weight.

    weights  [F] probability of each class, up to a common factor
    count    number of groups
    noun     name of the boards in error messages, such as "flops"

    Returns [F] the number of each class's group, ascending. Raises `ValueError` unless `count` is from 1 to F.
    """
    if not 1 <= count <= len(weights):
        raise ValueError(
            f"run.strata = {count} is not allowed: it must be from 1 to {len(weights):,}, the {noun} that differ by "
            "more than a renaming of suits"
        )
    ends = np.searchsorted(np.cumsum(weights), weights.sum() * np.arange(1, count) / count * (1 - 1e-12)) + 1
    for stratum in range(len(ends)):  # leave at least one board for each later stratum
        least = ends[stratum - 1] + 1 if stratum else 1
        ends[stratum] = min(max(least, ends[stratum]), len(weights) - (count - 1 - stratum))
    return np.searchsorted(ends, np.arange(len(weights)), side="right").astype(np.int64)


def _shares(weights: Sequence[Floats]) -> Ints:
    """Return [N] int64 probabilities of N groups of boards (strata), up to a common factor.

    weights  for each group an array with its boards' probabilities, up to a common factor

    The result is exact if all weights are integer multiples of the smallest one and sum to less than 2^40 times it.
    """
    whole = np.concatenate(weights) / min(part.min() for part in weights)
    if np.all(np.abs(whole - np.rint(whole)) < 1e-9) and whole.sum() < 2.0**_SHARE_BITS:
        lightest = min(part.min() for part in weights)
        return np.array([int(np.rint(part / lightest).sum()) for part in weights], np.int64)
    totals = np.array([part.sum() for part in weights])
    return np.rint(totals / totals.sum() * 2.0**_SHARE_BITS).astype(np.int64)


def _renumbered(
    bucket: npt.NDArray[np.integer], occurs: npt.NDArray[np.bool_], stratum: Ints, count: int
) -> tuple[Ints, Ints]:
    """Give the pairs of stratum and bucket that occur new bucket numbers from 0 on.

    A stratum is a group of boards that is trained separately; pairs are numbered stratum by stratum.

    bucket   [F, H] old bucket of each hand on each board
    occurs   [F, H] True where a hand is possible on the board; others get no number
    stratum  [F] stratum of each board
    count    number of strata

    Returns the new numbers in the order of `bucket[occurs]`, and [count+1] the first number of each stratum, then the
    number of all pairs.
    """
    size = int(bucket[occurs].max(initial=0)) + 1
    keys = (stratum[:, None] * size + bucket.astype(np.int64))[occurs]
    distinct_keys, number = np.unique(keys, return_inverse=True)
    return number, np.searchsorted(distinct_keys, size * np.arange(count + 1))


# --- listed cards ---


@in_strata.register
def _(cards: ListedCards, count: int) -> tuple[Cards, Strata]:
    if cards.streets < 2 or len(cards.board_cards[0]) != 1:
        raise ValueError("run.strata needs a game of several streets that begins with one board for all deals")
    alike = alike_boards(cards, 1)
    groups, group = np.unique(alike, return_inverse=True)
    weight = _board_weights(cards, groups)[group]
    totals = np.bincount(group, weight).astype(np.float64)
    stratum = _share_out(totals, count, "boards of the second street")[group]
    first, buckets = np.zeros((count + 1, cards.streets, 2), np.int64), cards.buckets.copy()
    numbered, above = [cards.bucket[0]], stratum
    for street in range(1, cards.streets):
        above = stratum if street == 1 else above[cards.board_parent[street]]
        numbered.append(np.full_like(cards.bucket[street], NO_BUCKET))
        for player in range(2):
            known = cards.bucket[street][player]
            held = known != NO_BUCKET
            numbers, first[:, street, player] = _renumbered(known, held, above, count)
            numbered[street][player][held] = numbers
            buckets[street, player] = first[-1, street, player]
    boards = [np.flatnonzero((stratum == s) & (weight > 0)) for s in range(count)]
    weights = [weight[part] for part in boards]
    hottest = max(
        float((np.bincount(held[live], reach[live]) / reach[live].sum()).max())
        for held, reach in zip(cards.bucket[0][:, 0], cards.reach, strict=True)
        for live in [(held != NO_BUCKET) & (reach > 0)]
    )
    shared = Strata(_shares(weights), first, boards, weights, hottest)
    return replace(cards, bucket=numbered, buckets=buckets), shared


def _board_weights(cards: ListedCards, boards: Ints) -> Floats:
    """Return [n] the probability of boards of the second street, up to a common factor.

    boards  [n] indices of the boards

    Boards are drawn after the hands, uniformly among the disjoint ones. So a board's probability is proportional to the
    weight of the pairs disjoint from it, if each pair fits equally many boards. Raises `ValueError` if not.
    """
    masks = cards.hand_masks()
    apart = (masks[:, None] & masks[None, :]) == 0
    free = (masks[:, None] & card_masks(cards.board_cards[1])[None, :]) == 0
    compatible = apart & (cards.reach[0][:, None] > 0) & (cards.reach[1][None, :] > 0)
    remaining_hands = (free.astype(np.float32) @ free.T.astype(np.float32))[compatible]
    if not len(remaining_hands) or remaining_hands.min() != remaining_hands.max():
        raise ValueError("run.strata needs pairs of hands that each leave equally many boards of the second street")
    return np.array([(cards.reach[0] * free[:, b]) @ apart @ (cards.reach[1] * free[:, b]) for b in boards.tolist()])


@stratum_dealers.register
def _(cards: ListedCards, strata: Strata, seed: int) -> list[Dealer]:
    arrays, before = deal_arrays(cards), len(cards.board_cards[0])  # indices into the list of all streets' boards
    chosen = zip(strata.boards, strata.weights, strict=True)
    return [
        ListedStratumDealer(arrays, board_alias_table(boards + before, weights), seed, stratum)
        for stratum, (boards, weights) in enumerate(chosen)
    ]


# --- the whole deck ---


@dataclass(frozen=True)
class StratifiedDeck(WholeDeck):
    """A full deck whose second-street boards are in groups (strata) that are trained separately.

    From the second street on, buckets are numbered by pairs of stratum and bucket of the abstraction.

    stratum  [canonical boards of the second street] int64 number of each board's group.  A canonical board stands for
             all boards that differ from it only by a permutation of suits
    plain    [S] number of buckets of each street in the abstraction
    """

    stratum: Ints | None = None
    plain: tuple[int, ...] = ()

    @property
    def layout(self) -> BucketLayout:
        """Offsets and dtypes of all streets' bucket tables in one block of memory.

        Only the second street's table holds buckets numbered by group of boards (stratum).
        """
        board_counts = tuple(self.cards_on(street) for street in range(self.streets))
        counts = (*self.buckets[:2, 0].tolist(), *self.plain[2:])
        return BucketLayout(board_counts, tuple(bucket_dtype(int(count)).name for count in counts))

    def strata_of(self, boards: npt.NDArray[np.integer]) -> Ints:
        """Return [N] the stratum (group number) of boards [N, n] of the second street.

        Their cards may be in any order. Each stratum is trained separately.
        """
        assert self.stratum is not None
        rank = sum(_choose(count)[cards] for count, cards in enumerate(np.sort(boards, axis=1).T, 1))
        return self.stratum[board_classes(boards.shape[1]).location[rank] >> _PERMUTATION_BITS]

    def board_row(self, street: int, board: Sequence[int]) -> npt.NDArray[np.int32]:
        """Return the bucket of each hand (two hole cards) on a board, [1326] int32.

        From the second street on, buckets are numbered by the group (stratum) of the second street's board.

        board  card numbers in order of dealing; hands that share a card with it get −1
        """
        row = super().board_row(street, board)
        if street < 2:
            return row
        stratum = int(self.strata_of(np.array([list(board)[: self.cards_on(1)]]))[0])
        return np.where(row == NO_BUCKET, row, row + stratum * self.plain[street]).astype(np.int32)

    def bucket_pairs(self, street: int, player: int) -> BucketPairs:
        """Yield pairs of arrays [n]: buckets of n hands on `street`, and on the street before.

        Each pair covers a few boards. From the second street on, buckets are numbered by the group (stratum) of the
        second street's board. All canonical boards of `street` occur, with each choice of the cards dealt earlier.
        """
        if street < 2:
            yield from super().bucket_pairs(street, player)
            return
        boards = canonical_boards(self.cards_on(street))
        count_before, flop = self.cards_on(street - 1), self.cards_on(1)
        for first in range(0, len(boards), _BOARDS_AT_A_TIME):
            some = boards[first : first + _BOARDS_AT_A_TIME]
            bucket = board_rows(self.lookup, some)
            dealt_hands = bucket >= 0
            for dealt in combinations(range(some.shape[1]), count_before):
                before = board_rows(self.lookup, some[:, dealt])
                for under in combinations(dealt, flop):
                    stratum = self.strata_of(some[:, under])[:, None]
                    above = before if street == 2 else before + stratum * self.plain[street - 1]
                    yield (bucket + stratum * self.plain[street])[dealt_hands], above[dealt_hands]

    @property
    def fits_policies(self) -> bool:
        """True if the game has two streets; then a policy (saved strategy) can store the buckets.

        The stored tables of later streets have no room for buckets that depend on the group of the flop.
        """
        return self.streets == 2


@cache
def _choose(cards: int) -> Ints:
    """Return [52] C(c, cards) for each card c: the number of sets of `cards` cards all below c."""
    return np.array([comb(card, cards) for card in range(CARD_COUNT)], np.int64)


@in_strata.register
def _(cards: WholeDeck, count: int) -> tuple[Cards, Strata]:
    if cards.streets < 2 or cards.cards_on(0):
        raise ValueError("run.strata needs a game of several streets that begins without a board")
    if cards.histories is not None:
        raise ValueError("run.strata needs buckets by board, and those of a nested recipe depend on the flop's bucket")
    known = cards.cards_on(1)
    weight = board_classes(known).multiplicity.astype(np.float64)
    stratum = _share_out(weight, count, "flops" if known == 3 else "boards of the second street")
    plain = tuple(int(number) for number in cards.buckets[:, 0])
    first = np.zeros((count + 1, cards.streets, cards.players), np.int64)
    first[:, 1:] = np.arange(count + 1)[:, None, None] * cards.buckets[None, 1:]
    apart = plain[1] == LOSSLESS_BUCKETS[STREET_NAMES[known]]
    if apart:  # each board has buckets of its own
        classes = np.bincount(stratum, _hole_classes(known), minlength=count)
        first[1:, 1] = np.cumsum(classes).astype(np.int64)[:, None]

    def load() -> list[npt.NDArray[Any]]:
        tables = list(cards.load())
        held = tables[1] != unused(tables[1].dtype)
        dtype = bucket_dtype(int(first[-1, 1, 0]))
        numbered = np.full(tables[1].shape, unused(dtype), dtype)
        if apart:
            numbered[held] = _renumbered(tables[1], held, stratum, count)[0]
        else:
            numbered[held] = (tables[1].astype(np.int64) + stratum[:, None] * plain[1])[held]
        return [tables[0], numbered, *tables[2:]]

    boards = [np.flatnonzero(stratum == s) for s in range(count)]
    weights = [weight[part] for part in boards]
    hottest = max(1 / plain[0], _MOST_COMBOS / COMBO_COUNT if plain[0] <= PREFLOP_CLASSES else 0.0)
    buckets = cards.buckets.copy()
    buckets[1:] = first[-1, 1:]
    made = StratifiedDeck(cards.board_cards, buckets, load, stratum=stratum, plain=plain)
    return made, Strata(_shares(weights), first, boards, weights, hottest)


def _hole_classes(cards: int) -> Ints:
    """Return [B] for each canonical board of `cards` cards the number of possible hands up to suits.

    Hands count once if a permutation of suits that fixes the board maps one to the other. By Burnside's lemma,
    this is the mean number of hands that such a permutation fixes.
    """
    boards, combos = canonical_boards(cards), np.arange(COMBO_COUNT)
    renamed = (boards & ~3)[None] | suit_permutations()[:, boards & 3]
    fixes = (np.sort(renamed, axis=2) == np.sort(boards, axis=1)).all(axis=2)
    stay = (hole_permutations() == combos).astype(np.float32)
    class_counts = []
    for first in range(0, len(boards), _BOARDS_AT_A_TIME):
        part = slice(first, first + _BOARDS_AT_A_TIME)
        remaining_hands = used_slots(boards[part]).astype(np.float32) @ stay.T
        class_counts.append((remaining_hands.T * fixes[:, part]).sum(axis=0) / fixes[:, part].sum(axis=0))
    return np.rint(np.concatenate(class_counts)).astype(np.int64)


@stratum_dealers.register
def _(cards: StratifiedDeck, strata: Strata, seed: int) -> list[Dealer]:
    plain = np.array([0, 0, *cards.plain[2:]], np.int32)
    chosen = zip(strata.boards, strata.weights, strict=True)
    return [
        DeckStratumDealer(
            cards.lookup, board_alias_table(boards, weights), np.repeat(stratum * plain, cards.players), seed, stratum
        )
        for stratum, (boards, weights) in enumerate(chosen)
    ]
