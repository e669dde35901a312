"""Strategy profiles: a game with the strategies of all players, in memory or in a policy directory."""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.common.arguments import require
from mccfr.games.game import Game
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import DECISION


class Behaviour(ABC):
    """Base class of policies and profiles: a game with all players' strategies, read by node and bucket."""

    game: Game

    @abstractmethod
    def rows(
        self, node: int, buckets: npt.NDArray[np.integer]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the probabilities [n, A] of a decision's A actions, and weights [n], by bucket.

        buckets  [n] the buckets of n hands

        A weight is the infoset's accumulated weight; the probabilities are uniform if it is 0.  A bucket below 0 marks
        an impossible hand, which gets 0.  Raises `ValueError` for a node that is no decision, or an unknown bucket.
        """

    def probabilities(self, node: int, bucket: int) -> npt.NDArray[np.float64]:
        """Return [A] the probabilities of an infoset's actions, in the order of the children.

        Raises `ValueError` for a node that is no decision, or an unknown bucket.
        """
        infoset_position(self.game, node, bucket)
        return self.rows(node, np.array([bucket]))[0][0]

    def weight(self, node: int, bucket: int) -> float:
        """Return the accumulated weight of an infoset; 0: never reached.

        Raises `ValueError` for a node that is no decision, or an unknown bucket.
        """
        infoset_position(self.game, node, bucket)
        return float(self.rows(node, np.array([bucket]))[1][0])


@dataclass(frozen=True)
class Profile(Behaviour):
    """A strategy and its game, whose cards give the bucket of each hand.

    strategy  all players' probabilities and weights, in memory or mapped from a policy's files
    prepared  data that an evaluation method computes once from the game and uses for several strategies; None: none
    """

    game: Game
    strategy: Strategy
    prepared: Any = None

    def rows(
        self, node: int, buckets: npt.NDArray[np.integer]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the probabilities [n, A] of a decision's A actions, and weights [n], by bucket.

        A weight is the infoset's accumulated weight. A bucket below 0 marks an impossible hand, which gets 0.

        buckets  [n] the buckets of n hands
        """
        known, dead = np.maximum(buckets, 0), buckets < 0
        block, row, slot, count = infoset_position(self.game, node, int(known.max(initial=0)))
        found, weight = self.strategy.blocks[block].rows(row, slice(slot, slot + count), known)
        found[dead], weight[dead] = 0, 0
        return found, weight

    def fingerprint(self) -> str:
        """Return a SHA-256 (hexadecimal) of the tree's action labels, numbers of buckets and strategy."""
        digest = hashlib.sha256("".join(self.game.tree.label).encode())
        _add(digest, self.game.buckets)
        for rows in self.strategy.blocks:
            _add(digest, rows.cells)
            if rows.weight is not None and rows.shares:
                _add(digest, rows.weight)
        return digest.hexdigest()


def infoset_position(game: Game, node: int, bucket: int) -> tuple[int, int, int, int]:
    """Return (block, row, first slot, number of actions) of the infoset of a `node` and a `bucket`.

    A block is the tables of one street and player.  Row and first slot are columns of its weights and probabilities.

    Raises `ValueError` if the infoset does not exist, and `TypeError` if node or bucket is not an `int`.
    """
    arrays = game.tree.arrays
    require(node, int, "node")
    require(bucket, int, "bucket")
    if not 0 <= node < len(arrays.kind) or arrays.kind[node] != DECISION:
        raise ValueError(f"node {node} is not one of the tree's decisions")
    block = int(arrays.block[node])
    buckets = int(game.buckets[block])
    if not 0 <= bucket < buckets:
        street, player = divmod(block, game.tree.players)
        where = f"street {street}, player {player}"
        raise ValueError(f"bucket {bucket} at node {node}: {where} has buckets 0 to {buckets - 1}")
    return block, int(arrays.row[node]), int(arrays.slot[node]), int(arrays.count[node])


def _add(digest: Any, array: npt.NDArray[Any]) -> None:
    digest.update(f"{array.dtype.str}{array.shape}".encode())
    if array.size and array.strides[0] == 0:
        array = array[:1]  # all buckets share one row in memory
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
