"""Exact values and best responses over a public tree, by the walk of full-width CFR (`street_walk`).

Large tables of full-width strategy sums, 16-bit ones included, are read directly in their dtype.  This takes the time
of one iteration and no memory beyond the hands by board.  Other strategies are first converted to float64 tables.
"""

from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.solvers.locked_tables import LockedCells
from mccfr.solvers.public.array_walk import ArrayWalk, WalkValues, is_small
from mccfr.solvers.public.merged_rows import in_dtype, tree_by_rows
from mccfr.solvers.public.narrow_rows import Int16Rows
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.solvers.public.public_walk import Scope, value
from mccfr.solvers.public.street_arrays import (
    FOLLOW,
    RESPOND,
    StreetScratch,
    Views,
    narrow_tables,
    new_scratch,
    no_tables,
    one_value,
    street_tables,
)
from mccfr.solvers.public.walk_threads import WalkThread, shares_by_cost, walk_together
from mccfr.tables.row_tables import full_rows
from mccfr.tables.strategy import LazyBlocks, Strategy, row_starts
from mccfr.trees.street_trees import street_members

IN_PLACE_CELLS = 1 << 17
"""Least cells of strategy sums that are read directly; smaller tables are evaluated in float64."""


class Walk:
    """Computes values of a strategy and of best responses to it by walks of the public tree."""

    def __init__(
        self,
        public: PublicTree,
        tables: Sequence[npt.NDArray[np.floating]],
        threads: int = 1,
        *,
        sums: bool = False,
        follow: bool = True,
        noted: Sequence[npt.NDArray[np.float64]] | None = None,
        narrow: tuple[Int16Rows, Int16Rows] | None = None,
    ) -> None:
        """Prepare tables of all blocks, [slots, buckets] each; values do not depend on the number of threads.

        A block is a street and player, a slot is one action of a decision.

        sums     whether tables hold strategy sums, read directly; the tree must have merged rows (`tree_by_rows`) and
                 the dtype of the sums (`in_dtype`). Else tables hold float64 probabilities
        follow   False: only best responses, in three quarters of the time. With the number of streets as
                 `respond_from`, `values` then returns the value of the strategy
        noted    tables like `tables`, which receive 1 for the best action of each hand of the evaluated player and 0
                 for the others
        narrow   both players' sums in 16-bit cells; `tables` then have one cell each
        """
        # Read-only or foreign layouts would have the kernels compiled once more.
        dtype, self._sums = public.reach.dtype, sums
        own = [np.require(table, dtype, ["C", "W"]) for table in tables]
        self._public, nothing, self.joint_weight = public, no_tables(dtype), public.joint_weight
        self._views = tuple(
            Views(
                nothing if noted is None else street_tables(noted, player),
                street_tables(own, player),
                nothing,
                None if narrow is None else narrow[player],
            )
            for player in range(2)
        )
        self._threads, self._shares = max(1, min(threads, len(public.tasks))), shares_by_cost(public)
        self._make_room(2 if follow else 1)

    def _make_room(self, values: int) -> None:
        public, dtype = self._public, self._public.reach.dtype
        self.root = new_scratch(public, range(1), dtype, values)
        later = range(1, public.streets)
        self._scratch = [new_scratch(public, later, dtype, values) for _ in range(self._threads)]

    def responding(self) -> "Walk":
        """Return a copy that computes best responses alone and shares the scratch arrays."""
        walk = copy(self)
        walk.root, *walk._scratch = (one_value(of) for of in (self.root, *self._scratch))
        return walk

    def values(self, player: int, respond_from: int = 0) -> npt.NDArray[np.float64]:
        """Return [V] values of a player: counterfactual values summed with its own deal weights.

        With V = 2, FOLLOW is the value of the player's strategy.  RESPOND, the last entry, is that of a best response
        from street `respond_from` on.  Divided by `joint_weight` they are chips a deal.  `root` keeps the values of the
        first street.
        """
        public, root = self._public, self.root
        root.by_hand.value.fill(0)

        first, stop = public.boards.root.tolist()
        scope = Scope(player, player, first, stop, respond_from, self._sums or None)

        def work(crew: WalkThread, scratch: StreetScratch) -> None:
            value(public, self._views, scope, root, scratch, crew)

        walk_together(work, self._shares, self._scratch)
        hand_totals: npt.NDArray[np.float64] = root.by_hand.value[0] @ public.reach[player].astype(np.float64)
        return hand_totals

    def hand_values(self, game: Game, player: int, nodes: Sequence[int]) -> WalkValues:
        """Return the values of a player's hands, and of the actions at first-street decisions `nodes`.

        The opponent's hands count by the game's deal weights, which the walk may have scaled; `total` is by the latter.
        """
        public, total, actions = self._public, self.values(player), []
        trees, every, reach = public.trees, public.ranges.every, game.cards.listed().reach[1 - player]
        weight = reach.max() / float(public.reach[1 - player].max())  # of the walk's hands, in the game's
        entries, members = slice(*every.first[player, :2]), street_members(game.tree)[: trees.first[1]].tolist()
        for number in map(members.index, nodes):
            out = np.zeros((int(trees.actions[number]), len(reach)))
            if trees.player[number] == player:
                top = int(self.root.member_first[0]) + int(trees.child[number])
                below = self.root.value[FOLLOW, top : top + len(out)]
                out[:, every.hand[entries]] = weight * below[:, every.column[entries]]
            actions.append(out)
        return WalkValues(total, weight * self.root.by_hand.value[0, FOLLOW], actions)


def values(
    game: Game,
    strategy: Strategy,
    players: Sequence[int] = (0, 1),
    public: PublicTree | None = None,
    threads: int = 1,
) -> npt.NDArray[np.float64]:
    """Return [players, 2] mean chips of each player against the other's part of `strategy`.

    public   the game's public tree if it exists already
    threads  number of threads; the result does not depend on it

    Entry FOLLOW is for the player's own strategy, RESPOND for a best response, both without `offset_chips`.  Without
    `public`, boards on which the strategy plays alike up to suits are walked once.  Raises `ValueError` for a game
    without listed cards.
    """

    walk = _walk(game, strategy, public, threads)
    return np.array([walk.values(player) for player in players]) / walk.joint_weight


def value_and_responses(
    game: Game, strategy: Strategy, public: PublicTree | None = None, threads: int = 1
) -> tuple[float, tuple[float, float], float]:
    """Return (player 0's value, both players' best-response values, mean rake) in chips a deal.

    public   the game's public tree if it exists already
    threads  number of threads; the result does not depend on it

    The value and the rake are for both players following `strategy`.  Raises `ValueError` for a game without listed
    cards.
    """
    walk = _walk(game, strategy, public, threads)
    first = walk.values(0)
    second = (walk.responding() if game.rake is None else walk).values(1)
    rake_paid = 0.0 if game.rake is None else -float(first[FOLLOW] + second[FOLLOW]) / walk.joint_weight
    value, *best = (float(each) / walk.joint_weight for each in (*first, second[-1]))
    return value, (best[0], best[1]), rake_paid


def best_strategy(
    game: Game, strategy: Strategy, players: Sequence[int] = (0, 1), threads: int = 1
) -> tuple[npt.NDArray[np.float64], Strategy]:
    """Return the `values` [players, 2], and `strategy` with best responses in place of those players.

    The first of equal actions is taken; locked rows stay as they are.  Each hand on each board needs a row of its own,
    or may share one with hands alike (`is_lossless`).  Raises `ValueError` for a game without listed cards.
    """
    tables = [strategy.probability[block].T for block in range(len(strategy.probability))]
    noted = [np.ascontiguousarray(table) if table.size else np.zeros((1, 1)) for table in tables]
    public = public_tree(game)
    walk = Walk(public, [table if table.size else np.zeros((1, 1)) for table in tables], threads, noted=noted)
    best_values = np.array([walk.values(player) for player in players]) / public.joint_weight
    LockedCells(game).hold(noted)
    own = [
        new.T if table.size and block % 2 in players else table.T
        for block, (new, table) in enumerate(zip(noted, tables, strict=True))
    ]
    return best_values, Strategy(own, [np.ones_like(strategy.weight[block]) for block in range(len(own))])


def is_lossless(game: Game) -> bool:
    """Return whether each hand on each board has its own row.

    A row may be shared by hands that are alike but for suits.
    """
    return tree_by_rows(game) is not None


def hand_values(
    game: Game, strategy: Strategy, threads: int = 1, nodes: Sequence[int] = (0,)
) -> tuple[npt.NDArray[np.float64], list[npt.NDArray[np.float64]], tuple[float, float]]:
    """Return values of both players' hands, values of actions, and best-response gains.

    nodes  first-street decisions for which action values are returned

    These are [2, H] counterfactual values at the root; for each node [A, H] values of the acting player's hands after
    each action; and each player's gain in chips a deal.  Values are chips times the weight of the other's hands that
    they meet, with both players following `strategy`.
    """
    walk = _walk(game, strategy, None, threads)
    walks = [walk.hand_values(game, player, nodes) for player in range(2)]
    gains = [float(each.total[RESPOND] - each.total[FOLLOW]) / walk.joint_weight for each in walks]
    actions = [walks[int(game.tree.arrays.player[node])].actions[position] for position, node in enumerate(nodes)]
    return np.array([each.hands for each in walks]), actions, (gains[0], gains[1])


def is_large(game: Game) -> bool:
    """Return whether strategy sums are so large that they are read without a float64 copy.

    This is for games with cards and without buckets.
    """
    return game.cards.dealt and game.known_cards is None and int(game.tree.row_slots @ game.buckets) >= IN_PLACE_CELLS


def measuring_tree(game: Game, public: PublicTree | None = None) -> PublicTree | None:
    """Return the public tree for reading a game's strategy sums directly, or None if they are not read so.

    public  the game's public tree if it exists already

    Raises `ValueError` for a hand without a bucket, and for boards or hands that are not dealt uniformly.
    """
    return tree_by_rows(game, public) if is_large(game) else None


def _sums(strategy: Strategy) -> list[npt.NDArray[Any]] | None:
    """Return the strategy sums by block, slots first, if all are stored like that in one dtype; else None."""
    blocks = [rows for rows in strategy.blocks if rows.cells.size]
    dtypes = {rows.cells.dtype for rows in blocks}
    if len(dtypes) != 1 or not all(rows.sums and rows.cells.T.flags.c_contiguous for rows in blocks):
        return None
    nothing = np.zeros((1, 1), dtypes.pop())
    return [rows.cells.T if rows.cells.size else nothing for rows in strategy.blocks]


def _narrow_walk(
    public: PublicTree,
    blocks: Sequence[tuple[npt.NDArray[np.int16], npt.NDArray[np.uint8]]],
    game: Game,
    threads: int,
) -> Walk:
    """Return a walk on strategy sums in 16-bit cells, by block.

    blocks  cells [slot, bucket] int16 and scales [row, bucket] uint8 of each block
    """
    cells, scales = (
        [
            np.require(table if table.size else np.zeros((1, 1), table.dtype), requirements=["C", "W"])
            for table in tables
        ]
        for tables in zip(*blocks, strict=True)
    )
    starts = [row_starts(game, block) for block in range(len(blocks))]
    one, other = (narrow_tables((cells, cells, scales, scales), starts, player) for player in range(2))
    return Walk(public, [np.zeros((1, 1), np.float32)] * len(blocks), threads, sums=True, narrow=(one, other))


def _walk(game: Game, strategy: Strategy, public: PublicTree | None, threads: int) -> Walk | ArrayWalk:
    """Return a walk of the strategy: by arrays in a small game, else by kernels on the public tree."""
    if is_small(game):
        return ArrayWalk(game, strategy)
    if strategy.narrow is not None and (by_rows := measuring_tree(game, public)) is not None:
        return _narrow_walk(in_dtype(by_rows, np.float32), strategy.narrow, game, threads)
    sums = _sums(strategy)
    by_rows = None if sums is None else measuring_tree(game, public)
    if sums is not None and by_rows is not None:
        return Walk(in_dtype(by_rows, sums[0].dtype), sums, threads, sums=True)

    @cache
    def table(block: int) -> npt.NDArray[np.float64]:
        """Return a block's probabilities, slots first, computed from the stored form."""
        return full_rows(strategy.blocks[block], row_starts(game, block), threads)

    public = public or public_tree(game, LazyBlocks(len(strategy.blocks), lambda block: table(block).T))
    return Walk(public, [table(block) for block in range(len(strategy.blocks))], threads)
