"""Texts of amounts: in big blinds if the game has a big blind, else in chips."""

from typing import NamedTuple

from mccfr.games.betting import amount_text
from mccfr.games.game import Game


class Money(NamedTuple):
    """Formats amounts as text; `unit` is the chips of one big blind, or 1 to write chips."""

    unit: float

    def text(self, chips: float) -> str:
        """Return an amount in chips as text with its unit, such as "3 BB", rounded to two decimals."""
        return f"{amount_text(round(chips / self.unit, 2))} {'chips' if self.unit == 1 else 'BB'}"


def money_of(game: Game) -> Money:
    """Return the formatter of a game's amounts: in big blinds if it has one, else in chips."""
    return Money(game.big_blind_chips or 1.0)
