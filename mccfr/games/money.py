"""Texts of amounts: big blinds if the game has one, else chips."""

from typing import NamedTuple

from mccfr.games.betting import amount_text
from mccfr.games.game import Game


class Money(NamedTuple):
    """Formats chips as big blinds or as chips; `unit` is the number of chips of one."""

    unit: float

    def text(self, chips: float) -> str:
        """Return an amount with its unit."""
        return f"{amount_text(round(chips / self.unit, 2))} {'chips' if self.unit == 1 else 'BB'}"


def money_of(game: Game) -> Money:
    """Return the format of a game's amounts: big blinds if it has one."""
    return Money(game.big_blind_chips or 1.0)
