"""Converts a strategy of a card game to its history tree."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.games.history_tree import ExpandedGame
from mccfr.tables.strategy import Strategy


def expanded_strategy(expanded: ExpandedGame, strategy: Strategy) -> Strategy:
    """Return a strategy of `expanded.original` as one of `expanded.game`.

    Raises `ValueError` if its shapes are not those of the original game.
    """
    _check(expanded.original, strategy)
    return Strategy(*([joined(expanded, tables, player)[None] for player in (0, 1)] for tables in _both(strategy)))


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


def _both(strategy: Strategy):
    return strategy.probability, strategy.weight


def _check(game: Game, strategy: Strategy) -> None:
    needed = list(zip(game.buckets.tolist(), game.tree.row_slots.tolist(), strict=True))
    given = [table.shape for table in strategy.probability]
    if given != needed:
        raise ValueError(f"the strategy's tables have the shapes {given}; {game.name} needs {needed}")
