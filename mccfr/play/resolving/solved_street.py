"""Spots and streets of a real hand, solved again from both players' ranges, for study and reviews.

For a review the rest of the hand is solved from the first decision of the street, for study from any decision. Its tree
has default bet sizes and the bets that were really made, so no bet is mapped to another. Both players' ranges are taken
as given (unsafe re-solving: Ganzfried & Sandholm 2015, "Endgame solving in large imperfect-information games"). After a
flop the solver finds one player's strategy at a time (`mccfr.play.resolving.solve`), so it runs once for each player.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from abstraction.cards import card_mask, combo_masks
from mccfr.cards.base import Cards
from mccfr.games.betting import BettingRules, BettingState
from mccfr.play.resolving.real_endgame import MENU, TURN_MENU, endgame
from mccfr.play.resolving.resolving_spot import Spot
from mccfr.play.resolving.resolving_table import EFFORT, STREETS, VARIANT
from mccfr.play.resolving.solve import Effort, resolve
from mccfr.play.showdown_values import opponent_weight, per_weight
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.merged_rows import in_dtype

Floats = npt.NDArray[np.float64]
Acted = tuple[BettingState, str]
FLOP = Effort(iterations=100)
"""Effort for each player after a flop: five seconds of processor time for both."""
_MERGED_STREETS = 3
"""Streets from the flop on: too many boards for lossless buckets."""


class SolvedSpot:
    """The rest of a real hand of poker, solved for both players; their ranges where it begins are given.

    actions  actions at the first decision: `c`, `f`, or `rN` with N chips put in over the whole hand
    """

    def __init__(
        self,
        rules: BettingRules,
        state: BettingState,
        board: Sequence[int],
        ranges: Floats,
        cards: Cards,
        real_bets: Mapping[BettingState, set[float]] = MappingProxyType({}),
        effort: Effort | None = None,
    ) -> None:
        """Solve the rest of a hand from one decision on.

        rules      betting rules of two players
        state      betting state at the decision
        board      all cards of the state's street
        ranges     [2, 1326] weights of both players' hands there
        cards      cards of the whole game, whose buckets are used on later streets if the board is a flop
        real_bets  {betting state: amounts} of bets made in the real hand, which the tree has beside the default sizes.
                   An amount is the chips put in over the whole hand. `street` of these states is 0 on this street
        effort     when to stop; None: the default of the street

        Raises `ValueError` if a range is empty, or no two hands are possible together.
        """
        live = (combo_masks() & np.uint64(card_mask(board))) == 0
        self.first, self.ranges = state, np.where(live, ranges, 0.0)
        met = opponent_weight(cards.at_table(), self.ranges[0])
        if not (self.ranges[1] * met).any():
            raise ValueError("the strategies never reach this decision: there are no ranges to solve for")
        menu = MENU if state.street == rules.streets - 1 else TURN_MENU
        self.game = endgame(rules, state, board, menu, self.ranges > 0, cards, real_bets)
        self.spot = Spot(self.game, 0, 0, merged=self.game.tree.streets == _MERGED_STREETS)
        usual = FLOP if self.spot.merged else EFFORT[STREETS[self.game.tree.streets - 1]]
        found = [
            resolve(self.spot, player, self.ranges, None, "unsafe", effort or usual, variant=VARIANT)
            for player in ((0, 1) if self.spot.merged else (0,))
        ]
        blocks = range(len(found[0].tables))
        self.tables = [found[block % 2 if self.spot.merged else 0].tables[block].astype(np.float64) for block in blocks]
        self._found = found[0]
        self.actions = self.actions_at(0)

    @property
    def gap_chips(self) -> float:
        """NashConv of the solution in chips per hand; NaN after a flop, where it is not computed."""
        return nan if self.spot.merged else self._found.gap_chips

    def actions_at(self, node: int) -> list[str]:
        """Return the actions at decision `node` of the subgame's tree.

        They are `c`, `f` or `rN`, with N chips put in over the whole hand.
        """
        return [self.game.tree.label[child] for child in self.game.tree.children(node)]

    def played(self, node: int = 0) -> Floats:
        """Return [A, 1326] the solution's action probabilities at a decision of the first street.

        They are 0 for hands that share a card with the board, and for hands outside the range.

        node  number of the decision in the subgame's tree; 0 is the first one
        """
        return _rows(self.spot, self.tables, node)

    def won(self, nodes: Sequence[int] = (0,)) -> list[Floats]:
        """Return for each of `nodes` [A, 1326] counterfactual values of each action and hand.

        nodes  decisions of the first street

        A value is the chips that the player to act wins over the whole hand of poker. They are summed over the opposing
        hands, with their weights at the decision. Both players follow the solution. Exact on all boards.
        """
        return _values(self.spot, self.tables, self.ranges, nodes)

    def opposing(self, player: int, ranges: Floats) -> Floats:
        """Return [1326] for each hand of `player` the weight of opposing hands that share no card with it.

        It is 0 for hands outside of the player's range where the subgame begins.

        ranges  [2, 1326] weights of both players' hands at a decision of the subgame
        """
        other = opponent_weight(self.spot.dealing, ranges[1 - player])
        return np.where(self.ranges[player] > 0, other, 0.0)


class SolvedStreet:
    """Solution of one street of a real hand, at each decision that was reached there, in order.

    actions  for each decision a list of `c`, `f` or `rN`, with N chips put in over the whole hand
    played   for each decision [A, 1326] the solution's action probabilities
    values   for each decision [A, 1326] mean net chips that the player to act wins over the whole hand of poker, by
             action and hand, if both players follow the solution. Exact on all boards; NaN for hands outside of the
             range at the first decision, and hands without opposing hands
    ranges   [2, 1326] weights of both players' hands after the last action
    """

    def __init__(
        self, rules: BettingRules, acted: Sequence[Acted], board: Sequence[int], ranges: Floats, cards: Cards
    ) -> None:
        """Solve the rest of the hand from a street on, and evaluate the street's decisions.

        rules   betting rules of two players
        acted   (state before, action) of the street's actions, from its first decision on
        board   all board cards of the street
        ranges  [2, 1326] weights of both players' hands at the first decision
        cards   cards of the whole game, whose buckets are used on later streets if the board is a flop

        Raises `ValueError` if a range is empty, or no two hands are possible together.
        """
        first = acted[0][0]
        real_bets = defaultdict[BettingState, set[float]](set)
        for state, action in acted:
            if action[0] == "r":
                real_bets[state._replace(street=state.street - first.street)].add(float(action[1:]))
        solved = SolvedSpot(rules, first, board, ranges, cards, real_bets)
        self.actions, self.played, self.values = list[list[str]](), list[Floats](), list[Floats]()
        nodes, node = list[int](), 0
        for _, action in acted:
            nodes.append(node)
            self.actions.append(solved.actions_at(node))
            node = int(solved.game.tree.arrays.first[node]) + self.actions[-1].index(action)
        self.ranges = solved.ranges
        for (state, action), node, labels, won in zip(acted, nodes, self.actions, solved.won(nodes), strict=True):
            self.values.append(per_weight(won, solved.opposing(state.player, self.ranges)))
            self.played.append(solved.played(node))
            left = self.ranges.copy()
            left[state.player] *= self.played[-1][labels.index(action)]
            self.ranges = left if left[state.player].any() else self.ranges


def _values(spot: Spot, tables: Sequence[Floats], ranges: Floats, nodes: Sequence[int]) -> list[Floats]:
    """Return for each of `nodes` [A, 1326] counterfactual values of the player to act.

    A value is chips won, summed over the opposing hands with their weights at the decision.

    spot    the subgame
    tables  strategies of both players, [slots, buckets] for each block (street and player)
    ranges  [2, 1326] weights of both players' hands at the subgame's root
    nodes   decisions of the subgame's first street
    """
    dtype: type[np.floating] = np.float32 if spot.merged else np.float64
    game = replace(spot.game, cards=replace(spot.game.listed_cards(), reach=ranges))
    public, rows = in_dtype(spot.public, dtype), [table.astype(dtype) for table in tables]
    walk = Walk(public._replace(reach=ranges.astype(dtype)), rows)
    values = [walk.hand_values(game, player, nodes).actions for player in range(2)]
    actor = spot.game.tree.arrays.player
    return [values[int(actor[node])][position].astype(np.float64) for position, node in enumerate(nodes)]


def _rows(spot: Spot, tables: Sequence[Floats], node: int) -> Floats:
    """Return [A, 1326] a strategy's action probabilities at decision `node` of the first street.

    They are 0 for hands without a bucket, such as those that share a card with the board.

    spot    the subgame
    tables  the strategy, [slots, buckets] for each block (street and player)
    """
    arrays, cards = spot.game.tree.arrays, spot.game.listed_cards()
    block, slot = int(arrays.block[node]), int(arrays.slot[node])
    bucket = cards.bucket[0][block % 2, 0]
    rows = tables[block][slot : slot + int(arrays.count[node])][:, np.maximum(bucket, 0)]
    return np.where(bucket >= 0, rows, 0.0)
