"""Bucket tables of whole hold'em beside the live tables: one copy in shared memory for all processes of a run."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mccfr.games.game import Game
from mccfr.games.holdem_deck import HoldemDeck
from storage.mapping import ControlBlock, create_cells, map_cells

_FILE = "buckets"
_CELL_BYTES = 8


class SharedGame(NamedTuple):
    """A game whose bucket tables are shared, and the mapping behind them, which must outlive it."""

    game: Game
    block: ControlBlock | None


def share_buckets(game: Game, directory: Path) -> SharedGame:
    """The game with its bucket tables in a file of `directory`, filled here; other games as they are.

    Raises `ValueError` or `OSError` where the abstraction is no use.
    """
    if not isinstance(game.cards, HoldemDeck):
        return SharedGame(game, None)
    return _with_block(game, game.cards, create_cells(directory / _FILE, _shape(game.cards)), fill=True)


def map_buckets(game: Game, directory: Path) -> SharedGame:
    """The game with the bucket tables that `share_buckets` has put into `directory` in another process."""
    if not isinstance(game.cards, HoldemDeck):
        return SharedGame(game, None)
    return _with_block(game, game.cards, map_cells(directory / _FILE, _shape(game.cards)), fill=False)


def _shape(deck: HoldemDeck) -> tuple[int]:
    return (-(-deck.layout.length_bytes // _CELL_BYTES),)


def _with_block(game: Game, deck: HoldemDeck, block: ControlBlock, *, fill: bool) -> SharedGame:
    memory = block.cells.view("uint8")[: deck.layout.length_bytes]
    return SharedGame(replace(game, cards=deck.in_memory(memory, fill=fill)), block)
