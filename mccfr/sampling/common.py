"""What the sampled kernels share: the scratch of a traversal, where a hand's rows are, prefetching."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.jit import intrinsic, njit, types

START, STOP, NODE_LIMIT = 0, 1, 2
"""Cells of a kernel's `limits` [3] int64: deals START..STOP-1 of the batch, fewer once NODE_LIMIT nodes are reached."""


class Hand(NamedTuple):
    """Where the rows of the hand being played begin: element offsets [B] int64 into the flat tables, by block."""

    regrets: npt.NDArray[np.int64]
    sums: npt.NDArray[np.int64]
    regret_stamps: npt.NDArray[np.int64]
    sum_stamps: npt.NDArray[np.int64]


class Worklist(NamedTuple):
    """Scratch of external sampling: N nodes (packed: decisions), E cells of strategies, dtype of the regrets R.

    order  [N] int32  nodes in the order visited
    start  [N] int64  first regret cell of the row; by place in the worklist (packed) or by node (general)
    child  [N] int32  place of the first child in the worklist, -1: the hand ended here (packed); child node (general)
    value  [N] R      chips for the traverser
    sigma  [E] R      current strategies of the rows visited
    """

    order: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    child: npt.NDArray[np.int32]
    value: npt.NDArray[np.floating]
    sigma: npt.NDArray[np.floating]
    hand: Hand


class Path(NamedTuple):
    """Scratch of outcome sampling: the traverser's decisions on one path, at most L of them with A actions each.

    row      [L] int64      first regret cell
    stamp    [L] int64      stamp of the row
    actions  [L] int32      number of actions
    action   [L] int32      the one taken
    sigma    [(L+1)·A] R    strategies, in the dtype of the regrets; the last A cells serve the opponent
    """

    row: npt.NDArray[np.int64]
    stamp: npt.NDArray[np.int64]
    actions: npt.NDArray[np.int32]
    action: npt.NDArray[np.int32]
    sigma: npt.NDArray[np.floating]
    hand: Hand


def _new_hand(blocks: int) -> Hand:
    return Hand(*(np.zeros(blocks, np.int64) for _ in range(4)))


def new_worklist(nodes: int, strategy_cells: int, blocks: int, dtype: npt.DTypeLike) -> Worklist:
    """Scratch for `nodes` nodes and regrets of `dtype`: packed trees need 8 cells of strategies a node, others one."""
    return Worklist(
        np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int32),
        np.zeros(nodes, dtype),
        np.zeros(strategy_cells, dtype),
        _new_hand(blocks),
    )


def new_path(depth: int, max_actions: int, blocks: int, dtype: npt.DTypeLike) -> Path:
    """Scratch for paths of at most `depth` decisions with at most `max_actions` actions, regrets of `dtype`."""
    return Path(
        np.zeros(depth, np.int64),
        np.zeros(depth, np.int64),
        np.zeros(depth, np.int32),
        np.zeros(depth, np.int32),
        np.zeros((depth + 1) * max_actions, dtype),
        _new_hand(blocks),
    )


@intrinsic
def prefetch(typing_context, array, index):
    """Ask the processor for the cache line of array[index], to be written soon; nothing is read or checked."""

    def codegen(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(view.data, [arguments[1]])
        byte_pointer = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer.type, number, number, number])
        function = builder.module.globals.get("llvm.prefetch.p0") or ir.Function(
            builder.module, kind, "llvm.prefetch.p0"
        )
        builder.call(function, [byte_pointer, number(1), number(3), number(1)])  # write, keep in all caches, data
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@njit
def locate(base, width, bucket, deal, first):
    """first[b] = base[b] + bucket[deal, b] · width[b] for every block, in place: where a hand's rows begin."""
    for block in range(base.shape[0]):
        first[block] = base[block] + np.int64(bucket[deal, block]) * width[block]
