"""Shares the bucket tables of full-deck hold'em among a run's workers, in shared memory."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mccfr.cards.base import Cards
from mccfr.cards.full_deck import WholeDeck
from mccfr.games.game import Game
from mccfr.solvers.solver import Algorithm
from storage.mapping import ControlBlock, create_cells, map_cells

_FILE = "buckets"
_CELL_BYTES = 8


class SharedGame(NamedTuple):
    """A game whose bucket tables are in shared memory, and the mapping of that memory.

    block  the mapping, to be kept as long as the game is used; None: the game has no bucket tables to share, or the
           algorithm does not use them
    """

    game: Game
    block: ControlBlock | None


def shared_bytes(game: Game, algorithm: Algorithm) -> int:
    """Return the bytes of the bucket tables that a run's processes share.

    Bucket tables of a separate abstraction of the opponents are included. Returns 0 if the algorithm does not use
    bucket tables, or if the game has none that can be shared.
    """
    return sum(cards.shared_bytes for cards in _decks(game).values()) if algorithm.traits.looks_hands_up else 0


def copied_bytes(game: Game, algorithm: Algorithm) -> int:
    """Return the bytes of the bucket tables that are copied from other memory to shared memory.

    The other bucket tables are read from files directly into the shared memory. Returns 0 if the algorithm does not use
    bucket tables.
    """
    decks = _decks(game).values() if algorithm.traits.looks_hands_up else ()
    return sum(deck.shared_bytes for deck in decks if not (isinstance(deck, WholeDeck) and deck.read_into))


def _decks(game: Game) -> dict[str, Cards]:
    """Return {"cards": game.cards, "opponent_cards": game.opponent_cards}.

    Cards without bucket tables that can be shared are left out.
    """
    both = {"cards": game.cards, "opponent_cards": game.opponent_cards}
    return {name: cards for name, cards in both.items() if cards is not None and cards.shared_bytes}


def share_buckets(game: Game, directory: Path, algorithm: Algorithm) -> SharedGame:
    """Return the game with its bucket tables in a new shared file, and the mapping of this file.

    Other processes can map the file too.

    Returns the game unchanged if it has no such tables, or if the algorithm does not use them.

    directory  directory of the file, that of the tables in training

    Raises `ValueError` or `OSError` for an unusable abstraction.
    """
    if not shared_bytes(game, algorithm):
        return SharedGame(game, None)
    return _with_block(game, create_cells(directory / _FILE, _shape(game)), fill=True)


def map_buckets(game: Game, directory: Path, algorithm: Algorithm) -> SharedGame:
    """Return the game with the bucket tables in the shared file made by `share_buckets`.

    Returns the game unchanged if it has no such tables, or if the algorithm does not use them.

    directory  directory of the shared file, that of the tables in training
    """
    if not shared_bytes(game, algorithm):
        return SharedGame(game, None)
    return _with_block(game, map_cells(directory / _FILE, _shape(game)), fill=False)


def _shape(game: Game) -> tuple[int]:
    return (-(-sum(cards.shared_bytes for cards in _decks(game).values()) // _CELL_BYTES),)


def _with_block(game: Game, block: ControlBlock, *, fill: bool) -> SharedGame:
    memory, shared = block.cells.view("uint8"), dict[str, Cards]()
    for name, cards in _decks(game).items():
        size = cards.shared_bytes
        shared[name], memory = cards.in_memory(memory[:size], fill=fill), memory[size:]
    return SharedGame(replace(game, **shared), block)  # type: ignore[arg-type]
