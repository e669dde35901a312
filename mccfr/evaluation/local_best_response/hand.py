"""One hand of local best response against a policy: who holds what, what the responder does, what it pays."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.evaluation.local_best_response.dealt import ResponderDeal
from mccfr.evaluation.local_best_response.kernels import shared_out
from mccfr.evaluation.local_best_response.settings import Place, ResponderBetting
from mccfr.games.reading import NOWHERE, OVER
from mccfr.policy.profile import Profile
from mccfr.tables.row_tables import near_rows, row_tables
from mccfr.tables.strategy import row_starts

SAME = 1e-9
"""Values that differ by less, as a share of what is at stake, are one: the first such action is taken."""
_NEAR_BLOCKS = 8  # as head-to-head has it, so that the kernel is compiled once
Floats = npt.NDArray[np.float64]
Ranges = dict[Place, Floats]
"""Where the policy may be in its tree, and the weight [H] of each of its hands there: the probability of the hand, of
the policy's own draws on the way, and of its actions."""
Choose = Callable[[Sequence[float]], Sequence[tuple[int, float]]]
"""Of what is at stake after each of the policy's actions, chips times weight: which are followed, and by how much each
then counts for more."""


def all_of_them(stakes: Sequence[float]) -> list[tuple[int, float]]:
    """Every action, as it is."""
    return [(number, 1.0) for number in range(len(stakes))]


class PolicyRows:
    """A policy's strategy at a node of its tree, for a whole range."""

    def __init__(self, side: Profile) -> None:
        """Of a policy; its rows are read where they lie."""
        arrays, strategy = side.game.tree.arrays, side.strategy
        self._block, self._row, self._count = arrays.block.tolist(), arrays.row.tolist(), arrays.count.tolist()
        self._tables = []
        for block, rows in enumerate(strategy.blocks):
            starts = row_starts(side.game, block)
            self._tables.append(row_tables([near_rows(rows, starts, _NEAR_BLOCKS)], [starts], 1))

    def shared_out(self, node: int, dealt: ResponderDeal, weight: Floats) -> Floats:
        """[A, H] weight of each hand times its probability of each action of a node."""
        out = np.empty((self._count[node], len(weight)))
        shared_out(self._tables[self._block[node]], self._row[node], dealt.buckets(), weight, out)
        return out


class Responder:
    """Local best response in one seat (Lisy & Bowling 2017, algorithm 1).

    The policy's range is a joint distribution of its hand and of where it is in its tree: what its translation draws is
    hidden from the responder as its cards are.
    """

    def __init__(self, lines: ResponderBetting, rows: PolicyRows, seat: int, choose: Choose) -> None:
        """`choose` says which of the policy's actions are followed, where the hand goes on after them."""
        self._lines, self._rows, self._seat, self._choose = lines, rows, seat, choose
        self._sign = 1.0 if seat == 0 else -1.0

    @staticmethod
    def weight(ranges: Ranges) -> Floats:
        """[H] weights of the policy's hands, wherever it is."""
        return sum(ranges.values(), np.zeros(()))

    def play(self, dealt: ResponderDeal, weight: Floats) -> float:
        """Chips that the responder gets from `dealt` on, where the policy's hands have weights [H]."""
        state, readings = self._lines.betting.start()
        return self._value(state, {(node, closed): weight for node, _, closed in readings}, dealt)

    def _value(self, state: Any, ranges: Ranges, dealt: ResponderDeal) -> float:
        """Chips from a decision on, times the weight of the ranges."""
        if state.player == self._seat:
            action = self.best_action(state, ranges, dealt)
            return self._follow(state, action, self.taken_for(ranges, state, action), dealt)
        return self._answered(state, ranges, dealt)

    def _follow(self, state: Any, action: str, ranges: Ranges, dealt: ResponderDeal) -> float:
        """The same after an action."""
        after = self._lines.apply(state, action)
        if after == OVER:
            return self._chips(self._lines.settled(state, action), sum(ranges.values()), dealt)
        if after.street == state.street:
            return self._value(after, ranges, dealt)
        return sum(
            self._value(after, {place: weight * factor for place, weight in ranges.items()}, following)
            for following, factor in dealt.following
        )

    def _chips(self, paid: tuple[float, float], weight: Any, dealt: ResponderDeal) -> float:
        """Chips at the end of the betting against hands of weights [H]."""
        fixed, showdown = paid
        value = self._sign * fixed * weight.sum() if fixed else 0.0
        return float(value + (showdown * (weight @ dealt.settlement) if showdown else 0.0))

    def taken_for(self, ranges: Ranges, state: Any, action: str) -> Ranges:
        """The policy's ranges after an action of the responder's, which it may take for several of its tree's."""
        found: Ranges = {}
        for place, weight in ranges.items():
            for after, probability in self._lines.taken_for(place, state, action):
                _add(found, after, weight if probability == 1 else weight * probability)
        return found

    # --- the policy's decisions ---

    def answers(self, state: Any, ranges: Ranges, dealt: ResponderDeal) -> dict[str, Ranges]:
        """The policy's ranges after each real action that it may take, by Bayes' rule not yet divided by their sum."""
        actions: dict[str, Ranges] = {}
        for place, weight in ranges.items():
            answers = self._lines.answers(place, state)
            alone = place[0] == NOWHERE or not self._lines.decides[place[0]]
            shares = [weight] if alone else self._rows.shared_out(place[0], dealt, weight)
            for (action, after), share in zip(answers, shares, strict=True):
                _add(actions.setdefault(action, {}), after, share)
        return actions

    def _answered(self, state: Any, ranges: Ranges, dealt: ResponderDeal) -> float:
        """What the policy's actions lead to: those that end the hand all, the others as `choose` has them."""
        value, going_on = 0.0, []
        for action, found in self.answers(state, ranges, dealt).items():
            total = sum(float(weight.sum()) for weight in found.values())
            if total <= 0:
                continue
            after = self._lines.apply(state, action)
            if after == OVER:
                value += self._follow(state, action, found, dealt)
            else:
                going_on.append((action, found, total * after.to_call))
        if not going_on:
            return value
        for number, factor in self._choose([chips for _, _, chips in going_on]):
            action, found, _ = going_on[number]
            value += factor * self._follow(state, action, found, dealt)
        return value

    # --- the responder's decisions ---

    def best_action(self, state: Any, ranges: Ranges, dealt: ResponderDeal) -> str:
        """The action of the highest value; of actions of one value the first."""
        legal = self._lines.actions(state)
        if len(legal) == 1:
            return str(legal[0])
        best, chosen = -np.inf, ""
        for action, value, apart in self.values(state, ranges, dealt):
            if value > best + apart:
                best, chosen = value, action
        return chosen

    def values(self, state: Any, ranges: Ranges, dealt: Any) -> Iterator[tuple[str, Any, Any]]:
        """Of each action: its value if both players only check and call after it, and after the answer to it, and what
        a higher value must be above it by.

        Chips are those of the whole hand, times the weight of the ranges, of one hand of the responder or of each.
        """
        whole = self.weight(ranges)
        total, won = dealt.met(whole), dealt.won(whole)
        known: dict[tuple[Place, int], tuple[Any, Any]] = {}
        for action in self._lines.actions(state):
            if action == "f":
                yield action, self._sign * self._lines.folded(state) * total, SAME * total
                continue
            after = state if action == "c" else self._lines.apply(state, action)
            fixed, stake = self._lines.checked_down(after)
            value = self._sign * fixed * total + stake * won
            if action != "c":
                folded, folded_won = self._folding(state, action, ranges, dealt, known)
                value = value + self._sign * (self._lines.folded(after) - fixed) * folded - stake * folded_won
            yield str(action), value, SAME * (1 + stake) * total

    def _folding(
        self, state: Any, action: str, ranges: Ranges, dealt: Any, known: dict[tuple[Place, int], tuple[Any, Any]]
    ) -> tuple[Any, Any]:
        """(weight of what folds to a bet, what is won from it at showdown less what is lost); `known` remembers it."""
        folded, won = 0.0, 0.0
        for place, weight in ranges.items():
            for (node, _), probability in self._lines.taken_for(place, state, action):
                if (place, node) not in known:
                    number = self._lines.fold_of(node)
                    share = np.zeros(len(weight))
                    if number is not None:
                        share = self._rows.shared_out(node, dealt, weight)[number]
                    known[place, node] = dealt.met(share), dealt.won(share)
                folded = folded + probability * known[place, node][0]
                won = won + probability * known[place, node][1]
        return folded, won


def _add(ranges: Ranges, place: Place, weight: Floats) -> None:
    """Add weights [H] to those of a place."""
    ranges[place] = ranges[place] + weight if place in ranges else weight
