"""Divides a two-player betting tree into street trees, which kernels walk with all hands at once.

A *street tree* is the betting of one street after one betting line of earlier streets. Its members (nodes) are
decisions, folds, showdowns, and exits, which lead to the next street. A showdown before the last street is a run-out:
the remaining board cards are dealt first. Parents precede their children and siblings are adjacent. So a walk down
counts up, and values propagate by counting down.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mccfr.trees.compiled import DECISION, NO_PARENT, TERMINAL, CompiledTree

Ints = npt.NDArray[np.int64]

AT_DECISION, AT_FOLD, AT_SHOWDOWN, AT_EXIT = 0, 1, 2, 3


class MemberRows(NamedTuple):
    """Table rows of the decisions in street trees. M members, the nodes of all street trees.

    block  [M] int8   2·street + player
    slot   [M] int32  first cell (action) of its row within a bucket's cells of the block
    cell   [M] int32  first of its cells in an array of the player's actions in the street tree: the number of actions
                      at the player's earlier decisions there
    lock   [M] int32  first row of the fixed probabilities in `LockedRows.share`; -1: none (`street_trees` sets -1)
    """

    block: npt.NDArray[np.int8]
    slot: npt.NDArray[np.int32]
    cell: npt.NDArray[np.int32]
    lock: npt.NDArray[np.int32]


class StreetTrees(NamedTuple):
    """Street trees in the form that kernels take. U trees, tree 0 begins the game; M members; S streets.

    first    [U+1] int64    members of street tree u are first[u] .. first[u+1]-1; the first is its root, a decision
    kind     [M] int8       AT_DECISION, AT_FOLD, AT_SHOWDOWN or AT_EXIT
    player   [M] int8       player to act at a decision
    actions  [M] int32      number of actions of a decision
    child    [M] int32      first child of a decision, counted from the root of the street tree; siblings follow
    rows     table rows of decisions
    chips    [M, 2] float64  chips that player 0 wins by a fold, or the stake of a showdown; and the rake of that pot,
                            which `street_trees` sets to 0
    below    [M] int32      street tree to which an exit leads, else -1
    touched  [M] int8       nodes counted on entering; 0 for exits, which count as the root of their tree
    most     [2, S] int64   by street: most members of a street tree, and most cells of one player in one
    """

    first: Ints
    kind: npt.NDArray[np.int8]
    player: npt.NDArray[np.int8]
    actions: npt.NDArray[np.int32]
    child: npt.NDArray[np.int32]
    rows: MemberRows
    chips: npt.NDArray[np.float64]
    below: npt.NDArray[np.int32]
    touched: npt.NDArray[np.int8]
    most: Ints

    @property
    def street(self) -> Ints:
        """[U] int64 street of each of the U street trees."""
        return self.rows.block[self.first[:-1]].astype(np.int64) // 2


def street_trees(tree: CompiledTree) -> StreetTrees:
    """Divide a betting tree of two players into its street trees, as arrays for kernels.

    A street tree is the betting of one street after one betting line of earlier streets.

    Raises `ValueError` for chance nodes, or a terminal with both a fixed and a showdown payoff.
    """
    return _pack(tree, *_cut(tree))


def street_members(tree: CompiledTree) -> Ints:
    """Return [M] the tree node of each member of the street trees, in the order of `StreetTrees`.

    A node that begins a later street is two members: an exit of one street tree, and the root of the next.
    """
    return _cut(tree)[0]


def _cut(tree: CompiledTree) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return five arrays that describe the U street trees of a tree of N nodes and their M members.

    * [M] node of each member
    * [M] kind of each member, such as AT_FOLD
    * [U+1] first member of each street tree, and the end of the last
    * [N] number among the M members of each node, in the street tree of its parent
    * [N] street tree of each node
    """
    arrays, parent = tree.arrays, tree.parent
    if not np.isin(arrays.kind, (DECISION, TERMINAL)).all():
        raise ValueError("the tree has chance nodes of its own: street trees hold decisions and terminals only")
    if np.any((arrays.fixed != 0) & (arrays.showdown != 0)):
        raise ValueError("a terminal of the tree pays for a fold and for a showdown at once: one of them is allowed")
    decides = arrays.kind == DECISION
    starts = (parent == NO_PARENT) | (decides & (arrays.block // 2 != arrays.block[parent] // 2))
    number = np.cumsum(starts) - 1
    tree_of = number.copy()  # street tree of each node
    for node in np.flatnonzero(~starts).tolist():
        tree_of[node] = tree_of[parent[node]]
    trees = int(starts.sum())
    # members of a tree: its root, then every node whose parent is in it, in the order of nodes
    above = tree_of[parent[1:]]
    order = np.argsort(above, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(above, minlength=trees) + 1)]).astype(np.int64)
    member_of = np.zeros(len(parent), np.int64)  # member number of a node in the tree of its parent
    member_of[1 + order] = np.arange(len(order)) + above[order] + 1
    node_of = np.zeros(int(first[-1]), np.int64)
    node_of[member_of[1:]] = np.arange(1, len(parent))
    node_of[first[:-1]] = np.flatnonzero(starts)
    inside = np.ones(len(node_of), bool)
    inside[first[:-1]] = False
    kind = np.where(arrays.showdown[node_of] != 0, AT_SHOWDOWN, AT_FOLD)
    kind[decides[node_of]] = AT_DECISION
    kind[starts[node_of] & inside] = AT_EXIT
    return node_of, kind, first, member_of, tree_of


def _pack(tree: CompiledTree, node: Ints, kind: Ints, first: Ints, member_of: Ints, tree_of: Ints) -> StreetTrees:
    arrays, trees = tree.arrays, len(first) - 1
    decides = kind == AT_DECISION
    member_tree = np.repeat(np.arange(trees), np.diff(first))
    street = arrays.block[node[first[:-1]]].astype(np.int64) // 2
    actions = np.where(decides, arrays.count[node], 0)
    cell, most = np.zeros(len(node), np.int64), np.zeros((2, tree.streets), np.int64)
    np.maximum.at(most[0], street, np.diff(first))
    for player in range(2):
        acts = decides & (arrays.player[node] == player)
        counts = np.where(acts, actions, 0)
        before = np.cumsum(counts) - counts
        cell[acts] = (before - before[first[member_tree]])[acts]
        np.maximum.at(most[1], street, np.add.reduceat(counts, first[:-1]))
    chips = np.where(kind == AT_FOLD, arrays.fixed[node], arrays.showdown[node]).astype(np.float64)
    return StreetTrees(
        first,
        kind.astype(np.int8),
        arrays.player[node].astype(np.int8),
        actions.astype(np.int32),
        np.where(decides, member_of[arrays.first[node]] - first[member_tree], 0).astype(np.int32),
        MemberRows(
            arrays.block[node].astype(np.int8),
            arrays.slot[node].astype(np.int32),
            cell.astype(np.int32),
            np.full(len(node), -1, np.int32),
        ),
        np.stack([chips, np.zeros(len(node))], axis=1),
        np.where(kind == AT_EXIT, tree_of[node], -1).astype(np.int32),
        np.where(kind == AT_EXIT, 0, arrays.touched[node]).astype(np.int8),
        most,
    )
