"""One street of a real hand, solved again with the bets that were made, from both players' ranges.

The rest of the hand is solved from the first decision of the street. Its tree has a menu's bets and those that were
made, so no bet is mapped to another. Both players' ranges are taken as given (unsafe re-solving: Ganzfried & Sandholm
2015, "Endgame solving in large imperfect-information games"). After a flop the solver finds one player's strategy at a
time (`mccfr.play.resolving.solve`), so both players are solved.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from abstraction.cards import card_mask, combo_masks
from mccfr.cards.base import Cards
from mccfr.games.betting import BettingRules, BettingState
from mccfr.play.resolving.real_endgame import MENU, TURN_MENU, endgame
from mccfr.play.resolving.resolving_spot import Spot, Tables
from mccfr.play.resolving.resolving_table import EFFORT, STREETS, VARIANT
from mccfr.play.resolving.solve import Effort, resolve
from mccfr.play.showdown_values import opponent_weight, per_weight
from mccfr.solvers.public.best_response import Walk

Floats = npt.NDArray[np.float64]
Acted = tuple[BettingState, str]
FLOP = Effort(iterations=100)
"""Effort for each player after a flop: five seconds of processor time for both."""
_MERGED_STREETS = 3
"""Streets from the flop on: too many boards for lossless buckets."""


class SolvedStreet:
    """Solution of one street of a real hand, with its decisions in order.

    actions  of each decision, as in `mccfr.trees.betting_lines`
    played   [A, 1326] of each decision: probabilities of the solution
    values   [A, 1326] of each decision: EVs in chips of the whole hand of the player to act, if both players follow the
             solution. Exact on all boards; NaN for hands outside of the range
    ranges   [2, 1326] weights after the last action
    """

    def __init__(
        self, rules: BettingRules, acted: Sequence[Acted], board: Sequence[int], ranges: Floats, cards: Cards
    ) -> None:
        """Solve the street.

        acted   states and actions of the street, from its first decision on
        board   its cards
        ranges  [2, 1326] weights at the first decision
        cards   of a whole game, whose buckets are used after a flop
        """
        first = acted[0][0]
        live = (combo_masks() & np.uint64(card_mask(board))) == 0
        ranges = np.where(live, ranges, 0.0)
        made = defaultdict[BettingState, set[float]](set)
        for state, action in acted:
            if action[0] == "r":
                made[state._replace(street=state.street - first.street)].add(float(action[1:]))
        menu = MENU if first.street == rules.streets - 1 else TURN_MENU
        game = endgame(rules, first, board, menu, ranges > 0, cards, made)
        spot = Spot(game, 0, 0, merged=game.tree.streets == _MERGED_STREETS)
        tables = _solution(spot, ranges)
        self.actions, self.played, self.values = list[list[str]](), list[Floats](), list[Floats]()
        nodes, node = list[int](), 0
        for _, action in acted:
            nodes.append(node)
            labels = [game.tree.label[child] for child in game.tree.children(node)]
            self.actions.append(labels)
            node = int(game.tree.arrays.first[node]) + labels.index(action)
        after = _values(spot, tables, ranges, nodes)
        self.ranges = ranges
        for (state, action), node, labels, value in zip(acted, nodes, self.actions, after, strict=True):
            other = self.ranges[1 - state.player]
            met = np.where(ranges[state.player] > 0, opponent_weight(spot.dealing, other), 0.0)
            self.values.append(per_weight(value, met))
            self.played.append(_rows(spot, tables, node))
            left = self.ranges.copy()
            left[state.player] *= self.played[-1][labels.index(action)]
            self.ranges = left if left[state.player].any() else self.ranges


def _solution(spot: Spot, ranges: Floats) -> Tables:
    """Solve a spot from two ranges, and return both players' strategies."""
    effort = FLOP if spot.merged else EFFORT[STREETS[spot.game.tree.streets - 1]]
    tables = [
        resolve(spot, player, ranges, None, "unsafe", effort, variant=VARIANT, dtype="float32").tables
        for player in ((0, 1) if spot.merged else (0,))
    ]
    return [tables[block % 2 if spot.merged else 0][block].astype(np.float64) for block in range(len(tables[0]))]


def _values(spot: Spot, tables: Tables, ranges: Floats, nodes: Sequence[int]) -> list[Floats]:
    """Return [A, 1326] for each node: chips times the weight of opposing hands that get there, by action."""
    dtype = np.float32 if spot.merged else np.float64
    game = replace(spot.game, cards=replace(spot.game.cards.listed(), reach=ranges))
    walk = Walk(spot.walk_tree._replace(reach=ranges.astype(dtype)), [table.astype(dtype) for table in tables])
    values = [walk.hand_values(game, player, nodes).actions for player in range(2)]
    actor = spot.game.tree.arrays.player
    return [values[int(actor[node])][position].astype(np.float64) for position, node in enumerate(nodes)]


def _rows(spot: Spot, tables: Tables, node: int) -> Floats:
    """Return [A, 1326] action probabilities; 0 for hands that are not dealt."""
    arrays, cards = spot.game.tree.arrays, spot.game.cards.listed()
    block, slot = int(arrays.block[node]), int(arrays.slot[node])
    bucket = cards.bucket[0][block % 2, 0]
    rows = tables[block][slot : slot + int(arrays.count[node])][:, np.maximum(bucket, 0)]
    return np.where(bucket >= 0, rows, 0.0)
