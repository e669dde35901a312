"""Every spot of a street solved again: a whole strategy, for games small enough to evaluate it exactly.

For each player, and at every decision that begins the street on every board, the strategy in force is replaced by what
re-solving makes of it.  What the opponent can win is then no more than before, plus the gaps of the solutions.  For a
gadget whose alternatives are values of best responses to the strategy in force is worth no more to him than they are,
since that strategy gives no more.  So with a gap of g chips a hand, all of his hands at that root together win at most
g more than their alternatives, weighed as often as the deal and our own play bring us there; and the sum over roots
bounds what he wins more in all (Burch, Johanson & Bowling 2014, theorem 1, with an error for each root).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.play.resolving.gifts import gifts
from mccfr.play.resolving.solve import METHODS, Effort, resolve
from mccfr.play.resolving.spot import Spot, Tables
from mccfr.solvers.public.public_tree import public_tree
from mccfr.tables.strategy import Strategy
from mccfr.trees.compiled import DECISION, NO_PARENT

_ALIKE = 1e-6
"""Rows of one bucket that several boards come to may differ by less: rounding of sums in another order."""


@dataclass(frozen=True)
class Whole:
    """A strategy whose spots were solved again.

    strategy      of the whole game
    bound_chips   [2] by player whose spots were solved: what his opponent may win more than from the strategy before,
                  chips a hand, by the gaps of all spots.  Nothing bounds it after the unsafe method: infinite
    excess_chips  [2] the same as it has come out: by how much his hands at the roots beat their alternatives
    gap_chips     the largest gap of a spot, chips a hand that gets there
    spots         spots that were solved, of both players together
    """

    strategy: Strategy
    bound_chips: npt.NDArray[np.float64]
    excess_chips: npt.NDArray[np.float64]
    gap_chips: float
    spots: int


def roots(game: Game, street: int) -> list[int]:
    """Decisions of a betting tree that begin a street: of street 0 the root."""
    arrays, parent = game.tree.arrays, game.tree.parent
    here = np.flatnonzero((arrays.kind == DECISION) & (arrays.block // 2 == street))
    return [node for node in here.tolist() if parent[node] == NO_PARENT or arrays.block[parent[node]] // 2 != street]


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
) -> Whole:
    """Solve all spots of a street again, each against the strategy given.

    players  whose strategies are replaced
    reach    whether alternatives are raised by gifts (`gifts`)
    merged   whether hands keep the buckets that they share on later streets, and boards are sampled (`Spot`): values,
             gaps and bounds are those of real hands all the same

    Hands that share a bucket, as those do that are alike but for suits, are solved apart, and play the mean of what was
    found: by convexity no worse where they are alike, and what gaps and bounds are of in any case.

    Raises `ValueError` for games whose cards are not listed, and where boards share buckets and come to different
    strategies.
    """
    cards, public = game.cards.listed(), public_tree(game)
    start = sum(len(boards) for boards in cards.board_cards[:street])
    chance = float(np.prod(public.boards.weight[: street + 1])) / public.joint_weight
    made = _Written(game, strategy)
    bound, excess, gap, spots = np.zeros(2), np.zeros(2), 0.0, 0
    for node, board in product(roots(game, street), range(len(cards.board_cards[street]))):
        if not (times := float(public.copies.times[start + board])):
            continue  # suits apart, another board is the same
        spot = Spot(game, node, board, merged=merged)
        ranges, before = spot.ranges(strategy), spot.tables(strategy)
        alike = [spot.own_buckets(block) for block in range(2 * spot.game.tree.streets)]
        for player in [each for each in players if (ranges[each] > 0).any()]:
            allowed = spot.best_response(1 - player, ranges[player], before).value
            if reach:
                allowed = allowed + gifts(spot, cards.path(street, board).__getitem__, player, strategy)
            known = before if merged else None  # what forgets nothing gains nothing by it
            found = resolve(spot, player, ranges, allowed, method, effort, dtype=dtype, alike=alike, begun=known)
            made.write(spot, player, found.tables, alike)
            dealt = spot.weights[1 - player]
            comes = float(dealt @ spot.dealing.disjoint_weight(ranges[player]))
            excess[player] += chance * times * float(dealt @ np.maximum(found.values - allowed, 0))
            bound[player] += inf if method == "unsafe" else chance * times * comes * found.gap_chips
            gap, spots = max(gap, found.gap_chips), spots + 1
    return Whole(Strategy(made.tables, strategy.weight), bound, excess, gap, spots)


def resolve_streets(
    game: Game,
    strategy: Strategy,
    streets: Sequence[int],
    method: str = METHODS[0],
    effort: Effort = Effort(),  # noqa: B008  (frozen)
) -> Whole:
    """Nested: all spots of one street after the other, each against what the last one made; see `resolve_street`.

    Bounds and excesses are sums over streets.
    """
    bound, excess, gap, spots = np.zeros(2), np.zeros(2), 0.0, 0
    for street in streets:
        found = resolve_street(game, strategy, street, method, effort)
        strategy, gap, spots = found.strategy, max(gap, found.gap_chips), spots + found.spots
        bound, excess = bound + found.bound_chips, excess + found.excess_chips
    return Whole(strategy, bound, excess, gap, spots)


def _blocks(spot: Spot, player: int) -> Iterator[tuple[int, int]]:
    """(block of the subgame, block of the game) of a player."""
    for block in range(player, 2 * spot.game.tree.streets, 2):
        yield block, block + 2 * spot.street


class _Written:
    """The tables of the whole game, and which of their rows have been written.

    tables  B × [buckets, slots]
    """

    def __init__(self, game: Game, strategy: Strategy) -> None:
        self.tables = [table.copy() for table in strategy.probability]
        self._rows = [np.zeros((b, r), bool) for b, r in zip(game.buckets, game.tree.row_count, strict=True)]

    def write(self, spot: Spot, player: int, found: Tables, buckets: Sequence[npt.NDArray[np.int32]]) -> None:
        """Put a player's part of what was found for a spot in place, of infosets of these buckets by block.

        `ValueError` where another spot has come to something else.
        """
        inside, outside = spot.game.tree.arrays, spot.origin.tree.arrays
        for block, whole in _blocks(spot, player):
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
