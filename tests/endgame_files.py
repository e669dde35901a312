"""Writes files in the LibratusEndgames format, which the package only reads."""

from abstraction.cards import cards_text
from mccfr.games.libratus import FILE_TO_COMBO


def write_endgame(path, endgame):
    """Write an endgame to a file, replacing it."""
    listed = " ".join(map(repr, endgame.reach[:, FILE_TO_COMBO].ravel().tolist()))
    pot = float(endgame.pot_chips)
    values = endgame.street + 1, cards_text(endgame.board), int(pot) if pot.is_integer() else repr(pot), listed
    lines = (f"{key} {value}\n" for key, value in zip(("-round", "-board", "-pot", "-reach"), values, strict=True))
    path.write_text("".join(lines), encoding="ascii")
