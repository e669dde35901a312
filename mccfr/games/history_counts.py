"""Counts the histories of a game with its cards in the tree, as OpenSpiel counts them."""

from math import comb, perm

import numpy as np

from mccfr.cards.card_lists import ListedCards
from mccfr.games.game import Game
from mccfr.trees.compiled import TERMINAL


def count_histories(game: Game) -> int | None:
    """Return the number of histories: decisions, terminals and chance nodes, each card dealt separately.

    Hole cards are dealt before the first street, board cards before their street, and all missing ones after an all-in.
    Only the public tree is traversed. None for subgames, full hold'em, and cards that are not a full deck with uniform
    ranges.
    """
    if not game.cards.dealt:
        return len(game.tree.arrays.kind)
    if game.cards.drawn is not None:  # too many to list
        return None
    cards = game.cards.listed()
    if (deck := _whole_deck(cards)) is None:
        return None
    arrays, parent = game.tree.arrays, game.tree.parent
    street = np.where(arrays.kind == TERMINAL, arrays.block[parent] // 2, arrays.block // 2)
    street[(arrays.kind == TERMINAL) & (arrays.showdown != 0)] = game.tree.streets - 1  # the board is run out
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
    """Return the deck size if hands and boards are all those of a full deck, equally likely; else None."""
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
