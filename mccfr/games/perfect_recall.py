"""Tests buckets for perfect recall: a bucket's hands were in one bucket on the street before."""

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game


def parent_buckets(game: Game, block: int) -> npt.NDArray[np.int64] | None:
    """Return, for each bucket of a player on a street, the bucket of its hands one street earlier.

    block  2·street + player, both from 0; the game has two players

    The result is [K] int64 for K buckets; buckets without hands get 0. It is None without perfect recall: hands of one
    bucket had different buckets before. All boards and the hands in the player's range are checked. It is None also on
    the first street.
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
