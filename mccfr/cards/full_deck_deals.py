"""Draws deals of full hold'em: the cards, the showdown, and all players' buckets on every street.

The deal of iteration k of a worker is a pure function of (seed, worker, k), independent of the batch size. Every deal
has five board cards, even in games that use only three.
"""

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT
from abstraction.hand_evaluator import evaluator_tables
from abstraction.kernels.jit import inline_njit, nogil_allocating_njit
from abstraction.lookup import BOARD_CARDS, BucketTables, fill_buckets, fill_results, fill_strengths
from abstraction.recall_buckets import Histories
from mccfr.cards.deals import Deals
from mccfr.common.rng import DEALS, next_word, seed_stream

_WORD_CARDS = 5  # 52·51·50·49·48 = 3e8 outcomes from one word of 64 bits: relative bias below 2e-11


@inline_njit
def take_card(word, deck, position):
    """Swap a random card of deck[position:] to deck[position]; return `word` without the used bits.

    word  uint64 random number; its remainder by the number of cards left chooses the card, its quotient is returned
    deck  [52] int8 card numbers, changed in place
    """
    remaining = np.uint64(CARD_COUNT - position)
    chosen = position + np.int64(word % remaining)
    card = deck[chosen]
    deck[chosen] = deck[position]
    deck[position] = card
    return word // remaining


@nogil_allocating_njit
def draw_cards(seed, worker, purpose, first_iteration, count, state, cards):
    """Draw the cards of iterations first_iteration .. +count-1 into cards [K >= count, 2·P + 5] int8.

    seed, worker, purpose  choose the random stream, together with the iteration; purpose: DEALS for training,
                           another such as EVALUATION for play
    state                  [4] uint64, scratch for random numbers

    Order: each player's two hole cards, player 0's first, then the board. All ordered deals are equally likely, up to a
    relative error of 2e-11 for each five cards.
    """
    deck, dealt = np.empty(CARD_COUNT, np.int8), cards.shape[1]
    for k in range(count):
        seed_stream(state, seed, worker, np.uint64(purpose), np.uint64(first_iteration + k))
        for card in range(CARD_COUNT):
            deck[card] = card
        for first in range(0, dealt, _WORD_CARDS):
            word = next_word(state)
            for position in range(first, min(first + _WORD_CARDS, dealt)):
                word = take_card(word, deck, position)
        for position in range(dealt):
            cards[k, position] = deck[position]


def fill_deals(tables: BucketTables, cards: npt.NDArray[np.int8], deals: Deals) -> None:
    """Compute the buckets and the showdowns of K deals from their cards, and write them to `deals`.

    tables  arrays in which hands' buckets on all streets are looked up
    cards   [K, 2·P + 5] cards of each deal, for P players
    deals   arrays for at least K deals; the first K are written

    The cards are each player's two hole cards, player 0's first, then the board. The showdowns are
    `deals.result` for two players, and `deals.strength` for three and more.
    """
    count, streets = len(cards), len(tables.board_cards)
    shown = tables.board_cards[-1]
    if deals.bucket.shape[1] == 2 * streets:
        fill_results(evaluator_tables(), cards, count, shown, deals.result)
    else:
        fill_strengths(evaluator_tables(), cards, count, shown, deals.strength)
    fill_buckets(tables, cards, count, deals.bucket)


class DeckDealer:
    """Draws deals from the full deck, with their buckets, for one worker (a `mccfr.cards.base.Dealer`)."""

    def __init__(self, buckets: BucketTables, seed: int, worker: int, histories: Histories | None = None) -> None:
        """Store the bucket tables, and the seed and worker number that select the random stream.

        histories  maps table entries to buckets that remember earlier streets; None: the entries are the buckets
        """
        self._tables, self._histories = buckets, histories
        self._seed, self._worker = np.uint64(seed), np.uint64(worker)
        self._state = np.zeros(4, np.uint64)

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """Write the deals of iterations first .. first+count-1 to the first entries of `deals`.

        `deals` has arrays for each hand's bucket on each street, and for the showdowns.
        """
        players = deals.bucket.shape[1] // len(self._tables.board_cards)
        cards = np.empty((count, 2 * players + BOARD_CARDS), np.int8)
        draw_cards(self._seed, self._worker, DEALS, first, count, self._state, cards)
        fill_deals(self._tables, cards, deals)
        if self._histories is not None:
            self._histories.replace(deals.bucket[:count])
