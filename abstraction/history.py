"""Buckets that remember those of the streets before: perfect recall on the whole deck.

Percentile buckets inside the bucket before, as of Johanson, Bard, Burch & Bowling 2012 (CFR-BR): 2, 4, 8 and 16, or 3,
9, 27 and 81.  Tables of buckets are by unordered boards, which do not tell the flop.  So such a street's table holds
`PERCENTILES` by one number alone, and a small table, its *history* [buckets before, PERCENTILES] int32, says which
bucket follows from the bucket before and a percentile.  Each bucket is cut into equal shares of the hands that real
deals bring to it; `DEALS` of them, drawn by the recipe's seed, stand for all.  Of 16 buckets each then holds its
sixteenth to 0.3 % of all hands.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstraction.cards import CARD_COUNT
from abstraction.clustering.percentiles import percentile_buckets
from abstraction.lookup import DEAL_CARDS, NO_BUCKET, bucket_tables, fill_buckets
from abstraction.recipe import PERCENTILES

DEALS = 2_000_000
_AT_A_TIME = 100_000
_PURPOSE = 3  # of the draws: 0 to 2 are the clustering's

Table = NDArray[np.int32] | None
"""A street's history, [buckets before, PERCENTILES]; None where its buckets are those of its table."""


def remembered(histories: Sequence[Table], rows: Sequence[NDArray[np.integer]]) -> list[NDArray[np.int32]]:
    """Buckets of hands on every street, from what the streets' tables say of them: [...] each, -1 where impossible."""
    found: list[NDArray[np.int32]] = []
    for history, row in zip(histories, rows, strict=True):
        bucket = row if history is None else np.where(row < 0, NO_BUCKET, history[found[-1], row])
        found.append(bucket.astype(np.int32, copy=False))
    return found


@dataclass(frozen=True)
class Histories:
    """Those of a game's S streets.

    in_tables  [S] buckets that each street's table knows
    load       gives the histories; called when hands are first looked up
    """

    in_tables: tuple[int, ...]
    load: Callable[[], Sequence[Table]]

    @cached_property
    def tables(self) -> Sequence[Table]:
        """[S] histories; raises as `load`."""
        return self.load()

    def replace(self, bucket: NDArray[np.int32]) -> None:
        """Put what tables say of deals [K, 2·S] int32, column 2·street + player, into buckets, in place."""
        rows = list(bucket.reshape(len(bucket), len(self.in_tables), 2).swapaxes(0, 1))
        for row, found in zip(rows, remembered(self.tables, rows), strict=True):
            row[:] = found


def history_of(
    earlier: Sequence[tuple[NDArray[Any], Table]], table: NDArray[Any], cards: Sequence[int], buckets: int, seed: int
) -> NDArray[np.int32]:
    """The history of a street's `table` [boards, 1326] of percentiles, whose buckets before are cut into `buckets`.

    earlier  tables and histories of the streets before
    cards    board cards known on those and on this one

    Raises `ValueError` where hands of a bucket before fall on fewer percentiles than it is to be cut into.
    """
    tables = bucket_tables([*(above for above, _ in earlier), table], cards)
    histories, street = [history for _, history in earlier], len(earlier)
    rng = np.random.Generator(np.random.PCG64([seed, _PURPOSE, street]))
    deck = np.tile(np.arange(CARD_COUNT, dtype=np.int8), (_AT_A_TIME, 1))
    found, counts = np.empty((_AT_A_TIME, 2 * street + 2), np.int32), np.zeros(_count(*earlier[-1]) * PERCENTILES)
    for _ in range(DEALS // _AT_A_TIME):
        deals = np.ascontiguousarray(rng.permuted(deck, axis=1)[:, :DEAL_CARDS])
        fill_buckets(tables, deals, len(deals), found)
        before = remembered(histories, [found[:, 2 * each : 2 * each + 2] for each in range(street)])[-1]
        keys = before.astype(np.int64) * PERCENTILES + found[:, 2 * street :]
        counts += np.bincount(keys.ravel(), minlength=len(counts))
    hands = counts.reshape(-1, PERCENTILES)
    return _equal_shares(hands, buckets // len(hands))


def _count(table: NDArray[Any], history: Table) -> int:
    """Buckets of a street."""
    return 1 + int(table[table != np.iinfo(table.dtype).max].max() if history is None else history.max())


def _equal_shares(hands: NDArray[np.float64], share: int) -> NDArray[np.int32]:
    """[buckets before, PERCENTILES] bucket of each, from how many hands have each: `share` of about equal weight."""
    history = np.empty(hands.shape, np.int32)
    for before, weight in enumerate(hands):
        there = np.flatnonzero(weight)
        lowest = percentile_buckets(there, weight[there], share).lowest
        inside = np.searchsorted(lowest, np.arange(len(weight)), side="right") - 1
        history[before] = before * share + np.maximum(inside, 0)
    return history
