"""What the responder may do on each street: the published settings, and fold, call, pot, all-in throughout."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import floor
from typing import Any, NamedTuple

from mccfr.games.betting import BettingState, amount_text, fold_value, raise_bounds
from mccfr.games.in_tree import InTree, TreeState
from mccfr.games.reading import NOWHERE, Reading
from mccfr.games.translation import Translation
from mccfr.trees.compiled import DECISION

SIZES = 56
LEAST_SHARE = 0.1
"""Of the pot after a call: the smallest of the sizes."""
SOLVED_SIZES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0)
"""Of the pot after a call, in place of the 56 where each of them would be solved: what people bet, beside all-in."""
_KEPT = 1 << 16  # answers about the betting that are remembered: states come again from hand to hand
Place = tuple[int, int]
"""Where in the tree a line is taken to be: `node` and `closed` of a `Reading`."""
Chips = tuple[float, float]
"""(what player 0 gets whatever the cards, what the showdown's result is multiplied with)."""


class Street(NamedTuple):
    """What is allowed on a street besides checking and calling."""

    folds: bool
    bets: str = ""


_CALL, _FOLD, _POT, _SIZES = Street(False), Street(True), Street(True, "pot"), Street(True, "sizes")
SETTINGS: dict[str, Sequence[Street]] = {
    "1": (_FOLD, _FOLD, _FOLD, _FOLD),
    "2": (_CALL, _CALL, _POT, _POT),
    "3": (_CALL, _CALL, _SIZES, _SIZES),
    "4": (_CALL, _SIZES, _FOLD, _FOLD),
    "fcpa": (_POT, _POT, _POT, _POT),
}
"""Lisy & Bowling 2017, table 1, for the four streets of hold'em; fold, call, pot, all-in on all of them."""


def check_setting(setting: str) -> None:
    """Raise `ValueError` for a setting that is none."""
    if setting not in SETTINGS:
        raise ValueError(f"setting = {setting!r} is not allowed: it must be one of {', '.join(SETTINGS)}")


def streets_that_look(setting: str) -> set[int]:
    """Streets on which the responder chooses, and so looks at his chances."""
    return {number for number, street in enumerate(SETTINGS[setting]) if street != _CALL}


class ResponderBetting:
    """The real betting with what the responder may do in it; answers are remembered."""

    def __init__(self, betting: Translation | InTree, setting: str, solved_from: int | None = None) -> None:
        """`setting` is one of SETTINGS; from the street `solved_from` on it has SOLVED_SIZES in place of 56.

        With a translation, real bets are those of the setting; where the tree holds every bet, setting 1 folds and
        calls and all others take every action of the tree on every street.
        """
        self.betting, self.setting = betting, setting
        self._solved_from = len(SETTINGS[setting]) if solved_from is None else solved_from
        tree = betting.tree
        arrays = tree.arrays
        self.decides: list[bool] = (arrays.kind == DECISION).tolist()
        keep: Callable[[Any], Any] = lru_cache(_KEPT)
        self.apply = keep(betting.apply)
        self.settled = keep(betting.settled)
        self.actions = keep(self._actions)
        self.taken_for = keep(self._taken_for)
        self.answers = keep(self._answers)
        self.folded = keep(self._folded)
        self.checked_down = keep(self._checked_down)
        self.fold_of = keep(self._fold_of)

    @property
    def solved_sizes(self) -> bool:
        """Whether he has SOLVED_SIZES anywhere."""
        return any(street.bets == "sizes" for street in SETTINGS[self.setting][self._solved_from :])

    # --- what the responder may do ---

    def _actions(self, state: Any) -> list[str]:
        """His actions at a decision in order: fold, check or call, raises ascending; at least one."""
        if isinstance(self.betting, InTree):
            legal = self.betting.actions(state)
            only = ("f", "c") if self.setting == "1" and "c" in legal else legal
            return [action for action in legal if action in only]
        streets = SETTINGS[self.setting]
        street = streets[min(state.street, len(streets) - 1)]
        fold = ["f"] if street.folds and state.facing else []
        return [*fold, "c", *(f"r{amount_text(target)}" for target in self._targets(state, street.bets))]

    def _targets(self, state: BettingState, bets: str) -> list[float]:
        """Amounts that he may raise to, ascending."""
        assert isinstance(self.betting, Translation)
        bounds = raise_bounds(self.betting.rules, state) if bets else None
        if bounds is None:
            return []
        least, most = bounds
        pot = 2 * state.to_call  # after a call
        all_in = (most - state.to_call) / pot
        shares = [1.0]
        if bets == "sizes":
            if state.street >= self._solved_from:
                shares = list(SOLVED_SIZES)
            else:
                ratio = max(all_in / LEAST_SHARE, 1.0)
                shares = [LEAST_SHARE * ratio ** (size / (SIZES - 1)) for size in range(SIZES)]
        found = {most}
        for share in shares:
            target = state.to_call + share * pot
            target = floor(target + 0.5) if self.betting.whole_chips else target
            found.add(float(min(max(target, least), most)))
        return sorted(found)

    # --- what follows ---

    def _folded(self, state: Any) -> float:
        """Chips that player 0 gets if the player to act folds, who faces a bet."""
        return fold_value(state) if isinstance(state, BettingState) else self.settled(state, "f")[0]

    def _checked_down(self, state: Any) -> Chips:
        """Chips if both players only check and call from here on."""
        if isinstance(state, BettingState):
            return 0.0, state.to_call
        assert isinstance(self.betting, InTree) and isinstance(state, TreeState)
        legal = self.betting.actions(state)
        action = "c" if "c" in legal else next(action for action in legal if action != "f")
        after = self.apply(state, action)
        return self._checked_down(after) if isinstance(after, TreeState) else self.settled(state, action)

    # --- what the policy takes it for, and does ---

    def _taken_for(self, place: Place, state: Any, action: str) -> list[tuple[Place, float]]:
        """What the responder's action may be taken for where the policy takes the line for a place."""
        found = self.betting.outcomes(Reading(place[0], 1.0, place[1]), state, action)
        return [((node, closed), probability) for node, probability, closed in found]

    def _answers(self, place: Place, state: Any) -> list[tuple[str, Place]]:
        """Of each of the tree's actions at a place: the real action, and where the policy is then.

        One, a check or call, where there is no decision in the tree.
        """
        node, closed = place
        if node == NOWHERE or not self.decides[node]:
            return [("c", self._taken_for(place, state, "c")[0][0])]
        found: list[tuple[str, Place]] = []
        for number, action in enumerate(self.betting.real_actions(Reading(node, 1.0, closed), state)):
            calls_a_forgotten_bet = action == "c" and closed != NOWHERE
            found.append((action, (closed if calls_a_forgotten_bet else self.betting.child(node, number), NOWHERE)))
        return found

    def _fold_of(self, node: int) -> int | None:
        """Number of the action that folds at a node of the tree; None where there is none."""
        if node == NOWHERE or not self.decides[node]:
            return None
        labels = [self.betting.tree.label[child] for child in self.betting.tree.children(node)]
        return labels.index("f") if "f" in labels else None
