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
"""Weights [H] of the policy's hands by position in its tree: probability of hand, translations and own actions."""
Choose = Callable[[Sequence[float]], Sequence[tuple[int, float]]]
"""Chooses actions of the policy to follow, from the stakes (chips times weight) of each: (index, factor) pairs."""


def all_of_them(stakes: Sequence[float]) -> list[tuple[int, float]]:
    """Return [(action number, factor 1)] for all actions, so that none is left out by sampling.

    stakes  one number for each action; only their count matters
    """
    return [(number, 1.0) for number in range(len(stakes))]


class PolicyRows:
    """Reads a policy's strategy at a node of its tree for all hands that it may hold, at once."""

    def __init__(self, side: Profile) -> None:
        """Prepare to read a policy's strategy tables.

        Large tables are read in place; small ones are copied as probabilities.

        side  the policy's game and strategy
        """
        arrays, strategy = side.game.tree.arrays, side.strategy
        self._block, self._row, self._count = arrays.block.tolist(), arrays.row.tolist(), arrays.count.tolist()
        self._readers = []
        for block, rows in enumerate(strategy.blocks):
            starts = row_starts(side.game, block)
            self._readers.append(BlockReader(expanded_rows(rows, starts), starts))

    def shared_out(self, node: int, deal: ResponderDeal, weight: Floats) -> Floats:
        """Return [A, H] each hand's weight times its probability of each action.

        node    number of the decision in the policy's tree; A actions
        deal    gives the buckets of the hands
        weight  [H] weights of the policy's hands
        """
        out = np.empty((self._count[node], len(weight)))
        row = self._row[node]
        self._readers[self._block[node]].read(row, row + 1, deal.buckets(), out)
        out *= weight
        return out


class Responder:
    """Local best response in one seat (Lisy & Bowling 2017, algorithm 1).

    A bet that the policy's tree lacks is translated at random to an action of the tree, and the responder does not see
    which. So a line of real betting may stand for several tree nodes, called positions. The policy's range, `ranges` in
    the methods, is {position: weights [H] of its hands}.
    """

    def __init__(self, lines: ResponderBetting, rows: PolicyRows, seat: int, choose: Choose) -> None:
        """Take the betting, the policy and the responder's seat (0 or 1).

        lines   the rules of the betting, with the policy's translations and the payoffs
        rows    reads the policy's strategy
        choose  chooses which actions of the policy are followed, among those that do not end the hand. It gets the
                stakes of each, chips times weight, and returns (index, factor for the value) of those chosen
        """
        self._lines, self._rows, self._seat, self._choose = lines, rows, seat, choose
        self._sign = 1.0 if seat == 0 else -1.0

    @staticmethod
    def weight(ranges: Ranges) -> Floats:
        """Return [H] weights of the policy's hands, summed over the positions of `ranges`."""
        return sum(ranges.values(), np.zeros(()))

    def play(self, deal: ResponderDeal, weight: Floats) -> float:
        """Play one hand of poker; return the responder's chips, summed over the policy's hands by weight.

        deal    the responder's hand and the first street's board
        weight  [H] weights of the policy's hands at the beginning
        """
        state, readings = self._lines.betting.start()
        return self._value(state, {(node, closed): weight for node, _, closed in readings}, deal)

    def _value(self, state: Any, ranges: Ranges, deal: ResponderDeal) -> float:
        """Return the responder's chips if both players act by their strategies from a state to the end.

        The responder takes `best_action` at its decisions; the policy plays its own probabilities. Chips count the
        whole hand of poker. They are summed over the policy's hands by weight, which is not normalised. If `choose` of
        the constructor samples the policy's actions, the result is an estimate.

        state   real betting at a decision of either player
        ranges  the policy's {position: weights [H] of its hands}
        deal    the responder's hand and the board of the state's street
        """
        if state.player == self._seat:
            action = self.best_action(state, ranges, deal)
            return self._follow(state, action, self.ranges_after(ranges, state, action), deal)
        return self._answered(state, ranges, deal)

    def _follow(self, state: Any, action: str, ranges: Ranges, deal: ResponderDeal) -> float:
        """Return the responder's chips after an action, if both players then act by their strategies.

        They are summed over the policy's hands by weight, as in `_value`.

        state   real betting before the action
        action  an action of either player, such as "c" or "r300"
        ranges  the policy's {position: weights [H] of its hands} after the action
        deal    the responder's hand and the board before the action; later boards come from `deal.following`
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
        """Return the responder's chips at the end of the betting, summed over hands by weight.

        paid    (player 0's chips independent of the cards, chips that the winner of a showdown gets from the loser)
        weight  [H] weights of the policy's hands
        deal    the responder's hand and the board of the last street with betting
        """
        fixed, showdown = paid
        value = self._sign * fixed * weight.sum() if fixed else 0.0
        return float(value + (showdown * (weight @ deal.settlement) if showdown else 0.0))

    def ranges_after(self, ranges: Ranges, state: Any, action: str) -> Ranges:
        """Return the policy's {position: weights [H] of hands} after an action of the responder.

        If the policy's tree lacks the action, each of its translations gives a node, weighted by its probability.

        ranges  the same before the action
        state   real betting before the action
        action  the responder's action, such as "r300"
        """
        updated: Ranges = {}
        for position, weight in ranges.items():
            for after, probability in self._lines.translations_of(position, state, action):
                _add(updated, after, weight if probability == 1 else weight * probability)
        return updated

    # --- the policy's decisions ---

    def answers(self, state: Any, ranges: Ranges, deal: ResponderDeal) -> dict[str, Ranges]:
        """Return {action: {position after it: weights [H] of the hands that take it}} of the policy.

        Actions have real chips, such as "r300". Weights are those of the hands times the probability of the action.

        state   real betting at a decision of the policy
        ranges  the policy's {position: weights [H] of its hands} there
        deal    gives the buckets of the hands on the street's board
        """
        actions: dict[str, Ranges] = {}
        for position, weight in ranges.items():
            answers = self._lines.answers(position, state)
            alone = position[0] == NOWHERE or not self._lines.decides[position[0]]
            shares = [weight] if alone else self._rows.shared_out(position[0], deal, weight)
            for (action, after), share in zip(answers, shares, strict=True):
                _add(actions.setdefault(action, {}), after, share)
        return actions

    def _answered(self, state: Any, ranges: Ranges, deal: ResponderDeal) -> float:
        """Return the responder's chips from a decision of the policy on, summed by weight.

        The policy's actions that end the hand all count. Of its other actions only the chosen ones are followed, and
        their values multiplied by a factor (`choose` of the constructor).

        state   real betting at the policy's decision
        ranges  the policy's {position: weights [H] of its hands} there
        deal    the responder's hand and the street's board
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
        """Return the responder's legal action of highest value (`values`); the first of equal ones.

        state   real betting at a decision of the responder
        ranges  the policy's {position: weights [H] of its hands} there
        deal    the responder's hand and the street's board
        """
        legal = self._lines.actions(state)
        if len(legal) == 1:
            return str(legal[0])
        best, chosen = -np.inf, ""
        for action, value, apart in self.values(state, ranges, deal):
            if value > best + apart:
                best, chosen = value, action
        return chosen

    def values(self, state: Any, ranges: Ranges, deal: Any) -> Iterator[tuple[str, Any, Any]]:
        """Yield for each action of the responder (action, value, tolerance).

        A value assumes that the policy answers the action by its strategy, and that both players only check and call
        afterwards. It is chips of the whole hand, summed over the policy's hands by weight. An action is better than an
        earlier one only if its value is larger by more than the tolerance.

        Values are numbers, or arrays over the responder's hands where the responder plays all its hands at once.

        state   real betting at a decision of the responder
        ranges  the policy's {position: weights [H] of its hands} there
        deal    the responder's hand and the street's board
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
        """Return how much of the policy's range folds to a bet of the responder, as two weights.

        The first is the folding weight. The second is the part of it that the responder would beat at a showdown, minus
        the part that would beat the responder.

        state   real betting before the bet
        action  the bet, such as r300
        ranges  the policy's {position: weights [H] of its hands} before the bet
        deal    the responder's hand and the street's board
        cache   {(position before the bet, node to which it is translated): both weights}, filled in place
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
    """Add weights of hands to those already in a range at a tree node, in place.

    ranges     {position: weights [H]}
    tree_node  node to which the weights are added
    weight     [H] weights to add
    """
    ranges[tree_node] = ranges[tree_node] + weight if tree_node in ranges else weight
