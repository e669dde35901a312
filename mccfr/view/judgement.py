"""Judges an action with a hand by the strategy's EVs: its cost against the best action, in chips.

With three and more players there are no EVs. The action is then judged by how often the strategy takes it.
"""

from typing import Any

from mccfr.evaluation.decision_values import LEAST_SHARE, DecisionValues
from mccfr.view.expected_values import ExpectedValues
from mccfr.view.labels import often_text
from mccfr.view.spot_view import Spots

_DIGITS = 4
_LEAST_CHIPS = 0.005  # of a unit of money: EVs that differ by less are shown as equal
_NO_BET = "The strategy has not this action: it cannot say what it costs."
_NO_RANGE = "The strategies never reach this decision."


def judge(
    spots: Spots, values: ExpectedValues, line: str = "", board: str = "", hand: str = "", action: str = ""
) -> dict[str, Any]:
    """Compare an action with a hand to the strategy's best action; docs/http.md lists the fields.

    spots   the strategy
    values  EVs of the same strategy
    line    betting line, with bets as chips put in on the street, such as "b300c/"
    board   cards of the board, such as "Kc7d2s"
    hand    hole cards, such as "KdQd"
    action  action after the line, such as "b450"

    Raises `ValueError` for an invalid line or board, and for a hand that shares a card with the board or is in no
    initial range.
    """
    there, at = spots.spot(line, board), spots.decision(line, board)
    names: list[str] = there["hands"]["names"]
    if hand not in names:
        raise ValueError(f"hand = {hand[:40]!r} cannot be held here: write it as {names[0]}")
    place = names.index(hand)
    one, shares = int(at.live[place]), there["hands"]["probabilities"][place]
    actions = [
        {"action": each["action"], "name": each["name"], "frequency": share, "ev_chips": None, "within_chips": None}
        for each, share in zip(there["actions"], shares, strict=True)
    ]
    answer = dict.fromkeys(("cost_chips", "within_chips", "best", "own_loss_chips", "indifferent", "verdict"))
    answer |= {"actions": actions, "exact": False}
    taken = next((number for number, each in enumerate(actions) if each["action"] == action), None)
    if taken is None or (at.node is None and spots.players == 2):
        return answer | {"sentences": [_NO_BET]}
    if spots.players > 2:
        trained = there["hands"]["trained"][place]
        return answer | (_by_frequency(actions, taken) if trained else {"sentences": [_NO_RANGE]})
    found = values.at(at, line, board, one)
    if (cost := found.cost(taken, one)) is None:
        return answer | {"exact": found.exact, "sentences": [_NO_RANGE]}
    best, (chips, within) = cost
    for each, ev, half in zip(actions, found.actions[:, one], found.actions_within[:, one], strict=True):
        each |= {"ev_chips": round(float(ev), _DIGITS), "within_chips": round(float(half), _DIGITS)}
    mixes, equal = found.mixes(sum(at.state.put_in))
    told = _Judged(spots, found, one, best, indifferent=bool(mixes[one] and equal[one]))
    least = _LEAST_CHIPS * spots.money.unit
    clear = chips > within and chips >= least
    rare = float(found.played[taken, one]) < LEAST_SHARE
    return answer | {
        "cost_chips": round(chips, _DIGITS),
        "within_chips": round(within, _DIGITS),
        "best": actions[best]["action"],
        "own_loss_chips": round(told.own_loss, _DIGITS),
        "indifferent": told.indifferent,
        "verdict": "costly" if clear else "unclear" if rare or within > least else "fine",
        "exact": found.exact,
        "sentences": told.sentences(taken, chips, within, clear=clear, rare=rare),
    }


def _by_frequency(actions: list[dict[str, Any]], taken: int) -> dict[str, Any]:
    """Judge action number `taken` of `actions` by how often the strategy takes it with the hand.

    actions  {"action", "name", "frequency"} of each action with the hand

    Returns `verdict` ("rare" below a probability of 0.05, otherwise "fine"), `best` (the most frequent action), and
    `sentences` for the user.
    """
    share, best = actions[taken]["frequency"], max(actions, key=lambda each: each["frequency"])
    told = [f"Frequency of this action with this hand: {100 * share:.1f} %."]
    if best is not actions[taken]:
        told.append(f"Most often it plays: {best['name']}.")
    return {"best": best["action"], "verdict": "rare" if share < LEAST_SHARE else "fine", "sentences": told}


class _Judged:
    """EVs and frequencies of one hand's actions at a decision, and sentences about them.

    number       index of the hand
    best         index of the action with the highest EV
    own_loss     EV in chips that the strategy's own mix of actions loses against the best action
    indifferent  True if the actions that the strategy mixes have nearly the same EV
    """

    def __init__(self, spots: Spots, found: DecisionValues, number: int, best: int, *, indifferent: bool) -> None:
        self._spots, self._found = spots, found
        self._ev, self._played = found.actions[:, number], found.played[:, number]
        self._within = found.actions_within[:, number]
        self.own_loss = float(self._ev[best] - self._played @ self._ev)
        self.indifferent = indifferent

    def sentences(self, place: int, chips: float, within: float, *, clear: bool, rare: bool) -> list[str]:
        """Return sentences that judge action number `place`.

        chips   cost of the action against the best one
        within  half the 95 % interval of the cost in chips
        clear   True if the cost exceeds `within` and is large enough to show
        rare    True if the strategy takes the action with a probability below `LEAST_SHARE` (0.05)
        """
        money, sure = self._spots.money, "" if self._found.exact else f" ± {self._spots.money.text(within)}"
        share = often_text(float(self._played[place]))
        if clear:
            told = [f"It costs {money.text(chips)}{sure} against the best action."]
        elif within > _LEAST_CHIPS * money.unit:
            told = [f"It costs {money.text(chips)}{sure}: too uncertain to tell it from the best action."]
        elif rare:
            told = [f"Its EV is that of the best action by the strategy's values, but the strategy takes it {share}."]
        else:
            told = ["It costs nothing."]
        if rare and not clear:
            told.append("Do not take this for advice: the strategy plays the hand otherwise.")
        if self.indifferent:
            told.append("The strategy is indifferent: the actions that it mixes have nearly the same EV.")
        unsure = float(self._within.max())
        if self.own_loss > max(unsure, _LEAST_CHIPS * money.unit):
            told.append(
                f"The strategy's own play loses {money.text(self.own_loss)} with this hand by its own values, "
                "because it is not an exact equilibrium."
            )
        return told
