"""Re-solves every spot of a street into a whole strategy, for games small enough for exact evaluation.

A spot is the subgame from a decision that begins the street (the root), on one board. For each player and spot, the
strategy in force is replaced by the re-solved one. A spot's gap is a number g of chips per hand of poker that gets
there. All the opponent's hands at that root together win at most g above their alternatives, weighted by the deal and
the player's reach. An alternative is the value of a hand's best response to the strategy in force. The opponent's value
is then at most the value before plus the sum of all gaps. A gap is multiplied by the
probability of its spot by the deal and the player's strategy. This is theorem 1 of Burch, Johanson & Bowling 2014, with
an error for each root. The unsafe method has no such bound.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.play.resolving.resolving_spot import Spot, Tables
from mccfr.play.resolving.solve import METHODS, Effort, resolve
from mccfr.solvers.public.public_tree import public_tree
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import DECISION, NO_PARENT

_ALIKE = 1e-6
"""Tolerance between rows of one bucket from several boards, for rounding."""


@dataclass(frozen=True)
class ResolvedStrategy:
    """A whole game's strategy in which spots were re-solved, with bounds of the opponent's gain by this.

    strategy      of the whole game, with the re-solved spots
    bound_chips   [2] by re-solved player: upper bound, from the gaps, of the opponent's gain compared to the strategy
                  before, in chips per hand. Infinite for the unsafe method
    excess_chips  [2] by re-solved player: the amount by which the opponent's hands at the roots exceed their
                  alternatives, summed over the hands that do, in chips per hand
    gap_chips     the largest gap of a spot, in chips per hand that gets there
    spots         number of solved spots, of both players
    """

    strategy: Strategy
    bound_chips: npt.NDArray[np.float64]
    excess_chips: npt.NDArray[np.float64]
    gap_chips: float
    spots: int


def roots(game: Game, street: int) -> list[int]:
    """Return the nodes of all decisions of the betting tree that begin a street; for street 0 the root."""
    arrays, parent = game.tree.arrays, game.tree.parent
    street_of = arrays.block // 2
    nodes = np.flatnonzero((arrays.kind == DECISION) & (street_of == street)).tolist()
    return [node for node in nodes if parent[node] == NO_PARENT or street_of[parent[node]] != street]


def resolve_street(
    game: Game,
    strategy: Strategy,
    street: int,
    method: str = METHODS[0],
    effort: Effort = Effort(),  # noqa: B008  (frozen)
    *,
    players: tuple[int, ...] = (0, 1),
    reach: bool = False,
    merged: bool = False,
    dtype: str = "float64",
) -> ResolvedStrategy:
    """Re-solve all spots of a street, each against the given strategy.

    strategy  the strategy in force, of both players in the whole game
    street    0 is the first
    method    gadget: "resolving", "maxmargin" (not with `merged`) or "unsafe"
    effort    stopping rules for each spot
    players   the players whose strategies are replaced
    reach     raise alternatives by the opponent's earlier mistakes (`reach_margins`)
    merged    keep the whole game's shared buckets on later streets and sample boards. Values, gaps and bounds are
              still those of real hands
    dtype     of the solver's tables: "float64" or "float32"

    Alternatives are the opponent's best-response values to the given strategy, by hand, which the gadget compares with
    the subgame's. Hands that share a bucket are solved separately and play the mean of their solutions. Gaps and
    bounds are those of this mean.

    Raises `ValueError` for games whose cards are not listed, and if boards share buckets but differ in their
    strategies.
    """
    cards, public = game.cards.listed(), public_tree(game)
    start = sum(len(boards) for boards in cards.board_cards[:street])
    chance = float(np.prod(public.boards.weight[: street + 1])) / public.joint_weight
    writer = _StrategyWriter(game, strategy)
    bound, excess, gap, spots = np.zeros(2), np.zeros(2), 0.0, 0
    for node, board in product(roots(game, street), range(len(cards.board_cards[street]))):
        if not (copies := float(public.copies.times[start + board])):
            continue  # isomorphic to another board
        spot = Spot(game, node, board, merged=merged, dtype=dtype)
        ranges, before = spot.ranges(strategy), spot.tables(strategy)
        alike = [spot.own_buckets(block) for block in range(2 * spot.game.tree.streets)]
        for player in [each for each in players if (ranges[each] > 0).any()]:
            allowed = spot.best_response(1 - player, ranges[player], before).value
            if reach:
                allowed = allowed + reach_margins(spot, cards.path(street, board).__getitem__, player, strategy)
            initial = before if merged else None  # initial regrets help only with shared buckets
            solution = resolve(spot, player, ranges, allowed, method, effort, alike=alike, initial=initial)
            writer.write(spot, player, solution.tables, alike)
            deal = spot.weights[1 - player]
            reached = float(deal @ spot.dealing.disjoint_weight(ranges[player]))
            excess[player] += chance * copies * float(deal @ np.maximum(solution.values - allowed, 0))
            bound[player] += inf if method == "unsafe" else chance * copies * reached * solution.gap_chips
            gap, spots = max(gap, solution.gap_chips), spots + 1
    return ResolvedStrategy(Strategy(writer.tables, strategy.weight), bound, excess, gap, spots)


def reach_margins(
    spot: Spot, board_of: Callable[[int], Any], player: int, strategy: Strategy
) -> npt.NDArray[np.float64]:
    """Return [H] the reach margins of a spot: counterfactual values to add to the opponent's alternatives.

    player    the player whose strategy is re-solved; the other one is the opponent
    board_of  function that returns the board of an earlier street, as its number or its cards

    Reach subgame solving (Brown & Sandholm 2017, "Safe and nested subgame solving for imperfect-information games",
    section 4). At an earlier decision, the opponent's hand may have had an action with a higher value than the one
    leading here. Its value here may then rise by the difference before coming here pays. The alternatives are raised
    by these differences of all the opponent's decisions on the path. Values are those of best responses to the
    strategy in force, which is safe for any number of re-solved spots: a value before chance or the player's actions is
    a mean of the values after them.
    """
    arrays, path = spot.origin.tree.arrays, spot.origin.tree.path(spot.node)
    own_range = spot.ranges(strategy)[player]
    weight_now, margins = spot.dealing.disjoint_weight(own_range), np.zeros(len(own_range))
    for above, node in pairwise(path):
        if int(arrays.player[above]) == player:
            continue
        earlier = Spot(spot.origin, above, board_of(int(arrays.block[above]) // 2), dtype=spot.dtype)
        earlier_range = earlier.ranges(strategy)[player]
        response = earlier.best_response(1 - player, earlier_range, earlier.tables(strategy))
        weight_before = earlier.dealing.disjoint_weight(earlier_range)
        # A gift in chips per hand is the same at all later nodes, while counterfactual values shrink with the range.
        chips = response.value - response.action[node - int(arrays.first[above])]
        margins += np.divide(chips * weight_now, weight_before, out=np.zeros_like(chips), where=weight_before > 0)
    return margins


class _StrategyWriter:
    """Writes spots' solutions into tables of the whole game; checks that spots agree on shared infosets.

    tables  by block [buckets, slots]: action probabilities. A block has the decisions of one street and player. A slot
            is one action of one of these decisions
    """

    def __init__(self, game: Game, strategy: Strategy) -> None:
        self.tables = [table.copy() for table in strategy.probability]
        self._rows = [np.zeros((b, r), bool) for b, r in zip(game.buckets, game.tree.row_count, strict=True)]

    def write(self, spot: Spot, player: int, found: Tables, buckets: Sequence[npt.NDArray[np.int32]]) -> None:
        """Copy a player's strategy in a solved spot to the tables of the whole game.

        found    the spot's strategy by block [slots, buckets]
        buckets  by block [buckets]: the whole game's bucket for each bucket of the spot

        Raises `ValueError` if another spot wrote a different strategy to an infoset.
        """
        inside, outside = spot.game.tree.arrays, spot.origin.tree.arrays
        for block in range(player, 2 * spot.game.tree.streets, 2):
            whole = block + 2 * spot.street  # the same block of the whole game
            here, table = buckets[block], self.tables[whole]
            for node in np.flatnonzero(inside.block == block).tolist():
                origin, count = int(spot.nodes[node]), int(inside.count[node])
                rows = found[block][int(inside.slot[node]) : int(inside.slot[node]) + count].T
                slots = slice(int(outside.slot[origin]), int(outside.slot[origin]) + count)
                written = self._rows[whole][here, outside.row[origin]]
                if np.abs(table[here, slots] - rows)[written].max(initial=0) > _ALIKE:
                    raise ValueError(
                        f"{spot.origin.name}: boards share buckets, and were solved to different strategies; a whole "
                        "strategy needs buckets of one board, or of boards alike but for suits"
                    )
                table[here, slots] = rows
                self._rows[whole][here, outside.row[origin]] = True
