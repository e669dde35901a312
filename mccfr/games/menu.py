"""Action abstraction for no-limit hold'em: which amounts a player may raise to (`[game.menu]`)."""

import re
from collections.abc import Callable, Sequence
from math import inf

from mccfr.config import Menu, StreetMenu
from mccfr.games.betting import BettingState

STREET_NAMES = ("preflop", "flop", "turn", "river")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(p|x|bb)?")


def size_target(size: str, state: BettingState, stack: float, big_blind: float) -> float:
    """Amount that a menu's size raises to, before the limits of the rules.

    `0.5p`: of the pot after calling; `3x`: times the last bet (its total on this street is not kept: times the amount
    the opponent has put in); `2.5bb`: to so many big blinds; `300`: to so many chips; `allin`.
    Raises `ValueError` for a size that is none of these or not above zero.
    """
    if size == "allin":
        return stack
    match = _SIZE.fullmatch(size)
    if not match or float(match[1]) <= 0:
        raise ValueError(f"bet size {size!r}: expected a number above 0 with p, x, bb or nothing behind it, or 'allin'")
    number, unit = float(match[1]), match[2]
    level = state.to_call
    return {"p": level + number * 2 * level, "x": number * level, "bb": number * big_blind, None: number}[unit]


def _street_menu(menu: Menu, street: int) -> tuple[Sequence[str], Sequence[str], float]:
    """Sizes of the first bet and of later raises on a street, and the limit on bets."""
    own = getattr(menu, STREET_NAMES[street]) or StreetMenu()
    limit = own.max_bets if own.max_bets is not None else menu.max_bets
    return (
        menu.first if own.first is None else own.first,
        menu.later if own.later is None else own.later,
        inf if limit is None else limit,
    )


def menu_targets(
    menu: Menu, stack: float, big_blind: float, first_street: int
) -> Callable[[BettingState], Sequence[float]]:
    """The `raise_targets` of a menu; street 0 of the tree is `first_street` (0 preflop .. 3 river).

    A target is at least a minimum raise; at or above the stack it is dropped in favour of all-in; preflop the big blind
    counts as one bet towards the limit, and the first raise over it is a `first` bet.  Bad sizes: `ValueError`.
    """
    plans = [_street_menu(menu, street) for street in range(4)]
    for first, later, _ in plans:
        for size in (*first, *later):
            size_target(size, BettingState((1, 1), 0), stack, big_blind)

    def targets(state: BettingState) -> Sequence[float]:
        street = state.street + first_street
        first, later, limit = plans[street]
        sizes = later if state.bets else first
        lowest = state.to_call + max(state.last_raise, big_blind)
        found = set()
        for size in sizes:
            if size == "allin":
                found.add(stack)
            elif state.bets + (street == 0) < limit:
                target = max(size_target(size, state, stack, big_blind), lowest)
                if target < stack:
                    found.add(target)
        return sorted(found)

    return targets
