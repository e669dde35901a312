"""Exact reach, EV and equity of all hands at the nodes of a spot under one strategy.

A spot is a game of two players that begins on a given board, with both ranges.  Hands in a player's initial range have
values at every node, also where the strategy never takes them.  Hands that share a card with the board have weight 0.
There are H = 1,326 hands in the order 2d2c, 2h2c, 2h2d, ... AsAh.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.cards import CARD_COUNT
from mccfr.evaluation.hand_values import Below
from mccfr.play.expected_value import hand_ev, range_mean
from mccfr.play.showdown_values import all_run_outs, equity, opponent_weight
from mccfr.policy.strategy_profile import Behaviour
from mccfr.upi.node_names import ROOT, Node, SpotTree

Floats = npt.NDArray[np.float64]
_KEPT = 256  # nodes whose values are cached, 64 kB each
_KEPT_RUN_OUTS = 4  # boards whose run-outs are cached, 9 MB each after a flop
_HELD = 4  # cards in two hands


class HandNumbers(NamedTuple):
    """Values and weights of both players' H = 1,326 hands at a node, each [2, H].

    value   EV in chips or equity of the hand; NaN outside of the initial range, or if no opponent hand is possible.
            It has no meaning for hands that share a card with the board
    weight  reach weight of the hand times the total reach weight of all opponent hands that share no card with it, for
            weighted means
    """

    value: Floats
    weight: Floats


class _Forced(Behaviour):
    """A strategy that takes action number `action` at decision `node`, and follows `source` elsewhere."""

    def __init__(self, source: Behaviour, node: int, action: int) -> None:
        self.game, self._source, self._node, self._action = source.game, source, node, action

    def rows(self, node: int, buckets: npt.NDArray[np.integer]) -> tuple[Floats, Floats]:
        rows, weight = self._source.rows(node, buckets)
        if node == self._node:
            rows[:] = np.arange(rows.shape[1]) == self._action
        return rows, weight


class SpotValues:
    """Computes reach, EV and equity of all H = 1,326 hands under a strategy, at any node of a spot's tree.

    `ev` is the method `_ev` with a cache of its results.
    """

    def __init__(self, tree: SpotTree, source: Behaviour) -> None:
        self._tree, self._source, self._cards = tree, source, tree.cards
        self.ev = lru_cache(_KEPT)(self._ev)
        self._run_outs = lru_cache(_KEPT_RUN_OUTS)(lambda street, board: all_run_outs(tree.cards, street, board))

    def strategy(self, at: Node) -> Floats:
        """Return [A, H] the probability of each action with each hand at a decision.

        It is 0 for hands that share a card with the board.
        """
        street, player = divmod(int(self._tree.tree.arrays.block[at.node]), 2)
        return self._source.rows(at.node, self._cards.bucket_row(street, player, at.board))[0].T

    def reach(self, at: Node) -> Floats:
        """Return [2, H] the weight of each player's hands at a node, by the player's own actions.

        It is the weight in the initial range times the probabilities of these actions.  It is 0 for hands that share a
        card with the board.
        """
        reach = self._cards.reach * self._cards.live(self._tree.street(at), at.board)
        for step in at.steps:
            street, player = divmod(int(self._tree.tree.arrays.block[step.decision]), 2)
            buckets = self._cards.bucket_row(street, player, step.board)
            reach[player] *= self._source.rows(step.decision, buckets)[0][:, step.action]
        return np.asarray(reach)

    def weight(self, at: Node) -> Floats:
        """Return [2, H] each hand's reach weight times the total weight of opponent hands it can meet."""
        reach = self.reach(at)
        return reach * np.stack([opponent_weight(self._cards, other) for other in reach[::-1]])

    def _ev(self, at: Node) -> HandNumbers:
        """Return the EVs and weights of both players' hands at a node.

        An EV is the chips won from the pot, less the chips put in since the root, also before this node.  So a hand's
        EV at its own decision is the mean of its EVs at the children, weighted by the probabilities of the actions.
        """
        node, board, source = at.node, at.board, self._source
        if self._tree.decides(at) is None:  # computed at the decision before it, with this action forced
            step = at.steps[-1]
            node, board, source = step.decision, step.board, _Forced(source, step.decision, step.action)
        reach = self.reach(at)
        live = self._cards.live(self._tree.street(at), at.board)
        below, value = Below(source, self._cards, node), np.full_like(reach, np.nan)
        for player in range(2):
            ranges = reach.copy()
            ranges[player] = self._cards.reach[player] * live
            opposing = np.where(ranges[player] > 0, opponent_weight(self._cards, reach[1 - player]), 0.0)
            if not (ranges.any(axis=1).all() and opposing.any()):
                continue
            won = below.values(below.listed(board, ranges), (player,))[0][player]
            value[player] = hand_ev(won, opposing, self._tree.half)
        return HandNumbers(value, self.weight(at))

    def equity(self, at: Node) -> HandNumbers:
        """Return the equities (0 to 1) of both players' hands at a node, and their weights.

        An equity is the hand's mean share of the pot at a showdown without further bets.
        """
        reach, value = self.reach(at), np.full((2, self._cards.hand_count), np.nan)
        run_outs = self._run_outs(self._tree.street(at), at.board)
        for player in range(2):
            other = reach[1 - player]
            opposing = np.where(self._cards.reach[player] > 0, opponent_weight(self._cards, other), 0.0)
            value[player] = equity(self._cards, run_outs, other, opposing)
        return HandNumbers(value, self.weight(at))

    def frequency(self, at: Node) -> float:
        """Return the probability that both players' actions and the dealt board cards lead to a node."""
        probability = 1.0
        for street in range(self._tree.street(at)):
            probability /= CARD_COUNT - _HELD - self._cards.cards_on(street)
        return float(self.weight(at)[0].sum() / self.weight(Node(ROOT, 0))[0].sum() * probability)


def mean(numbers: HandNumbers, player: int) -> float:
    """Return the weighted mean of `numbers.value` (EVs or equities) over a player's hands.

    Hands whose value is NaN do not count. The mean is NaN if no hand has both a value and a weight above 0.

    player  0 out of position, 1 in position
    """
    found = range_mean(numbers.value[player], numbers.weight[player])
    return float("nan") if found is None else found
