"""Re-solves every spot of a street into a whole strategy, for games small enough for exact evaluation.

A spot is the subgame from a decision that begins the street (the root), on one board. For each player and spot, the
given strategy is replaced by the re-solved one. An alternative is the value of a hand's best response to the given
strategy. A spot's gap is a number g of chips per hand of poker that reaches the spot. All the opponent's hands at that
root together win at most g above their alternatives, weighted by the deal and the player's reach. The opponent's value
is then at most the value before plus the sum of all gaps. In this sum a gap is multiplied by the probability of its
spot by the deal and the player's strategy. This is theorem 1 of Burch, Johanson & Bowling 2014, with an error for each
root. The unsafe method has no such bound.
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
    """A game's strategy in which all subgames of a street were re-solved, with bounds of its loss.

    A spot is such a subgame, on one board. An alternative is the value of an opponent's hand against the strategy
    before. A spot's gap bounds the chips that the opponent's hands together win there above their alternatives.

    strategy      strategies of both players in the whole game, with the re-solved spots
    bound_chips   [2] by re-solved player: upper bound, from the gaps, of the opponent's gain compared to the strategy
                  before, in chips per hand. Infinite for the unsafe method
    excess_chips  [2] by re-solved player: the amount by which the opponent's hands win more than their alternatives,
                  summed over the hands that do, in chips per hand
    gap_chips     the largest gap of a spot, in chips per hand that reaches it
    spots         number of solved spots, of both players
    """

    strategy: Strategy
    bound_chips: npt.NDArray[np.float64]
    excess_chips: npt.NDArray[np.float64]
    gap_chips: float
    spots: int


def roots(game: Game, street: int) -> list[int]:
    """Return the nodes of a game's decisions that begin `street`, in its betting tree; for 0 the root."""
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
    """Re-solve each spot of a street: a subgame from the street's first decision, on one board.

    strategy  strategies of both players in the whole game, to be improved
    street    number of the street, from 0
    method    gadget: "resolving", "maxmargin" (not with `merged`) or "unsafe"
    effort    stopping rules for each spot
    players   the players whose strategies are replaced
    reach     True: raise alternatives by the opponent's earlier mistakes (`reach_gains`)
    merged    True: keep the whole game's shared buckets on later streets and sample boards. Values, gaps and bounds are
              still those of real hands
    dtype     dtype of the solver's tables: "float64" or "float32"

    An alternative is the best-response value of an opponent's hand to `strategy`; the gadget compares it with the
    hand's value in the spot. Hands that share a bucket are solved separately and play the mean of their solutions. The
    result's gaps and bounds are those of this mean.

    Raises `ValueError` for games whose cards are not listed, for rake, and if boards share buckets but differ in their
    strategies.
    """
    cards, public = game.listed_cards(), public_tree(game)
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
                allowed = allowed + reach_gains(spot, cards.path(street, board).__getitem__, player, strategy)
            initial = before if merged else None  # initial regrets help only with shared buckets
            solution = resolve(spot, player, ranges, allowed, method, effort, alike=alike, initial=initial)
            writer.write(spot, player, solution.tables, alike)
            deal = spot.weights[1 - player]
            reached = float(deal @ spot.dealing.disjoint_weight(ranges[player]))
            excess[player] += chance * copies * float(deal @ np.maximum(solution.values - allowed, 0))
            bound[player] += inf if method == "unsafe" else chance * copies * reached * solution.gap_chips
            gap, spots = max(gap, solution.gap_chips), spots + 1
    return ResolvedStrategy(Strategy(writer.tables, strategy.weight), bound, excess, gap, spots)


def reach_gains(spot: Spot, board_of: Callable[[int], Any], player: int, strategy: Strategy) -> npt.NDArray[np.float64]:
    """Return [H] counterfactual values by which the opponent's alternatives are raised, for reach margins.

    spot      the subgame that is re-solved; an alternative is the value of an opponent's hand before re-solving
    board_of  function that returns the board of an earlier street, as its number or its cards
    player    the player whose strategy is re-solved; the other one is the opponent
    strategy  strategies of both players in the whole game, before re-solving

    Reach subgame solving (Brown & Sandholm 2017, "Safe and nested subgame solving for imperfect-information games",
    section 4). On the path to the subgame, the opponent's hand may have had an action with a higher value than the
    path's. The hand then reached the subgame by a mistake, and may gain the difference in it without profit overall.
    The alternatives are raised by these differences of all the opponent's decisions on the path. Values are those of
    best responses to `strategy`, which is safe for any number of re-solved spots: a value before chance or the player's
    actions is a mean of the values after them. Only `resolve_street` uses it; seats at a table have no reach margins.
    """
    arrays, path = spot.origin.tree.arrays, spot.origin.tree.path(spot.node)
    own_range = spot.ranges(strategy)[player]
    weight_now, gains = spot.dealing.disjoint_weight(own_range), np.zeros(len(own_range))
    for above, node in pairwise(path):
        if int(arrays.player[above]) == player:
            continue
        earlier = Spot(spot.origin, above, board_of(int(arrays.block[above]) // 2), dtype=spot.dtype)
        earlier_range = earlier.ranges(strategy)[player]
        response = earlier.best_response(1 - player, earlier_range, earlier.tables(strategy))
        weight_before = earlier.dealing.disjoint_weight(earlier_range)
        # Chips per hand are the same at all later nodes, while counterfactual values shrink with the range.
        chips = response.value - response.action[node - int(arrays.first[above])]
        gains += np.divide(chips * weight_now, weight_before, out=np.zeros_like(chips), where=weight_before > 0)
    return gains


class _StrategyWriter:
    """Copies solutions of subgames to the whole game's tables; checks that they do not conflict.

    tables  [buckets, slots] action probabilities for each block. Block 2·street + player has the player's decisions on
            the street; a slot is one action of one of these decisions
    """

    def __init__(self, game: Game, strategy: Strategy) -> None:
        self.tables = [table.copy() for table in strategy.probability]
        self._rows = [np.zeros((b, r), bool) for b, r in zip(game.buckets, game.tree.row_count, strict=True)]

    def write(self, spot: Spot, player: int, found: Tables, buckets: Sequence[npt.NDArray[np.int32]]) -> None:
        """Copy a player's strategy in a solved subgame to the tables of the whole game.

        spot     the subgame: from a decision of the game on, on one board
        player   the player whose strategy is copied: 0 or 1
        found    [slots, buckets] its strategy for each block 2·street + player, streets counted in the subgame
        buckets  for each of these blocks, the whole game's bucket for each bucket of the subgame

        Raises `ValueError` if another subgame wrote a different strategy to an infoset.
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
