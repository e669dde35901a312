"""Exact hand strength against a uniformly random opponent hand: river strength, E[HS] and E[HS²].

The *river strength* of a hand is the integer 2·wins + ties against opponent hands, 0 to 1,980.  It counts the 990 hands
that share no card with hand or board.  HS is the river strength divided by 1,980.  A hand on an earlier street has one
river strength for each run-out, an unordered set of cards to come.  All counts and sums are integers, so results are
exact.

Arrays have one row for each canonical board (`abstraction.boards`) and 1,326 hole-card slots.  Functions take a range
of boards, so that a long computation can be divided and resumed.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstraction.boards import (
    BOARD_COUNTS,
    PREFLOP_CLASSES,
    STREET_CARDS,
    board_classes,
    board_tables,
    canonical_boards,
    check_board,
    locate,
    preflop_classes,
    used_slots,
)
from abstraction.cards import CARD_COUNT, COMBO_COUNT, cards_text, combo_index, parse_cards
from abstraction.hand_evaluator import evaluator_tables, fill_board_strengths
from abstraction.kernels.jit import nogil_allocating_njit, nogil_njit, part_njit
from abstraction.kernels.parallel import checked_range, run_ranges

OPPONENT_HANDS = 990
STRENGTH_LIMIT = 2 * OPPONENT_HANDS
"""Largest river strength, 1,980."""
BLOCKED = 65535
"""River strength of slots that share a card with the board."""
RUNOUTS = {0: 2_118_760, 3: 1_081, 4: 46, 5: 1}
"""Number of unordered run-outs of a hand, by number of board cards."""
BOARD_RUNOUTS = {3: 1_176, 4: 48}
"""Number of unordered run-outs of a board alone, by number of its cards.  A hand's cards exclude some of them."""

LIVE_CARDS = 47
_LANES = 48  # columns of a card pair table: a multiple of the vector length
_NEVER = 32767  # order of a card paired with itself, above every hand's, so that it never counts as beaten
_HAND_STRENGTHS = 7463  # size of a table indexed by the evaluator's strengths, 1 to 7,462
_CHUNK = 256  # boards in one call of a kernel


class PairOrder(NamedTuple):
    """Scratch memory of one thread: the hands possible on a river board, with ranks by strength."""

    board: NDArray[np.int8]
    """[5] the board, set by the caller"""
    live: NDArray[np.int64]
    """[48] the cards that are not on the board, ascending (the last entry is unused)"""
    order: NDArray[np.int16]
    """[48, 48] rank (from 0) among the distinct strengths of each two live cards; 32,767 on the diagonal"""
    strength: NDArray[np.int16]
    """[1326] strength of each combination; −1 for a shared card"""
    order_of: NDArray[np.int16]
    """[7464] rank of each evaluator strength that occurs among the distinct strengths"""
    occurs: NDArray[np.uint8]
    """[7464] flags of the evaluator strengths that occur; all 0 between calls"""
    occurs_words: NDArray[np.uint64]
    """[933] the same memory, eight flags in each word"""


def pair_order() -> PairOrder:
    """Allocate a `PairOrder`, the scratch memory of one thread for `fill_pair_order`."""
    occurs = np.zeros(-(-_HAND_STRENGTHS // 8) * 8, np.uint8)
    return PairOrder(
        board=np.zeros(5, np.int8),
        live=np.zeros(_LANES, np.int64),
        order=np.full((_LANES, _LANES), _NEVER, np.int16),
        strength=np.empty(COMBO_COUNT, np.int16),
        order_of=np.zeros(len(occurs), np.int16),
        occurs=occurs,
        occurs_words=occurs.view(np.uint64),
    )


# --- kernels ---


@part_njit
def fill_pair_order(tables, pairs):
    """Rank all hands on the river board pairs.board by strength; return the number of distinct strengths.

    tables  `EvaluatorTables` of the hand evaluator
    pairs   `PairOrder`, arrays filled in place

    There are at most 1,081 distinct strengths.
    """
    fill_board_strengths(tables, pairs.board, pairs.strength)
    board, live, strength = pairs.board, pairs.live, pairs.strength
    count = 0
    for card in range(CARD_COUNT):
        live[count] = card
        count += 1
        for i in range(5):
            count -= board[i] == card
    for combo in range(COMBO_COUNT):
        pairs.occurs[max(strength[combo], 0)] = 1
    pairs.occurs[0] = 0  # entry of the combinations that share a card with the board
    distinct = 0
    for word in range(pairs.occurs_words.shape[0]):
        if pairs.occurs_words[word]:
            for value in range(8 * word, 8 * word + 8):
                pairs.order_of[value] = distinct
                distinct += pairs.occurs[value]
            pairs.occurs_words[word] = 0
    for high in range(LIVE_CARDS):
        first = live[high] * (live[high] - 1) // 2
        for low in range(high):
            order = pairs.order_of[strength[first + live[low]]]
            pairs.order[low, high] = order
            pairs.order[high, low] = order
    return distinct


@part_njit
def _count_beaten_by_card(order, beaten):
    """Write to beaten[i, j] how the hand of live cards i and j fares against hands with card i.

    Live cards are the 47 cards that are not on the board, in ascending order.

    order   [48, 48] int16 strength rank of the hand of two live cards; 32,767 on the diagonal
    beaten  [48, 48] int16: twice the number of weaker hands plus that of equal ones, the hand itself included
    """
    beaten[:] = 0
    for i in range(LIVE_CARDS):
        for other in range(LIVE_CARDS):
            opponent = order[i, other]
            for j in range(_LANES):
                beaten[i, j] += (opponent < order[i, j]) + (opponent <= order[i, j])


@nogil_allocating_njit
def fill_river_strengths(tables, boards, pairs, start, stop, out):
    """Write the river strengths (2·wins + ties) of all hands on boards [start, stop) to `out`.

    tables  `EvaluatorTables` of the hand evaluator
    boards  [N, 5] int8 cards
    pairs   `PairOrder`, scratch memory to rank the hands on a board
    out     [stop − start, 1326] uint16; 65,535 if hand and board share a card

    A hand is compared with all 1,081 hands, less those with its first card, less those with its second (inclusion and
    exclusion).  It counts itself in each of the three.
    """
    beaten = np.empty((_LANES, _LANES), np.int16)
    below = np.empty(COMBO_COUNT, np.int32)
    for index in range(start, stop):
        for i in range(5):
            pairs.board[i] = boards[index, i]
        distinct = fill_pair_order(tables, pairs)
        order, live = pairs.order, pairs.live
        _count_beaten_by_card(order, beaten)
        below[:distinct] = 0
        for i in range(LIVE_CARDS):
            for j in range(i):
                below[order[i, j]] += 1
        passed = 0
        for s in range(distinct):
            passed += below[s]
            below[s] = 2 * passed - below[s] + 1
        out[index - start] = BLOCKED
        for i in range(LIVE_CARDS):
            first = live[i] * (live[i] - 1) // 2
            for j in range(i):
                out[index - start, first + live[j]] = below[order[i, j]] - beaten[i, j] - beaten[j, i]


@part_njit
def list_runouts(tables, board, cards, rivers, permutations):
    """Write the canonical index and suit permutation of each river board that a board [3 or 4] can become.

    tables                `BoardTables`, which map boards to canonical boards (one for each suit-isomorphism class)
    cards                 [5] int64, scratch
    rivers, permutations  [1176] int64, in place: canonical index, and suit permutation to that canonical board

    Returns the number of run-outs, 48 or 1,176.
    """
    board_count, count = board.shape[0], 0
    for i in range(board_count):
        cards[i] = board[i]
    for card in range(CARD_COUNT):
        if card in board:
            continue
        cards[board_count] = card
        for river in range(card if board_count == 3 else 1):
            if board_count == 3:
                if river in board:
                    continue
                cards[4] = river
            rivers[count], permutations[count] = locate(tables.choose, tables.river, cards)
            count += 1
    return count


@nogil_allocating_njit
def fill_runout_sums(tables, boards, river, start, stop, sums, squares):
    """Sum river strengths and their squares over the run-outs of each hand on boards [start, stop).

    tables         `BoardTables`, which map boards to canonical boards (one for each suit-isomorphism class)
    boards         [N, 3 or 4] int8 canonical boards
    river          [134459, 1326] uint16 river strengths by canonical board and combination
    sums, squares  [stop − start, 1326] int64, added to in place

    Run-outs that share a card with the hand add 65,535 and its square, which saves a branch; the caller subtracts them.
    """
    rivers, permutations, cards = np.empty(1176, np.int64), np.empty(1176, np.int64), np.empty(5, np.int64)
    hole_permutation = tables.hole_permutation
    for index in range(start, stop):
        for runout in range(list_runouts(tables, boards[index], cards, rivers, permutations)):
            row, permutation = rivers[runout], permutations[runout]
            for combo in range(COMBO_COUNT):
                value = np.int64(river[row, np.uint16(hole_permutation[permutation, combo])])
                sums[index - start, combo] += value
                squares[index - start, combo] += value * value


@nogil_njit
def add_preflop_strengths(river, multiplicity, classes, start, stop, out):
    """Count how often each preflop class has each river strength, over boards [start, stop).

    river         [stop − start, 1326] uint16 river strengths of these boards
    multiplicity  [134459] int32 number of boards for which each canonical board stands
    classes       [1326] preflop class of each combination
    out           [169, 1982] int64, added to in place; the last column counts hands that share a card with the board
    """
    for index in range(start, stop):
        for combo in range(COMBO_COUNT):
            value = min(np.int64(river[index - start, combo]), STRENGTH_LIMIT + 1)
            out[classes[combo], value] += multiplicity[index]


# --- functions ---


def river_strengths(start: int = 0, stop: int | None = None, *, workers: int = 1) -> NDArray[np.uint16]:
    """Return the river strengths (2·wins + ties) of all hands on five-card canonical boards [start, stop).

    The result is [stop − start, 1326] uint16: 0 to 1,980, or 65,535 if hand and board share a card.  All boards take
    357 MB.  Raises `ValueError` for a range outside of the boards.
    """
    start, stop = checked_range(start, stop, BOARD_COUNTS[5], "boards")
    rows = np.empty((stop - start, COMBO_COUNT), np.uint16)
    tables, boards = evaluator_tables(), canonical_boards(5)

    def fill(first: int, last: int) -> None:
        fill_river_strengths(tables, boards, pair_order(), first, last, rows[first - start : last - start])

    for _ in run_ranges(fill, start, stop, _CHUNK, workers):
        pass
    return rows


def runout_sums(
    river: NDArray[np.uint16], cards: int, start: int = 0, stop: int | None = None, *, workers: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sums of river strength and of its square over the run-outs of boards [start, stop).

    river  [134459, 1326] uint16 river strengths (2·wins + ties), the result of `river_strengths` for all boards
    cards  number of cards of the canonical boards, 3 or 4

    Returns wins2_sum and wins2_square_sum, each [stop − start, 1326] int64 (175 MB for all turn boards); −1 for a
    shared card.  With n = 1,081 or 46 run-outs, E[HS] = wins2_sum / (1980·n) and E[HS²] = wins2_square_sum / (1980²·n).
    Raises `ValueError` for a range outside of the boards.
    """
    start, stop = checked_range(start, stop, BOARD_COUNTS[cards], "boards")
    tables, boards = board_tables(), canonical_boards(cards)
    sums, squares = (np.zeros((stop - start, COMBO_COUNT), np.int64) for _ in range(2))
    blocked = BOARD_RUNOUTS[cards] - RUNOUTS[cards]

    def fill(first: int, last: int) -> None:
        part = slice(first - start, last - start)
        fill_runout_sums(tables, boards, river, first, last, sums[part], squares[part])
        used = used_slots(boards[first:last])
        sums[part] = np.where(used, sums[part] - blocked * BLOCKED, -1)
        squares[part] = np.where(used, squares[part] - blocked * BLOCKED**2, -1)

    for _ in run_ranges(fill, start, stop, _CHUNK // (4 if cards == 4 else 64), workers):
        pass
    return sums, squares


def preflop_strengths(
    start: int = 0, stop: int | None = None, *, river: NDArray[np.uint16] | None = None, workers: int = 1
) -> NDArray[np.int64]:
    """Return how often each river strength occurs to each of the 169 preflop classes, [169, 1981] int64.

    Counts pairs of a board and a combination of the class, for boards whose canonical board is in [start, stop).  Over
    all boards a row's sum is 2,118,760 times the class's 4, 6 or 12 combinations.  `river`, if given, is [134459, 1326]
    uint16, the result of `river_strengths` for all boards; else strengths are computed in chunks.

    Raises `ValueError` for a range outside of the boards.
    """
    start, stop = checked_range(start, stop, BOARD_COUNTS[5], "boards")
    multiplicity, classes = board_classes(5).multiplicity, preflop_classes()

    def count(first: int, last: int) -> NDArray[np.int64]:
        counts = np.zeros((PREFLOP_CLASSES, STRENGTH_LIMIT + 2), np.int64)
        rows = river_strengths(first, last) if river is None else river[first:last]
        add_preflop_strengths(rows, multiplicity, classes, first, last, counts)
        return counts

    total = np.zeros((PREFLOP_CLASSES, STRENGTH_LIMIT + 2), np.int64)
    for counts in run_ranges(count, start, stop, 8 * _CHUNK, workers):
        total += counts
    return total[:, :-1].copy()


def _strength_counts(combo: int, cards: tuple[int, ...], workers: int) -> NDArray[np.int64]:
    """Return how often each river strength occurs over the run-outs of a hand on a board, [1981].

    River strength is 2·wins + ties, 0 to 1,980; the counts are int64.

    combo    combination number 0..1325 of the hole cards
    cards    the board: none, 3, 4 or 5 cards
    workers  number of threads, used only without board cards
    """
    if not cards:
        classes = preflop_classes()
        return preflop_strengths(workers=workers)[classes[combo]] // int((classes == classes[combo]).sum())
    remaining = [card for card in range(CARD_COUNT) if card not in cards]
    boards = np.array([(*cards, *drawn_cards) for drawn_cards in combinations(remaining, 5 - len(cards))], np.int8)
    values = np.empty((len(boards), COMBO_COUNT), np.uint16)
    fill_river_strengths(evaluator_tables(), boards, pair_order(), 0, len(boards), values)
    return np.bincount(values[values[:, combo] != BLOCKED, combo], minlength=STRENGTH_LIMIT + 1)


def hand_strength(hand: str, board: str = "", *, workers: int = 1) -> dict[str, str | int | float]:
    """Return the exact strength of a hand such as "AsKd" on a board such as "Qs7h2d".

    The board has 0, 3, 4 or 5 cards; without cards it takes 1 to 2 s, shared by `workers` threads.  The result is a
    dictionary: "street", "hand", "board", "runouts" (their number), "ehs" (E[HS], 0 to 1) and "ehs2" (E[HS²]).  Its
    keys "wins2_sum" and "wins2_square_sum" hold the sums of 2·wins + ties and of its square over the run-outs.

    Raises `ValueError` for invalid texts, a card twice, a hand without exactly two cards or another number of board
    cards.
    """
    hole, cards = parse_cards(hand), parse_cards(board)
    if len(hole) != 2:
        raise ValueError(f"the hand {hand!r} has {len(hole)} cards: a hand has two, as in AsKd")
    check_board(cards, (0, 3, 4, 5))
    shared = set(hole) & set(cards)
    if shared:
        raise ValueError(f"the card {cards_text(sorted(shared)[:1])} is in the hand {hand} and on the board {board}")
    counts, value = _strength_counts(combo_index(*hole), cards, workers), np.arange(STRENGTH_LIMIT + 1)
    wins2, squares, runouts = int(counts @ value), int(counts @ value**2), RUNOUTS[len(cards)]
    return {
        "street": next(street for street, count in STREET_CARDS.items() if count == len(cards)),
        "hand": hand,
        "board": board,
        "runouts": runouts,
        "wins2_sum": wins2,
        "wins2_square_sum": squares,
        "ehs": wins2 / (STRENGTH_LIMIT * runouts),
        "ehs2": squares / (STRENGTH_LIMIT**2 * runouts),
    }
