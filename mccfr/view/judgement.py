"""Judges an action with a hand by the strategy: EVs, cost, and how sure it is."""

from typing import Any

from mccfr.evaluation.decision_values import LEAST_SHARE, DecisionValues
from mccfr.view.expected_values import ExpectedValues
from mccfr.view.labels import often_text
from mccfr.view.spot_view import Spots

_DIGITS = 4
_LEAST_CHIPS = 0.005  # of a unit of money: EVs that differ by less are shown as equal
_NO_BET = "The strategy has not this bet: it cannot say what it costs."
_NO_RANGE = "By the strategies nobody comes here."


def judge(
    spots: Spots, values: ExpectedValues, line: str = "", board: str = "", hand: str = "", action: str = ""
) -> dict[str, Any]:
    """Return the judgement of an action with a hand; docs/http.md lists the fields.

    Raises as `Spots.spot`, and `ValueError` for a hand that cannot be held here.
    """
    at = spots.decision(line, board)
    names = [spots.dealing.hand_text(each) for each in at.live.tolist()]
    if hand not in names:
        raise ValueError(f"hand = {hand[:40]!r} cannot be held here: write it as {names[0]}")
    actions = [one["action"] for one in spots.offered(line)]
    empty = dict.fromkeys(("cost_chips", "within_chips", "best", "own_loss_chips", "indifferent", "verdict", "actions"))
    if at.node is None or action not in actions:
        return empty | {"exact": False, "sentences": [_NO_BET]}
    one = int(at.live[names.index(hand)])
    found = values.at(at, line, board, one)
    if (cost := found.cost(actions.index(action), one)) is None:
        return empty | {"exact": found.exact, "sentences": [_NO_RANGE]}
    best, (chips, within) = cost
    mixes, equal = found.mixes(sum(at.state.put_in))
    told = _Judged(spots, found, one, actions, best, indifferent=bool(mixes[one] and equal[one]))
    least, share = _LEAST_CHIPS * spots.money.unit, float(found.played[actions.index(action), one])
    clear = chips > within and chips >= least
    rare = share < LEAST_SHARE
    return {
        "cost_chips": round(chips, _DIGITS),
        "within_chips": round(within, _DIGITS),
        "best": actions[best],
        "own_loss_chips": round(told.own_loss, _DIGITS),
        "indifferent": told.indifferent,
        "verdict": "costly" if clear else "unclear" if rare or within > least else "fine",
        "actions": told.actions(),
        "exact": found.exact,
        "sentences": told.sentences(actions.index(action), chips, within, clear=clear, rare=rare),
    }


class _Judged:
    """A hand at a decision, with the action `best` that has the highest EV."""

    def __init__(
        self, spots: Spots, found: DecisionValues, number: int, actions: list[str], best: int, *, indifferent: bool
    ) -> None:
        self._spots, self._found, self._hand, self._names, self._best = spots, found, number, actions, best
        self._ev, self._played = found.actions[:, number], found.played[:, number]
        self._within = found.actions_within[:, number]
        self.own_loss = float(self._ev[best] - self._played @ self._ev)
        self.indifferent = indifferent

    def actions(self) -> list[dict[str, Any]]:
        """Return each action with its frequency and EV."""
        rows = zip(self._names, self._played.tolist(), self._ev.tolist(), self._within.tolist(), strict=True)
        return [
            {"action": name, "frequency": round(share, _DIGITS), "ev_chips": round(ev, _DIGITS)}
            | {"within_chips": round(within, _DIGITS)}
            for name, share, ev, within in rows
        ]

    def sentences(self, place: int, chips: float, within: float, *, clear: bool, rare: bool) -> list[str]:
        """Return the judgement of action `place` in words.

        clear, rare  whether the cost is certain, and whether the strategy hardly takes the action
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
