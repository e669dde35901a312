"""What queries and exports need of a strategy, whether it is in memory or in a policy directory."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import DECISION


class PolicySource(Protocol):
    """A game and both players' behaviour in it."""

    @property
    def game(self) -> Game:
        """The compiled game."""

    def probabilities(self, node: int, bucket: int) -> npt.NDArray[np.float64]:
        """[A] probability of each action at a decision; uniform where `weight` is 0."""

    def weight(self, node: int, bucket: int) -> float:
        """Accumulated weight behind the average strategy at an infoset; 0: never reached."""


def place(game: Game, node: int, bucket: int) -> tuple[int, int, int, int]:
    """(block, row, first slot, number of actions) of an infoset; `ValueError` if there is no such infoset."""
    arrays = game.tree.arrays
    if not 0 <= node < len(arrays.kind) or arrays.kind[node] != DECISION:
        raise ValueError(f"node {node} is not one of the tree's decisions")
    block = int(arrays.block[node])
    buckets = int(game.buckets[block])
    if not 0 <= bucket < buckets:
        where = f"street {block // 2}, player {block % 2}"
        raise ValueError(f"bucket {bucket} at node {node}: {where} has buckets 0 to {buckets - 1}")
    return block, int(arrays.row[node]), int(arrays.slot[node]), int(arrays.count[node])


@dataclass(frozen=True)
class StrategySource:
    """A strategy in memory as a `PolicySource`."""

    game: Game
    strategy: Strategy

    def probabilities(self, node: int, bucket: int) -> npt.NDArray[np.float64]:
        """[A] probability of each action; `ValueError` for a node that is no decision or an unknown bucket."""
        return self.rows(node, np.array([bucket]))[0][0].copy()

    def weight(self, node: int, bucket: int) -> float:
        """Weight behind the row; `ValueError` as in `probabilities`."""
        return float(self.rows(node, np.array([bucket]))[1][0])

    def rows(
        self, node: int, buckets: npt.NDArray[np.integer]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """[n, A] probabilities and [n] weights of several buckets; `ValueError` as in `probabilities`."""
        for bucket in (int(buckets.min(initial=0)), int(buckets.max(initial=0))):
            block, row, slot, count = place(self.game, node, bucket)
        return self.strategy.read(block, row, slice(slot, slot + count), buckets)
