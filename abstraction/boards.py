"""Canonical boards: one for each class of boards that differ only by a permutation of suits.

A board is a set of 3, 4 or 5 cards.  Its *rank* is its colexicographic number C(c0, 1) + C(c1, 2) + ... over the cards
in ascending order.  The canonical board of a class is its member of least rank.  There are 1,755, 16,432 and 134,459
classes, numbered by that rank.

A table of features or buckets has one row for each canonical board.  A row has 1,326 *slots*, one for each combination
of two hole cards.  The *location* of a dealt board is its canonical index (the number of its class) and the suit
permutation to the canonical board.  The same permutation maps the hole cards.  With `tables` from `board_tables`, the
entry for five board cards and the combination number `combo` is:

    index, permutation = locate(tables.choose, tables.river, cards)
    table[index, tables.hole_permutation[permutation, combo]]

Each slot stands for `multiplicity` dealt pairs of board and hand, where `multiplicity` is the number of boards in the
class.  Slots that share a card with the board are unused.
"""

from collections.abc import Sequence
from functools import cache
from itertools import permutations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstraction.cards import CARD_COUNT, COMBO_COUNT, cards_text, combo_masks, combo_table
from abstraction.kernels.jit import njit, part_njit

BOARD_COUNTS = {3: 1755, 4: 16432, 5: 134459}
"""Number of canonical boards, by number of cards."""
STREET_CARDS = {"preflop": 0, "flop": 3, "turn": 4, "river": 5}
"""Number of board cards on each street."""
PREFLOP_CLASSES = 169

# A location is canonical index · 32 + suit permutation in one int32, so that a look-up reads memory once, not twice.
_PERMUTATION_BITS = 5
_PERMUTATION_MASK = (1 << _PERMUTATION_BITS) - 1
_BLOCK = 256  # boards for which `used_slots` holds 64-bit card sets at a time


class CanonicalBoards(NamedTuple):
    """The N canonical boards of n cards, and the canonical board of every other board.  Read-only.

    There is one canonical board for each class of boards that differ only by a permutation of suits.
    """

    boards: NDArray[np.int8]
    """[N, n] canonical boards, cards ascending"""
    multiplicity: NDArray[np.int32]
    """[N] number of boards in each class, 1 to 24"""
    location: NDArray[np.int32]
    """[C(52, n)] canonical index · 32 + suit permutation to it, of every board by colexicographic rank"""


class BoardTables(NamedTuple):
    """Tables with which compiled code maps a dealt board and hand to the canonical board, 12 MB.

    A canonical board stands for all boards that differ only by a permutation of suits.  Binomial coefficients give the
    colexicographic rank by which a board of 4 or 5 cards is looked up.  Read-only.
    """

    choose: NDArray[np.int32]
    """[6, 52] binomial coefficients C(card, k), row k and column card"""
    turn: NDArray[np.int32]
    """[270725] canonical index · 32 + suit permutation of boards of four cards, by colexicographic rank"""
    river: NDArray[np.int32]
    """[2598960] canonical index · 32 + suit permutation of boards of five cards, by colexicographic rank"""
    hole_permutation: NDArray[np.int16]
    """[24, 1326] combination (two hole cards) to which each suit permutation maps each combination"""


# --- kernels ---


@njit
def _fill_locations(choose, suit_permutation, inverse, boards, multiplicity, location, cards, image):
    """Fill the three arrays of `CanonicalBoards` for boards of n cards, in place.

    choose            [6, 52] int32 binomial coefficients, row k and column card
    suit_permutation  [24, 4] int64: permutation p maps suit s to [p, s]
    inverse           [24] int64 number of the inverse of each permutation
    boards            [N, n] int8, receives the canonical boards
    multiplicity      [N] int32, 0 at the start, receives the number of boards in each class
    location          [C(52, n)] int32, −1 at the start, receives canonical index · 32 + suit permutation
    cards             [n] int64 scratch memory, the cards 0 to n − 1 at the start
    image             [n] int64 scratch memory

    Boards are visited in ascending rank, so the first board of a class is the canonical one.  Its images under all suit
    permutations are the other boards of the class.
    """
    n = boards.shape[1]
    count = 0
    for rank in range(location.shape[0]):
        if location[rank] < 0:
            for i in range(n):  # assigning a whole row takes three seconds to compile
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


@part_njit
def locate(choose, location, cards):
    """Return the index of a board's canonical board and the suit permutation 0..23 to it, both int64.

    choose    [6, 52] int32 binomial coefficients, row k and column card
    location  [C(52, n)] int32 canonical index · 32 + suit permutation of every board, by colexicographic rank
    cards     [n] int64 distinct cards of the board, in any order
    """
    rank = np.int64(0)
    for i in range(cards.shape[0]):
        count = 1
        for j in range(cards.shape[0]):
            count += cards[i] > cards[j]
        rank += choose[count, cards[i]]
    location_word = np.int64(location[rank])
    return location_word >> _PERMUTATION_BITS, location_word & _PERMUTATION_MASK


# --- functions ---


@cache
def suit_permutations() -> NDArray[np.int8]:
    """Return all suit permutations, [24, 4] int8: permutation p maps suit s to result[p, s].

    The first is the identity.
    """
    return np.array(list(permutations(range(4))), np.int8)


@cache
def hole_permutations() -> NDArray[np.int16]:
    """Return [24, 1326] int16: suit permutation p maps combination c (two hole cards) to result[p, c]."""
    cards = combo_table().astype(np.int64)
    images = (cards & ~3)[None] | suit_permutations()[:, cards & 3]
    low, high = images.min(axis=2), images.max(axis=2)
    return (high * (high - 1) // 2 + low).astype(np.int16)


@cache
def preflop_classes() -> NDArray[np.int16]:
    """Return [1326] int16: the preflop class 0..168, such as AKs, of each combination of hole cards.

    Classes are numbered in the order of their lowest combination.
    """
    return np.unique(hole_permutations().min(axis=0), return_inverse=True)[1].astype(np.int16)


def _choose_table() -> NDArray[np.int32]:
    """Return the binomial coefficients C(card, k), [6, 52] int32 with row k and column card."""
    return np.array([[comb(card, k) for card in range(CARD_COUNT)] for k in range(6)], np.int32)


def check_board(board: Sequence[int], sizes: Sequence[int] = (3, 4, 5)) -> None:
    """Raise `ValueError` unless a board has distinct cards 0..51, and `sizes` contains their number."""
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
    """Return the `CanonicalBoards` of 3, 4 or 5 cards: boards, class sizes, all boards' locations.

    A class holds the boards that differ only by a permutation of suits; its canonical board stands for them.  A
    location is canonical index · 32 + suit permutation to the canonical board.  The arrays are built once and shared.

    cards  number of cards on a board
    """
    permutation = suit_permutations().astype(np.int64)
    inverse_of = np.argsort(permutation, axis=1)
    inverse = (inverse_of[:, None] == permutation[None]).all(axis=2).argmax(axis=1)
    boards = np.empty((BOARD_COUNTS[cards], cards), np.int8)
    multiplicity = np.zeros(len(boards), np.int32)
    location = np.full(comb(CARD_COUNT, cards), -1, np.int32)
    scratch = np.arange(cards), np.empty(cards, np.int64)
    _fill_locations(_choose_table(), permutation, inverse, boards, multiplicity, location, *scratch)
    return CanonicalBoards(boards, multiplicity, location)


def canonical_boards(cards: int) -> NDArray[np.int8]:
    """Return the canonical boards of 3, 4 or 5 cards in order of index, [N, cards] int8, cards ascending.

    A canonical board stands for all boards that differ from it only by a permutation of suits.

    cards  number of cards on a board
    """
    return board_classes(cards).boards


@cache
def board_tables() -> BoardTables:
    """Return the `BoardTables`, which map a dealt board and hand to the canonical board.

    A canonical board stands for all boards that differ only by a permutation of suits.  The tables are built on first
    use and shared.
    """
    return BoardTables(_choose_table(), board_classes(4).location, board_classes(5).location, hole_permutations())


def locate_board(board: Sequence[int]) -> tuple[int, int]:
    """Return the index of a board's canonical board and the suit permutation, 0 to 23, that maps to it.

    `board` holds 3, 4 or 5 cards in any order.  Raises `ValueError` unless they are distinct cards 0..51.
    """
    check_board(board)
    rank = sum(comb(card, count) for count, card in enumerate(sorted(int(card) for card in board), 1))
    location = int(board_classes(len(board)).location[rank])
    return location >> _PERMUTATION_BITS, location & _PERMUTATION_MASK


def used_slots(boards: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Return [N, 1326] bool: True if a combination (two hole cards) shares no card with the board.

    boards  [N, n] int8 cards 0..51
    """
    hole = combo_masks()
    board = np.bitwise_or.reduce(np.uint64(1) << boards.astype(np.uint64), axis=1)
    used = np.empty((len(boards), COMBO_COUNT), np.bool_)
    for first in range(0, len(boards), _BLOCK):
        np.equal(board[first : first + _BLOCK, None] & hole, 0, out=used[first : first + _BLOCK])
    return used
