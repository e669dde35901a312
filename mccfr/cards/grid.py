"""Arranges hands in a display grid: the usual 13×13 square of hand classes, or rows for other games."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT, RANKS
from abstraction.range_notation import class_names, class_of

_RANKS = len(RANKS)
_WIDTH = 13


@dataclass(frozen=True)
class Grid:
    """Grid in which a page or table shows H hands; each of its C cells is one hand or class of hands.

    rows, columns  size of the grid
    label          C texts of the cells: AA, AKs, K
    place          C pairs (row, column) of the cells
    cell           [H] int64 index of each hand's cell
    """

    rows: int
    columns: int
    label: Sequence[str]
    place: Sequence[tuple[int, int]]
    cell: npt.NDArray[np.int64]


def make_grid(hand_cards: npt.NDArray[np.integer], names: Sequence[str]) -> Grid:
    """Return the display grid of a game's hands.

    hand_cards  [H, 2] cards of each hand by number, -1 for a missing card
    names       H texts of the hands

    Hands of a full 52-card deck form the 13×13 square: pairs on the diagonal, aces first, suited above, offsuit below.
    Otherwise each hand has a cell of its own.
    """
    if hand_cards.min() >= 0 and hand_cards.max() == CARD_COUNT - 1:
        return _square(hand_cards)
    columns = min(_WIDTH, len(names))
    places = [divmod(hand, columns) for hand in range(len(names))]
    return Grid(-(-len(names) // columns), columns, list(names), places, np.arange(len(names)))


def _square(hand_cards: npt.NDArray[np.integer]) -> Grid:
    places = [divmod(cell, _RANKS) for cell in range(_RANKS**2)]
    return Grid(_RANKS, _RANKS, class_names(), places, class_of(hand_cards))
