"""Betting rules of whole heads-up hold'em games.  Position 0 is the big blind, position 1 the button."""

from collections.abc import Sequence
from typing import Literal

from mccfr.config.games import Menu
from mccfr.games.betting import BettingRules, BettingState
from mccfr.games.menu import MenuGame, check_opening, line_edits, menu_targets

BIG_BLIND, BUTTON = 0, 1
_MOST_BETS, _LATE_STREET = 4, 2
"""Of limit hold'em: bets on a street, and the first street of large ones."""


def holdem_rules(stack: float, blinds: Sequence[float], ante: float, menu: Menu) -> BettingRules:
    """Heads-up no-limit hold'em with the bet sizes of a menu.

    Both players have `stack` chips, post `ante` (no part of any bet) and then `blinds`, the button's small one first; a
    blind that exceeds what is left is posted all-in.  The button acts first before the flop and last after it.  The
    least raise adds the street's largest bet or raise so far, at least the big blind; an all-in may be smaller.
    Amounts count the whole hand, antes included; if stack, blinds and ante are whole, so is every raise.

    Raises `ValueError` for a bad menu, a stack that leaves nothing to decide, and a menu without limps where the button
    would have no raise either.
    """
    small, big = (min(ante + blind, stack) for blind in blinds)
    if small >= stack:
        raise ValueError(
            f"game.stack = {stack:g} is not allowed: it must be above the ante and the small blind, "
            f"{ante + blinds[0]:g}, or both players are all-in before they act"
        )
    whole = all(float(amount).is_integer() for amount in (stack, *blinds, ante))
    rules = BettingRules(
        (big, small),
        (BUTTON, BIG_BLIND, BIG_BLIND, BIG_BLIND),
        menu_targets(menu, MenuGame(stack, blinds[1], whole_chips=whole)),
        stack=stack,
        minimum_bet=blinds[1],
        board_cards=(0, 3, 1, 1),
        put_in_before=ante,
        limp=menu.limp,
        **line_edits(menu),
    )
    check_opening(menu, rules)
    return rules


def limit_holdem_rules(blinds: Sequence[float]) -> BettingRules:
    """Heads-up limit hold'em: bets of the big blind before and on the flop, of two after it; four bets a street.

    Before the flop the big blind is the first of the four.  Stacks are never short.  (The rules of the ACPC, and of
    Johanson et al. 2011, "Accelerating best response calculation in large extensive games", at blinds of 5 and 10.)
    """

    def targets(state: BettingState) -> Sequence[float]:
        size = blinds[1] * (1 if state.street < _LATE_STREET else 2)
        return [state.to_call + size] if state.bets < _MOST_BETS - (state.street == 0) else []

    first = (BUTTON, BIG_BLIND, BIG_BLIND, BIG_BLIND)
    return BettingRules((blinds[1], blinds[0]), first, targets, minimum_bet=blinds[1], board_cards=(0, 3, 1, 1))


def flop_holdem_rules(
    blinds: Sequence[float],
    bet: float | Literal["pot"],
    max_raises: Sequence[int],
    board_cards: int = 3,
    *,
    limp: bool = True,
) -> BettingRules:
    """Hold'em that ends after the flop: blinds (the button's first), two streets, one size of bet.

    A bet of "pot" is as large as the pot once the bet before it is called.  At most `max_raises` bets and raises on
    each street, not counting the blinds; stacks are never short.  Flop Hold'em of the Deep CFR papers is blinds 50 and
    100, bet 100, three raises.  Single Deep CFR's 5-flop hold'em has bets of the pot, no limps, one raise before the
    flop and two on it, and five `board_cards`: depth and street of its table 1 are those of this tree.
    """

    def targets(state: BettingState) -> Sequence[float]:
        size = 2 * state.to_call if bet == "pot" else bet
        return [state.to_call + size] if state.bets < max_raises[state.street] else []

    return BettingRules(
        (blinds[1], blinds[0]),
        (BUTTON, BIG_BLIND),
        targets,
        minimum_bet=blinds[1] if bet == "pot" else bet,
        board_cards=(0, board_cards),
        limp=limp,
    )
