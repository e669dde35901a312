"""Finds where the rows of a deal's buckets begin in the flat tables, for the sampled kernels."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import part_njit

START, STOP, NODE_LIMIT = 0, 1, 2
"""Indices into a kernel's `limits` [3] int64.

The kernel plays deals START to STOP-1 of the batch and stops early once NODE_LIMIT nodes are reached.
"""


class HandRows(NamedTuple):
    """First cells of the current deal's buckets in the flat tables of regrets and of strategy sums.

    Both fields are indices [B] int64 by block, a street and player: P·street + player of P players.  Indices of
    strategy sums are negative for blocks that keep no sums.
    """

    regrets: npt.NDArray[np.int64]
    sums: npt.NDArray[np.int64]


def new_hand(blocks: int) -> HandRows:
    """Return a HandRows of zeros for `blocks` blocks (streets times players)."""
    return HandRows(*(np.zeros(blocks, np.int64) for _ in HandRows._fields))


@part_njit
def locate(tables, deals, deal, hand):
    """Set `hand` to where the deal's bucket of each player on each street begins in the flat tables.

    tables  TableArrays
    deals   Deals: buckets of a batch of deals
    deal    index in `deals`
    hand    HandRows, changed in place
    """
    for block in range(hand.regrets.shape[0]):
        bucket = np.int64(deals.bucket[deal, block])
        hand.regrets[block] = tables.regret_base[block] + bucket * tables.width[block]
        hand.sums[block] = tables.sum_base[block] + bucket * tables.width[block]
