"""Limits and row addresses that the sampled kernels share."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import part_njit

START, STOP, NODE_LIMIT = 0, 1, 2
"""Indices into a kernel's `limits` [3] int64.

The kernel plays deals START to STOP-1 of the batch and stops early once NODE_LIMIT nodes are reached.
"""


class HandRows(NamedTuple):
    """Element offsets [B] int64 into the flat tables of the current deal's bucket in each block.

    A block is a street and player: P·street + player of P players.  Offsets of strategy sums are negative for blocks
    without them.
    """

    regrets: npt.NDArray[np.int64]
    sums: npt.NDArray[np.int64]


def new_hand(blocks: int) -> HandRows:
    """Return zeroed offsets for `blocks` blocks."""
    return HandRows(*(np.zeros(blocks, np.int64) for _ in HandRows._fields))


@part_njit
def locate(tables, deals, deal, hand):
    """Set `hand` to the table offsets of a deal's bucket of each player on each street, in place.

    tables  TableArrays
    deals   Deals
    deal    index in `deals`
    hand    HandRows
    """
    for block in range(hand.regrets.shape[0]):
        bucket = np.int64(deals.bucket[deal, block])
        hand.regrets[block] = tables.regret_base[block] + bucket * tables.width[block]
        hand.sums[block] = tables.sum_base[block] + bucket * tables.width[block]
