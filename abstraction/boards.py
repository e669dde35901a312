"""Canonical boards: one board of every class of boards that differ only by a relabelling of suits.

A board is a set of 3, 4 or 5 cards.  Its *rank* is its colexicographic number C(c0, 1) + C(c1, 2) + ... over the cards
in ascending order, and the canonical board of a class is its member of least rank: 1,755, 16,432 and 134,459 classes,
numbered by that rank.  Features and buckets are kept per canonical board with one row of 1,326 hole-card slots.  A hand
is found by the location of its dealt board - canonical index and the suit permutation that leads there - and by where
that permutation sends the hole cards:

    index, permutation = locate_river(tables, a, b, c, d, e)
    row[index, tables.hole_permutation[permutation, combo]]

Each slot of a canonical board stands for `multiplicity` concrete pairs of board and hand.  Slots that share a card with
the board are unused.  Hands that a suit permutation leaving the board as it is exchanges have a slot each.
"""

from collections.abc import Sequence
from functools import cache
from itertools import permutations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstraction.cards import CARD_COUNT, COMBO_COUNT, cards_text, combo_masks, combo_table
from abstraction.kernels.jit import allocating_njit, inline_njit, part_njit

BOARD_COUNTS = {3: 1755, 4: 16432, 5: 134459}
"""Canonical boards by number of cards."""
STREET_CARDS = {"preflop": 0, "flop": 3, "turn": 4, "river": 5}
"""Number of board cards on each street."""
PREFLOP_CLASSES = 169

# A location is canonical index · 32 + suit permutation in one int32: one access to memory instead of two.
_PERMUTATION_BITS = 5
_PERMUTATION_MASK = (1 << _PERMUTATION_BITS) - 1
_BLOCK = 256  # boards for which `used_slots` holds 64-bit sets of cards at a time


class CanonicalBoards(NamedTuple):
    """All boards of n cards, of which N are canonical; treat as constants."""

    boards: NDArray[np.int8]
    """[N, n] canonical boards, cards ascending"""
    multiplicity: NDArray[np.int32]
    """[N] concrete boards in each class, 1 to 24"""
    location: NDArray[np.int32]
    """[C(52, n)] location of every board, by its rank"""


class BoardTables(NamedTuple):
    """What kernels need to find dealt boards and hands, 12 MB in all; treat as constants."""

    choose: NDArray[np.int32]
    """[6, 52] C(card, k)"""
    flop: NDArray[np.int32]
    """[22100] locations of boards of three cards, by rank"""
    turn: NDArray[np.int32]
    """[270725] of four"""
    river: NDArray[np.int32]
    """[2598960] of five"""
    hole_permutation: NDArray[np.int16]
    """[24, 1326] combination that each one becomes under each suit permutation"""


# --- kernels ---


@allocating_njit
def _fill_locations(choose, suit_permutation, inverse, boards, multiplicity, location):
    """Fill the three arrays of `CanonicalBoards`; `location` starts as −1 and `multiplicity` as 0.

    Boards come in ascending rank, so the first of its class is the canonical one, and it marks the others.
    """
    n = boards.shape[1]
    cards, image = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        cards[i] = i
    count = 0
    for rank in range(location.shape[0]):
        if location[rank] < 0:
            for i in range(n):  # assigning the whole row takes three seconds to compile
                boards[count, i] = cards[i]
            for p in range(suit_permutation.shape[0]):
                image_rank = 0
                for i in range(n):
                    card = (cards[i] & ~3) | suit_permutation[p, cards[i] & 3]
                    j = i
                    while j > 0 and image[j - 1] > card:
                        image[j] = image[j - 1]
                        j -= 1
                    image[j] = card
                for i in range(n):
                    image_rank += choose[i + 1, image[i]]
                if location[image_rank] < 0:
                    location[image_rank] = count << _PERMUTATION_BITS | inverse[p]
                    multiplicity[count] += 1
            count += 1
        raised = 0
        while raised + 1 < n and cards[raised] + 1 == cards[raised + 1]:
            cards[raised] = raised
            raised += 1
        cards[raised] += 1


@inline_njit
def _unpack(location):
    """Canonical index and suit permutation of a location."""
    return location >> _PERMUTATION_BITS, location & _PERMUTATION_MASK


@part_njit
def locate_flop(tables, a, b, c):
    """Canonical index and suit permutation (two int64) of a board of three distinct cards in any order."""
    at_a = 1 + (a > b) + (a > c)
    at_b = 1 + (b > a) + (b > c)
    rank = tables.choose[at_a, a] + tables.choose[at_b, b] + tables.choose[6 - at_a - at_b, c]
    return _unpack(np.int64(tables.flop[rank]))


@part_njit
def locate_turn(tables, a, b, c, d):
    """Canonical index and suit permutation (two int64) of a board of four distinct cards in any order."""
    at_a = 1 + (a > b) + (a > c) + (a > d)
    at_b = 1 + (b > a) + (b > c) + (b > d)
    at_c = 1 + (c > a) + (c > b) + (c > d)
    rank = tables.choose[at_a, a] + tables.choose[at_b, b] + tables.choose[at_c, c]
    return _unpack(np.int64(tables.turn[rank + tables.choose[10 - at_a - at_b - at_c, d]]))


@part_njit
def locate_river(tables, a, b, c, d, e):
    """Canonical index and suit permutation (two int64) of a board of five distinct cards in any order."""
    at_a = 1 + (a > b) + (a > c) + (a > d) + (a > e)
    at_b = 1 + (b > a) + (b > c) + (b > d) + (b > e)
    at_c = 1 + (c > a) + (c > b) + (c > d) + (c > e)
    at_d = 1 + (d > a) + (d > b) + (d > c) + (d > e)
    rank = tables.choose[at_a, a] + tables.choose[at_b, b] + tables.choose[at_c, c] + tables.choose[at_d, d]
    return _unpack(np.int64(tables.river[rank + tables.choose[15 - at_a - at_b - at_c - at_d, e]]))


# --- functions ---


@cache
def suit_permutations() -> NDArray[np.int8]:
    """All relabellings of suits, [24, 4] int8: permutation p makes suit s the suit [p, s]; the first is identity."""
    return np.array(list(permutations(range(4))), np.int8)


@cache
def hole_permutations() -> NDArray[np.int16]:
    """[24, 1326] int16: the combination that each combination becomes under each suit permutation."""
    cards = combo_table().astype(np.int64)
    images = (cards & ~3)[None] | suit_permutations()[:, cards & 3]
    low, high = images.min(axis=2), images.max(axis=2)
    return (high * (high - 1) // 2 + low).astype(np.int16)


@cache
def preflop_classes() -> NDArray[np.int16]:
    """[1326] int16: the class of hole cards, 0..168, of each combination; classes are numbered by their least one."""
    return np.unique(hole_permutations().min(axis=0), return_inverse=True)[1].astype(np.int16)


def _choose_table() -> NDArray[np.int32]:
    """[6, 52] int32: C(card, k)."""
    return np.array([[comb(card, k) for card in range(CARD_COUNT)] for k in range(6)], np.int32)


def check_board(board: Sequence[int], sizes: Sequence[int] = (3, 4, 5)) -> None:
    """Raise ValueError unless the board holds distinct cards 0..51, as many as one of the sizes allows."""
    cards = [int(card) for card in board]
    if len(cards) not in sizes:
        allowed = ", ".join(map(str, sizes[:-1])) + f" or {sizes[-1]}" if len(sizes) > 1 else str(sizes[0])
        raise ValueError(f"the board has {len(cards)} cards, {cards}: boards of {allowed} cards are supported")
    if not all(0 <= card < CARD_COUNT for card in cards):
        raise ValueError(f"the board {cards} holds a card that does not exist: cards are numbered 0 (2c) to 51 (As)")
    if len(set(cards)) < len(cards):
        raise ValueError(f"the board {cards_text(cards)} holds a card twice: each card may be named once")


@cache
def board_classes(cards: int) -> CanonicalBoards:
    """All boards of 3, 4 or 5 cards and their canonical ones, built on first use (five cards: 0.1 s) and shared.

    Raises ValueError for another number of cards.
    """
    if cards not in BOARD_COUNTS:
        raise ValueError(f"boards of {cards} cards were asked for: 3, 4 and 5 are supported")
    permutation = suit_permutations().astype(np.int64)
    inverse_of = np.argsort(permutation, axis=1)
    inverse = (inverse_of[:, None] == permutation[None]).all(axis=2).argmax(axis=1)
    boards = np.empty((BOARD_COUNTS[cards], cards), np.int8)
    multiplicity = np.zeros(len(boards), np.int32)
    location = np.full(comb(CARD_COUNT, cards), -1, np.int32)
    _fill_locations(_choose_table(), permutation, inverse, boards, multiplicity, location)
    return CanonicalBoards(boards, multiplicity, location)


def canonical_boards(cards: int) -> NDArray[np.int8]:
    """[N, cards] int8: canonical boards of 3, 4 or 5 cards in the order of their indices, each ascending."""
    return board_classes(cards).boards


@cache
def board_tables() -> BoardTables:
    """The tables that kernels take, built on first use and shared."""
    flop, turn, river = (board_classes(cards).location for cards in BOARD_COUNTS)
    return BoardTables(_choose_table(), flop, turn, river, hole_permutations())


def locate_board(board: Sequence[int]) -> tuple[int, int]:
    """Canonical index, and suit permutation that maps a board of 3, 4 or 5 cards, in any order, onto the canonical one.

    Raises ValueError if the board does not hold 3, 4 or 5 distinct cards of 0..51.
    """
    check_board(board)
    rank = sum(comb(card, place) for place, card in enumerate(sorted(int(card) for card in board), 1))
    location = int(board_classes(len(board)).location[rank])
    return location >> _PERMUTATION_BITS, location & _PERMUTATION_MASK


def used_slots(boards: NDArray[np.int8]) -> NDArray[np.bool_]:
    """[N, 1326] bool: hole-card slots that share no card with each of the boards [N, n] int8."""
    hole = combo_masks()
    board = np.bitwise_or.reduce(np.uint64(1) << boards.astype(np.uint64), axis=1)
    used = np.empty((len(boards), COMBO_COUNT), np.bool_)
    for first in range(0, len(boards), _BLOCK):
        np.equal(board[first : first + _BLOCK, None] & hole, 0, out=used[first : first + _BLOCK])
    return used
