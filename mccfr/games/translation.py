"""Real bets in a tree of few sizes: which decisions of a betting tree a real line of betting stands for.

A bet that the tree has not is taken for the next smaller or the next larger one that it has, at random: with shares of
the pot A <= x <= B, for A with probability (B - x)(1 + A) / ((B - A)(1 + x)), the pseudo-harmonic mapping (Ganzfried &
Sandholm 2013, "Action translation in extensive-form games with large action spaces", section 4).  A size is the raise
beyond the call, as a share of the pot after the call, of the real pot for real bets and of the tree's for its own, so
that a line whose amounts have drifted from the tree's keeps its proportions.  A check or call is the size 0.

What the mapping leaves open is decided here:

* An all-in is the tree's all-in where there is one.  What is larger than every size is the largest, and where the tree
  has no raise at all, a bet is a call.
* **A bet that is taken for a check or call** changes nothing in the tree, but is there to be answered.  Where the check
  leaves the other player to act, he acts as after a check: his check calls the bet, and folding is out of the
  question.  Where it *closes* the betting, the tree has gone on to the next street or ended; then the bet is answered
  as if it had been the smallest raise (`Reading.node`), and forgotten if it is called (`Reading.closed`).  A call
  without a look would let everybody bet for nothing.  Where the tree has no raise to look at, it is called.
* **The tree's hand is over while chips are behind**: an all-in of the tree stood for a smaller bet, and was called.
  Whoever plays on has put all of it at stake, so he checks and calls.
* **A limp** where the tree has none is the smallest raise.
* What a player does by the tree's strategy is done in real chips: raises keep their share of the pot, rounded to whole
  chips where the game has those, and not less or more than is legal; the tree's all-in is all-in; a raise where none is
  legal calls, a fold with nothing to call checks.

Own actions go the same way: an amount that came from the tree is read back as what it was.
"""

import re
from collections.abc import Sequence
from math import floor

from mccfr.games.betting import (
    BettingRules,
    BettingState,
    amount_text,
    called,
    fold_value,
    may_call,
    raise_bounds,
    raised,
)
from mccfr.games.game import Game
from mccfr.games.in_tree import InTree
from mccfr.games.reading import NOWHERE, OVER, Reading, followed
from mccfr.trees.compiled import DECISION, CompiledTree

_TOKEN = re.compile(r"r([0-9]+(?:\.[0-9]+)?)|[cf/]")
_SAME_SHARE = 1e-9
"""Shares closer than this are one size: they come from sums of chips in float64."""


def actions_of(line: str) -> list[str]:
    """The actions of a line, without the marks of streets; `ValueError` naming the character that is none."""
    found, place = [], 0
    while place < len(line):
        match = _TOKEN.match(line, place)
        if match is None:
            raise ValueError(
                f"line {line!r}, character {place + 1}: {line[place]!r} is no action; write c, f or rN, and / between "
                "streets"
            )
        found.append(match[0])
        place = match.end()
    return [action for action in found if action != "/"]


def apply_action(rules: BettingRules, state: BettingState, action: str, where: str = "") -> BettingState | int:
    """The state after an action of no-limit poker: `c`, `f` or `rN`; `OVER` where nobody acts any more.

    Raises `ValueError` where it is not legal; `where` begins the message.
    """
    said = f"{where}: " if where else ""
    if action == "f":
        if not state.facing:
            raise ValueError(f"{said}there is nothing to fold to: check with c")
        return OVER
    if action == "c":
        if not may_call(rules, state):
            raise ValueError(f"{said}a limp is not possible in this game")
        found = called(rules, state)
        return OVER if found is None else found
    target, bounds = float(action[1:]), raise_bounds(rules, state)
    if bounds is None:
        raise ValueError(f"{said}no raise is possible: the other player is all-in")
    if not bounds[0] <= target <= bounds[1]:
        low, high = (amount_text(bound) for bound in bounds)
        raise ValueError(f"{said}{action} is not possible: a raise is to {low} at least and {high} at most")
    return raised(state, target)


def pseudo_harmonic(small: float, large: float, share: float) -> float:
    """Probability that a bet of `share` is taken for `small` and not for `large`; all are shares of the pot."""
    return (large - share) * (1 + small) / ((large - small) * (1 + share))


def real_betting(game: Game) -> "Translation | InTree":
    """Between a game's tree and its real betting: a translation where the tree has a menu of few of its bets.

    Raises `ValueError` for a game that deals no cards beside its tree, and is no poker therefore.
    """
    if game.real_rules is not None:
        return Translation(game.tree, game.real_rules)
    if not game.cards.dealt:
        raise ValueError(f"{game.name} deals no cards beside its tree: this is for the poker family")
    return InTree(game.tree)


class Translation:
    """Between a tree and the real betting of the game that it abstracts."""

    def __init__(self, tree: CompiledTree, rules: BettingRules) -> None:
        """`rules` are those of the real game; its `raise_targets` are not asked.

        Raises `ValueError` for a tree that does not say what is put in, or begins otherwise than the game.
        """
        if tree.put_in is None:
            raise ValueError("the tree does not say which chips are put in: export the policy again (format 2)")
        if tuple(tree.put_in[0].tolist()) != tuple(rules.put_in):
            raise ValueError(
                f"the tree begins with {tree.put_in[0].tolist()} chips put in, and the game with {list(rules.put_in)}"
            )
        self.tree, self.rules = tree, rules
        self.whole_chips = all(float(chips).is_integer() for chips in (*rules.put_in, rules.minimum_bet, rules.stack))
        # As lists: single cells of arrays cost more than everything else of a look-up.
        self._decides = (tree.arrays.kind == DECISION).tolist()
        self._first, self._count = tree.arrays.first.tolist(), tree.arrays.count.tolist()
        self._level = tree.put_in.max(axis=1).tolist()
        self._all_in = (tree.put_in.max(axis=1) >= rules.stack).tolist()
        self._label = list(tree.label)

    # --- from the real game to the tree ---

    def start(self) -> tuple[BettingState, list[Reading]]:
        """State and readings of the empty line."""
        return self.rules.start(), [Reading(0, 1.0)]

    def read(self, line: str) -> tuple[BettingState | int, list[Reading]]:
        """The real state after a line (`OVER` where nobody acts any more), and all its readings, likeliest first.

        Raises `ValueError` naming the character where an action is not legal in the real game.
        """
        state: BettingState | int
        state, readings = self.start()
        place, slash = 0, False
        while place < len(line):
            where = f"line {line!r}, character {place + 1}"
            match = _TOKEN.match(line, place)
            if match is None:
                raise ValueError(f"{where}: {line[place]!r} is no action; write c, f or rN, and / between streets")
            place = match.end()
            if match[0] == "/":
                if not slash:
                    raise ValueError(f"{where}: the street does not change here, so '/' is wrong")
                slash = False
                continue
            if not isinstance(state, BettingState):
                raise ValueError(f"{where}: the betting is over, and the line must end")
            after = self.apply(state, match[0], where)
            readings = self.follow(readings, state, match[0])
            slash = not isinstance(after, BettingState) or after.street != state.street
            state = after
        return state, sorted(readings, key=lambda reading: -reading.probability)

    def apply(self, state: BettingState, action: str, where: str = "") -> BettingState | int:
        """`apply_action` by the real rules."""
        return apply_action(self.rules, state, action, where)

    def settled(self, state: BettingState, action: str) -> tuple[float, float]:
        """(chips that player 0 gets whatever the cards, chips times the showdown's result) where an action ends it."""
        return (fold_value(state), 0.0) if action == "f" else (0.0, state.to_call)

    def follow(self, readings: Sequence[Reading], state: BettingState, action: str) -> list[Reading]:
        """The readings after a legal action of the player to act; those that meet are one."""
        return followed(self, readings, state, action)

    def outcomes(self, reading: Reading, state: BettingState, action: str) -> list[Reading]:
        """What an action may stand for at one reading; `probability` is that of each, given the reading."""
        node = reading.node
        if action == "c" and reading.closed != NOWHERE:
            return [Reading(reading.closed, 1.0)]
        if not self.decides(reading):
            return [reading._replace(probability=1.0)]
        if action == "f":
            return [Reading(self._child(node, "f"), 1.0)]
        if action == "c":
            raises = self._raises(node)
            call = self._child(node, "c")
            return [Reading(raises[0][1] if call == NOWHERE else call, 1.0)]
        return self._bet(node, state, float(action[1:]))

    def _bet(self, node: int, state: BettingState, target: float) -> list[Reading]:
        """What a real raise to `target` may stand for at a decision."""
        raises = self._raises(node)
        call = self._child(node, "c")
        closes = call != NOWHERE and self._closes(node, call)
        if not raises:
            return [Reading(NOWHERE, 1.0, call) if closes and self._decides[call] else Reading(call, 1.0)]
        if target >= self.rules.stack and self._all_in[raises[-1][1]]:
            return [Reading(raises[-1][1], 1.0)]
        share = (target - state.to_call) / (2 * state.to_call)
        sizes = [(0.0, call), *raises] if call != NOWHERE else raises
        above = next((k for k, (size, _) in enumerate(sizes) if size >= share - _SAME_SHARE), len(sizes))
        if above == len(sizes) or above == 0:
            return [Reading(sizes[min(above, len(sizes) - 1)][1], 1.0)]
        (small, lower), (large, upper) = sizes[above - 1 : above + 1]
        chance = max(0.0, pseudo_harmonic(small, large, share))
        if chance < _SAME_SHARE:
            return [Reading(upper, 1.0)]
        below = Reading(upper, chance, call) if lower == call and closes else Reading(lower, chance)
        return [below, Reading(upper, 1 - chance)]

    def _closes(self, node: int, call: int) -> bool:
        """Whether a check or call ends the tree's betting on its street."""
        block = self.tree.arrays.block
        return not self._decides[call] or int(block[call]) // 2 != int(block[node]) // 2

    def _child(self, node: int, label: str) -> int:
        """The child that an action leads to; NOWHERE where the tree has not got it."""
        first = self._first[node]
        for child in range(first, first + self._count[node]):
            if self._label[child] == label:
                return child
        return NOWHERE

    def _raises(self, node: int) -> list[tuple[float, int]]:
        """(share of the pot after the call, child) of each raise of a decision, ascending."""
        first, level = self._first[node], self._level[node]
        found = []
        for child in range(first, first + self._count[node]):
            if self._label[child] not in ("c", "f"):
                found.append((self._size(node, child, level), child))
        return found

    def _size(self, node: int, child: int, level: float) -> float:
        target = self.tree.put_in[child, self.tree.arrays.player[node]]  # type: ignore[index]
        return (float(target) - level) / (2 * level)

    # --- from the tree to the real game ---

    def real_actions(self, reading: Reading, state: BettingState) -> list[str]:
        """The real, legal action of each of the tree's actions at a reading, in order; `c` alone where it is over.

        Several may be one: sizes below the least raise.
        """
        node = reading.node
        if not self.decides(reading):
            return ["c"]
        return [self.real_action(node, number, state) for number in range(self._count[node])]

    def child(self, node: int, number: int) -> int:
        """The child that action `number` of a decision leads to."""
        return self._first[node] + number

    def decides(self, reading: Reading) -> bool:
        """Whether the tree has a decision at a reading; elsewhere whoever is to act calls."""
        return reading.node != NOWHERE and self._decides[reading.node]

    def done(self, reading: Reading, number: int, action: str) -> Reading:
        """Where who plays by the tree is after its action `number`, done as the real `action`: there for certain."""
        if action == "c" and reading.closed != NOWHERE:
            return Reading(reading.closed, 1.0)
        return Reading(self.child(reading.node, number), 1.0)

    def real_action(self, node: int, number: int, state: BettingState) -> str:
        """The real action of the tree's action `number` at a decision; see `real_actions`."""
        child, level = self._first[node] + number, self._level[node]
        label = self._label[child]
        if label == "f":
            return "f" if state.facing else "c"
        bounds = None if label == "c" else raise_bounds(self.rules, state)
        if bounds is None:
            return "c"
        if self._all_in[child]:
            return f"r{amount_text(bounds[1])}"
        target = state.to_call + self._size(node, child, level) * 2 * state.to_call
        target = floor(target + 0.5) if self.whole_chips else target
        return f"r{amount_text(min(max(target, bounds[0]), bounds[1]))}"
