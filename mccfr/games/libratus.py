"""Reads and writes hold'em endgames in the LibratusEndgames format: street, board, pot and ranges.

Four keys, each on its own line: `-round` (2 flop, 3 turn, 4 river), `-board` (cards, as in 4s8hTc9h2s), `-pot` (chips,
half from each player) and `-reach` (2,652 numbers: 1,326 for the player out of position, then 1,326 for the button).
Hands are pairs i < j of cards, ordered by rank 2..A and within a rank by suit s, h, d, c: 2s2h, 2s2d, 2s2c, 2s3s, ...
AdAc. Reaches are not normalised. Format: github.com/CMU-EM/LibratusEndgames.
"""

import math
import os
import re
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from abstraction.cards import COMBO_COUNT, card_mask, cards_text, combo_index, combo_masks, combo_table, parse_cards

_KEYS = ("round", "board", "pot", "reach")
_BOARD_CARDS = {2: 3, 3: 4, 4: 5}
_MAX_BYTES = 1 << 20
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
# File order of suits is s h d c, ours c d h s. Entry p is the file's hand p.
_FILE_HANDS = list(combinations([4 * rank + suit for rank in range(13) for suit in (3, 2, 1, 0)], 2))
_FILE_TO_COMBO = np.array([combo_index(*hand) for hand in _FILE_HANDS])


@dataclass(frozen=True, eq=False)
class Endgame:
    """A hold'em endgame; player 0 is out of position (acts first), player 1 is the button."""

    street: int
    """Street: 1 flop, 2 turn, 3 river."""
    board: tuple[int, ...]
    """Board cards 4·rank + suit, in the file's order."""
    pot_chips: int | float
    """Chips in the pot, half of them from each player; an int if whole."""
    reach: NDArray[np.float64]
    """[2, 1326] weight of each player's hands b(b−1)/2 + a, not normalised; 0 if the board blocks it."""

    @property
    def round(self) -> int:
        """The format's street number: 2 flop, 3 turn, 4 river."""
        return self.street + 1


def _read_lines(path: Path) -> dict[str, str]:
    """Return the text of each key; `ValueError` for unknown, repeated and missing keys."""
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"{path}: larger than {_MAX_BYTES} bytes, so not a LibratusEndgames file")
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start + 1} is not ASCII, so not a LibratusEndgames file") from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        key, value = (*line.split(None, 1), "")[:2]
        if key.removeprefix("-") not in _KEYS or not key.startswith("-"):
            allowed = ", ".join(f"-{name}" for name in _KEYS)
            raise ValueError(
                f"{path}, line {number}: {key[:40]!r} is not a key: each line starts with one of {allowed}"
            )
        if key[1:] in found:
            raise ValueError(f"{path}, line {number}: the key {key} occurs a second time; once is allowed")
        found[key[1:]] = value.strip()
    for name in _KEYS:
        if name not in found:
            raise ValueError(f"{path}: the key -{name} is missing; the format needs -round, -board, -pot and -reach")
    return found


def _parse_number(text: str) -> float:
    """Return a decimal number with or without exponent; NaN for other text (also "NaN" and "Infinity")."""
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def _entry_name(entry: int) -> str:
    """Return a description of entry 0..2,651 of the reach list, counted from 1, for messages."""
    player, hand = divmod(entry, COMBO_COUNT)
    return f"-reach entry {entry + 1} (player {player}, hand {cards_text(_FILE_HANDS[hand])})"


def _check_board(street: int, board: tuple[int, ...]) -> None:
    """Raise `ValueError` unless the board has the street's number of distinct cards."""
    if street + 1 not in _BOARD_CARDS:
        raise ValueError(f"-round is {street + 1}: 2 (flop), 3 (turn) and 4 (river) are allowed")
    needed = _BOARD_CARDS[street + 1]
    if len(board) != needed:
        raise ValueError(f"-board {cards_text(board)} has {len(board)} cards: -round {street + 1} needs {needed}")
    if len(set(board)) != len(board):
        raise ValueError(f"-board {cards_text(board)} holds a card twice")


def _check_reach(board: tuple[int, ...], reach: NDArray[np.float64]) -> None:
    """Raise `ValueError` for invalid reaches.

    Valid reaches are finite, not negative, 0 for hands that the board blocks, and allow at least one deal.
    """
    if reach.shape != (2, COMBO_COUNT):
        raise ValueError(f"-reach has the shape {reach.shape}: (2, {COMBO_COUNT}) is needed")
    listed = reach[:, _FILE_TO_COMBO].ravel()
    bad = np.flatnonzero(~((listed >= 0) & (listed < np.inf)))
    if len(bad):
        raise ValueError(f"{_entry_name(int(bad[0]))} is {listed[bad[0]]}: a finite number of at least 0 is needed")
    on_board = (combo_masks() & np.uint64(card_mask(board))) != 0
    bad = np.flatnonzero((listed > 0) & np.tile(on_board[_FILE_TO_COMBO], 2))
    if len(bad):
        what = f"{_entry_name(int(bad[0]))} is {listed[bad[0]]}"
        raise ValueError(f"{what}, but the hand shares a card with the board {cards_text(board)}: 0 is needed")
    for player in range(2):
        if not reach[player].any():
            raise ValueError(f"-reach is 0 for every hand of player {player}: some hand must be possible")
    if not _joint_support(reach):
        raise ValueError(
            "-reach leaves no deal: every possible hand of player 0 shares a card with every one of player 1's"
        )
    with np.errstate(over="ignore", under="ignore"):
        total = reach.sum(axis=1).prod()
    if not 0 < total < np.inf:
        raise ValueError("-reach is too large or too small: the product of both players' totals leaves the float range")


def _joint_support(reach: NDArray[np.float64]) -> int:
    """Return the exact number of disjoint pairs of hands with positive reach."""
    table = combo_table()
    mine, theirs = (reach[0] > 0).astype(np.int64), (reach[1] > 0).astype(np.int64)
    by_card = np.bincount(table.ravel(), weights=np.repeat(theirs, 2), minlength=52).astype(np.int64)
    disjoint = theirs.sum() - by_card[table].sum(axis=1) + theirs
    return int((mine * disjoint).sum())


def check_endgame(endgame: Endgame, source: object) -> None:
    """Raise `ValueError`, naming the source, if the endgame is invalid."""
    try:
        _check_board(endgame.street, endgame.board)
        if not 0 < endgame.pot_chips < math.inf:
            raise ValueError(f"-pot is {endgame.pot_chips}: a finite number of chips above 0 is needed")
        _check_reach(endgame.board, endgame.reach)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def read_endgame(path: str | os.PathLike[str]) -> Endgame:
    """Read an endgame from a file in the LibratusEndgames format.

    Unix and Windows line ends are accepted, and numbers with exponents (2.8E-10). Raises `OSError` if the file cannot
    be read. Raises `ValueError`, naming the file and the key or entry, if the content is invalid or its ranges allow no
    deal.
    """
    file = Path(path)
    lines = _read_lines(file)
    if lines["round"] not in ("2", "3", "4"):
        raise ValueError(f"{file}: -round is {lines['round']!r}: 2 (flop), 3 (turn) and 4 (river) are allowed")
    try:
        board = parse_cards(lines["board"])
    except ValueError as error:
        raise ValueError(f"{file}: -board: {error}") from None
    pot = _parse_number(lines["pot"])
    if not 0 < pot < math.inf:
        raise ValueError(f"{file}: -pot is {lines['pot']!r}: a finite number of chips above 0 is needed")
    entries = lines["reach"].split()
    if len(entries) != 2 * COMBO_COUNT:
        needed = f"{2 * COMBO_COUNT} are needed, {COMBO_COUNT} for each player"
        raise ValueError(f"{file}: -reach has {len(entries)} numbers: {needed}")
    listed = np.array([_parse_number(entry) for entry in entries])
    bad = np.flatnonzero(~np.isfinite(listed))
    if len(bad):
        what = f"{_entry_name(int(bad[0]))} is {entries[bad[0]][:40]!r}"
        raise ValueError(f"{file}: {what}: a finite number of at least 0 is needed")
    reach = np.empty((2, COMBO_COUNT))
    reach[:, _FILE_TO_COMBO] = listed.reshape(2, COMBO_COUNT) + 0.0  # + 0.0 turns −0.0 into 0
    endgame = Endgame(int(lines["round"]) - 1, board, int(pot) if pot.is_integer() else pot, reach)
    check_endgame(endgame, file)
    return endgame


def write_endgame(path: str | os.PathLike[str], endgame: Endgame) -> None:
    """Write an endgame to a file, replacing it; `read_endgame` reads back an equal endgame.

    Raises `ValueError`, before writing, if the endgame is invalid.
    """
    file = Path(path)
    check_endgame(endgame, file)
    pot = float(endgame.pot_chips)
    listed = endgame.reach[:, _FILE_TO_COMBO].ravel()
    lines = [
        f"-round {endgame.round}",
        f"-board {cards_text(endgame.board)}",
        f"-pot {int(pot) if pot.is_integer() else pot!r}",
        "-reach " + " ".join(repr(float(value)) for value in listed),
    ]
    file.write_text("\n".join(lines) + "\n", encoding="ascii")
