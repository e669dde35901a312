"""Converts the rest of a hand with two players left into a hand of two players.

The other players' chips are dead money. They count as antes: each of the two is assumed to have put in half of them.
This changes the EVs of all actions of a decision by the same amount. The cards that others folded are ignored, and so
is rake.
"""

from collections.abc import Iterable, Sequence
from math import floor
from typing import NamedTuple

from mccfr.games.betting import BettingRules, BettingState, Seats, amount_text, raise_bounds
from mccfr.games.holdem_betting import BIG_BLIND, BUTTON
from mccfr.games.translation import Translation, apply_action

Acted = tuple[BettingState, str]


class TwoLeft(NamedTuple):
    """The rest of a hand with two players left, as a hand of two players; it begins on the flop or later.

    players  the two players' indices at the table; the first one acts first on each street
    rules    betting rules of the hand of two players
    dead     half of the pot beyond both players' bets: chips of the others, and antes that are no bets. It is added to
             every amount at the table
    stack    the smaller stack of the two at the table, at the start of the hand
    acted    (state before, action) of each action given to `two_left`, in chips of the hand of two players
    state    betting state of the hand of two players after these actions; an `int` if the betting is over
    """

    players: tuple[int, int]
    rules: BettingRules
    dead: float
    stack: float
    acted: list[Acted]
    state: BettingState | int

    def amount(self, action: str) -> str:
        """Return an action at the table with its amount in the hand of two players.

        Actions are `f`, `c`, or `rN` with N chips put in over the whole hand. N is capped at `stack`, and `dead` is
        added. Other actions stay as they are.
        """
        return f"r{amount_text(min(float(action[1:]), self.stack) + self.dead)}" if action[0] == "r" else action

    def converted(self, state: BettingState, action: str, known: Sequence[str] = ()) -> str:
        """Return an action at the table as an action of the hand of two players.

        state   betting before the action, in the hand of two players
        action  the action at the table: `f`, `c`, or `rN` with N chips put in over the whole hand
        known   actions of a solved tree in this state. A raise among them is returned instead of the converted one if
                the amounts differ by at most the fractional part of `dead`, which the table has rounded

        A raise becomes a call if no raise is allowed in the hand of two players, or if its amount is at most a call.
        """
        if action[0] != "r":
            return action
        converted = self.amount(action)
        target = float(converted[1:])
        if target <= state.to_call or raise_bounds(self.rules, state) is None:
            return "c"
        near = [each for each in known if each[0] == "r" and abs(float(each[1:]) - target) <= self.dead % 1]
        return near[0] if near else converted

    def at_table(self, betting: Translation, state: BettingState, action: str) -> str:
        """Return an action of the hand of two players as a legal action at the table.

        betting  real betting of the table's game
        state    betting at the table before the action
        action   `f`, `c`, or `rN` with N chips put in over the whole hand, in chips of the hand of two players

        `dead` is subtracted from the amount of a raise, which is rounded to whole chips if those of the table are
        whole. It then becomes the nearest legal amount; a raise becomes a call if none is legal.
        """
        bounds = raise_bounds(betting.rules, state)
        if action[0] != "r" or bounds is None:
            return action if action == "f" else "c"
        target = float(action[1:]) - self.dead
        target = floor(target + 0.5) if betting.whole_chips else target
        return f"r{amount_text(min(max(target, bounds[0]), bounds[1]))}"


def two_left(rules: BettingRules, state: BettingState, actions: Iterable[str] = ()) -> TwoLeft:
    """Return the rest of a hand in which two players are left, as a hand of two players.

    rules    betting rules of the whole table
    state    betting at the table, at a decision on the flop or later
    actions  actions at the table from `state` on, to be converted too: `f`, `c`, or `rN` with N chips over the whole
             hand
    """
    first, second = state.left
    stack = min(rules.stack_of(first), rules.stack_of(second))
    dead = (sum(state.put_in) - state.put_in[first] - state.put_in[second] + sum(rules.dead)) / 2

    def of_two(chips: float) -> float:
        return min(chips, stack) + dead

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
    left = TwoLeft((first, second), pair_rules, dead, stack, [], here)
    for taken in actions:
        assert isinstance(here, BettingState)
        action = left.converted(here, taken)
        left.acted.append((here, action))
        here = apply_action(pair_rules, here, action)
    return left._replace(state=here)
