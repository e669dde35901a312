"""Tests a card abstraction for perfect recall, street by street."""

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game


def parent_buckets(game: Game, block: int) -> npt.NDArray[np.int64] | None:
    """Return [K] for each bucket of a block the bucket that its hands had on the street before.

    block  2·street + player

    Returns None without perfect recall, which means that all hands of a bucket had the same bucket before. All boards
    and the hands in the player's range are checked. Returns None also on the first street. Buckets
    without hands get 0.
    """
    street, player = divmod(block, 2)
    if street == 0:
        return None
    parent = np.full(int(game.buckets[block]), -1, np.int64)
    for bucket, before in game.cards.bucket_pairs(street, player):
        new = parent[bucket] < 0
        parent[bucket[new]] = before[new]
        if (parent[bucket] != before).any():
            return None
    return np.maximum(parent, 0)  # buckets without hands are never dealt
