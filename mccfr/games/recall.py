"""Whether players remember what they held: the buckets of a street against those of the street before."""

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game


def parent_buckets(game: Game, block: int) -> npt.NDArray[np.int64] | None:
    """[K] the bucket that all hands of each bucket had on the street before; None where hands of a bucket differ in it.

    Decided on every board and hand that can occur.  None on the first street.
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
    return np.maximum(parent, 0)  # a bucket that no hand has is never dealt


def forgotten_street(game: Game) -> int | None:
    """The first street on which a bucket does not say which bucket its hands had before: recall is imperfect there.

    None where it is perfect: every bucket of a street comes from one bucket of the street before.
    """
    for block in range(2, 2 * game.tree.streets):
        if parent_buckets(game, block) is None:
            return block // 2
    return None
