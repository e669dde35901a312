"""Texts of the web page, such as names of streets and actions.

Amounts are in big blinds if the game has a big blind, otherwise in chips.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mccfr.games.betting import BettingRules, BettingState
from mccfr.games.game import Game
from mccfr.games.money import Money
from mccfr.play.player import State
from mccfr.policy.origin import origin_facts


def street_text(game: Game, street: int) -> str:
    """Return the name of a street for the page: "Flop", or "Round 2" in games other than hold'em."""
    name = game.street_name(street)
    return name.capitalize() if isinstance(name, str) else f"Round {name + 1}"


def action_kind(action: str) -> str:
    """Return the kind that colours an action: `fold`, `call` (also checks) or `raise` (also bets)."""
    return {"f": "fold", "c": "call"}.get(action, "raise")


def action_text(state: State, action: str, to_chips: float, money: Money, rules: BettingRules | None) -> str:
    """Return the text of an action, such as "Raise to 9 BB" or "Check".

    state     betting state before the action
    to_chips  chips that the player has put in over the whole hand after the action
    money     formats amounts, in big blinds or chips
    rules     rules of all legal bets: raises are then shown as the total on this street. None if the tree already has
              all legal bets: raises are then shown as the amount above a call
    """
    if action == "f":
        return "Fold"
    if action == "c":
        return f"Call {money.text(to_chips - state.put_in[state.player])}" if state.facing else "Check"
    if rules is None or not isinstance(state, BettingState):
        more = money.text(to_chips - state.to_call)
        return f"Raise by {more}" if state.facing else f"Bet {more}"
    said = money.text(to_chips - state.put_in_before)
    if to_chips >= rules.stack_of(state.player):
        return f"All-in {said}"
    return f"Raise to {said}" if state.bets or state.street == 0 else f"Bet {said}"


def readings_text(readings: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence on the tree's lines that replace a line outside of the tree; "" for none.

    A line with bets that the tree lacks is replaced by lines of the tree, each with a probability.

    readings  {"line", "after_call", "probability"} of each such line. `line` is None if the tree has no decision
              here, so that the player calls; `after_call` is the line after that call, or None
    """
    taken = [
        ("a call" if one["line"] is None else one["line"] or "the start")
        + ("" if one["after_call"] is None else f" (a call leads to {one['after_call'] or 'the end'})")
        + f" with {100 * one['probability']:.1f} %"
        for one in readings
    ]
    return f"This line is not in the strategy's tree. It is taken for {', '.join(taken)}." if taken else ""


def often_text(frequency: float) -> str:
    """Return a frequency (0 to 1) in words: "never" or, for example, "12.5 % of the time"."""
    if frequency < 0.0005:
        return "never"
    return f"{frequency:.1%} of the time".replace("%", " %")


def pot_share(state: State, to_chips: float) -> float:
    """Return the size of a raise: chips above a call, as a share of the pot after the call.

    state     betting state before the raise
    to_chips  chips that the player has put in over the whole hand after the raise
    """
    pot = sum(state.put_in) + state.to_call - state.put_in[state.player]
    return (to_chips - state.to_call) / pot if pot else 0.0


def details(game: Game, origin: dict[str, Any]) -> list[str]:
    """Return short texts about a strategy for the head of the web page, such as "2,000 iterations".

    The texts state the number of decisions of the tree, and known facts on training, evaluations and license.

    origin  record of training and evaluations that a policy (exported strategy) contains; {} for none
    """
    found = [f"{sum(game.counts()['decision_nodes_per_street']):,} decisions"]  # type: ignore[call-overload]
    if origin.get("iterations"):
        found.append(f"{origin['iterations']:,} iterations")
    return found + origin_facts(origin)
