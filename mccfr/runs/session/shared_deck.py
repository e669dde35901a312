"""Bucket tables of whole hold'em, once for all workers of a run.

They lie in shared memory beside the live tables.
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mccfr.games.game import Game
from mccfr.solvers.solver import Algorithm
from storage.mapping import ControlBlock, create_cells, map_cells

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


def _shape(game: Game) -> tuple[int]:
    return (-(-game.cards.shared_bytes // _CELL_BYTES),)


def _with_block(game: Game, block: ControlBlock, *, fill: bool) -> SharedGame:
    memory = block.cells.view("uint8")[: game.cards.shared_bytes]
    return SharedGame(replace(game, cards=game.cards.in_memory(memory, fill=fill)), block)
