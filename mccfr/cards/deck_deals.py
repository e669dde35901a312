"""Deals of whole hold'em: nine cards without replacement, the showdown, and both players' buckets on every street.

As in `mccfr.cards.deals`, the deal of iteration k of a worker is a pure function of (seed, worker, k), so results do
not depend on how many deals are drawn at a time.  Every deal has five board cards, also in games that use only three.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from abstraction.cards import CARD_COUNT
from abstraction.evaluator import EvaluatorTables, evaluator_tables
from abstraction.history import Histories
from abstraction.kernels.jit import inline_njit, nogil_allocating_njit
from abstraction.lookup import DEAL_CARDS, BucketTables, fill_buckets, fill_results
from mccfr.cards.deals import Deals
from mccfr.rng import DEALS, next_word, seed_stream

_FIRST_WORD_CARDS = 5  # 52·51·50·49·48 is 3e8: taken from one word of 64 bits, a relative bias below 2e-11


class HoldemDealArrays(NamedTuple):
    """What the deal kernel takes: the buckets of the game's streets, and the evaluator."""

    buckets: BucketTables
    evaluator: EvaluatorTables


def holdem_deal_arrays(buckets: BucketTables) -> HoldemDealArrays:
    """The deal kernel's arrays for these buckets."""
    return HoldemDealArrays(buckets, evaluator_tables())


@inline_njit
def take_card(word, deck, place):
    """Bring one of the cards that are left to `place` of the deck; returns the rest of the random word."""
    left = np.uint64(CARD_COUNT - place)
    chosen = place + np.int64(word % left)
    card = deck[chosen]
    deck[chosen] = deck[place]
    deck[place] = card
    return word // left


@nogil_allocating_njit
def draw_cards(seed, worker, purpose, first_iteration, count, state, cards):
    """Draw nine cards for iterations first_iteration .. + count − 1 into cards [K >= count, 9] int8, in place.

    `purpose` is that of the stream, DEALS where strategies are trained.  Player 0's hole cards, player 1's, the board
    in order of dealing; every order of every nine cards has the same chance, to a relative 2e-11.  `state` [4] uint64
    is scratch.
    """
    deck = np.empty(CARD_COUNT, np.int8)
    for k in range(count):
        seed_stream(state, seed, worker, np.uint64(purpose), np.uint64(first_iteration + k))
        for card in range(CARD_COUNT):
            deck[card] = card
        word = next_word(state)
        for place in range(_FIRST_WORD_CARDS):
            word = take_card(word, deck, place)
        word = next_word(state)
        for place in range(_FIRST_WORD_CARDS, DEAL_CARDS):
            word = take_card(word, deck, place)
        for place in range(DEAL_CARDS):
            cards[k, place] = deck[place]


@nogil_allocating_njit
def draw_holdem_deals(arrays, seed, worker, first_iteration, count, state, deals):
    """Draw the deals of iterations first_iteration .. + count − 1 into `deals` [K >= count], in place.

    Takes and returns what `mccfr.cards.deals.draw_deals` does, with `HoldemDealArrays`; always True.
    """
    cards = np.empty((count, DEAL_CARDS), np.int8)
    draw_cards(seed, worker, DEALS, first_iteration, count, state, cards)
    board_cards = arrays.buckets.board_cards
    fill_results(arrays.evaluator, cards, count, board_cards[board_cards.shape[0] - 1], deals.result)
    fill_buckets(arrays.buckets, cards, count, deals.bucket)
    return True


class DeckDealer:
    """Deals from the whole deck and looks the buckets up: a `mccfr.cards.cards.Dealer`."""

    def __init__(self, buckets: BucketTables, seed: int, worker: int, histories: Histories | None = None) -> None:
        self._arrays, self._histories = holdem_deal_arrays(buckets), histories
        self._seed, self._worker = np.uint64(seed), np.uint64(worker)
        self._state = np.zeros(4, np.uint64)

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """As `Dealer.draw`."""
        draw_holdem_deals(self._arrays, self._seed, self._worker, first, count, self._state, deals)
        if self._histories is not None:
            self._histories.replace(deals.bucket[:count])


class SeatedDealer:
    """The same deals, for players who have bucket tables of their own each: a `mccfr.cards.cards.Dealer`.

    cards  [K, 9] int8 cards of the deals that were drawn last, as `draw_cards` has them
    """

    def __init__(
        self, buckets: Sequence[BucketTables], histories: Sequence[Histories | None], seed: int, worker: int
    ) -> None:
        """`buckets` and `histories` by player."""
        self._buckets, self._histories, self._evaluator = buckets, histories, evaluator_tables()
        self._seed, self._worker = np.uint64(seed), np.uint64(worker)
        self._state = np.zeros(4, np.uint64)
        self.cards = np.zeros((0, DEAL_CARDS), np.int8)

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """As `Dealer.draw`."""
        self.cards = np.zeros((count, DEAL_CARDS), np.int8)
        draw_cards(self._seed, self._worker, DEALS, first, count, self._state, self.cards)
        board_cards = int(self._buckets[0].board_cards[-1])
        fill_results(self._evaluator, self.cards, count, board_cards, deals.result)
        found = np.empty((count, deals.bucket.shape[1]), np.int32)
        for player, tables in enumerate(self._buckets):
            fill_buckets(tables, self.cards, count, found)
            if (histories := self._histories[player]) is not None:
                histories.replace(found)
            deals.bucket[:count, player::2] = found[:, player::2]
