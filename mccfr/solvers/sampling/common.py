"""What the sampled kernels share: their limits, and where a hand's rows are."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import part_njit

START, STOP, NODE_LIMIT = 0, 1, 2
"""Cells of a kernel's `limits` [3] int64: deals START..STOP-1 of the batch, fewer once NODE_LIMIT nodes are reached."""


class HandRows(NamedTuple):
    """Where the rows of the hand being played begin: element offsets [B] int64 into the flat tables, by block.

    Those of sums are negative where a block keeps none.
    """

    regrets: npt.NDArray[np.int64]
    sums: npt.NDArray[np.int64]


def new_hand(blocks: int) -> HandRows:
    """A hand of so many blocks."""
    return HandRows(*(np.zeros(blocks, np.int64) for _ in HandRows._fields))


@part_njit
def locate(tables, deals, deal, hand):
    """Where the rows of a deal begin: `hand` is changed in place."""
    for block in range(hand.regrets.shape[0]):
        bucket = np.int64(deals.bucket[deal, block])
        hand.regrets[block] = tables.regret_base[block] + bucket * tables.width[block]
        hand.sums[block] = tables.sum_base[block] + bucket * tables.width[block]
