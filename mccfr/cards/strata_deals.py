"""Deals of one stratum: a board of the second street from its list by weight, then hands and the rest of the board.

The deal of iteration k of stratum s is a pure function of (seed, s, k), by a stream that no worker's number names
otherwise: what `mccfr.cards.deals` draws for worker s is another deal of the same words.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.boards import canonical_boards, suit_permutations
from abstraction.cards import CARD_COUNT
from abstraction.evaluator import evaluator_tables
from abstraction.kernels.jit import allocating_njit, njit
from abstraction.lookup import DEAL_CARDS, BucketTables, fill_buckets, fill_results
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
from mccfr.cards.deck_deals import take_card
from mccfr.rng import DEALS, below, next_word, seed_stream


class Drawn(NamedTuple):
    """Boards of a stratum, to be drawn by weight.  F boards.

    accept  [F] float64   alias method: chance of keeping the drawn one
    alias   [F] int32     alias method: the one taken otherwise
    board   [F] int64     place of each in the list of all boards
    """

    accept: npt.NDArray[np.float64]
    alias: npt.NDArray[np.int32]
    board: npt.NDArray[np.int64]


@njit
def draw_stratum_deals(arrays, drawn, seed, stratum, first_iteration, count, state, deals):
    """As `mccfr.cards.deals.draw_deals`, with boards of the second street from `drawn` (`Drawn`), in place.

    The first street has one board.  Hands are drawn from the ranges until they share no card with each other nor with
    the board, which gives reach[0]·reach[1] on the pairs that the board leaves; later boards are uniform.
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
    """As `mccfr.cards.deck_deals.draw_cards`, with the first board cards from `drawn`, in place.

    flops  [24, F, n] int8: the boards of `drawn` under every renaming of suits, one of which is drawn for each deal
    """
    deck, dealt = np.empty(CARD_COUNT, np.int8), flops.shape[2]
    for k in range(count):
        seed_stream(state, seed, stratum, np.uint64(DEALS), np.uint64(first_iteration + k))
        place = draw_alias(state, drawn.accept, drawn.alias)
        renaming = below(state, flops.shape[0])
        for card in range(CARD_COUNT):
            deck[card] = card
        for i in range(dealt):  # the board to the front, as `take_card` has it: every card stays in the deck once
            card = flops[renaming, place, i]
            at = np.int64(i)
            while deck[at] != card:
                at += 1
            deck[at] = deck[i]
            deck[i] = card
        word = next_word(state)
        for i in range(dealt, DEAL_CARDS):
            word = take_card(word, deck, i)
        for i in range(4):
            cards[k, i] = deck[dealt + i]
        for i in range(dealt):
            cards[k, 4 + i] = deck[i]
        for i in range(dealt + 4, DEAL_CARDS):
            cards[k, i] = deck[i]


def drawn_boards(boards: npt.NDArray[np.int64], weights: npt.NDArray[np.float64]) -> Drawn:
    """What kernels draw boards [F] by weights [F] from."""
    return Drawn(*alias_table(weights), np.ascontiguousarray(boards, np.int64))


class ListedStratumDealer:
    """Deals of a stratum of listed boards: a `mccfr.cards.cards.Dealer`."""

    def __init__(self, arrays: DealArrays, drawn: Drawn, seed: int, stratum: int) -> None:
        """`drawn` by the boards' places in the list of all streets' boards."""
        self._arrays, self._drawn = arrays, drawn
        self._seed, self._stratum = np.uint64(seed), np.uint64(stratum)
        self._state = np.zeros(4, np.uint64)

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """As `Dealer.draw`."""
        arrays, drawn = self._arrays, self._drawn
        if not draw_stratum_deals(arrays, drawn, self._seed, self._stratum, first, count, self._state, deals):
            raise ValueError("the two ranges hardly hold two hands that a board leaves: no deal was found")


class DeckStratumDealer:
    """Deals of a stratum of canonical boards of the deck: a `mccfr.cards.cards.Dealer`."""

    def __init__(
        self, tables: BucketTables, drawn: Drawn, added: npt.NDArray[np.int32], seed: int, stratum: int
    ) -> None:
        """`drawn` by canonical boards of the second street; `added` [2·S] by block, to buckets that `tables` give."""
        self._added = added
        self._tables, self._drawn, self._evaluator = tables, drawn, evaluator_tables()
        self._seed, self._stratum = np.uint64(seed), np.uint64(stratum)
        self._state = np.zeros(4, np.uint64)
        boards = canonical_boards(int(tables.board_cards[1]))[drawn.board].astype(np.int64)
        renamed = suit_permutations().astype(np.int64)[:, boards & 3]
        self._flops = np.ascontiguousarray((boards & ~3)[None] | renamed, np.int8)

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """As `Dealer.draw`."""
        cards = np.empty((count, DEAL_CARDS), np.int8)
        draw_stratum_cards(self._drawn, self._flops, self._seed, self._stratum, first, count, self._state, cards)
        fill_results(self._evaluator, cards, count, self._tables.board_cards[-1], deals.result)
        fill_buckets(self._tables, cards, count, deals.bucket)
        deals.bucket[:count] += self._added
