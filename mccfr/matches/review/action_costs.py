"""EV loss of each action of one hand at a decision, if both players continue by the policy.

The opponent holds each hand of its range with a weight; EVs are means over these hands. From the turn on the result is
exact, since every river is evaluated. Earlier, full boards are drawn. The best action is chosen on one half of the
boards, and its EV and the others' are computed on the other half; then the halves change roles. So the random choice
of boards makes no action look costly: the expected value of the estimate is at most the true loss. Before the flop,
hands that differ by suits only, such as all AKs, share a result.
"""

from collections import OrderedDict, defaultdict
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.boards import preflop_classes
from abstraction.cards import CARD_COUNT
from mccfr.cards.card_index import Board, IndexedCards
from mccfr.common.intervals import ratio95
from mccfr.common.rng import EVALUATION, new_stream
from mccfr.evaluation.hand_values import Below, reaches
from mccfr.policy.strategy_profile import Behaviour

Floats = npt.NDArray[np.float64]
LEAST_BOARDS = 4
PREFLOP_TIMES = 8
"""Factor on the number of boards before the flop, walked once for all hands and lines."""
_STREAM = 4
"""Worker number of the random stream for boards; deals, run-outs, players and `hand_values` use others."""
_KEPT_LINES, _KEPT_NODES = 256, 2048
_LEAST_MET = 1e-12  # of the largest weight: smaller weights are rounding errors of a true 0


class ActionCosts(NamedTuple):
    """EV losses of a decision's actions, in chips of the policy's tree.

    cost    [A] EV of the best action minus that of each action; estimates may be below 0
    ci95    [A, 2] 95 % intervals of `cost`; None if it is exact
    boards  number of boards on which the EVs were computed
    """

    cost: Floats
    ci95: Floats | None
    boards: int


class DecisionCosts:
    """Computes EV losses at any decision of a policy of full-deck hold'em for two players.

    H is the number of hands, A that of the decision's actions.
    """

    def __init__(self, source: Behaviour, dealing: IndexedCards, boards: int, seed: int = 0) -> None:
        """Take the policy and its cards.

        source   the policy's strategy, with its game
        dealing  the game's hands and boards
        boards   number of full boards to draw for a decision on the flop, at least 4 (`LEAST_BOARDS`); before the flop
                 eight times as many are drawn
        seed     of the drawn boards

        Raises `ValueError` for too few boards.
        """
        if boards < LEAST_BOARDS:
            raise ValueError(f"boards = {boards}: at least {LEAST_BOARDS} are needed, for an interval")
        self._source, self._dealing, self._boards, self._seed = source, dealing, boards, seed
        self._below = lru_cache(_KEPT_NODES)(lambda node: Below(source, dealing, node))
        self._kept: OrderedDict[tuple[int, bytes], tuple[Floats, Floats]] = OrderedDict()
        self._class = preflop_classes()

    def costs(self, node: int, board: Board, hand: int, other: Floats) -> ActionCosts | None:
        """Return the EV loss of each action at a decision; None if no opposing hand is possible.

        The result is also None if boards are drawn and no opposing hand is possible on one half of them.

        node   of the decision in the policy's tree
        board  all board cards of the decision's street
        hand   index of the player's hand
        other  [H] weights of the opponent's hands
        """
        below = self._below(node)
        reach = np.zeros((2, self._dealing.hand_count))
        reach[below.player, hand], reach[1 - below.player] = 1.0, other
        if below.cards_to_come <= 1:
            cards = below.listed(board, reach) if below.cards_to_come else below.on_board(board, reach)
            _, action, weight = below.values(cards, (below.player,))
            faced = float(weight[below.player, hand])
            if not faced > _LEAST_MET * other.max(initial=0):
                return None
            ev = action[:, hand] / faced
            return ActionCosts(ev.max() - ev, None, len(cards.board_cards[-1]))
        sampled = self._on_flop(below, board, hand, reach) if board else self._before_flop(below, node, other, hand)
        return _cross_validated(*sampled)

    def _on_flop(self, below: Below, board: Board, hand: int, reach: Floats) -> tuple[Floats, Floats]:
        """Return, for n drawn boards, [n, A] each action's weighted chips and [n] the weight.

        The weight is the total weight of the opponent's hands that share no card with the player's hand or the board.
        The chips are the player's mean winnings against these hands after the action, times the weight.

        below  computes the values of the subtree below the decision
        hand   index of the player's hand
        reach  [2, H] weights of both players' hands
        """
        held = self._dealing.hand_cards[hand].tolist()
        won, weights = [], []
        for number in range(self._boards):
            _, action, weight = below.values(below.on_board(self._drawn(number, board, held), reach), (below.player,))
            won.append(action[:, hand])
            weights.append(weight[below.player, hand])
        return np.array(won), np.array(weights)

    def _before_flop(self, below: Below, node: int, other: Floats, hand: int) -> tuple[Floats, Floats]:
        """Return, for n drawn boards, [n, A] each action's weighted chips and [n] the weight.

        The decision is before the flop. Weight and weighted chips are those of `_on_flop`, summed over all hands of the
        player's preflop class, such as AKs. All 169 classes are computed together and cached.

        below  computes the values of the subtree below the decision
        node   number of the decision in the policy's tree
        other  [H] weights of the opponent's hands
        hand   index of the player's hand
        """
        key = node, other.tobytes()
        if not self._kept:
            self._walk_lines()
        if key not in self._kept:
            reach = np.ones((2, len(other)))
            reach[1 - below.player] = other
            won, weights = [], []
            for number in range(PREFLOP_TIMES * self._boards):
                _, action, weight = below.values(below.on_board(self._drawn(number, (), []), reach), (below.player,))
                won.append([np.bincount(self._class, row) for row in action])
                weights.append(np.bincount(self._class, weight[below.player]))
            self._kept[key] = np.array(won), np.array(weights)
            if len(self._kept) > _KEPT_LINES:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        every, weight = self._kept[key]
        return every[:, :, self._class[hand]], weight[:, self._class[hand]]

    def _walk_lines(self) -> None:
        """Compute and cache the actions' values at all preflop decisions, on the same boards.

        The boards are drawn. At each decision the opponent has the range with which the policy reaches it.
        """
        below, hands = self._below(0), self._dealing.hand_count
        reach = reaches(self._source, self._dealing, [()])
        won, weights = defaultdict[int, list[Any]](list), defaultdict[int, list[Any]](list)
        for number in range(PREFLOP_TIMES * self._boards):
            cards = below.on_board(self._drawn(number, (), []), np.ones((2, hands)))
            live = cards.reach[0] > 0
            for node, player, action in below.by_decision(cards):
                weight = self._dealing.disjoint_weight(np.where(live, reach[node][1 - player], 0.0))
                won[node].append([np.bincount(self._class, row) for row in action])
                weights[node].append(np.bincount(self._class, np.where(live, np.maximum(weight, 0), 0)))
        for node, found in won.items():
            other = reach[node][1 - int(self._source.game.tree.arrays.player[node])]
            self._kept[node, other.tobytes()] = np.array(found), np.array(weights[node])

    def _drawn(self, number: int, board: Board, held: list[int]) -> tuple[int, ...]:
        """Return drawn full board `number`, from 0: five cards, first those of `board`, none of `held`.

        The number and the seed determine the random draw.
        """
        rng = np.random.default_rng(new_stream(self._seed, _STREAM, EVALUATION, number).tolist())
        left = [card for card in range(CARD_COUNT) if card not in board and card not in held]
        return (*board, *rng.choice(left, 5 - len(board), replace=False).tolist())


def _cross_validated(won: Floats, weights: Floats) -> ActionCosts | None:
    """Return EV losses from n drawn boards, by cross-validation on two halves of the boards.

    On each half, an action's loss is measured against the action that is best on the other half. Returns None if a half
    has no weight.

    won      [n, A] chips won after each action, times opposing weight
    weights  [n] opposing weight: total of the opponent's hands that share no card with the player's hand or the board
    """
    half = np.arange(len(won)) % 2 == 0
    if not (weights[half].any() and weights[~half].any()):
        return None
    best = np.where(half, won[~half].sum(axis=0).argmax(), won[half].sum(axis=0).argmax())
    lost = won[np.arange(len(won)), best][:, None] - won
    intervals = [ratio95(each, weights) for each in lost.T]
    return ActionCosts(np.array([one for one, _ in intervals]), np.array([ends for _, ends in intervals]), len(won))
