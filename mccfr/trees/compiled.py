"""Compiled game trees: frozen structs of arrays, the only form that kernels take.

`CompiledTree` holds general records: decisions, terminals and chance nodes. For poker games it is the *public* betting
tree without cards; a deal adds each player's bucket on each street, and the showdown's result. Other games keep chance
and hidden moves in the tree and use bucket 0. `PackedTree` is the fast form of betting trees: one record of 32 bytes
for each decision, with terminals folded into their parent. With three and more players the terminals of a betting tree
have pots.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

DECISION, TERMINAL, CHANCE = 0, 1, 2
NO_PARENT = -1
NO_SLOT = -1
NO_PLAYER = -1
MAX_PACKED_ACTIONS = 8


class TreeArrays(NamedTuple):
    """General records in the form that kernels take. N nodes, root 0, depth-first, siblings contiguous.

    kind        [N] int8     DECISION, TERMINAL or CHANCE
    player      [N] int8     player to act at a decision, else NO_PLAYER
    block       [N] int8     P·street + player at a decision of P players: the table block of its row; else -1
    count       [N] int32    number of children (actions of a decision, outcomes of chance)
    first       [N] int32    first child; children are first .. first+count-1
    slot        [N] int32    first cell of the decision's row within a bucket's cells of its block; else NO_SLOT
    row         [N] int32    index of the row within its block; else NO_SLOT
    fixed       [N] float64  chips that player 0 wins at a terminal, independent of the cards
    showdown    [N] float64  chips of a showdown: player 0 wins this number times the deal's result (+1: player 0 has
                             the better hand, -1: player 1, 0: tie)
    probability [N] float64  probability of the edge from a chance node to this node; else 1
    touched     [N] int8     nodes counted on entering: the node, and chance nodes that the tree omits before it
    """

    kind: npt.NDArray[np.int8]
    player: npt.NDArray[np.int8]
    block: npt.NDArray[np.int8]
    count: npt.NDArray[np.int32]  # type: ignore[assignment]  # hides the tuple's own method
    first: npt.NDArray[np.int32]
    slot: npt.NDArray[np.int32]
    row: npt.NDArray[np.int32]
    fixed: npt.NDArray[np.float64]
    showdown: npt.NDArray[np.float64]
    probability: npt.NDArray[np.float64]
    touched: npt.NDArray[np.int8]


def blank_arrays(nodes: int) -> TreeArrays:
    """Return TreeArrays of `nodes` terminals that pay nothing, to be filled in."""
    return TreeArrays(
        kind=np.full(nodes, TERMINAL, np.int8),
        player=np.full(nodes, NO_PLAYER, np.int8),
        block=np.full(nodes, -1, np.int8),
        count=np.zeros(nodes, np.int32),
        first=np.full(nodes, -1, np.int32),
        slot=np.full(nodes, NO_SLOT, np.int32),
        row=np.full(nodes, NO_SLOT, np.int32),
        fixed=np.zeros(nodes),
        showdown=np.zeros(nodes),
        probability=np.ones(nodes),
        touched=np.ones(nodes, np.int8),
    )


class NumberedRows(NamedTuple):
    """Indices in the tables of the rows of all decisions. N nodes, B blocks (street and player).

    slot                  [N] int32 first cell of a decision's row within a bucket's cells; NO_SLOT: no decision
    row                   [N] int32 index of the row within its block; NO_SLOT: no decision
    row_slots, row_count  [B] int64 number of slots (actions) and rows (decisions) of each block
    """

    slot: npt.NDArray[np.int32]
    row: npt.NDArray[np.int32]
    row_slots: npt.NDArray[np.int64]
    row_count: npt.NDArray[np.int64]


def numbered_rows(
    block: npt.NDArray[np.integer],
    count: npt.NDArray[np.integer],
    blocks: int,
    order: npt.NDArray[np.integer] | None = None,
) -> NumberedRows:
    """Number the table rows and slots (actions) of N nodes' decisions, from 0 in each block.

    block   [N] block of each node, -1 if it is no decision
    count   [N] number of actions
    blocks  number of blocks
    order   [N] key by which the decisions of a block are sorted, ascending; None: in order of nodes
    """
    slot, row = (np.full(len(block), NO_SLOT, np.int32) for _ in range(2))
    row_slots, row_count = np.zeros(blocks, np.int64), np.zeros(blocks, np.int64)
    for number in range(blocks):
        own = np.flatnonzero(block == number)
        if order is not None:
            own = own[np.argsort(order[own], kind="stable")]
        width = count[own]
        slot[own], row[own] = np.cumsum(width) - width, np.arange(len(own))
        row_slots[number], row_count[number] = width.sum(), len(own)
    return NumberedRows(slot, row, row_slots, row_count)


PACKED_NODE = np.dtype(
    [
        ("first", np.int32),  # packed index of the first child that is a decision
        ("slot", np.int32),  # first cell of the row within a bucket's cells of the block
        ("fold_value", np.float32),  # chips that player 0 wins when action 0 folds
        ("call_value", np.float32),  # chips multiplied by the deal's result when a check or call ends the hand
        ("actions", np.int8),  # number of actions, at most MAX_PACKED_ACTIONS
        ("player", np.int8),
        ("block", np.int8),
        ("folds", np.int8),  # 1: action 0 folds
        ("ends", np.int8),  # 1: the check or call (the action after the fold, if any) ends the hand
        ("touched", np.int8),  # nodes counted on entering: 1, plus 1 if board cards are dealt before it
        ("end_touched", np.int8),  # nodes counted for the ending call: 1, plus 1 for a run-out
        ("leaves_touched", np.int8),  # nodes counted for fold and ending call together
        ("fold_pot", np.int32),  # three and more players: the first pot of each of these two terminals
        ("call_pot", np.int32),
    ]
)
"""One decision node, 32 bytes. Actions in order: fold, ending check or call, then the children.

With three and more players `folds` says that the first action ends the hand, and `ends` that the next one does.
"""

PackedTree = npt.NDArray[np.void]
"""[D] PACKED_NODE, root 0, in the order of the compiled tree's decisions."""


class Pots(NamedTuple):
    """Main and side pots at the terminals of a betting tree of P >= 3 players. N nodes, K pots.

    first       [N+1] int32  first pot of each node; its pots end where the next node's begin
    chips       [K] float64  chips after rake
    contenders  [K] int8     players who can win the pot, as a set: player i is bit i
    dead        [P] float64  chips that each player paid besides `CompiledTree.put_in`, such as one player's ante for
                             all; the same at all terminals
    """

    first: npt.NDArray[np.int32]
    chips: npt.NDArray[np.float64]
    contenders: npt.NDArray[np.int8]
    dead: npt.NDArray[np.float64]


PACKED_POT = np.dtype(
    [
        ("chips", np.float32),
        ("contenders", np.int8),
        ("others", np.int8),  # number of the terminal's pots that follow this one
        ("unused", np.int16),
        ("paid", np.float32, (6,)),  # chips that each player has paid, in a terminal's first pot
    ]
)
"""One pot, 32 bytes; the side pots of a terminal follow its main pot."""


def pack_pots(tree: "CompiledTree") -> npt.NDArray[np.void]:
    """Return [K] PACKED_POT records: the pots of a tree that has `pots` and `put_in`.

    Each record also has the chips that each player has paid in the whole hand.
    """
    pots, put_in = tree.pots, tree.put_in
    assert pots is not None
    assert put_in is not None
    packed, count = np.zeros(len(pots.chips), PACKED_POT), np.diff(pots.first)
    packed["chips"], packed["contenders"] = pots.chips, pots.contenders
    node = np.repeat(np.arange(len(count)), count)
    packed["others"] = pots.first[node + 1] - 1 - np.arange(len(node))
    packed["paid"][:, : tree.players] = put_in[node] + pots.dead
    return packed


@dataclass(frozen=True)
class Locks:
    """Locked rows, whose strategy is fixed (node locks). K hands, or K buckets of a node's block.

    shares   {node of a decision: [actions, K] float64}, the fixed probability of each action, or -1 if it is not fixed.
             A hand or bucket has either all probabilities fixed, or only some, all of them 0 (barred actions)
    by_hand  True if K counts hands, on every board
    """

    shares: Mapping[int, npt.NDArray[np.float64]]
    by_hand: bool

    def renumbered(self, block: npt.NDArray[np.int8], before: Sequence[npt.NDArray[np.integer]]) -> "Locks":
        """Return the same locks after the buckets were renumbered; locks of hands do not change.

        block   [N] block of each node
        before  B × [K] for each block, the former number of each bucket
        """
        if self.by_hand:
            return self
        return Locks({node: of[:, before[int(block[node])]] for node, of in self.shares.items()}, by_hand=False)


@dataclass(frozen=True)
class CompiledTree:
    """A compiled game tree: arrays for kernels, and beside them labels, table sizes, pots, locks.

    N nodes, S streets, P players, B = P·S blocks (block P·street + player). The payoffs of three and more players are
    in `pots` in betting trees, and in `payoffs` in trees with cards as chance nodes.
    """

    arrays: TreeArrays
    parent: npt.NDArray[np.int32]  # [N], NO_PARENT at the root
    label: Sequence[str]  # [N] the action or chance outcome that leads into the node: "c", "f", "r300", "3", ...
    streets: int
    row_slots: npt.NDArray[np.int64]  # [B] cells of one bucket's rows in each block
    row_count: npt.NDArray[np.int64]  # [B] rows (infosets of one bucket) in each block
    infoset_names: tuple[Sequence[str], ...] | None = None  # by player and row, for trees with hidden moves
    put_in: npt.NDArray[np.float64] | None = None  # [N, P] chips of each player over the whole hand, in betting trees
    action_names: Sequence[str] | None = None  # [N] action names for display, if labels are numbers
    locks: Locks | None = None  # rows with a fixed strategy
    payoffs: npt.NDArray[np.float64] | None = None  # [N, P] chips of each player at terminals, for three and more
    pots: Pots | None = None  # pots at terminals of betting trees, for three and more players

    @property
    def players(self) -> int:
        """Number of players."""
        return len(self.row_slots) // self.streets

    def payoffs_of(self, player: int) -> npt.NDArray[np.float64]:
        """Return [N] chips that a player wins at terminals, without those that showdowns decide.

        Betting trees of three and more players are not supported: their payoffs are in `pots`.
        """
        if self.payoffs is not None:
            return self.payoffs[:, player]
        return self.arrays.fixed if player == 0 else -self.arrays.fixed

    @property
    def nodes(self) -> int:
        """Number of decisions and terminals; chance nodes do not count."""
        return int((self.arrays.kind != CHANCE).sum())

    @property
    def decisions(self) -> npt.NDArray[np.int64]:
        """[D] indices of the decision nodes, ascending."""
        return np.flatnonzero(self.arrays.kind == DECISION)

    @property
    def street(self) -> npt.NDArray[np.int8]:
        """[N] street of each decision, from 0 on; of another node, the street of its parent; 0 at the root."""
        street = np.where(self.arrays.kind == DECISION, self.arrays.block // self.players, -1)
        above = np.where(street < 0, self.parent, NO_PARENT)
        while (open_nodes := np.flatnonzero(above != NO_PARENT)).size:  # chance nodes may follow each other
            street[open_nodes] = street[above[open_nodes]]
            above[open_nodes] = np.where(street[open_nodes] < 0, self.parent[above[open_nodes]], NO_PARENT)
        return np.maximum(street, 0).astype(np.int8)

    def children(self, node: int) -> range:
        """Return the indices of a node's children."""
        first = int(self.arrays.first[node])
        return range(first, first + int(self.arrays.count[node]))

    def path(self, node: int) -> list[int]:
        """Return the nodes from the root to `node`, both included."""
        nodes = [node]
        while (above := int(self.parent[nodes[-1]])) != NO_PARENT:
            nodes.append(above)
        return nodes[::-1]


def pack(tree: CompiledTree) -> PackedTree:
    """Return a betting tree as [D] PACKED_NODE records, one for each decision; they contain its terminals.

    Raises `ValueError` for trees that do not fulfil these conditions: no chance nodes; at most MAX_PACKED_ACTIONS
    actions; terminals only as the first actions of a node. These are at most one fold (fixed payoff), then at most one
    ending check or call (showdown payoff). With pots they are at most two, of any kind.
    """
    arrays, pots, decisions = tree.arrays, tree.pots, tree.decisions
    first, count, last = arrays.first[decisions], arrays.count[decisions], len(arrays.kind) - 1
    if np.any(arrays.kind == CHANCE):
        raise ValueError("the tree has chance nodes of its own: it cannot be packed")
    if (many := count > MAX_PACKED_ACTIONS).any():
        node, most = int(decisions[np.argmax(many)]), MAX_PACKED_ACTIONS
        raise ValueError(f"node {node} has {arrays.count[node]} actions; a packed tree takes at most {most}")

    def are_leaves(children: npt.NDArray[np.integer], other: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Return [D] bool: True where the child of a decision is a terminal that can be packed.

        children  [D] one child of each decision
        other     [N] payoffs that must be 0 at the terminal: showdown payoffs for a fold, fixed ones for a call; not
                  read with pots
        """
        leaves = (children < first + count) & (arrays.kind[children] == TERMINAL)
        return leaves if pots is not None else leaves & (other[children] == 0)

    fold = np.minimum(first, last)
    folds = are_leaves(fold, arrays.showdown)
    call = np.minimum(first + folds, last)
    ends = are_leaves(call, arrays.fixed)
    following = first + folds + ends
    before = np.append(0, np.cumsum(arrays.kind != DECISION))  # terminals before each node
    if (wrong := before[first + count] > before[following]).any():
        node = int(decisions[np.argmax(wrong)])
        raise ValueError(f"node {node} is not of the form fold, ending call, decisions: the tree cannot be packed")
    packed = np.zeros(len(decisions), PACKED_NODE)
    for name in ("slot", "player", "block", "touched"):
        packed[name] = getattr(arrays, name)[decisions]
    packed["actions"], packed["folds"], packed["ends"] = count, folds, ends
    packed["fold_value"], packed["call_value"] = folds * arrays.fixed[fold], ends * arrays.showdown[call]
    packed["end_touched"] = ends * arrays.touched[call]
    packed["leaves_touched"] = folds * arrays.touched[fold] + packed["end_touched"]
    if pots is not None:
        packed["fold_pot"], packed["call_pot"] = folds * pots.first[fold], ends * pots.first[call]
    packed["first"] = np.where(following < first + count, following - before[following], -1)
    return packed


def can_pack(tree: CompiledTree) -> bool:
    """Return True if `pack` accepts the tree."""
    try:
        pack(tree)
    except ValueError:
        return False
    return True
