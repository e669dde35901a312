"""Boards shown in a report, with the buckets of all hands on them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from abstraction.cards import parse_cards, plain_text
from mccfr.cards.card_index import IndexedCards
from mccfr.cards.card_list_text import find_boards
from mccfr.cards.card_lists import ListedCards
from mccfr.games.game import Game

NO_BOARD = -1


@dataclass(frozen=True)
class Board:
    """A board of one street.  H hands.

    parent  index of the board of the street before, among the shown ones; NO_BOARD on the first street
    bucket  [2, H] int32 bucket of each player's hand; below 0: impossible hand
    """

    street: int
    street_name: str
    name: str
    parent: int
    bucket: npt.NDArray[np.int32]


@dataclass(frozen=True)
class ShownCards:
    """Hands of a game and the boards shown in a report.  H hands.

    names       H texts
    hand_cards  [H, 2] cards by number, -1 for missing cards
    reach       [2, H] float64 weight of each player's hands before the first action
    boards      in order of streets
    left_out    number of listed boards that are not shown
    """

    names: Sequence[str]
    hand_cards: npt.NDArray[np.integer]
    reach: npt.NDArray[np.float64]
    boards: Sequence[Board]
    left_out: int


def shown_cards(game: Game, wanted: Sequence[str], count: int) -> ShownCards:
    """Return hands and boards of a report.

    wanted  boards as text; none: up to `count` boards of each later street, evenly spaced

    Raises `ValueError` for a game without cards, and for an invalid board.
    """
    if not game.cards.dealt:
        raise ValueError(f"{game.name} has no cards beside its tree: a report shows ranges; use `mccfr query`")
    if game.cards.boards is None:
        return _deck_boards(game, game.cards.at_table(), wanted)
    return _listed_boards(game, game.cards.listed(), wanted, count)


def _listed_boards(game: Game, cards: ListedCards, wanted: Sequence[str], count: int) -> ShownCards:
    chosen = _chosen(cards, wanted, count)
    boards: list[Board] = []
    number: dict[tuple[int, int], int] = {}
    for street, indices in enumerate(chosen):
        for index in indices:
            parent = number[street - 1, int(cards.board_parent[street][index])] if street else NO_BOARD
            number[street, index] = len(boards)
            bucket = np.where(cards.reach > 0, cards.bucket[street][:, index], -1)
            name = cards.board_text(street, index)
            boards.append(Board(street, _street_text(game, street), name, parent, bucket.astype(np.int32)))
    every = sum(len(rows) for rows in cards.board_cards)
    return ShownCards(cards.hand_names, cards.hand_cards, cards.reach, boards, every - len(boards))


def _chosen(cards: ListedCards, wanted: Sequence[str], count: int) -> list[list[int]]:
    """Return the indices of shown boards on each street, ascending, including the parents of shown boards."""
    found: list[set[int]] = [set() for _ in range(cards.streets)]
    for text in wanted:
        street, indices = _find(cards, text)
        found[street].update(indices)
    for street in range(cards.streets):
        every = len(cards.board_cards[street])
        if not street:
            found[0].update(range(every) if not wanted or every == 1 else ())
        elif not wanted:
            below = np.flatnonzero(np.isin(cards.board_parent[street], sorted(found[street - 1])))
            places = np.linspace(0, len(below) - 1, min(count, len(below))).round().astype(int)
            found[street].update(below[places].tolist())
    for street in range(cards.streets - 1, 0, -1):
        found[street - 1].update(int(cards.board_parent[street][index]) for index in found[street])
    return [sorted(indices) for indices in found]


def _find(cards: ListedCards, text: str) -> tuple[int, list[int]]:
    """Return street and indices of a board given as text, with or without the game's initial board."""
    problem: ValueError | None = None
    for street in range(cards.streets):
        try:
            return street, find_boards(cards, street, text).tolist()
        except ValueError as error:
            problem = error
    raise problem or ValueError(f"board {text!r} is not one of this game's")


def _deck_boards(game: Game, deck: IndexedCards, wanted: Sequence[str]) -> ShownCards:
    boards: list[Board] = []
    number: dict[tuple[int, ...], int] = {}
    for text in ("", *map(plain_text, wanted)):
        cards = parse_cards(text)
        if len(cards) not in {deck.cards_on(street) for street in range(deck.streets)}:
            sizes = ", ".join(str(deck.cards_on(street)) for street in range(deck.streets))
            raise ValueError(f"board {text!r} has {len(cards)} cards: boards of {game.name} have {sizes}")
        for street in range(deck.streets):
            board = cards[: deck.cards_on(street)]
            if len(board) < deck.cards_on(street) or board in number:
                continue
            parent = number[cards[: deck.cards_on(street - 1)]] if street else NO_BOARD
            number[board] = len(boards)
            bucket = np.stack([deck.bucket_row(street, player, board) for player in range(2)])
            name = text[: 2 * len(board)]
            boards.append(Board(street, _street_text(game, street), name, parent, bucket))
    names = [deck.hand_text(hand) for hand in range(deck.hand_count)]
    return ShownCards(names, deck.hand_cards, deck.reach, boards, 0)


def _street_text(game: Game, street: int) -> str:
    name = game.street_name(street)
    return name if isinstance(name, str) else f"street {name + 1}"
