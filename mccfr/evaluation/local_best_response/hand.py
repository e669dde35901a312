"""One hand of LBR against a policy: the policy's range, the responder's actions and the payoffs."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.evaluation.local_best_response.responder_deals import ResponderDeal
from mccfr.evaluation.local_best_response.settings import ResponderBetting, TreePosition
from mccfr.games.line_lookup import NOWHERE, OVER
from mccfr.policy.strategy_profile import Profile
from mccfr.tables.row_tables import BlockReader, expanded_rows
from mccfr.tables.strategy import row_starts

SAME = 1e-9
"""Values that differ by less than this share of the stakes count as equal; the first such action is taken."""
Floats = npt.NDArray[np.float64]
Ranges = dict[TreePosition, Floats]
"""Weights [H] of the policy's hands by position in its tree: probability of hand, translations and actions."""
Choose = Callable[[Sequence[float]], Sequence[tuple[int, float]]]
"""Chooses actions of the policy to follow, from the stakes (chips times weight) of each: (action, factor) pairs."""


def all_of_them(stakes: Sequence[float]) -> list[tuple[int, float]]:
    """Return (action number, factor 1) for all actions, so that each is followed.

    stakes  one for each action; only their number matters
    """
    return [(number, 1.0) for number in range(len(stakes))]


class PolicyRows:
    """Reads a policy's strategy at a node of its tree for all hands of a range at once."""

    def __init__(self, side: Profile) -> None:
        """Prepare to read the policy's tables: large ones in place, small ones copied as probabilities."""
        arrays, strategy = side.game.tree.arrays, side.strategy
        self._block, self._row, self._count = arrays.block.tolist(), arrays.row.tolist(), arrays.count.tolist()
        self._readers = []
        for block, rows in enumerate(strategy.blocks):
            starts = row_starts(side.game, block)
            self._readers.append(BlockReader(expanded_rows(rows, starts), starts))

    def shared_out(self, node: int, deal: ResponderDeal, weight: Floats) -> Floats:
        """Return [A, H] the `weight` [H] of each hand times its probability of each action.

        node  decision of the policy with A actions
        deal  gives the buckets of the hands
        """
        out = np.empty((self._count[node], len(weight)))
        row = self._row[node]
        self._readers[self._block[node]].read(row, row + 1, deal.buckets(), out)
        out *= weight
        return out


class Responder:
    """Local best response in one seat (Lisy & Bowling 2017, algorithm 1).

    The policy's range is a joint distribution of its hand and its position in its tree: its translations are hidden. A
    position is a node to which the policy may have translated the line; `ranges` are weights [H] of hands by position.
    """

    def __init__(self, lines: ResponderBetting, rows: PolicyRows, seat: int, choose: Choose) -> None:
        """Take the betting, the policy and the responder's seat (0 or 1).

        lines   the betting: both players' actions, their translations and the payoffs
        rows    reads the policy's strategy
        choose  gets the stakes of those actions of the policy that do not end the hand; returns (action number,
                factor of its value) of those to follow
        """
        self._lines, self._rows, self._seat, self._choose = lines, rows, seat, choose
        self._sign = 1.0 if seat == 0 else -1.0

    @staticmethod
    def weight(ranges: Ranges) -> Floats:
        """Return [H] weights of the policy's hands, summed over positions in its tree."""
        return sum(ranges.values(), np.zeros(()))

    def play(self, deal: ResponderDeal, weight: Floats) -> float:
        """Return the responder's chips of a hand, summed over the policy's hands by `weight` [H].

        Betting begins at the root; `deal` has the responder's cards and the first street's board.
        """
        state, readings = self._lines.betting.start()
        return self._value(state, {(node, closed): weight for node, _, closed in readings}, deal)

    def _value(self, state: Any, ranges: Ranges, deal: ResponderDeal) -> float:
        """Return the responder's chips of the hand after a state, summed over `ranges`' weights."""
        if state.player == self._seat:
            action = self.best_action(state, ranges, deal)
            return self._follow(state, action, self.ranges_after(ranges, state, action), deal)
        return self._answered(state, ranges, deal)

    def _follow(self, state: Any, action: str, ranges: Ranges, deal: ResponderDeal) -> float:
        """Return the responder's chips of the hand after an action, summed over weights.

        ranges  the policy's after the action; the sum is over their weights
        """
        after = self._lines.apply(state, action)
        if after == OVER:
            return self._chips(self._lines.settled(state, action), sum(ranges.values()), deal)
        if after.street == state.street:
            return self._value(after, ranges, deal)
        return sum(
            self._value(after, {position: weight * factor for position, weight in ranges.items()}, following)
            for following, factor in deal.following
        )

    def _chips(self, paid: tuple[float, float], weight: Any, deal: ResponderDeal) -> float:
        """Return the responder's chips at the end of the betting, summed over policy hands of weights [H].

        paid  player 0's chips independent of the cards, and the chips that the winner of a showdown gets from the loser
        """
        fixed, showdown = paid
        value = self._sign * fixed * weight.sum() if fixed else 0.0
        return float(value + (showdown * (weight @ deal.settlement) if showdown else 0.0))

    def ranges_after(self, ranges: Ranges, state: Any, action: str) -> Ranges:
        """Return the policy's ranges after an action of the responder, over all its translations."""
        updated: Ranges = {}
        for position, weight in ranges.items():
            for after, probability in self._lines.translations_of(position, state, action):
                _add(updated, after, weight if probability == 1 else weight * probability)
        return updated

    # --- the policy's decisions ---

    def answers(self, state: Any, ranges: Ranges, deal: ResponderDeal) -> dict[str, Ranges]:
        """Return {the policy's real action: its ranges after it}, not normalised (Bayes' rule)."""
        actions: dict[str, Ranges] = {}
        for position, weight in ranges.items():
            answers = self._lines.answers(position, state)
            alone = position[0] == NOWHERE or not self._lines.decides[position[0]]
            shares = [weight] if alone else self._rows.shared_out(position[0], deal, weight)
            for (action, after), share in zip(answers, shares, strict=True):
                _add(actions.setdefault(action, {}), after, share)
        return actions

    def _answered(self, state: Any, ranges: Ranges, deal: ResponderDeal) -> float:
        """Return the responder's chips after a decision of the policy, summed over weights.

        Actions that end the hand all count; of the others, those that `choose` selects.
        """
        value, going_on = 0.0, []
        for action, after_action in self.answers(state, ranges, deal).items():
            total = sum(float(weight.sum()) for weight in after_action.values())
            if total <= 0:
                continue
            after = self._lines.apply(state, action)
            if after == OVER:
                value += self._follow(state, action, after_action, deal)
            else:
                going_on.append((action, after_action, total * after.to_call))
        if not going_on:
            return value
        for number, factor in self._choose([chips for _, _, chips in going_on]):
            action, after_action, _ = going_on[number]
            value += factor * self._follow(state, action, after_action, deal)
        return value

    # --- the responder's decisions ---

    def best_action(self, state: Any, ranges: Ranges, deal: ResponderDeal) -> str:
        """Return the action of the highest value; the first of equal ones."""
        legal = self._lines.actions(state)
        if len(legal) == 1:
            return str(legal[0])
        best, chosen = -np.inf, ""
        for action, value, apart in self.values(state, ranges, deal):
            if value > best + apart:
                best, chosen = value, action
        return chosen

    def values(self, state: Any, ranges: Ranges, deal: Any) -> Iterator[tuple[str, Any, Any]]:
        """Yield (action, value, tolerance): a later action must exceed the best value by its tolerance.

        The value assumes that both players only check and call after the action and the answer to it. It is in chips
        of the whole hand, times the weight of the ranges; a scalar for one hand, or an array over hands.
        """
        whole = self.weight(ranges)
        total, won = deal.opponent_weight(whole), deal.won(whole)
        cache: dict[tuple[TreePosition, int], tuple[Any, Any]] = {}
        for action in self._lines.actions(state):
            if action == "f":
                yield action, self._sign * self._lines.folded(state) * total, SAME * total
                continue
            after = state if action == "c" else self._lines.apply(state, action)
            fixed, stake = self._lines.checked_down(after)
            value = self._sign * fixed * total + stake * won
            if action != "c":
                folded, folded_won = self._folding(state, action, ranges, deal, cache)
                value = value + self._sign * (self._lines.folded(after) - fixed) * folded - stake * folded_won
            yield str(action), value, SAME * (1 + stake) * total

    def _folding(
        self, state: Any, action: str, ranges: Ranges, deal: Any, cache: dict[tuple[TreePosition, int], tuple[Any, Any]]
    ) -> tuple[Any, Any]:
        """Return two weights of the policy's hands that fold to a bet (`action`) of the responder.

        They are the total, and the weight that the responder would beat at a showdown minus that which would beat it.

        cache  both results by the policy's position and the node to which it translates the bet; filled in place
        """
        folded, won = 0.0, 0.0
        for position, weight in ranges.items():
            for (node, _), probability in self._lines.translations_of(position, state, action):
                if (position, node) not in cache:
                    number = self._lines.fold_of(node)
                    share = weight if self._lines.gives_up(node) else np.zeros(len(weight))
                    if number is not None:
                        share = self._rows.shared_out(node, deal, weight)[number]
                    cache[position, node] = deal.opponent_weight(share), deal.won(share)
                folded = folded + probability * cache[position, node][0]
                won = won + probability * cache[position, node][1]
        return folded, won


def _add(ranges: Ranges, tree_node: TreePosition, weight: Floats) -> None:
    """Add weights [H] of hands to a tree position's entry in `ranges`, in place."""
    ranges[tree_node] = ranges[tree_node] + weight if tree_node in ranges else weight
