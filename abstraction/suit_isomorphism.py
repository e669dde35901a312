"""Suit isomorphism: a perfect index of hands up to a permutation of suits.

Source: Waugh, "A Fast and Optimal Hand Isomorphism Algorithm" (AAAI 2013 workshop).  Cards come in rounds, and the
order within a round does not matter.  (2, 5) is two hole cards and an unordered board; (2, 3, 1, 1) is hole cards,
flop, turn and river.  The classes for given rounds are numbered 0, 1, ... without gaps.

The cards of one suit are one set of ranks for each round; a set cannot hold ranks of the suit's earlier rounds.  So
the remaining ranks are renumbered without gaps, and the set's colexicographic rank among sets of its size is a digit.
The digits of all rounds, in a mixed radix, form one number for the suit.

The *configuration* of a hand is the multiset of its suits' card counts by round.  Suits are sorted by these counts.
Suits with different counts are distinguishable, and their numbers are digits of the index. k suits with equal counts
are interchangeable.  The multiset of their numbers x_0 ≤ x_1 ≤ ... is one digit, the sum of C(x_i + i, i + 1).

Our change: one look-up gives the configuration and the order of the suits before any rank is read.  Each card adds a
weight for its round and suit, and the sum identifies the counts.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstraction.kernels.jit import inline_njit, njit
from abstraction.suit_isomorphism_tables import GROUP_SHIFT, RANK_SET, IsomorphismTables, isomorphism_tables

_NUMBER = (1 << GROUP_SHIFT) - 1

# --- kernels ---
#
# Inlined into the calling loop, because passing ten arrays to a compiled function takes longer than the work itself.


@inline_njit
def _multisets(x, i):
    """Return C(x + i, i + 1), the number of multisets of i + 1 numbers below x; i is 0 to 3."""
    if i == 0:
        return x
    if i == 1:
        return x * (x + 1) // 2
    if i == 2:
        return x * (x + 1) * (x + 2) // 6
    return x * (x + 1) * (x + 2) * (x + 3) // 24


@inline_njit
def index_hand(tables, cards):
    """Return the class index (int64) of a hand; hands equal up to a renaming of suits share it.

    tables  `IsomorphismTables` of the hand's cards per round
    cards   [N] card numbers 0..51, round after round, unchecked
    """
    total = np.int64(0)
    for i in range(tables.card_weight.shape[0]):
        total += tables.card_weight[i, cards[i] & 3]
    layout = tables.layout[total]
    row = layout >> 32
    used = np.int64(0)  # rank sets of the earlier rounds, 16 bits for each position
    suits = tables.configurations
    x0, x1, x2, x3 = suits.group[row, 0], suits.group[row, 1], suits.group[row, 2], suits.group[row, 3]
    for r in range(tables.round_start.shape[0] - 1):
        used_in_suit, closed = used, np.int64(0)
        for i in range(tables.round_start[r], tables.round_start[r + 1]):
            card = np.int64(cards[i])
            rank = card >> 2
            shift = (layout >> 8 * (card & 3)) & 63
            below = (used >> shift) & ((1 << rank) - 1)
            closed |= 1 << (shift + rank - tables.ranks.set_size[below])
            used_in_suit |= 1 << (shift + rank)
        used = used_in_suit
        x0 += suits.radix[row, r, 0] * tables.ranks.set_number[closed & RANK_SET]
        x1 += suits.radix[row, r, 1] * tables.ranks.set_number[closed >> 16 & RANK_SET]
        x2 += suits.radix[row, r, 2] * tables.ranks.set_number[closed >> 32 & RANK_SET]
        x3 += suits.radix[row, r, 3] * tables.ranks.set_number[closed >> 48 & RANK_SET]
    # A sorting network. The group number in the high bits keeps groups apart.
    x0, x1, x2, x3 = min(x0, x1), max(x0, x1), min(x2, x3), max(x2, x3)
    x0, x2, x1, x3 = min(x0, x2), max(x0, x2), min(x1, x3), max(x1, x3)
    x1, x2 = min(x1, x2), max(x1, x2)
    index = suits.offset[row] + (x0 & _NUMBER)
    index += suits.group_radix[row, 1] * _multisets(x1 & _NUMBER, suits.member[row, 1])
    index += suits.group_radix[row, 2] * _multisets(x2 & _NUMBER, suits.member[row, 2])
    index += suits.group_radix[row, 3] * _multisets(x3 & _NUMBER, suits.member[row, 3])
    return index


@njit
def _fill_indices(tables, cards, out):
    """Write the class indices of hands [H, N] int8 into out [H] int64.

    `tables` is `IsomorphismTables` of the hands' cards per round.
    """
    for hand in range(cards.shape[0]):
        out[hand] = index_hand(tables, cards[hand])


# --- functions ---


@dataclass(frozen=True)
class Indexer:
    """Numbers hands with given cards per round; hands equal up to a renaming of suits share a number.

    Created by `indexer`.
    """

    tables: IsomorphismTables
    """tables for the kernels"""

    @property
    def size(self) -> int:
        """Return the number of classes; indices run from 0 to size − 1."""
        return int(self.tables.configurations.offset[-1])

    def index_batch(self, cards: ArrayLike) -> NDArray[np.int64]:
        """Return the class index of each row of distinct cards [H, N], round after round, as [H] int64.

        Cards are numbers 0..51 and are not checked.  Their order within a round does not matter.
        """
        rows = np.array(cards, np.int8, order="C")
        out = np.empty(len(rows), np.int64)
        _fill_indices(self.tables, rows, out)
        return out


@cache
def indexer(cards_per_round: tuple[int, ...]) -> Indexer:
    """Return the indexer for cards per round such as (2, 5) or (2, 3, 1, 1), built once and shared.

    Building takes milliseconds for hold'em, and 0.3 s for seven rounds of one card.  Rounds have at least one card
    each, and at most seven in all.
    """
    return Indexer(isomorphism_tables(cards_per_round))
