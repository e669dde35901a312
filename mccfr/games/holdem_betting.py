"""Betting rules of full heads-up hold'em games. Position 0 is the big blind, position 1 the button."""

from collections.abc import Sequence
from typing import Literal

from mccfr.config.game_tables import Menu
from mccfr.games.betting import BettingRules, BettingState
from mccfr.games.menu import MenuGame, check_opening, line_edits, menu_targets
from mccfr.trees.street_amounts import LineStart

BIG_BLIND, BUTTON = 0, 1
_MOST_BETS, _LATE_STREET = 4, 2
"""Limit hold'em: bets on a street, and the first street of large bets."""


def holdem_rules(stack: float, blinds: Sequence[float], ante: float, menu: Menu) -> BettingRules:
    """Return the rules of heads-up no-limit hold'em with the bet sizes of a menu.

    Both players have `stack` chips and post `ante`, which counts as no bet. Then they post `blinds`: the button the
    first, smaller one. A blind larger than the remaining stack is all-in. The button acts first preflop and last on
    later streets. A raise adds at least the street's largest bet or raise, at least the big blind; an all-in may be
    smaller. Amounts count the whole hand, antes included. If stack, blinds and ante are whole, so is every raise.

    Raises `ValueError` for an invalid menu, a stack that leaves no decision, or a menu without limps or raises for the
    button.
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
        **line_edits(menu, LineStart(ante, big)),
    )
    check_opening(menu, rules)
    return rules


def limit_holdem_rules(blinds: Sequence[float]) -> BettingRules:
    """Return the rules of heads-up limit hold'em with four bets a street.

    Bets are one big blind preflop and on the flop, two big blinds later. The big blind is the first of the four preflop
    bets. Stacks are unlimited. These are the rules of the ACPC and, with blinds of 5 and 10, of Johanson et al. 2011,
    "Accelerating best response calculation in large extensive games".
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
    """Return the rules of hold'em that ends after the flop, with one bet size.

    blinds       the button's first
    bet          chips, or "pot": the pot after a call
    max_raises   most bets and raises on each of the two streets, blinds excluded
    board_cards  cards dealt on the second street

    Stacks are unlimited. Flop Hold'em of the Deep CFR papers: blinds 50 and 100, bet 100, three raises. 5-Flop Hold'em
    of Single Deep CFR: pot bets, no limps, one raise preflop and two on the flop, five `board_cards`; this gives the
    depth and streets of its table 1.
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
