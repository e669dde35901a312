"""Draws the deals of a stratum, one of the sets into which training divides the flops.

In general a stratum is a set of boards of the second street. Each is trained separately. A deal begins with one of its
boards, by their probability; hands and later boards follow.

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
    """Alias table (Vose 1991), from which one of F second-street boards is drawn in constant time.

    The F boards form a stratum, which is trained separately.

    accept  [F] float64   probability of keeping an index that is drawn uniformly
    alias   [F] int32     index taken otherwise
    board   [F] int64     index of each board in the caller's list of boards
    """

    accept: npt.NDArray[np.float64]
    alias: npt.NDArray[np.int32]
    board: npt.NDArray[np.int64]


@njit
def draw_stratum_deals(arrays, drawn, seed, stratum, first_iteration, count, state, deals):
    """Draw deals of iterations first_iteration .. +count-1 of a stratum into `deals`, in place.

    A stratum is a set of second-street boards that is trained separately.

    arrays  `DealArrays`: all hands and boards of the game
    drawn   `BoardAliasTable`, from which the board of the second street is drawn
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
    """Draw the cards of `count` full-deck deals, whose flop is one of F boards, into `cards`.

    These F boards of the second street form a stratum, a part of the game that is trained separately.

    drawn  `BoardAliasTable`, from which the board of the second street, of n cards, is drawn
    flops  [24, F, n] int8: the stratum's boards under each of the 24 suit permutations; one is drawn uniformly
    state  [4] uint64, scratch for random numbers
    cards  [K >= count, 2·P + 5] int8 for P players, changed in place

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
    """Return a table from which one of F board numbers is drawn in proportion to `weights` [F].

    boards  [F] the board numbers: indices in the caller's list of boards
    """
    return BoardAliasTable(*alias_table(weights), np.ascontiguousarray(boards, np.int64))


class ListedStratumDealer:
    """Draws deals of a game that lists its boards, with the second-street board from one stratum.

    A stratum is a set of such boards that is trained separately. The class is a `mccfr.cards.base.Dealer`.
    """

    def __init__(self, arrays: DealArrays, alias_table: BoardAliasTable, seed: int, stratum: int) -> None:
        """Store the game's hands and boards, and the table to draw the second-street board from.

        alias_table  its field `board` has indices in the list of all boards of `arrays`
        stratum      number of the stratum (the set of boards in `alias_table`), which selects the random stream
        """
        self._arrays, self._drawn = arrays, alias_table
        self._seed, self._stratum = np.uint64(seed), np.uint64(stratum)
        self._state = np.zeros(4, np.uint64)

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """Write the deals of iterations first .. first+count-1 to the first entries of `deals`.

        `deals` has arrays for each hand's bucket on each street, and for the showdowns. Raises `ValueError` if
        1,000,000 pairs of hands in a row share a card with each other or the board.
        """
        arrays, drawn = self._arrays, self._drawn
        if not draw_stratum_deals(arrays, drawn, self._seed, self._stratum, first, count, self._state, deals):
            raise ValueError("almost no two hands of the ranges are possible on a board: no deal was found")


class DeckStratumDealer:
    """Draws full-deck deals whose flop is, up to suits, in one set (stratum) of canonical boards.

    It is a `mccfr.cards.base.Dealer`. Each stratum is trained separately.
    """

    def __init__(
        self, tables: BucketTables, alias_table: BoardAliasTable, added: npt.NDArray[np.int32], seed: int, stratum: int
    ) -> None:
        """Store the bucket tables, and the table from which the second-street board is drawn.

        alias_table  its field `board` has indices of canonical boards of the second street
        added        [P·S] int32, index P·street + player: number that is added to the bucket from `tables`, because
                     each stratum has buckets of its own on later streets; 0 on the first two streets
        stratum      number of the stratum (the set of boards in `alias_table`), which selects the random stream
        """
        self._added = added
        self._tables, self._drawn = tables, alias_table
        self._seed, self._stratum = np.uint64(seed), np.uint64(stratum)
        self._state = np.zeros(4, np.uint64)
        boards = canonical_boards(int(tables.board_cards[1]))[alias_table.board].astype(np.int64)
        renamed = suit_permutations().astype(np.int64)[:, boards & 3]
        self._flops = np.ascontiguousarray((boards & ~3)[None] | renamed, np.int8)

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """Write the deals of iterations first .. first+count-1 to the first entries of `deals`.

        `deals` has arrays for each hand's bucket on each street, and for the showdowns.
        """
        players = len(self._added) // len(self._tables.board_cards)
        cards = np.empty((count, 2 * players + BOARD_CARDS), np.int8)
        draw_stratum_cards(self._drawn, self._flops, self._seed, self._stratum, first, count, self._state, cards)
        fill_deals(self._tables, cards, deals)
        deals.bucket[:count] += self._added
