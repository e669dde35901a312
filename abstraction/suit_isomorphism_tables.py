"""Builds the tables with which `abstraction.suit_isomorphism` numbers hands up to suit order.

Hands that differ only by a permutation of suits get one number.  `cards_per_round` is the number of cards in each
round, such as (2, 3) for hole cards and flop.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise, product
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RANK_SET = (1 << 13) - 1
GROUP_SHIFT = 32
"""The group of a suit's number starts at this bit; the number itself is at most 13·12·...·7."""

_RANKS, _SUITS = 13, 4

_SuitCounts = tuple[int, ...]  # cards of one suit in each round
_Configuration = tuple[_SuitCounts, ...]  # the four suits, largest counts first


class RankSets(NamedTuple):
    """Size of every set of ranks, and its index among sets of that size; a set is 13 bits."""

    set_size: NDArray[np.int64]
    """[8192] number of ranks in a rank set"""
    set_number: NDArray[np.int64]
    """[8192] index of a rank set among those of its size"""


class Configurations(NamedTuple):
    """Factors and offsets for each of the C configurations, to number hands up to suit order.

    A configuration is a way to divide the cards of R rounds among four suits that are not named.  It lists the suits'
    numbers of cards in each round, sorted in descending order.  A position, 0 to 3, is an index in this list.
    """

    radix: NDArray[np.int64]
    """[C, R, 4] product of the numbers of rank sets that a position may hold in the earlier rounds"""
    group: NDArray[np.int64]
    """[C, 4] number of the group of suits with equal counts, shifted left by 32"""
    member: NDArray[np.int64]
    """[C, 4] index within the group of suits with equal counts; 0 for the first suit of a group"""
    group_radix: NDArray[np.int64]
    """[C, 4] product of the numbers of classes of the earlier groups"""
    offset: NDArray[np.int64]
    """[C + 1] first index of each configuration, then the number of classes"""


class IsomorphismTables(NamedTuple):
    """Read-only look-up tables to number hands up to suit order.

    Hands have N cards in R rounds, such as (2, 3): hole cards and flop.  The tables take 0.2 to 0.9 MB.
    """

    round_start: NDArray[np.int64]
    """[R + 1] first card of each round, then N"""
    card_weight: NDArray[np.int64]
    """[N, 4] weight of a card in the sum that tells the counts, by index in the hand and suit"""
    layout: NDArray[np.int64]
    """[largest sum + 1] configuration << 32, and in byte s 16 times the position of suit s"""
    ranks: RankSets
    configurations: Configurations


def _rank_sets() -> RankSets:
    set_size = np.bitwise_count(np.arange(RANK_SET + 1)).astype(np.int64)
    sets = np.argsort(set_size, kind="stable")
    first_set = np.searchsorted(set_size[sets], np.arange(_RANKS + 1))
    set_number = np.empty_like(sets)
    set_number[sets] = np.arange(len(sets)) - first_set[set_size[sets]]
    return RankSets(set_size, set_number)


def _splits(cards: int) -> Iterator[tuple[int, ...]]:
    """Return an iterator over all ways to divide `cards` cards among suits, each as four counts."""
    return (split for split in product(range(cards + 1), repeat=_SUITS) if sum(split) == cards)


def _count_weights(cards_per_round: tuple[int, ...]) -> tuple[NDArray[np.int64], int]:
    """Return the weight [R, 4] of a card by round and suit, and the number of possible sums.

    The sum of the cards' weights identifies how many cards each suit has in each round.  In a round of n cards the
    weights 0, 1, n + 1, n² + n + 1 suffice for this.  Up to n cards of suit 1 weigh less than the third weight.  Up to
    n cards of suits 1 and 2 weigh at most n(n + 1), less than the fourth.  Later rounds multiply them by a scale.
    """
    weights, scale = [], 1
    for n in cards_per_round:
        weights.append([0, scale, scale * (n + 1), scale * (n * n + n + 1)])
        scale *= n * (n * n + n + 1) + 1
    return np.array(weights, np.int64), scale


def _layouts(cards_per_round: tuple[int, ...]) -> tuple[list[_Configuration], NDArray[np.int64], NDArray[np.int64]]:
    """Return all configurations, the cards' weights [R, 4] by round and suit, and a table of sums.

    A configuration is a way to divide the cards of each round among four suits that are not named.  The sum of a hand's
    weights identifies how many cards each suit has in each round.  The table, int64, holds for each sum the number of
    the configuration << 32; −1 if no hand has this sum.  Byte s of the entry is 16 times the position of suit s in the
    configuration.
    """
    weights, sums = _count_weights(cards_per_round)
    deals = []
    for by_round in product(*(_splits(n) for n in cards_per_round)):
        by_suit = list(zip(*by_round, strict=True))
        order = sorted(range(_SUITS), key=lambda suit: by_suit[suit], reverse=True)
        deals.append((np.sum(weights * by_round), tuple(by_suit[suit] for suit in order), order))
    configurations = sorted({configuration for _, configuration, _ in deals}, reverse=True)
    rows = {configuration: row for row, configuration in enumerate(configurations)}
    layout = np.full(sums, -1, np.int64)
    for total, configuration, order in deals:
        positions = sum(16 * position << 8 * suit for position, suit in enumerate(order))
        layout[total] = rows[configuration] << 32 | positions
    return configurations, weights, layout


def _choices(counts: _SuitCounts) -> list[int]:
    """Return how many sets of ranks a suit can get in each round, one number for each round.

    Ranks that the suit has from earlier rounds are excluded.

    counts  number of the suit's cards in each round
    """
    before = accumulate(counts, initial=0)
    return [comb(_RANKS - used, n) for used, n in zip(before, counts, strict=False)]


def _products(factors: Sequence[int]) -> list[int]:
    """Return the list of the products of the first 0, 1, ..., all factors; it begins with 1."""
    return list(accumulate(factors, lambda a, b: a * b, initial=1))


def _groups(configuration: _Configuration) -> tuple[list[int], list[int], list[int], int]:
    """Return (group, member, group_radix, number of classes of hands) of one configuration.

    A configuration lists how many cards each of the four suits has in each round.  The first three results have one
    number for each suit.  Suits with equal counts form a group: `group` is its number, and `member` the index of the
    suit in it.  `group_radix` is the product of the numbers of classes of the earlier groups.
    """
    group, member = [0], [0]
    for before, counts in pairwise(configuration):
        alike = counts == before
        group.append(group[-1] + (not alike))
        member.append(member[-1] + 1 if alike else 0)
    classes = []
    for number in range(group[-1] + 1):
        first, size = group.index(number), group.count(number)
        classes.append(comb(_products(_choices(configuration[first]))[-1] + size - 1, size))
    radices = _products(classes)
    return group, member, [radices[number] for number in group], radices[-1]


def isomorphism_tables(cards_per_round: tuple[int, ...]) -> IsomorphismTables:
    """Build the tables that number hands up to suit order, for given numbers of cards by round.

    It takes milliseconds for hold'em, and 0.3 s for seven rounds of one card.
    """
    configurations, weights, layout = _layouts(cards_per_round)
    choices = np.array([[_choices(counts) for counts in row] for row in configurations], np.int64).transpose(0, 2, 1)
    radix = np.ones_like(choices)
    radix[:, 1:] = np.cumprod(choices, axis=1)[:, :-1]
    groups, members, group_radices, classes = zip(*map(_groups, configurations), strict=True)
    return IsomorphismTables(
        round_start=np.array([0, *accumulate(cards_per_round)], np.int64),
        card_weight=np.repeat(weights, cards_per_round, axis=0),
        layout=layout,
        ranks=_rank_sets(),
        configurations=Configurations(
            radix=np.ascontiguousarray(radix),
            group=np.array(groups, np.int64) << GROUP_SHIFT,
            member=np.array(members, np.int64),
            group_radix=np.array(group_radices, np.int64),
            offset=np.array([0, *accumulate(classes)], np.int64),
        ),
    )
