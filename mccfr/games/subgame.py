"""Builds postflop hold'em subgames: the rest of a hand from a decision, board and ranges."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from abstraction.boards import check_board
from abstraction.cards import COMBO_COUNT
from mccfr.cards.endgame_cards import endgame_cards
from mccfr.games.game import Game
from mccfr.trees.betting_lines import line_text, put_in_chips
from mccfr.trees.compiled import DECISION, NO_PARENT, CompiledTree, TreeArrays, numbered_rows


def subgame(game: Game, node: int, board: Sequence[int], ranges: npt.NDArray[np.floating]) -> Game:
    """Return the subgame after a decision of a hold'em game, with lossless infosets.

    node    a decision on the flop or later, of a full game or an endgame
    board   the board cards at this decision, in order of dealing
    ranges  [2, 1326] each player's weights of hands; the joint weight of a pair is the product

    Payoffs are those of the whole hand, including chips already in the pot, and lines count chips over the whole hand.
    Raises `ValueError` for another game or kind of node, a board of the wrong size, or ranges without a deal.
    """
    tree = game.tree
    if not game.is_holdem:
        raise ValueError(f"{game.name} is not a hold'em game: subgames have its deck and its boards")
    if not 0 <= node < len(tree.parent) or tree.arrays.kind[node] != DECISION:
        raise ValueError(f"node {node} is not one of the tree's decisions")
    street = int(tree.arrays.block[node]) // 2
    board_count = game.cards.cards_on(street)
    if not board_count:
        raise ValueError(f"the line {line_text(tree, node)!r} is before the flop: boards to come are too many to list")
    check_board(list(board), (board_count,))
    weights = np.asarray(ranges, np.float64)
    if weights.shape != (2, COMBO_COUNT) or not np.all(np.isfinite(weights) & (weights >= 0)):
        raise ValueError(f"ranges of shape {weights.shape}: {(2, COMBO_COUNT)} finite weights of at least 0 are needed")
    cards = endgame_cards(board, weights, tree.streets - street)
    if not (cards.reach > 0).any(axis=1).all():
        raise ValueError("a range has no hand that is possible on the board")
    return Game(
        "holdem-subgame",
        subtree(tree, node),
        cards,
        big_blind_chips=game.big_blind_chips,
        pot_chips=sum(put_in_chips(tree, node)),
        rake=game.rake,
    )


def nodes_below(tree: CompiledTree, root: int) -> npt.NDArray[np.int64]:
    """Return [n] a decision of a betting tree and all nodes below it, ascending, as in `subtree`."""
    inside = np.zeros(len(tree.parent), bool)
    inside[root] = True
    for node in range(root + 1, len(inside)):  # parents come before their children
        inside[node] = inside[tree.parent[node]]
    return np.flatnonzero(inside)


def subtree(tree: CompiledTree, root: int) -> CompiledTree:
    """Return the tree below a decision of a betting tree, with streets and rows renumbered from 0."""
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
