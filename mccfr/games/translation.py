"""Action translation: maps lines of real betting to decisions of a tree with few bet sizes, and back.

A bet of size x that the tree lacks is mapped at random to the next smaller size A or the next larger size B. By the
pseudo-harmonic mapping, A has the probability

    (B - x)(1 + A) / ((B - A)(1 + x))

A size is the raise beyond the call, divided by the pot after the call. Real bets use the real pot, tree bets the
tree's. A bet smaller than every size is mapped to the smallest: a bet stays a bet.

Ganzfried & Sandholm 2013, "Action translation in extensive-form games with large action spaces", section 4.

Cases that the mapping leaves open:

* An all-in is mapped to the tree's all-in if there is one. A bet larger than every size is mapped to the largest one.
* **If the tree has no raise**, a bet is mapped to a check or call. If the opponent is to act after the check, the
  opponent's strategy after a check applies: its check calls the bet, and a fold is not possible. If the check *closes*
  the betting, the tree is already on the next street or over. Then the bet is called, which leads to the node after the
  check (`LineReading.closed`).
* **Other stakes than the tree's** (`with_stakes`): sizes are shares of the pot, so only the all-in differs. It is
  mapped to the tree's if the stacks, in big blinds, differ at most by a factor of two, and else by its size.
* **The tree's hand is over while chips remain**: a smaller bet was mapped to the tree's all-in and called. The player
  then checks and calls to the end, as the stack is already committed.
* **A limp** that the tree lacks is mapped to the smallest raise. The big blind's fold to it becomes a check, and its
  hand is over in the tree. It then checks, and folds to a bet.
* A tree action becomes a real action as follows. Raises keep their share of the pot, rounded to whole chips in games
  with whole chips, within the legal bounds. The tree's all-in is all-in. If no raise is legal, a raise becomes a call;
  without a bet to call, a fold becomes a check.
"""

import re
from collections.abc import Sequence
from copy import copy
from math import floor

from mccfr.games.betting import (
    BettingRules,
    BettingState,
    after_fold,
    amount_text,
    called,
    fold_value,
    following,
    may_call,
    raise_bounds,
    raised,
)
from mccfr.games.game import Game
from mccfr.games.identity_translation import IdentityTranslation
from mccfr.games.line_lookup import NOWHERE, OVER, LineReading, followed
from mccfr.trees.compiled import DECISION, CompiledTree

_TOKEN = re.compile(r"r([0-9]+(?:\.[0-9]+)?)|[cf/]")
_AS_DEEP = 2
"""Largest factor between two stacks whose all-ins are mapped to each other."""
_SAME_SHARE = 1e-9
"""Tolerance within which two sizes are equal, because they come from float64 sums of chips."""


def actions_of(line: str) -> list[str]:
    """Return the actions of a line without street separators; `ValueError` names an invalid character."""
    actions, position = [], 0
    while position < len(line):
        match = _TOKEN.match(line, position)
        if match is None:
            raise ValueError(
                f"line {line!r}, character {position + 1}: {line[position]!r} is not an action; write c, f or bN, "
                "and / between streets"
            )
        actions.append(match[0])
        position = match.end()
    return [action for action in actions if action != "/"]


def apply_action(rules: BettingRules, state: BettingState, action: str, where: str = "") -> BettingState | int:
    """Return the state after an action `c`, `f` or `rN` of no-limit poker, or `OVER` if the betting ends.

    Raises `ValueError`, beginning with `where`, if the action is illegal.
    """
    prefix = f"{where}: " if where else ""
    if action == "f":
        if not state.facing:
            raise ValueError(f"{prefix}there is nothing to fold to: check with c")
        after = following(rules, after_fold(state))
        return OVER if after is None else after
    if action == "c":
        if not may_call(rules, state):
            raise ValueError(f"{prefix}a limp is not possible in this game")
        after = called(rules, state)
        return OVER if after is None else after
    target, bounds = float(action[1:]), raise_bounds(rules, state)
    if bounds is None:
        raise ValueError(f"{prefix}no raise is possible: the other players are all-in, or the bet was no full raise")
    if not bounds[0] <= target <= bounds[1]:
        low, high = (amount_text(bound) for bound in bounds)
        raise ValueError(f"{prefix}{action} is not possible: a raise must be to {low} to {high} chips in the hand")
    return raised(rules, state, target)


def pseudo_harmonic(small: float, large: float, share: float) -> float:
    """Return the probability that a bet of size `share` is mapped to `small` rather than `large`.

    All sizes are shares of the pot.
    """
    return (large - share) * (1 + small) / ((large - small) * (1 + share))


def _whole(rules: BettingRules) -> bool:
    """Return True if amounts of the game are whole chips."""
    return all(float(chips).is_integer() for chips in (*rules.put_in, rules.minimum_bet, rules.stack))


def real_betting(game: Game) -> "Translation | IdentityTranslation":
    """Return the mapping between a game's tree and its full betting.

    It is an `IdentityTranslation` (identity) if the tree contains every legal bet. Raises `ValueError` for a game
    without cards beside its tree.
    """
    game.check_two_players("play at a table")
    if game.real_rules is not None:
        return Translation(game.tree, game.real_rules)
    if not game.cards.dealt:
        raise ValueError(f"{game.name} deals no cards outside of its tree: this is for the poker family")
    return IdentityTranslation(game.tree)


class Translation:
    """Action translation between a tree and the full betting of the game that it abstracts."""

    def __init__(self, tree: CompiledTree, rules: BettingRules) -> None:
        """Take the rules of the full game, whose `raise_targets` are not used.

        Raises `ValueError` if the tree lacks the chips put in, or begins with other amounts than the game.
        """
        if tree.put_in is None:
            raise ValueError("the tree does not say which chips are put in: export the policy again (format 2)")
        if tuple(tree.put_in[0].tolist()) != tuple(rules.put_in):
            raise ValueError(
                f"the tree begins with {tree.put_in[0].tolist()} chips put in, and the game with {list(rules.put_in)}"
            )
        self.tree, self.rules, self._as_deep = tree, rules, True
        self.whole_chips = _whole(rules)
        # Lists, because indexing single cells of arrays would dominate a lookup's time.
        self._decides = (tree.arrays.kind == DECISION).tolist()
        self._first, self._count = tree.arrays.first.tolist(), tree.arrays.count.tolist()
        self._level = tree.put_in.max(axis=1).tolist()
        self._all_in = (tree.put_in.max(axis=1) >= rules.stack).tolist()
        self._label = list(tree.label)

    def with_stakes(self, rules: BettingRules) -> "Translation":
        """Return the mapping for hands with other stakes than the tree's."""
        copied = copy(self)
        deep = rules.stack * self.rules.minimum_bet, self.rules.stack * rules.minimum_bet
        copied.rules, copied.whole_chips, copied._as_deep = rules, _whole(rules), max(deep) <= _AS_DEEP * min(deep)
        return copied

    # --- from the real game to the tree ---

    def start(self) -> tuple[BettingState, list[LineReading]]:
        """Return the state and readings of the empty line."""
        return self.rules.start(), [LineReading(0, 1.0)]

    def read(self, line: str) -> tuple[BettingState | int, list[LineReading]]:
        """Return the real state after a line (`OVER` if the betting ended) and its readings, likeliest first.

        Raises `ValueError`, naming the character, for an action that is illegal in the full game.
        """
        state: BettingState | int
        state, readings = self.start()
        position, slash = 0, False
        while position < len(line):
            where = f"line {line!r}, character {position + 1}"
            match = _TOKEN.match(line, position)
            if match is None:
                raise ValueError(
                    f"{where}: {line[position]!r} is not an action; write c, f or bN, and / between streets"
                )
            position = match.end()
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
        """Apply `apply_action` with the full game's rules."""
        return apply_action(self.rules, state, action, where)

    def settled(self, state: BettingState, action: str) -> tuple[float, float]:
        """Return `fixed` and `showdown` of `Game.won_chips` for an action that ends the hand."""
        return (fold_value(state), 0.0) if action == "f" else (0.0, state.to_call)

    def follow(self, readings: Sequence[LineReading], state: BettingState, action: str) -> list[LineReading]:
        """Return the readings after a legal action of the player to act, with equal ones merged."""
        return followed(self, readings, state, action)

    def outcomes(self, reading: LineReading, state: BettingState, action: str) -> list[LineReading]:
        """Return the readings of an action at one reading, with probabilities given that reading."""
        node = reading.node
        if action == "c" and reading.closed != NOWHERE:
            return [LineReading(reading.closed, 1.0)]
        if not self.decides(reading):
            return [reading._replace(probability=1.0)]
        if action == "f":
            return [LineReading(self._child(node, "f"), 1.0)]
        if action == "c":
            raises = self._raises(node)
            call = self._child(node, "c")
            return [LineReading(raises[0][1] if call == NOWHERE else call, 1.0)]
        return self._bet(node, state, float(action[1:]))

    def _bet(self, node: int, state: BettingState, target: float) -> list[LineReading]:
        """Return the readings of a real raise to `target` at a decision."""
        raises = self._raises(node)
        call = self._child(node, "c")
        closes = call != NOWHERE and self._closes(node, call)
        if not raises:
            return [LineReading(NOWHERE, 1.0, call) if closes and self._decides[call] else LineReading(call, 1.0)]
        if target >= self.rules.stack and self._all_in[raises[-1][1]] and self._as_deep:
            return [LineReading(raises[-1][1], 1.0)]
        share = (target - state.to_call) / (2 * state.to_call)
        above = next((k for k, (size, _) in enumerate(raises) if size >= share - _SAME_SHARE), len(raises))
        if above == len(raises) or above == 0:
            return [LineReading(raises[min(above, len(raises) - 1)][1], 1.0)]
        (small, lower), (large, upper) = raises[above - 1 : above + 1]
        chance = max(0.0, pseudo_harmonic(small, large, share))
        if chance < _SAME_SHARE:
            return [LineReading(upper, 1.0)]
        return [LineReading(lower, chance), LineReading(upper, 1 - chance)]

    def is_exact(self, node: int, outcome: LineReading, state: BettingState, action: str) -> bool:
        """Return True if the tree has a real action at a decision: the same size, and all-in if it is all-in."""
        if action[0] != "r":
            return self._child(node, action) != NOWHERE
        sizes = {child: size for size, child in self._raises(node)}
        target = float(action[1:])
        same = abs(sizes.get(outcome.node, -1.0) - (target - state.to_call) / (2 * state.to_call)) < _SAME_SHARE
        return same and self._all_in[outcome.node] == (target >= self.rules.stack)

    def _closes(self, node: int, call: int) -> bool:
        """Return True if a check or call ends the tree's betting on its street."""
        block = self.tree.arrays.block
        return not self._decides[call] or int(block[call]) // 2 != int(block[node]) // 2

    def _child(self, node: int, label: str) -> int:
        """Return the child of an action, or NOWHERE if the tree lacks it."""
        first = self._first[node]
        for child in range(first, first + self._count[node]):
            if self._label[child] == label:
                return child
        return NOWHERE

    def _raises(self, node: int) -> list[tuple[float, int]]:
        """Return (size as a share of the pot after the call, child) of each raise, ascending."""
        first, level = self._first[node], self._level[node]
        raises = []
        for child in range(first, first + self._count[node]):
            if self._label[child] not in ("c", "f"):
                raises.append((self._size(node, child, level), child))
        return raises

    def _size(self, node: int, child: int, level: float) -> float:
        target = self.tree.put_in[child, self.tree.arrays.player[node]]  # type: ignore[index]
        return (float(target) - level) / (2 * level)

    # --- from the tree to the real game ---

    def real_actions(self, reading: LineReading, state: BettingState) -> list[str]:
        """Return the legal real action for each of the tree's actions, in order.

        Actions may coincide, such as sizes below the least raise. If the tree has no decision there is one action: a
        call, or to a bet a fold if the tree's hand ended by a fold.
        """
        node = reading.node
        if not self.decides(reading):
            return ["f" if state.facing and self.folded(node) else "c"]
        return [self.real_action(node, number, state) for number in range(self._count[node])]

    def child(self, node: int, number: int) -> int:
        """Return the child to which action `number` of a decision leads."""
        return self._first[node] + number

    def decides(self, reading: LineReading) -> bool:
        """Return True if the tree has a decision at a reading; otherwise `real_actions` has one action."""
        return reading.node != NOWHERE and self._decides[reading.node]

    def folded(self, node: int) -> bool:
        """Return True if the tree's hand ended by a fold at a node."""
        return node != NOWHERE and self._label[node] == "f"

    def done(self, reading: LineReading, number: int, action: str) -> LineReading:
        """Return the reading after the player to act has taken the tree's action `number` as real `action`."""
        if action == "c" and reading.closed != NOWHERE:
            return LineReading(reading.closed, 1.0)
        return LineReading(self.child(reading.node, number), 1.0)

    def real_action(self, node: int, number: int, state: BettingState) -> str:
        """Return the real action for the tree's action `number` at a decision; see `real_actions`."""
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
