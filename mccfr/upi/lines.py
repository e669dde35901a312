"""Lines of the protocol: `12 38 84 230` of add_line, and what both mean in a betting tree of ours.

A number is what the player to act has put in since the spot began, once he has acted: the level so far is a check or a
call, more is a bet.  Checks, calls and folds are always there, so a tree is the bets of its lines.
"""

from collections.abc import Iterable, Sequence

from mccfr.config.limits import shown
from mccfr.games.betting import amount_text

Amounts = tuple[float, ...]


def read_amounts(text: str) -> Amounts:
    """The amounts of a line; `ValueError` for anything but numbers, of which none is below the one before."""
    try:
        found = tuple(float(each) for each in text.split())
    except ValueError:
        raise ValueError(f"the line {shown(text)} has something other than amounts: write it as 0 26 26 230") from None
    for before, after in zip((0.0, *found), found, strict=False):
        if not before <= after < float("inf"):
            raise ValueError(f"the line {shown(text)} falls to {after:g}: amounts count all that a player has put in")
    return found


def bets(lines: Iterable[Amounts], half_pot: float) -> list[str]:
    """Every line of ours, without /, that ends in one of the bets of these."""
    found = dict[str, None]()
    for amounts in lines:
        line, level = "", 0.0
        for amount in amounts:
            line += "c" if amount == level else f"r{amount_text(half_pot + amount)}"
            if amount > level:
                found[line] = None
            level = amount
    return list(found)


def begins_with(amounts: Amounts, first: Sequence[float]) -> bool:
    """Whether a line is another one, or goes on from it."""
    return amounts[: len(first)] == tuple(first)
