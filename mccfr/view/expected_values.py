"""Answers queries of the page and of `mccfr query --ev` for the EVs of hands at a decision."""

import threading
from collections import OrderedDict
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.common.intervals import Estimate
from mccfr.evaluation.decision_values import DecisionValues, decision_values
from mccfr.policy.strategy_profile import Behaviour
from mccfr.view.spot_view import SpotDecision, Spots
from storage.threads import available_threads

_KEPT = 8
_LEAST_MIXED = 0.1
_DIGITS = 4
_RARE = 1e-9  # weight in the largest of a range, of a hand that the strategy does not hold
_MANY = "EVs of hands are not computed for more than two players: frequencies are shown."
_NO_NODE = "Only where the line is one of the strategy's tree: it says nothing of what follows other bets."


class ExpectedValues:
    """Computes and caches EVs of hands at the decisions of a strategy; several threads may call it."""

    def __init__(self, spots: Spots) -> None:
        self._spots, self._lock = spots, threading.Lock()
        self._kept: OrderedDict[tuple[str, str, int | None], DecisionValues] = OrderedDict()

    def values(self, line: str = "", board: str = "") -> dict[str, Any]:
        """Return the EVs in chips after a line on a board if both players follow the strategy.

        An EV counts from this decision on, so folding has EV 0.  There are A actions, and h possible hands: those of
        any initial range that share no card with the board.  The page's grid has C cells: hands, or classes like AKs.

        hands         [2][h] EV of each player's hands, ascending by hand number; None if no opposing hand is possible
        actions       [h][A] EV of each action of the player to act
        taken         [A] mean EV of the hands that take each action; None if none does
        mean          [2] mean EV of each player's range
        ..._within    half the 95 % interval of `hands`, `actions`, `taken` and `mean`; 0 if exact
        mixed         [C] "equal" if most hands of a cell that mix actions mix only those of the best EV, otherwise
                      "different"; None if less than a tenth of the cell's hands mix actions (all by weight)
        boards        number of full boards evaluated
        exact         True if all boards that may follow were evaluated
        note          sentence on the accuracy, or on the reason if there are no EVs

        For a line outside of the tree, and for three and more players, there are no EVs.  All fields are then None but
        `note` and `exact`, which is False.

        Raises `ValueError` for an invalid line or board.
        """
        at = self._spots.decision(line, board)
        if at.node is None or self._spots.players > 2:
            names = [key + end for key in ("hands", "actions", "taken", "mean") for end in ("", "_within")]
            note = _MANY if self._spots.players > 2 else _NO_NODE
            return dict.fromkeys((*names, "mixed", "boards")) | {"exact": False, "note": note}
        found = self.at(at, line, board)
        mixes, equal = found.mixes(sum(at.state.put_in))
        mixed = np.stack([mixes & equal, mixes & ~equal], axis=1)[at.live].astype(np.float64)
        shares = self._spots.cells.means(mixed, at.reach[found.player, at.live], at.live)
        return {
            "hands": json_rows(found.hands[:, at.live]),
            "hands_within": json_rows(found.hands_within[:, at.live]),
            "actions": json_rows(found.actions[:, at.live].T),
            "actions_within": json_rows(found.actions_within[:, at.live].T),
            **_pair("taken", [ev for _, ev in found.action_means()]),
            **_pair("mean", [found.mean(player) for player in range(2)]),
            "mixed": [
                None if same + other < _LEAST_MIXED else "equal" if same > other else "different"
                for same, other in shares
            ],
            "boards": found.boards,
            "exact": found.exact,
            "note": self._note(found),
        }

    def _note(self, found: DecisionValues) -> str:
        how = f"an estimate over {found.boards} boards, with 95 % intervals"
        unit = "chips" if self._spots.money.unit == 1 else "BB"
        how = "exact by this strategy" if found.exact else how
        return f"EV is {how}. It is what is won from here on, in {unit}; folding has EV 0."

    def at(self, at: SpotDecision, line: str, board: str, hand: int | None = None) -> DecisionValues:
        """Return the EVs in chips of both players' hands and of the actions at a decision of the tree.

        at           the decision
        line, board  texts that led to `at`; the last few answers are cached by them and `hand`
        hand         index of a hand of the player to act; it gets EVs even if the strategy never reaches `at` with it
        """
        assert at.node is not None
        own, reach = at.state.player, at.reach
        if hand is not None and not reach[own, hand]:
            reach = reach.copy()
            reach[own, hand] = _RARE * max(float(reach[own].max()), _RARE)
        else:
            hand = None
        with self._lock:
            key = line, board, hand
            if key not in self._kept:
                source, dealing, place = self._spots.source, self._spots.dealing, (at.node, at.board)
                self._kept[key] = decision_values(source, dealing, place, reach, at.state.put_in, available_threads())
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]


def query_values(source: Behaviour, line: str, hand: str | None, board: str | None) -> dict[str, Any]:
    """Return the EVs that `mccfr query --ev` adds to its answer; docs/files.md lists the fields.

    source  strategy with a tree for two players
    line    betting line of the tree
    hand    hand such as "KdQd", whose EVs are wanted; None: EVs of both ranges, and of all hands to act
    board   cards of the board; None: none

    Raises `ValueError` for an invalid line, board or hand, a line that is not in the tree, and three and more players.
    """
    source.game.check_two_players("the EV of hands")
    spots = Spots(source, "")
    board = board or ""
    at = spots.decision(line, board)
    if at.node is None:
        raise ValueError(f"line {line!r} has bets that are not in the tree: --ev needs a line of the tree")
    found, dealing = ExpectedValues(spots).at(at, line, board), spots.dealing
    if hand:
        one = int(dealing.find_hands(hand)[0])
        each = {"ev_chips": found.actions[:, one], "ev_chips_within": found.actions_within[:, one]}
        own = {
            "hand_ev_chips": found.hands[found.player, one],
            "hand_ev_chips_within": found.hands_within[found.player, one],
        }
        return {name: _number(value) for name, value in own.items()} | {
            "actions": [dict(zip(each, map(_number, row), strict=True)) for row in zip(*each.values(), strict=True)]
        }
    names = source.game.cards.hand_buckets(at.state.street, found.player, board or None)
    places = {name: int(dealing.find_hands(name)[0]) for name in names}
    means, taken = [found.mean(player) for player in range(2)], found.action_means()
    return {
        **_pair("ev_chips", means),
        "hand_evs": {name: json_rows(found.actions[:, place][None])[0] for name, place in places.items()},
        "hand_evs_within": {name: json_rows(found.actions_within[:, place][None])[0] for name, place in places.items()},
        "actions": [
            {"frequency": _number(share)} | {key: value[0] for key, value in _pair("ev_chips", [ev]).items()}
            for share, ev in taken
        ],
    }


def _number(value: float | None) -> float | None:
    """Return a value rounded to four decimals for JSON; None for None and NaN."""
    return None if value is None or np.isnan(value) else round(float(value), _DIGITS)


def _pair(name: str, found: list[Estimate | None]) -> dict[str, list[float | None]]:
    """Return {name: means, name_within: half the 95 % intervals}, lists with None for unknown EVs.

    found  the EVs in chips, as means with 95 % intervals; None: unknown
    """
    return {
        name: [None if one is None else round(one.mean, _DIGITS) for one in found],
        f"{name}_within": [None if one is None else round(one.within, _DIGITS) for one in found],
    }


def json_rows(values: npt.NDArray[np.float64]) -> Any:
    """Convert a 2-D array to nested lists of numbers with four decimals for JSON; NaN becomes None."""
    rounded = np.round(values, _DIGITS)
    return [[None if np.isnan(one) else one for one in row] for row in rounded.tolist()]
