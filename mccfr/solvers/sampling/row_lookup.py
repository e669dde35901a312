"""Finds where the rows of a deal's buckets begin in the flat tables, for the sampled kernels."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import part_njit

START, STOP, NODE_LIMIT = 0, 1, 2
"""Indices into a kernel's `limits` [3] int64.

The kernel plays deals limits[START] to limits[STOP]-1 of the batch.  It stops early once it has touched
limits[NODE_LIMIT] nodes.
"""


class HandRows(NamedTuple):
    """Indices at which the cells of the current deal's buckets begin in the flat tables.

    Both fields are [B] int64 by block, a street and player: P·street + player of P players.

    regrets  index in the flat table of regrets
    sums     index in the flat table of strategy sums; negative for blocks that keep no sums
    """

    regrets: npt.NDArray[np.int64]
    sums: npt.NDArray[np.int64]


def new_hand(blocks: int) -> HandRows:
    """Return a HandRows of zeros for `blocks` blocks (streets times players)."""
    return HandRows(*(np.zeros(blocks, np.int64) for _ in HandRows._fields))


@part_njit
def locate(tables, deals, deal, hand):
    """Set `hand` to where the cells of the deal's bucket in each block begin in the flat tables.

    tables  TableArrays
    deals   Deals: buckets of a batch of deals, for each street and player
    deal    index in `deals`
    hand    HandRows, changed in place
    """
    for block in range(hand.regrets.shape[0]):
        bucket = np.int64(deals.bucket[deal, block])
        hand.regrets[block] = tables.regret_base[block] + bucket * tables.width[block]
        hand.sums[block] = tables.sum_base[block] + bucket * tables.width[block]
