"""A whole deck that looks up buckets in tables mapped from a policy directory, without copying them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.boards import canonical_boards, check_board, used_slots
from abstraction.buckets import bucket_dtype, unused
from abstraction.cards import CARD_COUNT, COMBO_COUNT, hand_cards
from abstraction.lookup import NO_BUCKET
from mccfr.cards.full_deck import WholeDeck
from mccfr.policy.row_checksums import GuardedTable
from storage.compressed_rows import PackedRows
from storage.damage import DamagedError
from storage.threads import ordered

_PERMUTATIONS = 24
_BOARDS_AT_ONCE = 1 << 8  # unpacked together, so that they stay in the cache


@cache
def holds_card() -> npt.NDArray[np.bool_]:
    """Return a mask [52, 1326] bool: True if the combination of two cards contains the card."""
    found = np.zeros((CARD_COUNT, COMBO_COUNT), bool)
    cards = hand_cards(CARD_COUNT, 2)
    for place in range(2):
        found[cards[:, place], np.arange(COMBO_COUNT)] = True
    return found


def _fill(out: npt.NDArray[Any], table: PackedRows, count: int, boards: npt.NDArray[np.int8], first: int) -> None:
    """Unpack the buckets of up to 256 boards, from board `first` on, into `out` [boards, 1326].

    table   compressed buckets of all boards, or percentiles of hands on a street with perfect recall
    count   number of different buckets or percentiles
    boards  [boards, n] cards; a hand that shares one of them gets the largest number of `out`'s dtype

    Raises `DamagedError` unless exactly the possible hands have a bucket below `count`.
    """
    rows, used = table.rows(first, first + _BOARDS_AT_ONCE), used_slots(boards[first : first + _BOARDS_AT_ONCE])
    if not np.array_equal(rows < count, used):
        raise DamagedError(
            f"{table.file} has a bucket above {count - 1}, or one of an impossible hand, on a board from {first} on: "
            "run mccfr verify"
        )
    known = out[first : first + len(rows)]
    known[:] = rows
    known[~used] = unused(out.dtype)


@dataclass(frozen=True)
class MappedTables:
    """Tables, mapped from a policy's files, that give a hand's bucket on a board.  S streets.

    buckets      for each street [canonical boards, 1326] uint8, uint16 or uint32, compressed: buckets of hands, or
                 percentiles of their strength on a street with perfect recall
    location     for each street [C(52, n)] int32 by the rank of a board of n cards: canonical board · 32 + suit
                 permutation; None on a street without board
    permutation  [24, 1326] int16: the combination that each one becomes under a suit permutation
    counts       [S] number of different buckets or percentiles in each table
    """

    buckets: Sequence[PackedRows]
    location: Sequence[GuardedTable | None]
    permutation: npt.NDArray[np.int16]
    counts: Sequence[int]


@dataclass(frozen=True)
class MappedDeck(WholeDeck):
    """Cards of full-deck hold'em whose buckets are read from the mapped files of a policy.

    Buckets of a board are unpacked when they are needed. The function `load` returns copies of the tables in memory.
    """

    tables: MappedTables | None = None

    def board_row(self, street: int, board: Sequence[int]) -> npt.NDArray[np.int32]:
        """Return [1326] the entries of a street's bucket table for all hands on a board.

        An entry is the hand's bucket. On a street with perfect recall it is a percentile of the hand's strength. This
        and the hand's bucket on the street before determine the bucket. Hands that share a card with the board get
        NO_BUCKET (-1).

        board  numbers of all board cards

        Raises `ValueError` for an invalid board. The checksum of a part of the table is compared when it is first
        read; raises `OSError` if that part is damaged.
        """
        assert self.tables is not None
        index, permutation = 0, 0
        locations, table = self.tables.location[street], self.tables.buckets[street]
        if locations is not None:
            check_board(board, (self.cards_on(street),))
            rank = sum(comb(card, place) for place, card in enumerate(sorted(int(card) for card in board), 1))
            locations.check(rank)
            index, permutation = divmod(int(locations.rows[rank]), 32)
            if not (0 <= index < len(table) and permutation < _PERMUTATIONS):
                raise DamagedError(f"{locations.file}: there is no place {index}, {permutation}: run mccfr verify")
        row = table.rows(index, index + 1)[0, self.tables.permutation[permutation]].astype(np.int64)
        if locations is not None:
            row[holds_card()[list(board)].any(axis=0)] = NO_BUCKET
        if row.max() >= self.tables.counts[street]:
            raise DamagedError(f"{table.file}: row {index} holds a bucket that does not exist: run mccfr verify")
        return row.astype(np.int32)


def load_tables(tables: Sequence[PackedRows], counts: Sequence[int], cards: Sequence[int]) -> list[npt.NDArray[Any]]:
    """Return each street's bucket table [canonical boards, 1326] in memory, its checksums compared.

    tables  compressed tables of each street
    counts  [S] number of different buckets or percentiles, which determines the dtype
            (`abstraction.buckets.bucket_dtype`)
    cards   [S] number of cards on the board

    Raises `DamagedError` unless exactly the possible hands have a bucket.
    """
    loaded = []
    for table, count, known in zip(tables, counts, cards, strict=True):
        loaded.append(found := np.empty((len(table), COMBO_COUNT), bucket_dtype(count)))
        fill = partial(_fill, found, table, count, canonical_boards(known) if known else np.zeros((1, 0), np.int8))
        for _ in ordered(fill, range(0, len(table), _BOARDS_AT_ONCE), size_bytes=found.nbytes):
            pass
    return loaded
