"""Exact strength of poker hands of five to seven cards, 1 (7-5-4-3-2) to 7,462 (royal flush).

Every card has a *key*, and the keys of a hand are added.  Bits 0..16 hold the counts of the ranks 2..8 as a number in
base 5.  Bits 17..30 hold those of 9..A. From bit 32 on, four bits for each suit count its cards.

The counts of the ranks 2..8 give an offset into a dense table, and those of 9..A an index from there on.  So each
multiset of ranks has an entry of its own, 49,205 for seven cards.  Seven cards with a flush hold neither four
of a kind nor a full house.  So the suit's 13-bit rank set decides a flush.  A board is summed once; each hand then
costs two additions and three look-ups.

Kernels take the tables as an argument, because numba would compile globals into every kernel.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstraction.cards import CARD_COUNT, COMBO_COUNT, combo_masks, combo_table
from abstraction.kernels.jit import njit, part_njit

CATEGORIES = (
    "high card",
    "pair",
    "two pair",
    "three of a kind",
    "straight",
    "flush",
    "full house",
    "four of a kind",
    "straight flush",
)
CATEGORY_SIZES = (1277, 2860, 858, 858, 10, 1277, 156, 156, 10)
"""Number of distinct strengths in each category, weakest category first.  They add up to 7,462."""

_LOW_RANKS, _HIGH_RANKS = 7, 6
_HIGH_SHIFT, _SUIT_SHIFT = 17, 32
_LOW_BITS, _HIGH_BITS = (1 << 17) - 1, (1 << 14) - 1
# Each suit's four bits start at 3. The fifth card of a suit then sets the top bit, and seven cards do not overflow.
SUIT_START = 0x3333 << _SUIT_SHIFT
_FLUSH_BITS = 0x8888 << _SUIT_SHIFT
_RANK_SET = (1 << 13) - 1
_PAIR, _TWO_PAIR, _TRIPS, _STRAIGHT, _FLUSH, _FULL_HOUSE, _QUADS, _STRAIGHT_FLUSH = range(1, 9)


class EvaluatorTables(NamedTuple):
    """Look-up tables of the evaluator, 0.6 MB in all.  Read-only."""

    card_key: NDArray[np.int64]
    """[52] key of each card; the sum of a hand's keys counts its ranks and suits"""
    card_suit_set: NDArray[np.int64]
    """[52] each card as bit 16·suit + rank"""
    low_offset: NDArray[np.uint16]
    """[3, 78125] offset in `ranks_strength`, by number of cards − 5 and base-5 counts of the ranks 2..8"""
    high_index: NDArray[np.uint16]
    """[15625] index added to the offset, by base-5 counts of the ranks 9..A"""
    ranks_strength: NDArray[np.int16]
    """[3, 49205] strength without flushes, by number of cards − 5 and low_offset + high_index"""
    flush_strength: NDArray[np.int16]
    """[8192] strength of a flush, by the rank set of its suit; 0 for fewer than five ranks"""


# --- tables ---


def _keep_highest(rank_sets: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the `count` highest ranks of each 13-bit rank set [N], or all of them if there are fewer."""
    highest = np.zeros_like(rank_sets)
    remaining = rank_sets.copy()
    for _ in range(count):
        top = np.where(remaining > 0, np.int64(1) << (np.frexp(remaining.astype(np.float64))[1] - 1).clip(0), 0)
        highest |= top
        remaining &= ~top
    return highest


def _straight_top(rank_sets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the bit of the top rank of the best straight in each 13-bit rank set [N], or 0.

    The ace also counts as low.
    """
    shifted = (rank_sets << 1) | (rank_sets >> 12)
    runs = shifted & (shifted >> 1) & (shifted >> 2) & (shifted >> 3) & (shifted >> 4)
    return _keep_highest(runs, 1) << 3


def _score(category: int, main: NDArray[np.int64], kickers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the scores of N hands of one category, [N] int64; of two hands the higher score wins.

    Category (0 high card to 8 straight flush), main ranks and kickers count in this order.

    main, kickers  [N] int64 rank sets of 13 bits
    """
    return (category << 26) | (main << 13) | kickers


def _rank_scores(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the scores [N] (higher wins) of the best five cards of rank counts [N, 13], ignoring suits.

    Hands of fewer cards are scored by all of them.
    """
    bits = np.int64(1) << np.arange(13)
    once, twice, thrice, four = (((counts >= n) * bits).sum(axis=1) for n in (1, 2, 3, 4))
    quads, trips = _keep_highest(four, 1), _keep_highest(thrice, 1)
    pair, pairs = _keep_highest(twice, 1), _keep_highest(twice, 2)
    full_of = _keep_highest(twice & ~trips, 1)
    straight = _straight_top(once)
    candidates = [
        (quads > 0, _score(_QUADS, quads, _keep_highest(once & ~quads, 1))),
        ((trips > 0) & (full_of > 0), _score(_FULL_HOUSE, trips, full_of)),
        (straight > 0, _score(_STRAIGHT, straight, np.zeros_like(once))),
        (trips > 0, _score(_TRIPS, trips, _keep_highest(once & ~trips, 2))),
        (pairs != pair, _score(_TWO_PAIR, pairs, _keep_highest(once & ~pairs, 1))),
        (pair > 0, _score(_PAIR, pair, _keep_highest(once & ~pair, 3))),
    ]
    return np.select([holds for holds, _ in candidates], [score for _, score in candidates], _keep_highest(once, 5))


def _flush_scores() -> NDArray[np.int64]:
    """Return the scores [8192] (higher wins) of flushes by rank set; −1 for fewer than five ranks."""
    sets = np.arange(_RANK_SET + 1, dtype=np.int64)
    straight = _straight_top(sets)
    scores = np.where(
        straight > 0,
        _score(_STRAIGHT_FLUSH, straight, np.zeros_like(sets)),
        _score(_FLUSH, np.zeros_like(sets), _keep_highest(sets, 5)),
    )
    scores[np.bitwise_count(sets) < 5] = -1
    return scores


def _half_counts(ranks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all possible counts of cards for `ranks` ranks, 0 to 4 of each, and their sums.

    The counts are the base-5 digits of the row's number, lowest first, [5^ranks, ranks]; the sums are [5^ranks].
    """
    digits = np.arange(5**ranks)[:, None] // 5 ** np.arange(ranks) % 5
    return digits, digits.sum(axis=1)


@cache
def evaluator_tables() -> EvaluatorTables:
    """Return the look-up tables of the hand evaluator, built on first use (about 0.1 s) and shared."""
    low_digits, low_sums = _half_counts(_LOW_RANKS)
    high_digits, high_sums = _half_counts(_HIGH_RANKS)
    high_index = np.zeros(len(high_sums), np.uint16)
    high_sets = [np.flatnonzero(high_sums == high_count) for high_count in range(8)]
    for members in high_sets:
        high_index[members] = np.arange(len(members))

    low_offset = np.zeros((3, len(low_sums)), np.uint16)
    scores = []
    for cards in (5, 6, 7):
        blocks, start = [], 0
        for high_count in range(cards + 1):
            lows, highs = np.flatnonzero(low_sums == high_count), high_sets[cards - high_count]
            low_offset[cards - 5, lows] = start + len(highs) * np.arange(len(lows))
            start += len(lows) * len(highs)
            blocks.append(np.hstack([low_digits[np.repeat(lows, len(highs))], high_digits[np.tile(highs, len(lows))]]))
        scores.append(_rank_scores(np.vstack(blocks)))

    flush = _flush_scores()
    order = np.unique(np.concatenate([scores[0], flush[flush >= 0]]))
    ranks_strength = np.zeros((3, len(scores[2])), np.int16)
    for row, score in zip(ranks_strength, scores, strict=True):
        row[: len(score)] = 1 + np.searchsorted(order, score)
    card = np.arange(CARD_COUNT)
    rank, suit = card // 4, card % 4
    rank_key = np.where(rank < _LOW_RANKS, 5**rank, 5 ** (rank - _LOW_RANKS).clip(0) << _HIGH_SHIFT)
    return EvaluatorTables(
        card_key=rank_key + (1 << (_SUIT_SHIFT + 4 * suit)),
        card_suit_set=np.int64(1) << (16 * suit + rank),
        low_offset=low_offset,
        high_index=high_index,
        ranks_strength=ranks_strength,
        flush_strength=np.where(flush >= 0, 1 + np.searchsorted(order, flush), 0).astype(np.int16),
    )


# --- kernels ---


@part_njit
def board_sums(tables, board):
    """Return (key, suit_sets), two int64 that the evaluator needs of the cards `board` [n].

    key        the constant `SUIT_START` plus `tables.card_key` of each card, which counts ranks and suits
    suit_sets  set of bits 16·suit + rank of each card

    The caller adds the values of the hole cards to both.  `tables` is `EvaluatorTables`.
    """
    key, suit_sets = np.int64(SUIT_START), np.int64(0)
    for i in range(board.shape[0]):
        key += tables.card_key[board[i]]
        suit_sets |= tables.card_suit_set[board[i]]
    return key, suit_sets


@part_njit
def strength_of_ranks(tables, key, cards):
    """Return the strength (int64) of 5, 6 or 7 cards by their ranks alone, without flushes.

    tables  `EvaluatorTables`
    key     int64, sum of `tables.card_key` of the cards, which counts their ranks; suits in it are ignored
    cards   number of cards
    """
    low = np.int64(tables.low_offset[cards - 5, key & _LOW_BITS])
    high = np.int64(tables.high_index[(key >> _HIGH_SHIFT) & _HIGH_BITS])
    return np.int64(tables.ranks_strength[cards - 5, low + high])


@part_njit
def strength_of_sums(tables, key, suit_sets, cards):
    """Return the strength (int64) of 5, 6 or 7 cards.

    tables     `EvaluatorTables`
    key        int64, `SUIT_START` plus `tables.card_key` of each card
    suit_sets  int64, bit 16·suit + rank of each card
    cards      number of cards
    """
    flush = key & _FLUSH_BITS
    if not flush:
        return strength_of_ranks(tables, key, cards)
    shift = 0
    while not flush & (8 << _SUIT_SHIFT):
        flush >>= 4
        shift += 16
    return np.int64(tables.flush_strength[(suit_sets >> shift) & _RANK_SET])


@part_njit
def _fill_flushes(tables, key, suit_sets, out):
    """Write the strength of each combination (two hole cards) that makes a flush on a board to out [1326].

    tables     `EvaluatorTables`
    key        int64, `SUIT_START` plus `tables.card_key` of each board card
    suit_sets  int64, bit 16·suit + rank of each board card

    Entries of combinations that share a card with the board may be wrong; the caller overwrites them.
    """
    for suit in range(4):
        suit_count = ((key >> (_SUIT_SHIFT + 4 * suit)) & 15) - 3
        if suit_count < 3:
            continue
        for b in range(CARD_COUNT):
            b_held = suit_count + (b & 3 == suit)
            for a in range(b):
                if b_held + (a & 3 == suit) >= 5:
                    sets = suit_sets | tables.card_suit_set[a] | tables.card_suit_set[b]
                    out[b * (b - 1) // 2 + a] = tables.flush_strength[(sets >> 16 * suit) & _RANK_SET]


@part_njit
def fill_board_strengths(tables, board, out):
    """Write the strength of every combination (two hole cards) on a board into out [1326] int16.

    tables  `EvaluatorTables`
    board   [3..5] distinct cards 0..51

    Combinations that share a card with the board get −1.
    """
    key, suit_sets = board_sums(tables, board)
    cards = board.shape[0] + 2
    for high in range(13):
        for low in range(high + 1):
            held_low = held_high = 1
            for card in board:
                held_low += card // 4 == low
                held_high += card // 4 == high
            value = np.int64(-1)
            if held_low + (low == high) <= 4 and held_high <= 4:  # a fifth card of a rank would exceed the tables
                value = strength_of_ranks(tables, key + tables.card_key[4 * low] + tables.card_key[4 * high], cards)
            for b in range(4 * high, 4 * high + 4):
                for a in range(4 * low, min(4 * low + 4, b)):
                    out[b * (b - 1) // 2 + a] = value
    _fill_flushes(tables, key, suit_sets, out)
    for card in board:
        b = np.int64(card)
        for a in range(b):
            out[b * (b - 1) // 2 + a] = -1
        for c in range(b + 1, CARD_COUNT):
            out[c * (c - 1) // 2 + b] = -1


@njit
def fill_strengths_on_boards(tables, boards, strength):
    """Write the strength of every combination (two hole cards) on each of R boards.

    tables    `EvaluatorTables`, the look-up tables of the hand evaluator
    boards    [R, 3..5] int8 cards 0..51, distinct within a row
    strength  [R, 1326] int16, overwritten; higher wins

    Combinations that share a card with the board get −1.
    """
    for board in range(boards.shape[0]):
        fill_board_strengths(tables, boards[board], strength[board])


@njit
def fill_strengths(tables, cards, out):
    """Write the strength of each row of cards [N, 5..7] int8 into out [N] int32.

    `tables` is `EvaluatorTables`.  The cards 0..51 of a row are distinct; this is not checked.
    """
    for row in range(cards.shape[0]):
        key, suit_sets = np.int64(SUIT_START), np.int64(0)
        for i in range(cards.shape[1]):  # not `board_sums`, because slicing a row would take most of the time
            key += tables.card_key[cards[row, i]]
            suit_sets |= tables.card_suit_set[cards[row, i]]
        out[row] = strength_of_sums(tables, key, suit_sets, cards.shape[1])


# --- functions ---


def strengths(cards: ArrayLike) -> NDArray[np.int32]:
    """Return the strength 1..7,462 of each row of cards [N, 5..7], as [N] int32.

    Cards are numbers 0..51, distinct within a row.  Higher is better and equal means a tie, also between hands of
    different numbers of cards.

    Raises `ValueError` if the array has another shape, a card does not exist, or a row holds a card twice.
    """
    rows = np.asarray(cards)
    if rows.ndim != 2 or not 5 <= rows.shape[1] <= 7 or not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(
            f"cards have shape {rows.shape} and dtype {rows.dtype}: rows of 5 to 7 card numbers are needed"
        )
    if rows.size and not (rows.min() >= 0 and rows.max() < CARD_COUNT):
        raise ValueError(f"cards range from {rows.min()} to {rows.max()}: they are numbered 0 (2c) to 51 (As)")
    sets = np.bitwise_or.reduce(np.int64(1) << rows.astype(np.int64), axis=1)
    twice = np.flatnonzero(np.bitwise_count(sets) != rows.shape[1])
    if len(twice):
        raise ValueError(f"row {twice[0]}, {rows[twice[0]].tolist()}, holds a card twice: a hand is of distinct cards")
    out = np.empty(len(rows), np.int32)
    fill_strengths(evaluator_tables(), np.array(rows, np.int8, order="C"), out)
    return out


def strength(cards: Sequence[int]) -> int:
    """Return the strength 1..7,462 of one hand of five to seven cards, where higher is better.

    Raises `ValueError` unless the hand has five to seven distinct cards 0..51.
    """
    return int(strengths(np.asarray(cards)[None])[0])


def board_strengths(board: Sequence[int]) -> NDArray[np.int16]:
    """Return the strength of every combination (two hole cards) on a board, [1326] int16.

    Combinations that share a card with the board have −1.  Raises `ValueError` unless the board has three to five
    distinct cards 0..51.
    """
    cards = np.asarray(board)
    if not 3 <= len(board) <= 5 or len(set(board)) != len(board) or cards.min() < 0 or cards.max() >= CARD_COUNT:
        raise ValueError(f"board {list(board)} does not hold three to five distinct cards of 0..51")
    out = np.empty((1, COMBO_COUNT), np.int16)
    fill_strengths_on_boards(evaluator_tables(), cards.astype(np.int8)[None], out)
    return out[0]


def strengths_on_boards(boards: NDArray[np.integer], hands: NDArray[np.integer]) -> NDArray[np.int32]:
    """Return the strengths [B, n] int32 of hands on boards; −1 if hand and board share a card.

    boards  [B, 3..5] distinct cards 0..51
    hands   [n] combination numbers 0..1325 (two hole cards each)

    This is the method of `fill_strengths_on_boards` in NumPy, for callers that would otherwise need no compiled kernel.
    """
    tables, cards, card_count = evaluator_tables(), combo_table()[hands], boards.shape[1] + 2
    keys, sets = tables.card_key[boards].sum(axis=1), np.bitwise_or.reduce(tables.card_suit_set[boards], axis=1)
    pairs, pair = np.unique(cards // 4, axis=0, return_inverse=True)  # of ranks
    sums = keys[:, None] + tables.card_key[4 * pairs].sum(axis=1)
    # A fifth card of a rank exceeds the tables, but such a hand shares a card with the board.
    low = np.take(tables.low_offset[card_count - 5], sums & _LOW_BITS, mode="clip").astype(np.int64)
    high = np.take(tables.high_index, (sums >> _HIGH_SHIFT) & _HIGH_BITS, mode="clip")
    strength = np.take(tables.ranks_strength[card_count - 5], low + high, mode="clip").astype(np.int32)[:, pair.ravel()]
    own, suited = tables.card_suit_set[cards], cards % 4
    for suit in range(4):
        on_board, more = (boards % 4 == suit).sum(axis=1), (suited == suit).sum(axis=1)
        for count in (3, 4, 5):
            rows, columns = np.flatnonzero(on_board == count), np.flatnonzero(more >= 5 - count)
            both = sets[rows, None] | own[columns, 0] | own[columns, 1]
            strength[rows[:, None], columns] = tables.flush_strength[(both >> 16 * suit) & _RANK_SET]
    one = np.uint64(1)
    overlap = np.bitwise_or.reduce(one << boards.astype(np.uint64), axis=1)[:, None] & combo_masks()[hands]
    strength[overlap != 0] = -1
    return strength


def category(value: int) -> int:
    """Return the category of a strength: 0 high card, 1 pair, ..., 8 straight flush.

    Raises `ValueError` for a strength outside 1..7,462.
    """
    last = np.cumsum(CATEGORY_SIZES)
    if not 1 <= value <= last[-1]:
        raise ValueError(f"strength {value} does not exist: strengths run from 1 to {last[-1]}")
    return int(np.searchsorted(last, value))
