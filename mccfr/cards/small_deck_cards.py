"""Cards of games with a small deck: all hands and boards, with or without suit isomorphism."""

from collections.abc import Sequence

import numpy as np

from abstraction.small_deck_hands import DeckListing
from mccfr.cards.card_lists import ListedCards


def small_deck(
    ranks: int,
    suits: int,
    hole_cards: int,
    board_cards: Sequence[int],
    *,
    merge_suits: bool = False,
    names: str | None = None,
) -> ListedCards:
    """Return all hands and boards of a small deck as a `ListedCards`; both players hold every hand.

    The result has arrays of hands, boards, weights and buckets. A card's number is rank·suits + suit.

    hole_cards   number of cards in a hand
    board_cards  number of cards dealt to the board on each street
    merge_suits  True: (hand, board) pairs that are equal up to a permutation of suits share a bucket
    names        letters of the ranks, lowest first

    Raises `ValueError` if the deck is too small for the deal, or the game too large to list.
    """
    deck = DeckListing(ranks, suits, hole_cards, tuple(board_cards))
    bucket = [deck.numbers(street, merge_suits=merge_suits) for street in range(deck.streets)]
    return ListedCards(
        deck.hands,
        deck.hand_names(names),
        np.ones((2, len(deck.hands))),
        list(deck.boards),
        list(deck.parents),
        deck.strength,
        [np.stack([b, b]) for b in bucket],
        np.array([[b.max() + 1] * 2 for b in bucket], np.int64),
    )
