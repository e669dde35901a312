"""Subtrees: the part of a betting tree from a decision on, as node numbers and as its own tree."""

import numpy as np
import numpy.typing as npt

from mccfr.trees.compiled import DECISION, NO_PARENT, CompiledTree, TreeArrays, numbered_rows


def nodes_below(tree: CompiledTree, root: int) -> npt.NDArray[np.int64]:
    """Return [n] the numbers of a decision and of all nodes below it, ascending.

    Entry k is the node that becomes node k of `subtree`.
    """
    inside = np.zeros(len(tree.parent), bool)
    inside[root] = True
    for node in range(root + 1, len(inside)):  # parents come before their children
        inside[node] = inside[tree.parent[node]]
    return np.flatnonzero(inside)


def subtree(tree: CompiledTree, root: int) -> CompiledTree:
    """Return the part of a two-player tree from the decision `root` on, as its own tree.

    Streets are renumbered from 0. So are the indices (`row`) by which the decisions of one player on one street find
    their strategy.
    """
    arrays, nodes = tree.arrays, nodes_below(tree, root)
    number = np.full(len(tree.parent), -1, np.int32)
    number[nodes] = np.arange(len(nodes))
    streets = tree.streets - int(arrays.block[root]) // 2
    decides = arrays.kind[nodes] == DECISION
    block = np.where(decides, arrays.block[nodes] - 2 * (tree.streets - streets), -1).astype(np.int8)
    rows = numbered_rows(block, arrays.count[nodes], 2 * streets, arrays.row[nodes])
    touched = arrays.touched[nodes].copy()
    touched[0] = 1  # the cards of its street are already dealt
    parent = np.where(nodes == root, NO_PARENT, number[tree.parent[nodes]]).astype(np.int32)
    return CompiledTree(
        TreeArrays._make(column[nodes] for column in arrays)._replace(
            block=block,
            first=np.where(arrays.first[nodes] >= 0, number[arrays.first[nodes]], -1).astype(np.int32),
            slot=rows.slot,
            row=rows.row,
            touched=touched,
        ),
        parent,
        ["", *(tree.label[node] for node in nodes[1:].tolist())],
        streets,
        rows.row_slots,
        rows.row_count,
        put_in=None if tree.put_in is None else tree.put_in[nodes],
    )
