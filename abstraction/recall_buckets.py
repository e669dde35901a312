"""Perfect-recall buckets for the full deck: each bucket determines the bucket of the street before.

Each bucket is divided by strength into buckets of the next street, as in Johanson, Bard, Burch & Bowling 2012 (CFR-BR).
The four streets then have, for instance, 2, 4, 8 and 16 buckets, or 3, 9, 27 and 81.  Bucket tables use unordered
boards, so a turn or river table does not know which cards were the flop.  The table of such a street therefore holds a
percentile of each hand, 0 to `PERCENTILES` − 1, by E[HS] or E[HS²].  HS is the hand's equity against a random opponent
hand on the river; E is the mean over the cards to come.  A small table, the street's *history*
[buckets before, PERCENTILES] int32, maps the bucket on the street before and a percentile to the bucket.

The buckets within one bucket of the street before get equal shares of its hands, estimated on `DEALS` random deals.
With sixteen buckets, each then has one sixteenth of all hands, up to an error of 0.3 % of all hands.
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
_PURPOSE = 3  # of the random draws; 0 to 2 belong to the clustering

Table = NDArray[np.int32] | None
"""History of a street, [buckets before, PERCENTILES]; None if its table holds the buckets themselves."""


def remembered(histories: Sequence[Table], rows: Sequence[NDArray[np.integer]]) -> list[NDArray[np.int32]]:
    """Return the buckets of hands on every street, from their entries in the streets' tables.

    histories  for each street the map [bucket on the street before, table entry] to bucket; None: entries are buckets
    rows       for each street the hands' table entries, integer arrays of one shape; below 0 for impossible hands

    The results are int32 arrays of that shape, one for each street; −1 marks impossible hands.
    """
    rows_of_street: list[NDArray[np.int32]] = []
    for history, row in zip(histories, rows, strict=True):
        bucket = row if history is None else np.where(row < 0, NO_BUCKET, history[rows_of_street[-1], row])
        rows_of_street.append(bucket.astype(np.int32, copy=False))
    return rows_of_street


@dataclass(frozen=True)
class Histories:
    """Maps with which perfect-recall buckets of deals are looked up, one for each of S streets.

    With perfect recall a bucket determines the bucket on the street before.  A street's map, its history, leads from
    (bucket on the street before, entry of the street's table) to the bucket.

    in_tables  [S] number of different entries of each street's table: percentiles, or buckets without a history
    load       function that returns the maps; called when hands are first looked up
    """

    in_tables: tuple[int, ...]
    load: Callable[[], Sequence[Table]]

    @cached_property
    def tables(self) -> Sequence[Table]:
        """[S] histories, [buckets before, percentiles] int32 or None, read on first use."""
        return self.load()

    def replace(self, bucket: NDArray[np.int32]) -> None:
        """Replace table entries of deals by buckets, in place.

        `bucket` is [K, P·S] int32 for K deals and P players, with column P·street + player.  On entry it holds each
        hand's entry of the street's table, on return its bucket.
        """
        count, streets = len(bucket), len(self.in_tables)
        rows = list(bucket.reshape(count, streets, bucket.shape[1] // streets).swapaxes(0, 1))
        for row, remembered_row in zip(rows, remembered(self.tables, rows), strict=True):
            row[:] = remembered_row


def history_of(
    earlier: Sequence[tuple[NDArray[Any], Table]], table: NDArray[Any], cards: Sequence[int], buckets: int, seed: int
) -> NDArray[np.int32]:
    """Return a street's history: the bucket for [bucket before, percentile], int32.

    Its row is a hand's bucket on the street before, its column the hand's percentile on this street.

    earlier  (table, history) of each earlier street, from the preflop on; history None: the table holds buckets
    table    [boards, 1326] percentile of each hand on the street
    cards    number of board cards on those streets and on this one
    buckets  number of buckets of this street, a multiple of the number on the street before
    seed     of the random deals

    Raises `ValueError` if the hands in a bucket of the street before have fewer percentiles than it gets buckets.
    """
    tables = bucket_tables([*(above for above, _ in earlier), table], cards)
    histories, street = [history for _, history in earlier], len(earlier)
    rng = np.random.Generator(np.random.PCG64([seed, _PURPOSE, street]))
    deck = np.tile(np.arange(CARD_COUNT, dtype=np.int8), (_AT_A_TIME, 1))
    drawn_buckets = np.empty((_AT_A_TIME, 2 * street + 2), np.int32)
    counts = np.zeros(_count(*earlier[-1]) * PERCENTILES)
    for _ in range(DEALS // _AT_A_TIME):
        deals = np.ascontiguousarray(rng.permuted(deck, axis=1)[:, :DEAL_CARDS])
        fill_buckets(tables, deals, len(deals), drawn_buckets)
        before = remembered(histories, [drawn_buckets[:, 2 * each : 2 * each + 2] for each in range(street)])[-1]
        keys = before.astype(np.int64) * PERCENTILES + drawn_buckets[:, 2 * street :]
        counts += np.bincount(keys.ravel(), minlength=len(counts))
    hands = counts.reshape(-1, PERCENTILES)
    return _equal_shares(hands, buckets // len(hands))


def _count(table: NDArray[Any], history: Table) -> int:
    """Return a street's number of buckets.

    table    [boards, 1326] entry of each hand: percentile, or bucket without a history
    history  map [bucket on the street before, percentile] to bucket; None: `table` holds the buckets themselves
    """
    return 1 + int(table[table != np.iinfo(table.dtype).max].max() if history is None else history.max())


def _equal_shares(hands: NDArray[np.float64], share: int) -> NDArray[np.int32]:
    """Return the history, which divides each bucket of the street before into `share` buckets.

    The history gives the bucket for [bucket before, percentile], int32.  A bucket's parts have about equal weight.

    hands  [buckets before, PERCENTILES] number of sampled hands
    share  number of buckets of this street within each bucket of the street before
    """
    history = np.empty(hands.shape, np.int32)
    for before, weight in enumerate(hands):
        occurring = np.flatnonzero(weight)
        lowest = percentile_buckets(occurring, weight[occurring], share)
        inside = np.searchsorted(lowest, np.arange(len(weight)), side="right") - 1
        history[before] = before * share + np.maximum(inside, 0)
    return history
