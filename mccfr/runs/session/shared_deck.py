"""Bucket tables of whole hold'em, once for all workers of a run.

For processes they lie in shared memory beside the live tables, for threads in huge pages where the system gives any.
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mccfr.games.game import Game
from mccfr.solvers.solver import Algorithm
from storage.mapping import ControlBlock, create_cells, map_cells
from storage.pages import huge_zeros

_FILE = "buckets"
_CELL_BYTES = 8


class SharedGame(NamedTuple):
    """A game whose bucket tables are shared, and the mapping behind them, which must outlive it."""

    game: Game
    block: ControlBlock | None


def shared_bytes(game: Game, algorithm: Algorithm) -> int:
    """Memory of the bucket tables that the processes of a run share."""
    return game.cards.shared_bytes if algorithm.traits.looks_hands_up else 0


def share_buckets(game: Game, directory: Path, algorithm: Algorithm) -> SharedGame:
    """The game with its bucket tables in a file of `directory`, filled here; as it is where there are none, or no need.

    Raises `ValueError` or `OSError` where the abstraction is no use.
    """
    if not shared_bytes(game, algorithm):
        return SharedGame(game, None)
    return _with_block(game, create_cells(directory / _FILE, _shape(game)), fill=True)


def map_buckets(game: Game, directory: Path, algorithm: Algorithm) -> SharedGame:
    """The game with the bucket tables that `share_buckets` has put into `directory` in another process."""
    if not shared_bytes(game, algorithm):
        return SharedGame(game, None)
    return _with_block(game, map_cells(directory / _FILE, _shape(game)), fill=False)


def own_buckets(game: Game, algorithm: Algorithm) -> Game:
    """The game with its bucket tables in memory of this process's own; as it is where there are none, or no need."""
    size = shared_bytes(game, algorithm)
    if not size:
        return game
    memory = huge_zeros(size, np.uint8).view(np.uint8)
    return replace(game, cards=game.cards.in_memory(memory, fill=True))


def _shape(game: Game) -> tuple[int]:
    return (-(-game.cards.shared_bytes // _CELL_BYTES),)


def _with_block(game: Game, block: ControlBlock, *, fill: bool) -> SharedGame:
    memory = block.cells.view("uint8")[: game.cards.shared_bytes]
    return SharedGame(replace(game, cards=game.cards.in_memory(memory, fill=fill)), block)
