"""The paths of a group of deals, which both kernels of outcome sampling go; and how their actions are drawn."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import intrinsic, njit, part_njit, types
from abstraction.kernels.prefetch import address_of, emit_prefetch
from mccfr.solvers.sampling.common import HandRows, new_hand

_LOWER = np.uint64(0xFFFFFFFF)

DEALS_TOGETHER = 32
"""Most deals of a group of outcome sampling, two paths each: enough to keep many cache misses under way, few enough for
the first cache."""
_INFOSETS_A_DEAL = 8  # of a group, at least: where a group meets each row many times, it learns less by a node

PATH_STEP = np.dtype(
    [
        ("row", np.int64),
        ("taken", np.float64),
        ("path", np.int32),
        ("action", np.int16),
        ("actions", np.int16),
    ]
)
"""A decision of the traverser: first regret cell, probability of the action by his strategy, number of the path in its
group, action, and how many there were."""

PATH_PLACE = np.dtype(
    [
        ("row", np.int64),
        ("word", np.uint64),
        ("probability", np.float64),
        ("value", np.float64),
        ("node", np.int32),
        ("action", np.int32),
    ]
)
"""Where a path is: first regret cell, random word, probability of the traverser's choices so far, chips for him behind
the decision to be updated next over that probability, node, and the action that was drawn there."""


class Paths(NamedTuple):
    """Scratch of outcome sampling: paths of a group, W = 2·deals of at most L decisions (B blocks).

    place   [W] PATH_PLACE     path 2·d + p is player p's of deal d
    step    [W·L] PATH_STEP    the traversers' decisions in the order visited
    sigma   [A] R              the strategy at hand, in the dtype of the regrets, of at most A actions
    updated [1] int64          table rows updated so far, as in `Worklist`
    hand                       of the deal at hand (general records; what follows: packed trees)
    going   [3, W] int32       paths that have not ended: where the traverser acts, where his opponent does, and both
    start   [W/2·B] int64      first regret cell of the hand of each deal in each block
    to_sum  [B] int64          from a regret cell's index to that of the strategy sum beside it
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
    """Deals of a group of outcome sampling in a game of so many infosets."""
    return max(1, min(DEALS_TOGETHER, infosets // _INFOSETS_A_DEAL))


def new_paths(deals: int, depth: int, max_actions: int, blocks: int, dtype: npt.DTypeLike) -> Paths:
    """Scratch for groups of `deals`, paths of at most `depth` decisions of `max_actions`, regrets of `dtype`."""
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
    """Ask for the line of arrays[which][indices[which]], without a branch: for what is random."""

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
    """A number in [0, 1), or by rounding 1, from the upper half of 64 random bits, in the dtype of `array`."""

    def codegen(context, builder, signature, arguments):
        element = context.get_value_type(array.dtype)
        upper = builder.sitofp(builder.lshr(arguments[1], arguments[1].type(32)), element)
        return builder.fmul(upper, element(2.0**-32))

    return array.dtype(array, types.uint64), codegen


@njit
def exploration(epsilon):
    """The number (uint64) below which the lower half of 64 random bits lies with probability epsilon."""
    return np.uint64(epsilon * 2.0**32)


@part_njit
def explores(word, share):
    """Whether random bits ask for exploration; `share` from `exploration`.  `uniform_like` takes their other half."""
    return (word & _LOWER) < share
