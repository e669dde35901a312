"""Bucket look-up for kernels (compiled functions): players' buckets in a deal, or all of a board.

The tables of an abstraction lie in one block of memory, in huge pages if the system grants them.  The block is seen as
uint16 and as uint32, and each street states which of the two it uses, so kernels have one signature.  A deal of P
players is 2·P + 5 cards: each player's hole cards, player 0's first, and the board in order of dealing.  `board_cards`
is the number of known board cards on each street.

The river table has 357 MB, so nearly every access misses all caches.  `fill_buckets` therefore prefetches for a whole
block of deals, first the locations of the boards, then the buckets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstraction.boards import (
    _PERMUTATION_BITS,
    _PERMUTATION_MASK,
    BOARD_COUNTS,
    STREET_CARDS,
    board_classes,
    board_tables,
    check_board,
    hole_permutations,
    suit_permutations,
)
from abstraction.cards import CARD_COUNT, COMBO_COUNT
from abstraction.hand_evaluator import SUIT_START, strength_of_sums
from abstraction.kernels.jit import allocating_njit, inline_njit, njit, part_njit
from abstraction.kernels.parallel import kernel_array
from abstraction.kernels.prefetch import prefetch_to_read
from storage.mapping import map_anonymous

NO_BUCKET = -1
"""Bucket of hole cards that share a card with the board."""
HOLDEM = tuple(STREET_CARDS.values())
"""Number of known board cards on each street of hold'em."""
BOARD_CARDS = 5
"""Cards of a deal's board, in games with fewer as well."""
DEAL_CARDS = 4 + BOARD_CARDS
"""Cards of a deal of two players."""

_BLOCK = 32  # deals processed together: enough misses in flight, while their addresses stay in the L1 cache
_LINE_BYTES = 64
_NARROW_UNUSED = 0xFFFF
# Index of the first location of boards of n cards. The empty board has location 0.
_LOCATION_FIRST = (0, 0, 0, 1, 1 + comb(CARD_COUNT, 3), 1 + comb(CARD_COUNT, 3) + comb(CARD_COUNT, 4))
_LOCATIONS = _LOCATION_FIRST[5] + comb(CARD_COUNT, 5)


class BucketTables(NamedTuple):
    """Tables with which compiled code finds buckets on S streets.  Read-only.

    `narrow` and `wide` are views of one block of memory as uint16 and as uint32.  The block begins with `location`;
    the buckets of all streets follow.
    """

    board_cards: NDArray[np.int64]
    """[S] number of known board cards on each street: 0, 3, 4 or 5, ascending"""
    location_first: NDArray[np.int64]
    """[6] index in `location` of the first board with this number of cards"""
    bucket_first: NDArray[np.int64]
    """[S] index in `narrow` or `wide` of the street's first bucket; buckets are [boards, 1326]"""
    is_wide: NDArray[np.int64]
    """[S] 1 if the street's buckets are in `wide`, 0 if in `narrow`"""
    location: NDArray[np.int32]
    """canonical index · 32 + suit permutation to it, of every board by colexicographic rank"""
    narrow: NDArray[np.uint16]
    """buckets of streets with fewer than 65,535 buckets"""
    wide: NDArray[np.uint32]
    """buckets of the other streets"""
    choose: NDArray[np.int32]
    """[6, 52] binomial coefficients C(card, k)"""
    card_image: NDArray[np.uint8]
    """[24, 52] card to which each suit permutation maps each card"""
    hole_permutation: NDArray[np.int16]
    """[24, 1326] combination to which each suit permutation maps each combination"""


# --- kernels ---


@inline_njit
def _nested_ranks(choose, a, b, c, d, e):
    """Return the colexicographic ranks (int64) of the first three, the first four and all five cards.

    a..e    int64 cards 0..51 of a board, in order of dealing
    choose  [6, 52] binomial coefficients C(card, k)

    If fewer cards are known, the others may have any value; ranks that include them have no meaning.
    """
    at_a = 1 + (a > b) + (a > c)
    at_b = 1 + (b > a) + (b > c)
    at_c = 6 - at_a - at_b
    flop = choose[at_a, a] + choose[at_b, b] + choose[at_c, c]
    below_d = (a < d) + (b < d) + (c < d)
    at_a, at_b, at_c, at_d = at_a + (d < a), at_b + (d < b), at_c + (d < c), 1 + below_d
    turn = choose[at_a, a] + choose[at_b, b] + choose[at_c, c] + choose[at_d, d]
    below_e = (a < e) + (b < e) + (c < e) + (d < e)
    river = choose[at_a + (e < a), a] + choose[at_b + (e < b), b] + choose[at_c + (e < c), c]
    river += choose[at_d + (e < d), d] + choose[1 + below_e, e]
    return np.int64(flop), np.int64(turn), np.int64(river)


@inline_njit
def _slot(card_image, permutation, a, b):
    """Return the number 0..1325 of the combination to which a suit permutation maps hole cards a and b.

    card_image  [24, 52] card to which each permutation maps each card
    """
    first, second = np.int64(card_image[permutation, np.uint8(a)]), np.int64(card_image[permutation, np.uint8(b)])
    high = max(first, second)
    return ((high * (high - 1)) >> 1) + min(first, second)


@part_njit
def _ask_locations(tables, deals, first, count, ranks):
    """Write the index in `tables.location` of each deal's board on each street; prefetch these entries.

    deals  [K, 2·P + 5] int8 cards: each player's two hole cards, then the board
    first  first of `count` deals
    ranks  [6, >= count] int64, in place: row n receives the indices for boards of n cards

    Rows for numbers of cards that no street has are without meaning.
    """
    choose, location, board = tables.choose, tables.location, deals.shape[1] - BOARD_CARDS
    for i in range(count):
        k = first + i
        ranks[0, i] = 0
        ranks[3, i], ranks[4, i], ranks[5, i] = _nested_ranks(
            choose,
            np.int64(deals[k, board]),
            np.int64(deals[k, board + 1]),
            np.int64(deals[k, board + 2]),
            np.int64(deals[k, board + 3]),
            np.int64(deals[k, board + 4]),
        )
    for street in range(tables.board_cards.shape[0]):
        cards = tables.board_cards[street]
        start = tables.location_first[cards]
        for i in range(count):
            ranks[cards, i] += start
            prefetch_to_read(location, ranks[cards, i])


@part_njit
def _ask_buckets(tables, deals, first, count, ranks, places):
    """Write the index of each player's bucket on each street to `places`, and prefetch the buckets.

    deals   [K, 2·P + 5] int8 cards: each player's two hole cards, then the board
    first   first of `count` deals
    ranks   [6, >= count] int64 indices in `tables.location`; row n for boards of n cards
    places  [P·S, >= count] int64 indices in `tables.wide` or `tables.narrow`, row P·street + player
    """
    location, card_image = tables.location, tables.card_image
    narrow, wide, players = tables.narrow, tables.wide, (deals.shape[1] - BOARD_CARDS) >> 1
    for street in range(tables.board_cards.shape[0]):
        cards, start, is_wide = tables.board_cards[street], tables.bucket_first[street], tables.is_wide[street]
        for i in range(count):
            k, at = first + i, np.int64(location[ranks[cards, i]])
            permutation, row = np.uint8(at & _PERMUTATION_MASK), start + (at >> _PERMUTATION_BITS) * COMBO_COUNT
            for player in range(players):
                place = row + _slot(card_image, permutation, deals[k, 2 * player], deals[k, 2 * player + 1])
                places[players * street + player, i] = place
                if is_wide:
                    prefetch_to_read(wide, place)
                else:
                    prefetch_to_read(narrow, place)


@part_njit
def _read_buckets(tables, first, count, places, out):
    """Copy the buckets of `count` deals from `first` on into out [K, P·S] int32.

    places  [P·S, >= count] int64 indices in `tables.wide` or `tables.narrow`, row P·street + player
    """
    narrow, wide, streets = tables.narrow, tables.wide, tables.board_cards.shape[0]
    players = places.shape[0] // streets
    for street in range(streets):
        is_wide = tables.is_wide[street]
        for i in range(count):
            for block in range(players * street, players * street + players):
                place = places[block, i]
                if is_wide:
                    out[first + i, block] = wide[place]
                else:
                    out[first + i, block] = narrow[place]


@allocating_njit
def fill_buckets(tables, deals, count, out):
    """Write each player's bucket on each street of the first `count` deals into `out`, in place.

    tables  `BucketTables`
    deals   [K >= count, 2·P + 5] int8 cards: each player's two hole cards, then the board
    out     [K, P·S] int32, column P·street + player
    """
    ranks = np.empty((6, _BLOCK), np.int64)
    places = np.empty((((deals.shape[1] - BOARD_CARDS) >> 1) * tables.board_cards.shape[0], _BLOCK), np.int64)
    for first in range(0, count, _BLOCK):
        size = min(_BLOCK, count - first)
        _ask_locations(tables, deals, first, size, ranks)
        _ask_buckets(tables, deals, first, size, ranks, places)
        _read_buckets(tables, first, size, places, out)


@inline_njit
def showdown_result(evaluator, deals, k, board_cards):
    """Return +1.0 if player 0 wins the showdown of deal k, −1.0 if player 1 wins, 0.0 for a tie.

    evaluator    `EvaluatorTables` of the hand evaluator
    deals        [K, 9] int8 cards: two hole cards of player 0, two of player 1, then the board
    board_cards  number of board cards that count: 3, 4 or 5
    """
    key, suit_sets = np.int64(SUIT_START), np.int64(0)
    for i in range(4, 4 + board_cards):
        key += evaluator.card_key[deals[k, i]]
        suit_sets |= evaluator.card_suit_set[deals[k, i]]
    key_0 = key + evaluator.card_key[deals[k, 0]] + evaluator.card_key[deals[k, 1]]
    key_1 = key + evaluator.card_key[deals[k, 2]] + evaluator.card_key[deals[k, 3]]
    sets_0 = suit_sets | evaluator.card_suit_set[deals[k, 0]] | evaluator.card_suit_set[deals[k, 1]]
    sets_1 = suit_sets | evaluator.card_suit_set[deals[k, 2]] | evaluator.card_suit_set[deals[k, 3]]
    first = strength_of_sums(evaluator, key_0, sets_0, 2 + board_cards)
    second = strength_of_sums(evaluator, key_1, sets_1, 2 + board_cards)
    return np.float64((first > second) - (first < second))


@njit
def fill_results(evaluator, deals, count, board_cards, result):
    """Write each deal's showdown to `result`: +1.0 if player 0 wins, −1.0 if player 1 wins, 0.0 for a tie.

    evaluator    `EvaluatorTables` of the hand evaluator
    deals        [K >= count, 9] int8 cards: two hole cards of player 0, two of player 1, then the board
    board_cards  number of board cards that count: 3, 4 or 5
    result       [K] float64, in place
    """
    for k in range(count):
        result[k] = showdown_result(evaluator, deals, k, board_cards)


@njit
def fill_strengths(evaluator, deals, count, board_cards, strength):
    """Write each player's showdown strength, greater wins, into strength [K >= count, P] int32, in place.

    evaluator    `EvaluatorTables` of the hand evaluator
    deals        [K >= count, 2·P + 5] int8 cards: each player's two hole cards, then the board
    board_cards  number of board cards that count: 3, 4 or 5
    """
    players = strength.shape[1]
    for k in range(count):
        key, suit_sets = np.int64(SUIT_START), np.int64(0)
        for i in range(2 * players, 2 * players + board_cards):
            key += evaluator.card_key[deals[k, i]]
            suit_sets |= evaluator.card_suit_set[deals[k, i]]
        for player in range(players):
            first, second = deals[k, 2 * player], deals[k, 2 * player + 1]
            own = key + evaluator.card_key[first] + evaluator.card_key[second]
            sets = suit_sets | evaluator.card_suit_set[first] | evaluator.card_suit_set[second]
            strength[k, player] = strength_of_sums(evaluator, own, sets, 2 + board_cards)


@njit
def fill_board_rows(tables, street, boards, out):
    """Write the buckets of all combinations (two hole cards) on boards [N, 5] int8 to out [N, 1326] int32.

    tables  `BucketTables`
    street  number of the street, from 0; only the board cards known on it count, the others may be any of 0..51

    −1 marks combinations that share a card with the board.
    """
    cards, start = tables.board_cards[street], tables.location_first[tables.board_cards[street]]
    for i in range(boards.shape[0]):
        a, b, c = np.int64(boards[i, 0]), np.int64(boards[i, 1]), np.int64(boards[i, 2])
        ranks = _nested_ranks(tables.choose, a, b, c, np.int64(boards[i, 3]), np.int64(boards[i, 4]))
        at = np.int64(tables.location[start + (ranks[cards - 3] if cards else 0)])
        permutation = at & _PERMUTATION_MASK
        row = tables.bucket_first[street] + (at >> _PERMUTATION_BITS) * COMBO_COUNT
        if tables.is_wide[street]:
            for combo in range(COMBO_COUNT):
                out[i, combo] = np.int32(tables.wide[row + tables.hole_permutation[permutation, combo]])
        else:
            for combo in range(COMBO_COUNT):
                bucket = np.int32(tables.narrow[row + tables.hole_permutation[permutation, combo]])
                out[i, combo] = bucket if bucket != _NARROW_UNUSED else NO_BUCKET


# --- functions ---


def _rows(cards: int) -> int:
    """Return the number of canonical boards of `cards` cards; 1 for no cards.

    A canonical board stands for all boards that differ from it only by a permutation of suits.
    """
    return BOARD_COUNTS[cards] if cards else 1


@dataclass(frozen=True)
class BucketLayout:
    """Layout of the bucket tables of S streets in one block of memory, which processes may share.

    The block begins with a table that maps every board to its canonical board, the one of its suit-isomorphism class.
    """

    board_cards: tuple[int, ...]
    """number of known board cards on each street: 0, 3, 4 or 5, ascending"""
    dtypes: tuple[str, ...]
    """dtype of each street's buckets, uint16 or uint32"""

    def __post_init__(self) -> None:
        counts = self.board_cards
        if not counts or list(counts) != sorted(set(counts)) or not set(counts) <= {0, *BOARD_COUNTS} or counts[-1] < 3:
            raise ValueError(
                f"board cards {counts} are not supported: give the number on each street, ascending, of 0, 3, 4 and 5, "
                "with at least 3 on the last"
            )
        if len(self.dtypes) != len(counts) or not set(self.dtypes) <= {"uint16", "uint32"}:
            raise ValueError(f"buckets of dtypes {self.dtypes}: uint16 or uint32 for each of {len(counts)} streets")

    def _first_bytes(self) -> list[int]:
        """Return a list of each street's byte offset in the block of memory, then the block's length."""
        places = [_aligned(_LOCATIONS * np.dtype(np.int32).itemsize)]
        for cards, dtype in zip(self.board_cards, self.dtypes, strict=True):
            places.append(places[-1] + _aligned(_rows(cards) * COMBO_COUNT * np.dtype(dtype).itemsize))
        return places

    @property
    def length_bytes(self) -> int:
        """Return the size of the block of memory in bytes."""
        return self._first_bytes()[-1]

    def street(self, memory: NDArray[np.uint8], street: int) -> NDArray[Any]:
        """Return a view of a street's buckets in the block of memory, [boards, 1326].

        memory  [length_bytes] uint8, the block
        street  number of the street, from 0
        """
        cards, dtype, first = self.board_cards[street], np.dtype(self.dtypes[street]), self._first_bytes()[street]
        end = first + _rows(cards) * COMBO_COUNT * dtype.itemsize
        return memory[first:end].view(dtype).reshape(_rows(cards), COMBO_COUNT)

    def tables(self, memory: NDArray[np.uint8]) -> BucketTables:
        """Return the `BucketTables` for compiled code as views of a block of memory.

        The block may still be unfilled.

        Raises `ValueError` unless `memory` is [length_bytes] uint8, writable and in C order.
        """
        block = kernel_array(memory, (self.length_bytes,), np.uint8, "the memory of the bucket tables")
        sizes = [np.dtype(dtype).itemsize for dtype in self.dtypes]
        first = [at // size for at, size in zip(self._first_bytes(), sizes, strict=False)]
        card = np.arange(CARD_COUNT)
        return BucketTables(
            board_cards=np.array(self.board_cards, np.int64),
            location_first=np.array(_LOCATION_FIRST, np.int64),
            bucket_first=np.array(first, np.int64),
            is_wide=np.array([size == 4 for size in sizes], np.int64),
            location=block.view(np.int32)[:_LOCATIONS],
            narrow=block.view(np.uint16),
            wide=block.view(np.uint32),
            choose=board_tables().choose,
            card_image=((card & ~3)[None] | suit_permutations()[:, card & 3]).astype(np.uint8),
            hole_permutation=hole_permutations(),
        )


def _aligned(length_bytes: int) -> int:
    """Return the length rounded up to whole cache lines of 64 bytes."""
    return -(-length_bytes // _LINE_BYTES) * _LINE_BYTES


def bucket_tables(
    streets: Sequence[NDArray[Any]], board_cards: Sequence[int] = HOLDEM, memory: NDArray[np.uint8] | None = None
) -> BucketTables:
    """Return the `BucketTables` for compiled code, with all streets' buckets in one memory block.

    Buckets that are not in `memory` yet are copied into it.

    streets      for each street its buckets, [boards, 1326] uint16 or uint32
    board_cards  number of known board cards on each street: (0, 3, 4, 5) in hold'em, (0, 5) if the flop has five cards
    memory       [`BucketLayout.length_bytes`] uint8; None allocates it, in huge pages if granted, because with pages of
                 4 KiB nearly every random access also misses the TLB

    Raises `ValueError` if shapes, dtypes or numbers of cards do not fit.
    """
    layout = BucketLayout(tuple(int(cards) for cards in board_cards), tuple(table.dtype.name for table in streets))
    for cards, table in zip(layout.board_cards, streets, strict=True):
        if table.shape != (_rows(cards), COMBO_COUNT):
            raise ValueError(
                f"the buckets for {cards} board cards have shape {table.shape}: ({_rows(cards)}, {COMBO_COUNT}) is "
                "needed"
            )
    block = map_anonymous(layout.length_bytes, np.dtype(np.uint8)) if memory is None else memory
    tables = layout.tables(block)
    for cards in BOARD_COUNTS:
        location = board_classes(cards).location
        tables.location[_LOCATION_FIRST[cards] :][: len(location)] = location
    tables.location[0] = 0  # the empty board is canonical
    for street, table in enumerate(streets):
        place = layout.street(block, street)
        if not np.shares_memory(place, table):
            place[:] = table
    return tables


def board_rows(tables: BucketTables, boards: ArrayLike) -> NDArray[np.int32]:
    """Return the bucket of every combination (two hole cards) on boards [N, n], as [N, 1326] int32.

    `tables` are the bucket tables of a game's streets.  Boards hold distinct cards in any order.  −1 marks combinations
    that share a card with the board.  Raises `ValueError` for invalid or repeated cards, and if no street of the tables
    has n board cards.
    """
    cards = np.asarray(boards)
    if cards.ndim != 2 or cards.shape[1] not in tables.board_cards:
        allowed = ", ".join(map(str, tables.board_cards.tolist()))
        raise ValueError(f"boards have shape {cards.shape}: rows of {allowed} cards are needed")
    for board in cards.tolist():
        check_board(board, tables.board_cards.tolist())
    padded = np.zeros((len(cards), 5), np.int8)
    padded[:, : cards.shape[1]] = cards
    out = np.empty((len(cards), COMBO_COUNT), np.int32)
    fill_board_rows(tables, tables.board_cards.tolist().index(cards.shape[1]), padded, out)
    return out


def board_row(tables: BucketTables, board: Sequence[int]) -> NDArray[np.int32]:
    """Return the bucket of every combination (two hole cards) on one board, [1326] int32.

    `tables` are the bucket tables of a game's streets.  −1 marks combinations that share a card with the board.  Raises
    `ValueError` for invalid or repeated cards, and if no street of the tables has as many board cards.
    """
    return board_rows(tables, np.array([board]).reshape(1, -1))[0]
