"""Reads and writes hold'em endgames in the LibratusEndgames format: street, board, pot and ranges.

Four keys, each on its own line: `-round` (2 flop, 3 turn, 4 river), `-board` (cards, as in 4s8hTc9h2s), `-pot` (chips,
half from each player) and `-reach` (2,652 numbers: 1,326 for the player out of position, then 1,326 for the button).
Hands are pairs i < j of cards, ordered by rank 2..A and within a rank by suit s, h, d, c: 2s2h, 2s2d, 2s2c, 2s3s, ...
AdAc. Reaches are not normalised. Format: github.com/CMU-EM/LibratusEndgames.
"""

import os
import re
from dataclasses import dataclass
from itertools import combinations
from math import inf, nan
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from abstraction.cards import COMBO_COUNT, card_mask, cards_text, combo_index, combo_masks, parse_cards

_KEYS = ("-round", "-board", "-pot", "-reach")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
# File order of suits is s h d c, ours c d h s. Entry p is the file's hand p.
_FILE_HANDS = list(combinations([4 * rank + suit for rank in range(13) for suit in (3, 2, 1, 0)], 2))
FILE_TO_COMBO = np.array([combo_index(*hand) for hand in _FILE_HANDS])
"""[1326] number b(b−1)/2 + a (cards a < b) of each hand, in the file's order of hands."""


@dataclass(frozen=True, eq=False)
class Endgame:
    """A hold'em endgame: street, board, pot and ranges.

    Player 0 is out of position (acts first), player 1 is the button.
    """

    street: int
    """Street: 1 flop, 2 turn, 3 river."""
    board: tuple[int, ...]
    """Board cards 4·rank + suit, in the file's order."""
    pot_chips: int | float
    """Chips in the pot, half of them from each player; an int if whole."""
    reach: NDArray[np.float64]
    """[2, 1326] weight of each player's hands b(b−1)/2 + a, not normalised; 0 if the board blocks it."""


def _values(text: str) -> dict[str, str]:
    """Split the text of an endgame file into {key: value}, all texts.

    Raises `ValueError` for unknown, repeated and missing keys.
    """
    values: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        key, value = (*line.split(None, 1), "")[:2]
        if key not in _KEYS:
            raise ValueError(f"line {number} begins with {key[:40]!r}: each line starts with one of {', '.join(_KEYS)}")
        if key in values:
            raise ValueError(f"line {number} has the key {key} a second time; once is allowed")
        values[key] = value.strip()
    for key in _KEYS:
        if key not in values:
            raise ValueError(f"the key {key} is missing; the format needs {', '.join(_KEYS)}")
    return values


def _number(text: str) -> float:
    """Parse a decimal number with or without exponent; other text, also "Infinity", gives NaN."""
    return float(text) if _NUMBER.fullmatch(text) else nan


def check_endgame(endgame: Endgame) -> None:
    """Raise `ValueError` for an invalid board, pot or reach.

    Reach is the weights of both players' hands. Weights must be finite and not negative, 0 for hands that the board
    blocks, and allow at least one deal.
    """
    board, reach, needed = endgame.board, endgame.reach, endgame.street + 2
    if len(board) != needed:
        raise ValueError(f"-board {cards_text(board)} has {len(board)} cards: -round {needed - 1} needs {needed}")
    if not 0 < endgame.pot_chips < inf:
        raise ValueError(f"-pot is {endgame.pot_chips}: a finite number of chips above 0 is needed")
    masks, listed = combo_masks(), reach[:, FILE_TO_COMBO].ravel()
    blocked = np.tile(((masks & np.uint64(card_mask(board))) != 0)[FILE_TO_COMBO], 2)
    for bad, problem in (
        (~((listed >= 0) & (listed < inf)), "a finite number of at least 0 is needed"),
        (blocked & (listed > 0), f"the hand shares a card with the board {cards_text(board)}, so 0 is needed"),
    ):
        for entry in np.flatnonzero(bad)[:1].tolist():
            player, hand = divmod(entry, COMBO_COUNT)
            name = f"-reach entry {entry + 1} (player {player}, hand {cards_text(_FILE_HANDS[hand])})"
            raise ValueError(f"{name} is {listed[entry]}: {problem}")
    first, second = (masks[own > 0] for own in reach)
    if not ((first[:, None] & second) == 0).any():
        raise ValueError("-reach allows no deal: no hand of player 0 is disjoint from a hand of player 1")
    with np.errstate(over="ignore", under="ignore"):
        total = reach.sum(axis=1).prod()
    if not 0 < total < inf:
        raise ValueError("-reach is too large or too small: the product of both players' totals leaves the float range")


def read_endgame(path: str | os.PathLike[str]) -> Endgame:
    """Read an endgame from a file in the LibratusEndgames format.

    Unix and Windows line ends are accepted, and numbers with exponents (2.8E-10). Raises `OSError` if the file cannot
    be read. Raises `ValueError`, naming the file and the key or entry, if the content is invalid or its ranges allow no
    deal.
    """
    try:
        return _endgame(_values(Path(path).read_text("ascii", errors="replace")))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _endgame(values: dict[str, str]) -> Endgame:
    """Convert the texts of a file, {key: value}, to an endgame; `ValueError` if it is invalid."""
    if values["-round"] not in ("2", "3", "4"):
        raise ValueError(f"-round is {values['-round']!r}: 2 (flop), 3 (turn) and 4 (river) are allowed")
    pot, listed = _number(values["-pot"]), np.array([_number(entry) for entry in values["-reach"].split()])
    if len(listed) != 2 * COMBO_COUNT:
        raise ValueError(
            f"-reach has {len(listed)} numbers: {2 * COMBO_COUNT} are needed, {COMBO_COUNT} for each player"
        )
    reach = np.empty((2, COMBO_COUNT))
    reach[:, FILE_TO_COMBO] = listed.reshape(2, COMBO_COUNT) + 0.0  # + 0.0 turns −0.0 into 0
    board = parse_cards(values["-board"])
    endgame = Endgame(int(values["-round"]) - 1, board, int(pot) if pot.is_integer() else pot, reach)
    check_endgame(endgame)
    return endgame
