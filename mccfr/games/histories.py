"""How many histories a game has when its cards are in the tree, as OpenSpiel counts them."""

from math import comb, perm

import numpy as np

from mccfr.cards.listed import ListedCards
from mccfr.games.game import Game
from mccfr.trees.compiled import TERMINAL


def count_histories(game: Game) -> int | None:
    """Number of histories: decisions, terminals and chance nodes, cards dealt one at a time and in order.

    Hole cards are dealt before the first street, board cards on the way into their street (all that are missing, after
    an all-in).  None where the deal is not that of a whole deck with all hands alike: subgames, and games without cards
    in the hands.  Nothing is traversed but the public tree.
    """
    if not game.cards.dealt:
        return len(game.tree.arrays.kind)
    if game.cards.drawn is not None:  # far too many
        return None
    cards = game.cards.listed()
    if (deck := _whole_deck(cards)) is None:
        return None
    arrays, parent = game.tree.arrays, game.tree.parent
    street = np.where(arrays.kind == TERMINAL, arrays.block[parent] // 2, arrays.block // 2)
    street[(arrays.kind == TERMINAL) & (arrays.showdown != 0)] = game.tree.streets - 1  # the board is dealt out
    dealt = [2 * _hole_cards(cards) + board.shape[1] for board in cards.board_cards]
    total = sum(perm(deck, k) for k in range(dealt[0]))
    for node, here in enumerate(street.tolist()):
        total += perm(deck, dealt[here])
        if node:
            total += sum(perm(deck, k) for k in range(dealt[street[parent[node]]], dealt[here]))
    return total


def _hole_cards(cards: ListedCards) -> int:
    return int((cards.hand_cards >= 0).sum(axis=1).max())


def _whole_deck(cards: ListedCards) -> int | None:
    """Size of the deck, if hands and boards are all that such a deck has, each as likely as the others; else None."""
    deck, hole_cards = int(cards.hand_cards.max()) + 1, _hole_cards(cards)
    if not hole_cards or len(cards.hand_cards) != comb(deck, hole_cards) or np.ptp(cards.reach) != 0:
        return None
    boards, dealt = 1, 0
    for board in cards.board_cards:
        boards *= comb(deck - dealt, board.shape[1] - dealt)
        dealt = board.shape[1]
        if len(board) != boards:
            return None
    return deck
