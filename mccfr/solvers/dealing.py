"""Where a sampled run's deals come from: listed cards, the whole deck, or nothing beside the tree."""

from typing import Protocol

import numpy as np

from mccfr.deal import Deals, deal_arrays, draw_deals, no_deal_arrays
from mccfr.games.game import Game
from mccfr.games.holdem_deck import HoldemDeck
from mccfr.holdem_deal import draw_holdem_deals, holdem_deal_arrays


class Dealer(Protocol):
    """Draws deals; the deal of an iteration is a function of (seed, worker, iteration) alone."""

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """Fill deals 0..count-1 with those of iterations first..first+count-1, in place."""


class ListedDealer:
    """Deals hands and boards of a card model (or of none: chance is in the tree)."""

    def __init__(self, game: Game, seed: int, worker: int) -> None:
        assert not isinstance(game.cards, HoldemDeck)
        self._arrays = no_deal_arrays() if game.cards is None else deal_arrays(game.cards)
        self._seed, self._worker = np.uint64(seed), np.uint64(worker)
        self._state = np.zeros(4, np.uint64)

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """As `Dealer.draw`; `ValueError` where the ranges hardly hold two hands that can be dealt together."""
        if not draw_deals(self._arrays, self._seed, self._worker, first, count, self._state, deals):
            raise ValueError("the two ranges hardly hold two hands that can be dealt together: no deal was found")


class DeckDealer:
    """Deals from the whole deck and looks the buckets up."""

    def __init__(self, deck: HoldemDeck, seed: int, worker: int) -> None:
        self._arrays = holdem_deal_arrays(deck.lookup)
        self._seed, self._worker = np.uint64(seed), np.uint64(worker)
        self._state = np.zeros(4, np.uint64)

    def draw(self, first: int, count: int, deals: Deals) -> None:
        """As `Dealer.draw`."""
        draw_holdem_deals(self._arrays, self._seed, self._worker, first, count, self._state, deals)


def make_dealer(game: Game, seed: int, worker: int) -> Dealer:
    """The dealer of a game for one worker."""
    if isinstance(game.cards, HoldemDeck):
        return DeckDealer(game.cards, seed, worker)
    return ListedDealer(game, seed, worker)
