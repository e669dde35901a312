"""Bucket tables of whole hold'em, once for all workers of a run.

They lie in shared memory beside the live tables.
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mccfr.cards.cards import Cards
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
    """Memory of the bucket tables that the processes of a run share, those of opponents on others included."""
    return sum(cards.shared_bytes for cards in _decks(game).values()) if algorithm.traits.looks_hands_up else 0


def _decks(game: Game) -> dict[str, Cards]:
    """What has bucket tables, by the field of the game: they take whole lines of the cache each."""
    both = {"cards": game.cards, "opponent_cards": game.opponent_cards}
    return {name: cards for name, cards in both.items() if cards is not None and cards.shared_bytes}


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
    return (-(-sum(cards.shared_bytes for cards in _decks(game).values()) // _CELL_BYTES),)


def _with_block(game: Game, block: ControlBlock, *, fill: bool) -> SharedGame:
    memory, made = block.cells.view("uint8"), dict[str, Cards]()
    for name, cards in _decks(game).items():
        size = cards.shared_bytes
        made[name], memory = cards.in_memory(memory[:size], fill=fill), memory[size:]
    return SharedGame(replace(game, **made), block)  # type: ignore[arg-type]
