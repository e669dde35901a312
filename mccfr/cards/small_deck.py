"""Card models of games with a small deck: every hand, every board, infosets numbered with or without suits merged."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, combinations, permutations
from math import comb, factorial

import numpy as np

from abstraction.cards import hand_cards
from abstraction.evaluator import poker_family_strength
from mccfr.cards.deals import NO_BUCKET
from mccfr.cards.listed import ListedCards

_RANKS = "23456789TJQKA"
_SUITS = "cdhs"
MAX_CELLS = 5_000_000
"""Pairs of hand and board over all streets; each takes about 400 bytes while it is numbered: 2 GB."""
MAX_STEPS = 20_000_000
"""The same, times the renamings of suits that are tried for each: minutes."""
Boards = list[tuple[tuple[int, ...], ...]]  # each board as one tuple of cards for each street


def rank_names(ranks: int) -> str:
    """Letters of the highest `ranks` ranks, lowest first: 3 gives QKA; small decks are named from the top."""
    return _RANKS[len(_RANKS) - ranks :]


def small_deck(
    ranks: int,
    suits: int,
    hole_cards: int,
    board_cards: Sequence[int],
    *,
    merge_suits: bool = False,
    names: str | None = None,
) -> ListedCards:
    """Card model of a full small deck (card = rank·suits + suit) with uniform ranges.

    `names` gives the letters of the ranks, lowest first.  Raises `ValueError` if the deck is too small for the deal.
    """
    deck, needed = ranks * suits, 2 * hole_cards + sum(board_cards)
    if not 1 <= suits <= 4 or not 2 <= ranks <= 13 or needed > deck:
        raise ValueError(
            f"a deck of {ranks} ranks and {suits} suits: 2 to 13 ranks, 1 to 4 suits, and {needed} cards are needed"
        )
    _check_size(deck, suits, hole_cards, board_cards, merge_suits)
    letters = names or rank_names(ranks)
    hands = [tuple(int(c) for c in hand if c >= 0) for hand in hand_cards(deck, hole_cards)]
    boards, parents = _boards(deck, board_cards)
    strength = np.array([[_strength(hand, board, ranks, suits) for hand in hands] for board in boards[-1]], np.int32)
    flushes = hole_cards + sum(board_cards) >= 5
    bucket = [_number(hands, street_boards, suits, merge_suits, flushes) for street_boards in boards]
    return ListedCards(
        hand_cards(deck, hole_cards).astype(np.int16),
        ["".join(_card_name(card, suits, letters) for card in reversed(hand)) for hand in hands],
        np.ones((2, len(hands))),
        [np.array([sum(board, ()) for board in b], np.int16).reshape(len(b), -1) for b in boards],
        [np.array(parent, np.int32) for parent in parents],
        strength,
        [np.stack([b, b]) for b in bucket],
        np.array([[b.max() + 1] * 2 for b in bucket], np.int64),
    )


def _check_size(deck: int, suits: int, hole_cards: int, board_cards: Sequence[int], merge_suits: bool) -> None:
    """Raise `ValueError`, before anything is listed, where boards and hands are too many to list them."""
    boards, street_boards = 1, []
    for dealt, before in zip(board_cards, accumulate(board_cards, initial=0), strict=False):
        boards *= comb(deck - before, dealt)
        street_boards.append(boards)
    cells = comb(deck, hole_cards) * sum(street_boards)
    steps = cells * (factorial(suits) if merge_suits else 1)
    if cells > MAX_CELLS or steps > MAX_STEPS:
        raise ValueError(
            f"a deck of {deck} cards with {hole_cards} in a hand and {list(board_cards)} on the board has {cells:,} "
            f"pairs of hand and board ({steps:,} with suits renamed); {MAX_CELLS:,} ({MAX_STEPS:,}) are allowed: take "
            "fewer ranks, suits or board cards, or a hold'em game with an [abstraction]"
        )


def _card_name(card: int, suits: int, letters: str) -> str:
    rank = letters[card // suits]
    return rank if suits == 1 else rank + _SUITS[card % suits]


def _boards(deck: int, board_cards: Sequence[int]) -> tuple[list[Boards], list[list[int]]]:
    """Boards of each street in the order of their parents, and each board's parent."""
    boards: list[Boards] = []
    parents: list[list[int]] = []
    above: Boards = [()]
    for dealt in board_cards:
        here, parent = [], []
        for index, board in enumerate(above):
            used = {card for street in board for card in street}
            for cards in combinations([card for card in range(deck) if card not in used], dealt):
                here.append((*board, cards))
                parent.append(index)
        boards.append(here)
        parents.append(parent)
        above = here
    return boards, parents


def _strength(hand: tuple[int, ...], board: tuple[tuple[int, ...], ...], ranks: int, suits: int) -> int:
    cards = [card for street in board for card in street]
    if set(hand) & set(cards):
        return -1
    return _cached_strength(hand, tuple(sorted(cards)), ranks, suits)


@lru_cache(maxsize=1_000_000)
def _cached_strength(hand: tuple[int, ...], board: tuple[int, ...], ranks: int, suits: int) -> int:
    return poker_family_strength(hand, board, ranks, suits)


def _number(hands: list[tuple[int, ...]], boards: Boards, suits: int, merge: bool, flushes: bool) -> np.ndarray:
    """[B, H] int32 infoset numbers in order of first appearance, board by board; NO_BUCKET where they share a card.

    Merged, suits are renamed at will; where no hand can hold five cards, and so no flush, they do not count at all.
    """
    relabellings = list(permutations(range(suits))) if merge else [tuple(range(suits))]
    if merge and not flushes:
        relabellings = [(0,) * suits]
    known: dict[object, int] = {}
    numbers = np.full((len(boards), len(hands)), NO_BUCKET, np.int32)
    for b, board in enumerate(boards):
        used = {card for street in board for card in street}
        for h, hand in enumerate(hands):
            if used.isdisjoint(hand):
                key = min(_relabelled(hand, board, relabelling, suits) for relabelling in relabellings)
                numbers[b, h] = known.setdefault(key, len(known))
    return numbers


def _relabelled(
    hand: tuple[int, ...], board: tuple[tuple[int, ...], ...], relabelling: tuple[int, ...], suits: int
) -> tuple[tuple[int, ...], ...]:
    """A hand and its board with suits renamed, cards within the hand and within each street in ascending order."""
    return tuple(
        tuple(sorted(card // suits * suits + relabelling[card % suits] for card in group)) for group in (hand, *board)
    )
