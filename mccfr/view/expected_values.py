"""Expected values at a spot, computed board by board for the waiting page."""

import threading
import time
from collections import OrderedDict
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.evaluation.hand_values import Below, HandValues
from mccfr.view.spot_view import Spots

MOST_BOARDS = 500
"""Maximum number of sampled boards of a spot."""
_BUDGET_SECONDS = 0.5  # time of one answer; the page requests more
_KEPT = 8
_DIGITS = 4


class ExpectedValues:
    """Expected values at the spots of a strategy; several threads may call it."""

    def __init__(self, spots: Spots) -> None:
        self._spots, self._lock = spots, threading.Lock()
        self._kept: OrderedDict[tuple[str, str], HandValues] = OrderedDict()

    def values(self, line: str = "", board: str = "", boards: int = 1) -> dict[str, Any]:
        """Return the EV of each hand from this spot on, in chips, if both players follow the strategy.

        The EV includes the pot; chips put in before the spot are not subtracted.  `boards` is the number of boards to
        sample if there are too many for all.  An answer takes about half a second and may have fewer; then the page
        asks again.

        hands    [2][h] EV, in the order of the spot's `hands`; None for a hand without opponent hands
        actions  [h][A] EV of each action of the player to act
        mean     [2] EV of the ranges
        ci95     [2] their 95 % intervals
        boards   number of boards evaluated
        of       number of boards there are; None if they are sampled
        exact    True if all boards are evaluated
        why      reason if there are no values, else None

        Raises as `Spots.spot`.
        """
        at = self._spots.decision(line, board)
        if at.node is None:
            why = "Only where the line is one of the strategy's tree: it says nothing of what follows other bets."
            return dict.fromkeys(("hands", "actions", "mean", "ci95", "boards", "of")) | {"exact": False, "why": why}
        with self._lock:
            found = self._walked(at, line, board, boards)
            put_in = np.array(at.state.put_in, np.float64)
            means = [found.mean(player) for player in range(2)]
            return {
                "hands": json_rows(found.hands()[:, at.live] + put_in[:, None]),
                "actions": json_rows(found.actions()[:, at.live].T + put_in[at.state.player]),
                "mean": [
                    None if one is None else round(float(one[0] + chips), _DIGITS)
                    for one, chips in zip(means, put_in, strict=True)
                ],
                "ci95": [_interval(one, chips) for one, chips in zip(means, put_in, strict=True)],
                "boards": found.boards,
                "of": found.listed,
                "exact": found.complete,
                "why": None,
            }

    def cost(
        self, line: str = "", board: str = "", hand: str = "", action: str = "", boards: int = 1
    ) -> dict[str, Any]:
        """Return the EV that an action loses against the strategy's best action with a hand.

        cost_chips         the loss; None, with a reason in `why`, if it is not known
        ci95               its 95 % interval; None if there is none
        best               the best action
        boards, of, exact  as in `values`

        Raises as `values`, and `ValueError` for a hand that cannot be held here.
        """
        at = self._spots.decision(line, board)
        names = [self._spots.dealing.hand_text(each) for each in at.live.tolist()]
        if hand not in names:
            raise ValueError(f"hand = {hand[:40]!r} cannot be held here: write it as {names[0]}")
        actions = self._spots.offered(line)
        if at.node is None or action not in actions:
            why = "The strategy has not this bet: it cannot say what it costs."
            return dict.fromkeys(("cost_chips", "ci95", "best", "boards", "of")) | {"exact": False, "why": why}
        number, one = actions.index(action), int(at.live[names.index(hand)])
        with self._lock:
            found = self._walked(at, line, board, boards)
            costs, within = found.costs()[:, one], found.cost95(number, one)
            told = {"boards": found.boards, "of": found.listed, "exact": found.complete}
        known = not np.isnan(costs).any()
        return {
            "cost_chips": round(float(costs[number]), _DIGITS) if known else None,
            "ci95": [round(end, _DIGITS) for end in within] if known and within else None,
            "best": actions[int(costs.argmin())] if known else None,
            **told,
            "why": None if known else "By the strategies nobody comes here.",
        }

    def _walked(self, at: Any, line: str, board: str, boards: int) -> HandValues:
        """Return values on `boards` boards, or on as many as fit into an answer's time."""
        found = self._found(at, line, board)
        until = time.perf_counter() + _BUDGET_SECONDS
        wanted = min(max(boards, 1), MOST_BOARDS)
        while not found.complete and (found.listed is not None or found.boards < wanted):
            found.walk()
            if time.perf_counter() >= until:
                break
        return found

    def _found(self, at: Any, line: str, board: str) -> HandValues:
        key = line, board
        if key not in self._kept:
            below = Below(self._spots.source, self._spots.dealing, at.node)
            self._kept[key] = HandValues(below, self._spots.dealing, at.board, at.reach)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


def _interval(one: tuple[float, tuple[float, float]] | None, chips: float) -> list[float] | None:
    if one is None or not np.isfinite(one[1]).all():
        return None
    return [round(float(end + chips), _DIGITS) for end in one[1]]


def json_rows(values: npt.NDArray[np.float64]) -> Any:
    """Return rows of rounded numbers, with None for NaN."""
    rounded = np.round(values, _DIGITS)
    return [[None if np.isnan(one) else one for one in row] for row in rounded.tolist()]
