"""Expected values at a spot, found board by board while a page waits for them."""

import threading
import time
from collections import OrderedDict
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.evaluation.hand_values import Below, HandValues
from mccfr.view.spots import Spots

MOST_BOARDS = 500
"""Boards that are drawn for one spot at most."""
_BUDGET_SECONDS = 0.5  # of one answer: a page asks again for more
_KEPT = 8
_DIGITS = 4


class ShownValues:
    """Expected values at the spots of a strategy; several threads may ask."""

    def __init__(self, spots: Spots) -> None:
        self._spots, self._lock = spots, threading.Lock()
        self._kept: OrderedDict[tuple[str, str], HandValues] = OrderedDict()

    def values(self, line: str, board: str = "", boards: int = 1) -> dict[str, Any]:
        """What hands win from here on if both players go on by the strategy, in chips; what is put in is gone.

        boards  how many are walked where they are too many to walk all; an answer takes about half a second, and may
                have fewer: then it is asked again

        `hands` [2][h] goes with `hands` of the spot, `actions` [h][A] with its actions, of the player to act; None
        where a hand meets nothing.  `mean` [2] of the ranges, `ci95` their 95 % intervals, `boards` walked and `of`
        how many, None where they are drawn; `exact`, and `why` there are none (then all else is null).  Raises as
        `Spots.spot`.
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

    def cost(self, line: str, board: str, hand: str, action: str, boards: int = 1) -> dict[str, Any]:
        """What an action with a hand gives away against the best one of the strategy's actions, both going on by it.

        `cost_chips`, None where the strategy says nothing of it, and then `why`; `ci95`, its 95 % interval, None where
        there is none; `best`, the best action; `boards`, `of` and `exact` as of `values`.  Raises as that, and
        `ValueError` for a hand that nobody holds here.
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
        """Values on so many boards, or as many as an answer's time allows."""
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
    """Rows of numbers, None where there is none."""
    rounded = np.round(values, _DIGITS)
    return [[None if np.isnan(one) else one for one in row] for row in rounded.tolist()]
