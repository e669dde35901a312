"""Compares two card abstractions of the same deck by the adjusted Rand index of their buckets."""

import numpy as np

from abstraction.boards import STREET_CARDS
from abstraction.bucket_report import bucket_pairs
from abstraction.buckets import Abstraction
from abstraction.clustering.quality import rand_index_of_counts
from abstraction.recipe import STREETS
from abstraction.street_features import ListedStreet, StandardPreflop, StandardStreet, StreetHands


def agreement(one: Abstraction, other: Abstraction) -> dict[str, float]:
    """Return the adjusted Rand index of two abstractions' buckets over all dealt hands, by street.

    1 means that the same pairs of hands share buckets, 0 no more than by chance.  Raises `ValueError` for different
    decks, or for buckets with history (`abstraction.recall_buckets`).
    """
    if one.listing != other.listing:
        raise ValueError(f"{other.path} is of another deck than {one.path}: only buckets of one deck compare")
    return {street: _on_street(one, other, street) for street in one.streets}


def _on_street(one: Abstraction, other: Abstraction, street: str) -> float:
    for each in (one, other):
        if each.percentiles(street) is not None:
            raise ValueError(f"{each.path}: {street} buckets remember the flop, and only those by board compare")
    buckets = one.bucket_counts()[street], other.bucket_counts()[street]
    found, both = bucket_pairs(_hands(one, street), one.table(street), other.table(street), buckets)
    first, second = np.divmod(found, buckets[1])
    counts = (np.bincount(each, both).astype(np.int64) for each in (first, second))
    return rand_index_of_counts(both, *counts)


def _hands(abstraction: Abstraction, street: str) -> StreetHands:
    if abstraction.listing is not None:
        return ListedStreet(abstraction.listing, STREETS.index(street))
    return StandardStreet(STREET_CARDS[street]) if STREET_CARDS[street] else StandardPreflop()
