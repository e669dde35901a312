"""Converts betting lines of PioSOLVER's protocol, such as `12 38 84 230`, to bets of a betting tree.

A number is the chips that the acting player has put in since the spot began, including this action.  A number equal to
the one before (0 at first) is a check or a call; a larger one is a bet.  A tree always has checks, calls and folds, so
the bets of its lines define it.
"""

from collections.abc import Iterable, Sequence

from mccfr.config.value_limits import shown
from mccfr.games.betting import amount_text
from mccfr.trees.street_amounts import LineStart, street_line

Amounts = tuple[float, ...]


def read_amounts(text: str) -> Amounts:
    """Parse a line such as `0 26 26 230`; return its numbers.

    A number is the chips that the acting player has put in since the spot began.  Raises `ValueError` unless all are
    finite numbers that do not decrease.
    """
    try:
        amounts = tuple(float(each) for each in text.split())
    except ValueError:
        raise ValueError(f"the line {shown(text)} is not a list of amounts: write it as 0 26 26 230") from None
    for before, after in zip((0.0, *amounts), amounts, strict=False):
        if not before <= after < float("inf"):
            raise ValueError(f"the line {shown(text)} falls to {after:g}: give the total that each player has put in")
    return amounts


def bets(lines: Iterable[Amounts], half_pot: float) -> list[str]:
    """Return for each bet in some lines the betting line that ends in it, such as "cb50".

    The tree gets these bets by the key `add` of the configuration's `[game.menu]`, the bet sizes of the game.

    lines     for each line the chips that the acting player has put in since the spot began, after each action
    half_pot  half the pot at the root, in chips

    Amounts in the result are chips put in on the street.  Streets are not separated by "/".
    """
    betting_lines = dict[str, None]()
    for amounts in lines:
        line, level = "", 0.0
        for amount in amounts:
            line += "c" if amount == level else f"r{amount_text(half_pot + amount)}"
            if amount > level:
                betting_lines[line] = None
            level = amount
    return [street_line(line, LineStart(half_pot, half_pot)) for line in betting_lines]


def begins_with(amounts: Amounts, first: Sequence[float]) -> bool:
    """Return True if the amounts of a line begin with all amounts `first` of another line, or equal them."""
    return amounts[: len(first)] == tuple(first)
