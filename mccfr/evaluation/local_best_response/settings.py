"""Action sets of the LBR responder by street: Lisy & Bowling's settings 1 to 4, and "fcpa".

Setting "1" never bets: it folds, checks or calls. "2" bets the pot or all-in, and "3" many sizes, on turn and river
only. "4" bets many sizes on the flop only. On streets before their bets "2" to "4" do not fold. "fcpa" allows fold,
check or call, a bet of the pot, and all-in on every street.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import floor
from typing import Any, NamedTuple

from mccfr.games.betting import BettingState, amount_text, fold_value, raise_bounds
from mccfr.games.identity_translation import IdentityTranslation, TreeState
from mccfr.games.line_lookup import NOWHERE, LineReading
from mccfr.games.translation import Translation
from mccfr.trees.compiled import DECISION

SIZES = 56
LEAST_SHARE = 0.1
"""Smallest bet size, as a share of the pot after a call."""
SOLVED_SIZES = (0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0)
"""Bet sizes against re-solving, as shares of the pot after a call: common ones, since each of them must be solved."""
_KEPT = 1 << 16  # cached results: the same states occur in many hands
TreePosition = tuple[int, int]
"""The translation of a line into the tree: `node` and `closed` of a `LineReading`."""
Chips = tuple[float, float]
"""(player 0's chips independent of the cards, chips that the winner of a showdown gets from the loser)."""


class Street(NamedTuple):
    """Actions allowed to the responder on a street besides check and call.

    folds  True if it may fold to bets
    bets   "": none; "pot": the pot and all-in; "sizes": 56 sizes from 0.1 of the pot up to all-in. On streets that the
           policy re-solves in play, only 7 sizes (SOLVED_SIZES) and all-in
    """

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
"""Lisy & Bowling 2017, table 1, for the four streets of hold'em; and fold-call-pot-all-in on all streets."""


def check_setting(setting: str) -> None:
    """Raise `ValueError` unless `setting` is "1", "2", "3", "4" or "fcpa"."""
    if setting not in SETTINGS:
        raise ValueError(f"setting = {setting!r} is not allowed: it must be one of {', '.join(SETTINGS)}")


def streets_that_look(setting: str) -> set[int]:
    """Return the numbers of the streets on which the responder may fold or bet.

    On them its choice depends on its equity.

    setting  "1", "2", "3", "4" or "fcpa"
    """
    return {number for number, street in enumerate(SETTINGS[setting]) if street != _CALL}


class ResponderBetting:
    """Betting between the responder, with its action set, and the policy, with its tree.

    Results are cached, because the same states occur in many hands.
    """

    def __init__(
        self, betting: Translation | IdentityTranslation, setting: str, solved_from: int | None = None
    ) -> None:
        """Take the rules of the betting and the responder's set of actions.

        betting      applies actions and translates the responder's bets into the policy's tree
        setting      "1", "2", "3", "4" or "fcpa"
        solved_from  first street on which the policy re-solves, where the responder has fewer bet sizes; None: no
                     street

        If `betting` is a `Translation`, the responder bets real amounts of the setting. If it is an
        `IdentityTranslation`, it bets only amounts of the tree. Setting "1" then folds and calls where a call is legal;
        all others take every action of the tree.
        """
        self.betting, self.setting = betting, setting
        self._solved_from = len(SETTINGS[setting]) if solved_from is None else solved_from
        tree = betting.tree
        arrays = tree.arrays
        self.decides: list[bool] = (arrays.kind == DECISION).tolist()
        keep: Callable[[Any], Any] = lru_cache(_KEPT)  # each attribute below is a method with its results cached
        self.apply = keep(betting.apply)
        self.settled = keep(betting.settled)
        self.actions = keep(self._actions)
        self.translations_of = keep(self._translations_of)
        self.answers = keep(self._answers)
        self.folded = keep(self._folded)
        self.checked_down = keep(self._checked_down)
        self.fold_of = keep(self._fold_of)

    @property
    def solved_sizes(self) -> bool:
        """True if the responder uses SOLVED_SIZES, sizes for re-solved streets, on some street."""
        return any(street.bets == "sizes" for street in SETTINGS[self.setting][self._solved_from :])

    # --- the responder's actions ---

    def _actions(self, state: Any) -> list[str]:
        """Return the legal actions of the responder's setting, such as ["f", "c", "r300"]; raises ascending.

        state  real betting at a decision of the responder
        """
        if isinstance(self.betting, IdentityTranslation):
            legal = self.betting.actions(state)
            only = ("f", "c") if self.setting == "1" and "c" in legal else legal
            return [action for action in legal if action in only]
        streets = SETTINGS[self.setting]
        street = streets[min(state.street, len(streets) - 1)]
        fold = ["f"] if street.folds and state.facing else []
        return [*fold, "c", *(f"r{amount_text(target)}" for target in self._targets(state, street.bets))]

    def _targets(self, state: BettingState, bets: str) -> list[float]:
        """Return the amounts in chips that the responder may raise to, ascending.

        state  real betting at a decision of the responder
        bets   bet sizes of the action set: "", "pot" or "sizes" (`Street.bets`)
        """
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
        targets = {most}
        for share in shares:
            target = state.to_call + share * pot
            target = floor(target + 0.5) if self.betting.whole_chips else target
            targets.add(float(min(max(target, least), most)))
        return sorted(targets)

    # --- payoffs ---

    def _folded(self, state: Any) -> float:
        """Return player 0's chips, over the whole hand, if the player to act at `state` folds to a bet."""
        return fold_value(state) if isinstance(state, BettingState) else self.settled(state, "f")[0]

    def _checked_down(self, state: Any) -> Chips:
        """Return the payoffs if both players only check and call from here on.

        They are (player 0's chips independent of the cards, chips that the showdown's winner gets from the loser).

        state  real betting at a decision of either player
        """
        if isinstance(state, BettingState):
            return 0.0, state.to_call
        assert isinstance(self.betting, IdentityTranslation) and isinstance(state, TreeState)
        legal = self.betting.actions(state)
        action = "c" if "c" in legal else next(action for action in legal if action != "f")
        after = self.apply(state, action)
        return self._checked_down(after) if isinstance(after, TreeState) else self.settled(state, action)

    # --- the policy's translations and actions ---

    def _translations_of(self, tree_node: TreePosition, state: Any, action: str) -> list[tuple[TreePosition, float]]:
        """Return the tree nodes to which the policy may translate an action of the responder.

        The result is a list of (position, probability). A position is (node, closed): a node of the policy's tree that
        stands for the real betting so far, and a second node. `closed` is used only where the tree has no decision
        because it lacks a bet: it is the node that a call of the bet leads to.

        tree_node  position before the action
        state      real betting before the action
        action     the responder's action, such as "r300"
        """
        readings = self.betting.outcomes(LineReading(tree_node[0], 1.0, tree_node[1]), state, action)
        return [((node, closed), probability) for node, probability, closed in readings]

    def _answers(self, tree_node: TreePosition, state: Any) -> list[tuple[str, TreePosition]]:
        """Return [(real action, position after it)] for each action of the policy.

        A position is a node of the policy's tree that stands for the real betting so far, and a second node
        (`TreePosition`). If its node is no decision of the tree, the policy has a single action: check, call or fold.

        tree_node  position before the action
        state      real betting before the action
        """
        node, closed = tree_node
        actions = self.betting.real_actions(LineReading(node, 1.0, closed), state)
        if node == NOWHERE or not self.decides[node]:
            return [(actions[0], self._translations_of(tree_node, state, actions[0])[0][0])]
        answers: list[tuple[str, TreePosition]] = []
        for number, action in enumerate(actions):
            calls_a_forgotten_bet = action == "c" and closed != NOWHERE
            answers.append((action, (closed if calls_a_forgotten_bet else self.betting.child(node, number), NOWHERE)))
        return answers

    def gives_up(self, node: int) -> bool:
        """Return True if the policy folds to any bet, because in its tree a fold has ended the hand.

        node  node of the policy's tree
        """
        return isinstance(self.betting, Translation) and self.betting.folded(node)

    def _fold_of(self, node: int) -> int | None:
        """Return the index of the fold among the actions at `node` of the policy's tree; None without one."""
        if node == NOWHERE or not self.decides[node]:
            return None
        labels = [self.betting.tree.label[child] for child in self.betting.tree.children(node)]
        return labels.index("f") if "f" in labels else None
