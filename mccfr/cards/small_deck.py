"""Card models of games with a small deck: every hand, every board, infosets numbered with or without suits merged."""

from collections.abc import Sequence
from itertools import accumulate, combinations, permutations
from math import comb

import numpy as np
import numpy.typing as npt

from abstraction.cards import hand_cards
from abstraction.evaluator import poker_family_strength, strengths
from mccfr.cards.deals import NO_BUCKET, card_masks
from mccfr.cards.listed import ListedCards

_RANKS = "23456789TJQKA"
_SUITS = "cdhs"
_STANDARD, _MOST = 5, 7  # cards from which on straights and flushes count, and up to which hands are ranked
_COUNT_BITS = 3  # of a rank's cards, four at most
MAX_CELLS = 5_000_000
"""Pairs of hand and board over all streets: a second to number, and a minute to be walked in an iteration."""
Boards = list[tuple[tuple[int, ...], ...]]  # each board as one tuple of cards for each street
Cells = npt.NDArray[np.int64]


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

    `names` gives the letters of the ranks, lowest first.  Raises `ValueError` if the deck is too small for the deal, or
    the deal too large.
    """
    deck, needed = ranks * suits, 2 * hole_cards + sum(board_cards)
    if not 1 <= suits <= 4 or not 2 <= ranks <= 13 or needed > deck:
        raise ValueError(
            f"a deck of {ranks} ranks and {suits} suits: 2 to 13 ranks, 1 to 4 suits, and {needed} cards are needed"
        )
    _check_size(deck, hole_cards, board_cards)
    letters = names or rank_names(ranks)
    hands = hand_cards(deck, hole_cards).astype(np.int16)
    listed, parents = _boards(deck, board_cards)
    boards = [np.array([sum(board, ()) for board in b], np.int16).reshape(len(b), -1) for b in listed]
    codes = _card_codes(deck, suits, merge_suits, hole_cards + sum(board_cards) >= _STANDARD)
    bucket = [_number(hands, dealt, board_cards[: street + 1], codes) for street, dealt in enumerate(boards)]
    return ListedCards(
        hands,
        ["".join(_card_name(card, suits, letters) for card in hand[::-1] if card >= 0) for hand in hands.tolist()],
        np.ones((2, len(hands))),
        boards,
        [np.array(parent, np.int32) for parent in parents],
        _strength(hands, boards[-1], ranks, suits),
        [np.stack([b, b]) for b in bucket],
        np.array([[b.max() + 1] * 2 for b in bucket], np.int64),
    )


def _check_size(deck: int, hole_cards: int, board_cards: Sequence[int]) -> None:
    """Raise `ValueError`, before anything is listed, where cards are too many to rank, or boards and hands to list."""
    if hole_cards + sum(board_cards) > _MOST:
        raise ValueError(
            f"{hole_cards} cards in a hand and {list(board_cards)} on the board: together they are {_MOST} at most"
        )
    boards, street_boards = 1, []
    for dealt, before in zip(board_cards, accumulate(board_cards, initial=0), strict=False):
        boards *= comb(deck - before, dealt)
        street_boards.append(boards)
    cells = comb(deck, hole_cards) * sum(street_boards)
    if cells > MAX_CELLS:
        raise ValueError(
            f"a deck of {deck} cards with {hole_cards} in a hand and {list(board_cards)} on the board has {cells:,} "
            f"pairs of hand and board; {MAX_CELLS:,} are allowed: take fewer ranks, suits or board cards, or a hold'em "
            "game with an [abstraction]"
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


# --- strengths ---


def _strength(
    hands: npt.NDArray[np.int16], boards: npt.NDArray[np.int16], ranks: int, suits: int
) -> npt.NDArray[np.int32]:
    """[B, H] showdown order of hands [H, 2] on boards [B, n], higher wins; -1 where they share a card.

    Boards of the same cards are ranked once, and where suits do not count, hands of the same ranks.
    """
    held = hands[:, : max(1, int((hands[0] >= 0).sum()))]
    known, which = np.unique(np.sort(boards, axis=1), axis=0, return_inverse=True)
    free = _disjoint(hands, known)
    board, hand = np.nonzero(free)
    cards = np.concatenate([held[hand], known[board]], axis=1).astype(np.int64)
    strength = np.full(free.shape, -1, np.int32)
    if cards.shape[1] >= _STANDARD:
        strength[free] = strengths(cards // suits * 4 + cards % suits)
        return strength[which.reshape(-1)]
    counts = (np.int64(1) << _COUNT_BITS * (cards // suits)).sum(axis=1)
    _, first, alike = np.unique(counts, return_index=True, return_inverse=True)
    found = [poker_family_strength(row, (), ranks, suits) for row in cards[first].tolist()]
    strength[free] = np.array(found, np.int32)[alike]
    return strength[which.reshape(-1)]


def _disjoint(hands: npt.NDArray[np.int16], boards: npt.NDArray[np.int16]) -> npt.NDArray[np.bool_]:
    """[B, H] whether a hand shares no card with a board."""
    return (card_masks(boards)[:, None] & card_masks(hands)) == 0


# --- infosets ---


def _card_codes(deck: int, suits: int, merge: bool, flushes: bool) -> Cells:
    """[R, deck] what a card adds to the code of a set of cards, by renaming of the suits; the first changes nothing.

    Merged, suits are renamed at will; where no hand can hold five cards, and so no flush, they do not count at all.
    """
    card = np.arange(deck)
    rank, suit = card // suits, card % suits
    if merge and not flushes:
        return (np.int64(1) << _COUNT_BITS * rank)[None]
    renamings = np.array(list(permutations(range(suits)))[: None if merge else 1])
    return np.int64(1) << (rank * suits + renamings[:, suit])


def _number(
    hands: npt.NDArray[np.int16], boards: npt.NDArray[np.int16], sizes: Sequence[int], codes: Cells
) -> npt.NDArray[np.int32]:
    """[B, H] int32 infoset numbers in order of first appearance, board by board; NO_BUCKET where they share a card.

    hands  [H, 2], -1 for no card     boards  [B, n] of streets with `sizes` cards     codes  of `_card_codes`

    Hand and board, street by street, are one infoset with others that a renaming takes them to: the least of the
    numbers that all renamings give to the pair stands for it.
    """
    hand, board, last = _groups(hands[:, hands[0] >= 0], codes), np.zeros((len(codes), len(boards)), np.int64), 0
    for size in sizes:
        street = _groups(boards[:, last : last + size], codes)
        board = _ranks(board * (1 + int(street.max())) + street)
        last += size
    pairs = np.full((len(boards), len(hands)), np.iinfo(np.int64).max)
    for renamed_board, renamed_hand in zip(board * (1 + int(hand.max())), hand, strict=True):
        np.minimum(pairs, renamed_board[:, None] + renamed_hand, out=pairs)
    free = _disjoint(hands, boards)
    _, first, alike = np.unique(pairs[free], return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int32)
    order[np.argsort(first)] = np.arange(len(first))
    numbers = np.full(free.shape, NO_BUCKET, np.int32)
    numbers[free] = order[alike]
    return numbers


def _groups(cards: npt.NDArray[np.int16], codes: Cells) -> Cells:
    """[R, N] a number for the set of cards in each row of `cards` [N, n], under each renaming; equal for equal sets."""
    return _ranks(codes[:, cards].sum(axis=2))


def _ranks(values: Cells) -> Cells:
    """The values, each as its place among the different ones: small numbers."""
    return np.unique(values, return_inverse=True)[1].reshape(values.shape)
