"""Converts the rest of a hand with two players left into a hand of two players.

The other players' chips are dead money. They count as if each of the two had put in half of them, as antes of two
players do: the EVs of a decision's actions all change by the same amount. The cards that others folded are ignored, and
so is rake.
"""

from collections.abc import Sequence
from typing import NamedTuple

from mccfr.games.betting import BettingRules, BettingState, Seats, amount_text, raise_bounds
from mccfr.games.holdem_betting import BIG_BLIND, BUTTON
from mccfr.games.translation import apply_action

Acted = tuple[BettingState, str]


class TwoLeft(NamedTuple):
    """The rest of a hand, from a decision after the flop on.

    players  positions of the two players, the first to act on a street first
    rules    of two players
    acted    states and actions of a street, by these rules
    """

    players: tuple[int, int]
    rules: BettingRules
    acted: list[Acted]


def two_left(rules: BettingRules, acted: Sequence[Acted]) -> TwoLeft:
    """Return the rest of a street of a hand in which two players are left.

    rules  of all players
    acted  states and actions, from a decision after the flop to the end of its street
    """
    state = acted[0][0]
    first, second = state.left
    stack = min(rules.stack_of(first), rules.stack_of(second))
    others = sum(state.put_in) - state.put_in[first] - state.put_in[second] + sum(rules.dead)

    def of_two(chips: float) -> float:
        return min(chips, stack) + others / 2

    pair_rules = BettingRules(
        (of_two(state.put_in_before),) * 2,
        (BUTTON, *[BIG_BLIND] * (rules.streets - 1)),
        lambda _: (),
        stack=of_two(stack),
        minimum_bet=rules.minimum_bet,
        board_cards=rules.board_cards,
    )
    here: BettingState | int = state._replace(
        put_in=(of_two(state.put_in[first]), of_two(state.put_in[second])),
        player=int(state.player == second),
        put_in_before=of_two(state.put_in_before),
        seats=Seats(*((seats >> first & 1) + 2 * (seats >> second & 1) for seats in state.seats)),
    )
    converted = list[Acted]()
    for _, taken in acted:
        assert isinstance(here, BettingState)
        action = taken
        if action[0] == "r":
            target = of_two(float(action[1:]))
            is_call = target <= here.to_call or raise_bounds(pair_rules, here) is None
            action = "c" if is_call else f"r{amount_text(target)}"
        converted.append((here, action))
        here = apply_action(pair_rules, here, action)
    return TwoLeft((first, second), pair_rules, converted)
