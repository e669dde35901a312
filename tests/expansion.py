"""Strategies of a game with cards and of the same game expanded to a tree of histories: each as the other."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.games.history_tree import ExpandedGame
from mccfr.tables.strategy import Strategy, uniform_strategy

_Tables = tuple[npt.NDArray[np.float64], ...]


def expanded_strategy(expanded: ExpandedGame, strategy: Strategy) -> Strategy:
    """A strategy of `expanded.original` as one of `expanded.game`.

    Raises `ValueError` where its shapes are not those of the original game.
    """
    _check(expanded.original, strategy)
    return Strategy(_joined(expanded, strategy.probability), _joined(expanded, strategy.weight))


def original_strategy(expanded: ExpandedGame, strategy: Strategy) -> Strategy:
    """A strategy of `expanded.game` as one of `expanded.original`; buckets that are never dealt play uniformly.

    Raises `ValueError` where its shapes are not those of the expanded game.
    """
    _check(expanded.game, strategy)
    uniform = uniform_strategy(expanded.original)
    made = Strategy([table.copy() for table in uniform.probability], [table.copy() for table in uniform.weight])
    for given, tables in ((strategy.probability, made.probability), (strategy.weight, made.weight)):
        first = [0, 0]
        for block, (table, dealt) in enumerate(zip(tables, expanded.dealt, strict=True)):
            cells, start = len(dealt) * table.shape[1], first[block % 2]
            table[dealt] = given[block % 2][0, start : start + cells].reshape(len(dealt), table.shape[1])
            first[block % 2] += cells
    return made


def _joined(expanded: ExpandedGame, tables: Sequence[npt.NDArray[np.float64]]) -> _Tables:
    """Each player's tables laid end to end, without the buckets that are never dealt."""
    return tuple(
        np.concatenate([tables[b][expanded.dealt[b]].ravel() for b in range(player, len(tables), 2)])[None]
        for player in range(2)
    )


def _check(game: Game, strategy: Strategy) -> None:
    needed = list(zip(game.buckets.tolist(), game.tree.row_slots.tolist(), strict=True))
    given = [table.shape for table in strategy.probability]
    if given != needed:
        raise ValueError(f"the strategy's tables have the shapes {given}; {game.name} needs {needed}")
