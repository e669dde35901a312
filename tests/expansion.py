"""Converts a strategy of a card game to its history tree."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mccfr.games.history_tree import ExpandedGame


def joined(expanded: ExpandedGame, tables: Sequence[npt.ArrayLike], player: int) -> npt.NDArray[np.float64]:
    """Return the rows of a player's tables, by block, in the order of the expanded game's rows."""
    return np.concatenate([*views(expanded, [np.asarray(table) for table in tables], player)])


def views(expanded: ExpandedGame, tables: Sequence[npt.NDArray[np.float64]], player: int):
    """Yield the cells of each expanded row in tables [bucket, slot] or [bucket, row] by block."""
    tree = expanded.original.tree
    for node, bucket in expanded.rows[player].tolist():
        block, count = int(tree.arrays.block[node]), int(tree.arrays.count[node])
        whole = tables[block].shape[1] == tree.row_slots[block]
        first = int((tree.arrays.slot if whole else tree.arrays.row)[node])
        yield tables[block][bucket, first : first + (count if whole else 1)]
