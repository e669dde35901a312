"""A strategy in the game that it is for: what evaluations take."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.tables.strategy import RowSource


@dataclass(frozen=True)
class Side:
    """A strategy and the game it is for, whose cards say which bucket each of its hands has.

    `prepared` is what an evaluation method has made of the game before, for other strategies (`Method.prepared`).
    """

    game: Game
    strategy: RowSource
    prepared: Any = None

    def fingerprint(self) -> str:
        """SHA-256 of the betting tree, the numbers of buckets and every row, for `what` of `play_units`."""
        digest = hashlib.sha256("".join(self.game.tree.label).encode())
        _add(digest, self.game.buckets)
        for block in range(self.strategy.blocks):
            rows = self.strategy.rows(block)
            _add(digest, rows.cells)
            if rows.weight is not None:
                _add(digest, rows.weight)
        return digest.hexdigest()


def _add(digest: Any, array: npt.NDArray[Any]) -> None:
    digest.update(f"{array.dtype.str}{array.shape}".encode())
    if array.size and array.strides[0] == 0:
        array = array[:1]  # one row that every bucket has
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
