"""Paths of a group of deals in outcome sampling, and the draws of their actions, for both kernels."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import intrinsic, njit, part_njit, types
from abstraction.kernels.prefetch import address_of, emit_prefetch
from mccfr.solvers.sampling.row_lookup import HandRows, new_hand

_LOWER = np.uint64(0xFFFFFFFF)

DEALS_TOGETHER = 32
"""Most deals of a group in outcome sampling; each deal has one path for each player.

The number is large enough to keep many cache misses in flight, and small enough for the first-level cache.
"""
_INFOSETS_A_DEAL = 8  # at least: a group that visits the same rows many times learns less for each node

PATH_STEP = np.dtype(
    [("row", np.int64), ("taken", np.float64), ("path", np.int32), ("action", np.int16), ("actions", np.int16)]
)
"""A decision of the traverser on a sampled path.

row      first cell of the decision's row in the flat regret table
taken    probability of the sampled action in the current strategy
path     number of the path in its group
action   sampled action
actions  number of actions
"""

_PLACE_NAMES = ("row", "word", "probability", "value", "node", "action")
PATH_PLACE = np.dtype(list(zip(_PLACE_NAMES, ("i8", "u8", "f8", "f8", "i4", "i4"), strict=True)))
"""Position of a path: the decision that it has reached.

row          first cell of the decision's row in the flat regret table
word         64 random bits of the path
probability  probability of the traverser's choices so far
value        traverser's chips behind the next decision to be updated, divided by `probability`
node         current node
action       action drawn there
"""


class Paths(NamedTuple):
    """Scratch arrays of outcome sampling: W = 2·deals paths of at most L decisions; B blocks.

    "Packed only" and "general only": fields that only the kernel of `outcome_packed` or of `outcome_general` uses.

    place    [W] PATH_PLACE   decision that each path has reached; path 2·d + p is player p's path of deal d
    step     [W·L] PATH_STEP  decisions of the traversers in the order visited
    sigma    [A] R            current strategy, in the dtype of the regrets, for at most A actions
    updated  [1] int64        number of decisions visited so far, whose regrets or strategy sums are updated
    hand     HandRows         indices in the tables at which the cells of the deal's buckets begin (general only)
    going    [3, W] int32     paths that have not ended: where the traverser acts, where the opponent acts, all (packed
                              only)
    start    [W/2·B] int64    first regret cell of each deal's bucket in each block (packed only)
    to_sum   [B] int64        distance from a regret cell's index to that of its strategy sum (packed only)
    """

    place: npt.NDArray[np.void]
    step: npt.NDArray[np.void]
    sigma: npt.NDArray[np.floating]
    updated: npt.NDArray[np.int64]
    hand: HandRows
    going: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    to_sum: npt.NDArray[np.int64]


def deals_together(infosets: int) -> int:
    """Return the number of deals in a group of outcome sampling, for a game of `infosets` infosets.

    It is one deal for each eight infosets, at least 1 and at most `DEALS_TOGETHER` (32).
    """
    return max(1, min(DEALS_TOGETHER, infosets // _INFOSETS_A_DEAL))


def new_paths(deals: int, depth: int, max_actions: int, blocks: int, dtype: npt.DTypeLike) -> Paths:
    """Return scratch arrays for outcome sampling of groups of `deals` deals by two players.

    depth        most decisions on a path
    max_actions  most actions of a decision
    blocks       number of blocks; a block is a street and player
    dtype        dtype of the regrets
    """
    return Paths(
        np.zeros(2 * deals, PATH_PLACE),
        np.zeros(2 * deals * depth, PATH_STEP),
        np.zeros(max_actions, dtype),
        np.zeros(1, np.int64),
        new_hand(blocks),
        np.zeros((3, 2 * deals), np.int32),
        np.zeros(deals * blocks, np.int64),
        np.zeros(blocks, np.int64),
    )


@intrinsic
def prefetch_one(typing_context, which, arrays, indices):
    """Prefetch the cell arrays[which][indices[which]] for writing, without a branch on `which`.

    The processor could not predict such a branch, because `which` depends on random draws.

    arrays   tuple of one-dimensional arrays
    indices  tuple of int64
    """

    def codegen(context, builder, signature, arguments):
        which_, arrays_, indices_ = arguments
        chosen = None
        for k, kind in reversed(list(enumerate(signature.args[1].types))):
            array, index = builder.extract_value(arrays_, k), builder.extract_value(indices_, k)
            address = address_of(context, builder, kind, array, index)
            here = builder.icmp_signed("==", which_, which_.type(k))
            chosen = address if chosen is None else builder.select(here, address, chosen)
        emit_prefetch(builder, chosen, write=True)
        return context.get_dummy_value()

    return types.void(types.int64, arrays, indices), codegen


@intrinsic
def uniform_like(typing_context, array, word):
    """Return a random number in [0, 1) in the dtype of `array`, from the upper half of the bits in `word`.

    In float32 the largest numbers are rounded to 1.

    word  uint64, 64 random bits
    """

    def codegen(context, builder, signature, arguments):
        element = context.get_value_type(array.dtype)
        upper = builder.sitofp(builder.lshr(arguments[1], arguments[1].type(32)), element)
        return builder.fmul(upper, element(2.0**-32))

    return array.dtype(array, types.uint64), codegen


@njit
def exploration(epsilon):
    """Return the limit (uint64) that 32 random bits are below with probability epsilon, for `explores`.

    epsilon  float64 in (0, 1]
    """
    return np.uint64(epsilon * 2.0**32)


@part_njit
def explores(word, share):
    """Return whether the traverser explores (plays uniformly), by the lower half of the bits in `word`.

    `uniform_like` uses the upper half of the same bits.

    share  uint64 limit of the lower half, from `exploration`
    """
    return (word & _LOWER) < share
