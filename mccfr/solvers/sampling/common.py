"""What the sampled kernels share: the scratch of a traversal, where a hand's rows are, prefetching."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import intrinsic, njit, part_njit, types
from abstraction.kernels.prefetch import address_of, emit_prefetch
from mccfr.rng import random_at
from mccfr.solvers.regret import add, discount_sums, sum_discount
from mccfr.trees.compiled import MAX_PACKED_ACTIONS

START, STOP, NODE_LIMIT = 0, 1, 2
"""Cells of a kernel's `limits` [3] int64: deals START..STOP-1 of the batch, fewer once NODE_LIMIT nodes are reached."""

NARROW, WIDE = 0, 1
"""In `TableArrays.wide`: blocks whose strategy sums are in float32 and in float64.  Above that, a block keeps none."""

_LOWER = np.uint64(0xFFFFFFFF)
FORWARD = np.uint64(64)
"""Number, beyond those of a path, of the word by which sums are brought forward, from that of the addition."""

DEALS_TOGETHER = 32
"""Most deals of a group of outcome sampling, two paths each: enough to keep many cache misses under way, few enough for
the first cache."""
_INFOSETS_A_DEAL = 8  # of a group, at least: where a group meets each row many times, it learns less by a node

PATH_STEP = np.dtype(
    [
        ("row", np.int64),
        ("taken", np.float64),
        ("node", np.int32),
        ("path", np.int32),
        ("action", np.int32),
        ("level", np.int32),
    ]
)
"""A decision of the traverser: first regret cell, probability of the action by his strategy, node, number of the path
in its group, action, and (packed) decisions before it on the path.  32 bytes, half a cache line."""

PATH_PLACE = np.dtype(
    [
        ("row", np.int64),
        ("word", np.uint64),
        ("probability", np.float64),
        ("worth", np.float64),
        ("node", np.int32),
        ("action", np.int32),
    ]
)
"""Where a path is: first regret cell, random word, probability of the traverser's choices so far, chips for him behind
the decision to be updated next over that probability, node, and the action that was drawn there."""


class Pruning(NamedTuple):
    """Sampled pruning of external sampling (Brown & Sandholm 2019, "Superhuman AI for multiplayer poker", supplement).

    active      int64    1: on most traversals the traverser does not look at hopeless actions
    below       float64  chips: hopeless is an action with a regret below -below·weight, weight that of new updates
    floor       float64  chips, above `below`: regrets stay at -floor·weight or more, so that actions can come back
    first_floor float64  the same on the first street; infinite where whoever adds its regrets up keeps them there
    """

    active: int
    below: float
    floor: float
    first_floor: float


NO_PRUNING = Pruning(0, 0.0, 0.0, 0.0)
PRUNED_SHARE = 0.95
"""Share of the traversals that prune."""


class Hand(NamedTuple):
    """Where the rows of the hand being played begin: element offsets [B] int64 into the flat tables, by block."""

    regrets: npt.NDArray[np.int64]
    sums: npt.NDArray[np.int64]
    regret_stamps: npt.NDArray[np.int64]
    sum_stamps: npt.NDArray[np.int64]
    regret_scales: npt.NDArray[np.int64]
    sum_scales: npt.NDArray[np.int64]


class Worklist(NamedTuple):
    """Scratch of external sampling over N general records; R is the dtype of the regrets.

    order  [N] int32  nodes in the order visited
    start  [N] int64  first regret cell of each node's row
    child  [N] int32  the child that was taken, or the first of several
    value  [N] R      chips for the traverser
    sigma  [N] R      current strategies, each action's with the child it leads to
    updated [1] int64 table rows updated so far, added to by every call: regrets at the traverser's decisions, sums at
                      the opponent's
    seats  [2] int64  who traverses on each deal: players seats[0] .. seats[1]-1; another one's regrets never change
    """

    order: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    child: npt.NDArray[np.int32]
    value: npt.NDArray[np.floating]
    sigma: npt.NDArray[np.floating]
    updated: npt.NDArray[np.int64]
    hand: Hand
    seats: npt.NDArray[np.int64]


class PackedWorklist(NamedTuple):
    """Scratch of external sampling over a packed tree of D decisions; R is the dtype of the regrets.

    order  [D] int32        decisions in the order visited
    start  [D] int64        first regret cell of each one's row
    slot   [D] int32        where its value goes
    own    [D] int32        which of them are the traverser's: their numbers in `order`
    first  [D] int32        where the values of each of those' children lie, one after the other
    value  [D] R            chips for the traverser: the root's, then those of children of his decisions
    sigma  [8·(D+1)] R      current strategies at his decisions; the last 8 cells serve the opponent's
    updated, hand, seats    as in `Worklist`
    """

    order: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    slot: npt.NDArray[np.int32]
    own: npt.NDArray[np.int32]
    first: npt.NDArray[np.int32]
    value: npt.NDArray[np.floating]
    sigma: npt.NDArray[np.floating]
    updated: npt.NDArray[np.int64]
    hand: Hand
    seats: npt.NDArray[np.int64]


class Paths(NamedTuple):
    """Scratch of outcome sampling: paths of a group, W = 2·deals of at most L decisions (B blocks).

    place   [W] PATH_PLACE     path 2·d + p is player p's of deal d
    step    [W·L] PATH_STEP    the traversers' decisions in the order visited
    sigma   [A] R              the strategy at hand, in the dtype of the regrets, of at most A actions
    updated [1] int64          table rows updated so far, as in `Worklist`
    hand                       of the deal at hand (general records; what follows: packed trees)
    going   [3, W] int32       paths that have not ended: where the traverser acts, where his opponent does, and both
    start   [W/2·B] int64      first regret cell of the hand of each deal in each block
    scales  [2, W/2·B] int64   first scale there, of regrets and of sums, where tables have scales
    to_sum  [B] int64          from a regret cell's index to that of the strategy sum beside it
    """

    place: npt.NDArray[np.void]
    step: npt.NDArray[np.void]
    sigma: npt.NDArray[np.floating]
    updated: npt.NDArray[np.int64]
    hand: Hand
    going: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    scales: npt.NDArray[np.int64]
    to_sum: npt.NDArray[np.int64]


def _new_hand(blocks: int) -> Hand:
    return Hand(*(np.zeros(blocks, np.int64) for _ in Hand._fields))


def new_worklist(nodes: int, blocks: int, dtype: npt.DTypeLike, seats: tuple[int, int] = (0, 2)) -> Worklist:
    """Scratch for `nodes` general records and regrets of `dtype`."""
    order, start, child = np.zeros(nodes, np.int32), np.zeros(nodes, np.int64), np.zeros(nodes, np.int32)
    shared = np.zeros(1, np.int64), _new_hand(blocks), np.array(seats, np.int64)
    return Worklist(order, start, child, np.zeros(nodes, dtype), np.zeros(nodes, dtype), *shared)


def new_packed_worklist(
    decisions: int, blocks: int, dtype: npt.DTypeLike, seats: tuple[int, int] = (0, 2)
) -> PackedWorklist:
    """Scratch for a packed tree of so many decisions and regrets of `dtype`."""
    start = np.zeros(decisions, np.int64)
    order, slot, own, first = (np.zeros(decisions, np.int32) for _ in range(4))
    value, sigma = np.zeros(decisions, dtype), np.zeros((decisions + 1) * MAX_PACKED_ACTIONS, dtype)
    shared = np.zeros(1, np.int64), _new_hand(blocks), np.array(seats, np.int64)
    return PackedWorklist(order, start, slot, own, first, value, sigma, *shared)


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
        _new_hand(blocks),
        np.zeros((3, 2 * deals), np.int32),
        np.zeros(deals * blocks, np.int64),
        np.zeros((2, deals * blocks), np.int64),
        np.zeros(blocks, np.int64),
    )


@intrinsic
def prefetch_one(typing_context, which, arrays, indices):
    """Ask for the line of arrays[which][indices[which]], which in 0, 1, 2, without a branch: for what is random."""

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


@part_njit
def locate(base, width, bucket, deal, first):
    """first[b] = base[b] + bucket[deal, b] · width[b] for every block, in place: where a hand's rows begin."""
    for block in range(base.shape[0]):
        first[block] = base[block] + np.int64(bucket[deal, block]) * width[block]


@part_njit
def locate_all(tables, deals, deal, hand):
    """Where the rows of a deal begin in all tables, for general records: `hand` is changed in place."""
    locate(tables.regret_base, tables.width, deals.bucket, deal, hand.regrets)
    locate(tables.sum_base, tables.width, deals.bucket, deal, hand.sums)
    locate(tables.regret_stamp_base, tables.rows, deals.bucket, deal, hand.regret_stamps)
    locate(tables.sum_stamp_base, tables.rows, deals.bucket, deal, hand.sum_stamps)


@part_njit
def forward_sums(narrow, wide, form, row, actions, stamps, stamp, ends, factors, word):
    """Bring a row of strategy sums forward to `ends` period ends, its stamp with it, in place.

    narrow, wide, form  arrays of sums, and which of them holds the row (`TableArrays.wide`)
    word                random bits of the addition that follows: float32 sums are rounded by others that they give
    """
    keep = sum_discount(stamps, stamp, ends, factors)
    if keep != 1.0:
        other = random_at(word, FORWARD)
        if form == NARROW:
            discount_sums(narrow, row, actions, keep, other)
        else:
            discount_sums(wide, row, actions, keep, other)


@part_njit
def add_strategy(tree, tables, hand, node, strategy, weight, discount, word):
    """Add the current strategy at a decision of general records to its sums, in place, where its block keeps any.

    strategy  (sigma [E], place of the first action's probability)
    weight    of the addition
    word      uint64 random bits that float32 sums are rounded by
    """
    sigma, place = strategy
    block, actions = tree.block[node], tree.count[node]
    if tables.wide[block] > WIDE:
        return
    row, form = hand.sums[block] + tree.slot[node], tables.wide[block]
    if discount.lazy:
        stamp, sums = hand.sum_stamps[block] + tree.row[node], (tables.narrow_sum, tables.wide_sum)
        forward_sums(*sums, form, row, actions, tables.stamp, stamp, discount.ends, discount.sum_factors, word)
    if form == NARROW:
        add(tables.narrow_sum, row, actions, sigma, place, weight, word)
    else:
        add(tables.wide_sum, row, actions, sigma, place, weight, word)
