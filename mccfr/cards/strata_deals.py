"""Draws the deals of one stratum: first a board of the second street, then hands and later boards.

The deal of iteration k of stratum s is a pure function of (seed, s, k).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.boards import canonical_boards, suit_permutations
from abstraction.cards import CARD_COUNT
from abstraction.kernels.jit import allocating_njit, njit
from abstraction.lookup import BOARD_CARDS, BucketTables
from mccfr.cards.deals import (
    MAX_TRIES,
    DealArrays,
    Deals,
    alias_table,
    board_below,
    draw_alias,
    note_buckets,
    showdown,
)
from mccfr.cards.full_deck_deals import fill_deals, take_card
from mccfr.common.rng import DEALS, below, next_word, seed_stream

_WORD_CARDS = 6  # 49·48·47·46·45·44 = 1e10 outcomes from one word of 64 bits: relative bias below 1e-9


class BoardAliasTable(NamedTuple):
    """Alias table (Vose 1991) that draws one of the F boards of a stratum on the second street.

    accept  [F] float64   probability of keeping the drawn index
    alias   [F] int32     index taken otherwise
    board   [F] int64     number of each board in the caller's list of all boards
    """

    accept: npt.NDArray[np.float64]
    alias: npt.NDArray[np.int32]
    board: npt.NDArray[np.int64]


@njit
def draw_stratum_deals(arrays, drawn, seed, stratum, first_iteration, count, state, deals):
    """Draw the deals of iterations first_iteration .. +count-1 of a stratum into `deals`, in place.

    arrays  `DealArrays`: listed hands and boards
    drawn   `BoardAliasTable`, which draws the board of the second street
    state   [4] uint64, scratch for random numbers
    deals   `Deals` of at least `count` entries

    Both hands are redrawn from the ranges until they are disjoint from each other and the board. So pairs that fit the
    board have probability proportional to the product of their range weights. Later boards are uniform among those
    disjoint from both hands. Returns False if one deal has 1,000,000 rejected pairs, else True.
    """
    for k in range(count):
        seed_stream(state, seed, stratum, np.uint64(DEALS), np.uint64(first_iteration + k))
        board = drawn.board[draw_alias(state, drawn.accept, drawn.alias)]
        tries = 0
        while True:
            hand_0 = draw_alias(state, arrays.accept[0], arrays.alias[0])
            hand_1 = draw_alias(state, arrays.accept[1], arrays.alias[1])
            dead = arrays.hand_mask[hand_0] | arrays.hand_mask[hand_1]
            if arrays.hand_mask[hand_0] & arrays.hand_mask[hand_1] == 0 and arrays.board_mask[board] & dead == 0:
                break
            tries += 1
            if tries == MAX_TRIES:
                return False
        note_buckets(arrays, 0, 0, hand_0, hand_1, deals.bucket[k])
        note_buckets(arrays, 1, board, hand_0, hand_1, deals.bucket[k])
        for street in range(2, arrays.children.shape[0]):
            board = board_below(arrays, street, board, dead, state)
            note_buckets(arrays, street, board, hand_0, hand_1, deals.bucket[k])
        deals.result[k] = showdown(arrays, board, hand_0, hand_1)
    return True


@allocating_njit
def draw_stratum_cards(drawn, flops, seed, stratum, first_iteration, count, state, cards):
    """Draw the cards of `count` deals of a stratum into `cards` [K >= count, 2·P + 5] int8, in place.

    drawn  `BoardAliasTable`, which draws the board of n cards of the second street
    flops  [24, F, n] int8: the stratum's boards under each of the 24 suit permutations, of which one is drawn uniformly
    state  [4] uint64, scratch for random numbers

    Order of the cards: each player's two hole cards, player 0's first, then the board.
    """
    deck, dealt, held = np.empty(CARD_COUNT, np.int8), flops.shape[2], cards.shape[1] - BOARD_CARDS
    for k in range(count):
        seed_stream(state, seed, stratum, np.uint64(DEALS), np.uint64(first_iteration + k))
        row = draw_alias(state, drawn.accept, drawn.alias)
        renaming = below(state, flops.shape[0])
        for card in range(CARD_COUNT):
            deck[card] = card
        for i in range(dealt):  # move the board to the front of the deck by swaps, as `take_card` does
            card = flops[renaming, row, i]
            at = np.int64(i)
            while deck[at] != card:
                at += 1
            deck[at] = deck[i]
            deck[i] = card
        word = np.uint64(0)
        for i in range(dealt, cards.shape[1]):
            if (i - dealt) % _WORD_CARDS == 0:
                word = next_word(state)
            word = take_card(word, deck, i)
        for i in range(held):
            cards[k, i] = deck[dealt + i]
        for i in range(dealt):
            cards[k, held + i] = deck[i]
        for i in range(dealt + held, cards.shape[1]):
            cards[k, i] = deck[i]


def board_alias_table(boards: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]) -> BoardAliasTable:
    """Return the alias table that draws one of the board numbers `boards` [F] by their weights [F]."""
    return BoardAliasTable(*alias_table(weights), np.ascontiguousarray(boards, np.int64))


class ListedStratumDealer:
    """Draws deals of one stratum of listed hands and boards (a `mccfr.cards.base.Dealer`)."""

    def __init__(self, arrays: DealArrays, alias_table: BoardAliasTable, seed: int, stratum: int) -> None:
        """Store the listed hands and boards, and the table that draws the second-street board.

        alias_table  its `board` are indices in the list of all boards of `arrays`
        """
        self._arrays, self._drawn = arrays, alias_table
        self._seed, self._stratum = np.uint64(seed), np.uint64(stratum)
        self._state = np.zeros(4, np.uint64)

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """Write the stratum's deals of iterations first .. first+count-1 to entries 0 .. count-1 of `deals`.

        Raises `ValueError` if 1,000,000 pairs of hands in a row share a card with each other or the board.
        """
        arrays, drawn = self._arrays, self._drawn
        if not draw_stratum_deals(arrays, drawn, self._seed, self._stratum, first, count, self._state, deals):
            raise ValueError("almost no two hands of the ranges are possible on a board: no deal was found")


class DeckStratumDealer:
    """Draws deals of the full deck for one stratum of canonical boards (a `mccfr.cards.base.Dealer`)."""

    def __init__(
        self, tables: BucketTables, alias_table: BoardAliasTable, added: npt.NDArray[np.int32], seed: int, stratum: int
    ) -> None:
        """Store the bucket tables, and the table that draws the stratum's second-street board.

        alias_table  its `board` are indices of canonical boards of the second street
        added        [P·S] int32, column P·street + player: the stratum's first bucket number on later streets, which
                     is added to the bucket from `tables`; 0 on the first two streets
        """
        self._added = added
        self._tables, self._drawn = tables, alias_table
        self._seed, self._stratum = np.uint64(seed), np.uint64(stratum)
        self._state = np.zeros(4, np.uint64)
        boards = canonical_boards(int(tables.board_cards[1]))[alias_table.board].astype(np.int64)
        renamed = suit_permutations().astype(np.int64)[:, boards & 3]
        self._flops = np.ascontiguousarray((boards & ~3)[None] | renamed, np.int8)

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """Write the stratum's deals of iterations first .. first+count-1 to entries 0 .. count-1 of `deals`."""
        players = len(self._added) // len(self._tables.board_cards)
        cards = np.empty((count, 2 * players + BOARD_CARDS), np.int8)
        draw_stratum_cards(self._drawn, self._flops, self._seed, self._stratum, first, count, self._state, cards)
        fill_deals(self._tables, cards, deals)
        deals.bucket[:count] += self._added
