"""Exact values and best responses over a public tree, by the walk of full-width CFR (`street_walk`).

A public tree is a betting tree times boards; a walk of it handles all hands of both players at once.

Large tables of full-width strategy sums, 16-bit ones included, are read directly in their dtype.  This takes the time
of one iteration and no memory beyond the lists of hands by board.  Other strategies are first converted to float64
tables.
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
from mccfr.solvers.public.public_walk import Scope, train, value
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
"""Least number of cells for which strategy sums are read directly; fewer are first converted to float64."""


class Walk:
    """Computes values of a strategy and of best responses to it by walks of the public tree.

    root          StreetScratch (arrays of a walk) of the first street; `values` leaves the nodes' values there
    joint_weight  sum of the weights of all pairs of hands; values divided by it are chips a deal
    """

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
        """Prepare walks of a strategy; values do not depend on the number of threads.

        public   public tree; the walk computes in the dtype of its `reach`
        tables   [slots, buckets] for each block (street and player), of probabilities; a slot is one action of a
                 decision
        threads  number of threads; no more are used than the walk has parts (`public.tasks`)
        sums     True: tables hold strategy sums, or anything else to be normalised row by row. They are read directly,
                 by the kernel that also trains; `public` must come from `tree_by_rows` then, and have the dtype of the
                 tables (`in_dtype`), or they are copied
        follow   False: one value of each hand instead of two, in three quarters of the time. It is that of a best
                 response, or of the strategy if `respond_from` of `values` is the number of streets
        noted    tables like `tables`, which receive 1 for the best action of each hand of the evaluated player and 0
                 for the others
        narrow   with `sums`, both players' sums in 16-bit cells; `tables` then have one cell each
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
        """Return a copy of this walk that computes one value of each hand: that of a best response.

        It shares most scratch arrays with this walk, so only one of both may run at a time.
        """
        walk = copy(self)
        walk.root, *walk._scratch = (one_value(of) for of in (self.root, *self._scratch))
        return walk

    def values(self, player: int, respond_from: int = 0) -> npt.NDArray[np.float64]:
        """Return [V] values of a player in chips times weight: sums over its weighted hands.

        player        the evaluated player
        respond_from  first street of the best response; before it the player follows its strategy

        With V = 2 they are the values of the strategy (FOLLOW) and of a best response (RESPOND).  With V = 1 there is
        only the latter.  Divided by `joint_weight` they are chips a deal.  `root` keeps the values of the first street.
        """
        public, root = self._public, self.root
        root.by_hand.value.fill(0)

        first, stop = public.boards.root.tolist()
        scope = Scope(player, player, first, stop, respond_from, self._sums or None, fixed=True)
        no_step = np.zeros((1, 5))

        def work(crew: WalkThread, scratch: StreetScratch) -> None:
            if self._sums:  # by the kernel that trained them, which is compiled already
                train(public, self._views, no_step, scope, root, scratch, crew)
            else:
                value(public, self._views, scope, root, scratch, crew)

        walk_together(work, self._shares, self._scratch)
        hand_totals: npt.NDArray[np.float64] = root.by_hand.value[0] @ public.reach[player].astype(np.float64)
        return hand_totals

    def hand_values(self, game: Game, player: int, nodes: Sequence[int]) -> WalkValues:
        """Return `WalkValues` of a player's hands, and its actions at first-street `nodes`.

        nodes  decisions; those of the other player get zeros as action values
        game   the game of the public tree, with the deal weights that count in the values of hands and actions

        `total` counts hands by the walk's deal weights, which may be scaled; the other values by those of `game`.
        Values of hands and actions are for both players following the strategy.
        """
        public, total, actions = self._public, self.values(player), []
        trees, every, reach = public.trees, public.ranges.every, game.listed_cards().reach[1 - player]
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
    """Return [players, 2] mean chips a deal of each of `players` against the other's part of `strategy`.

    public   the game's public tree if it exists already
    threads  number of threads; the result does not depend on it

    Column FOLLOW is for the player's own strategy, RESPOND for a best response.  Neither contains `Game.offset_chips`,
    half of a pot whose chips come from neither player.  Without `public`, boards on which the strategy plays alike up
    to suits are walked once.  Raises `ValueError` for a game with chance nodes in its tree, or with cards that cannot
    be listed.
    """

    walk = _walk(game, strategy, public, threads)
    return np.array([walk.values(player) for player in players]) / walk.joint_weight


def value_and_responses(
    game: Game, strategy: Strategy, public: PublicTree | None = None, threads: int = 1
) -> tuple[float, tuple[float, float], float]:
    """Return (player 0's value, both players' best-response values, mean rake) in chips a deal.

    public   the game's public tree if it exists already
    threads  number of threads; the result does not depend on it

    The value and the rake are for both players following `strategy`.  Raises `ValueError` for a game with chance nodes
    in its tree, or with cards that cannot be listed.
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
    """Return values [players, 2], and `strategy` with the parts of `players` as best responses.

    A player's values are chips a deal with its own strategy and with the best response.  The first of equal actions is
    taken; locked (fixed) probabilities stay as they are.  In the returned Strategy all rows have weight 1.  Each hand
    on each board needs a row of its own, or may share one with hands alike but for suits (`is_lossless`); the caller
    must check this.  Raises `ValueError` for a game with chance nodes in its tree, or with cards that cannot be listed.
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
    """Return whether each hand on each board has its own row in the tables, as without a card abstraction.

    Hands that are alike but for suits may share a row.  Raises `ValueError` for chance nodes in the tree, and for cards
    that cannot be listed.  Also raises it for a hand without a bucket, and for boards or hands that are not dealt
    uniformly.
    """
    return tree_by_rows(game) is not None


def hand_values(
    game: Game, strategy: Strategy, threads: int = 1, nodes: Sequence[int] = (0,)
) -> tuple[npt.NDArray[np.float64], list[npt.NDArray[np.float64]], tuple[float, float]]:
    """Return (values of both players' hands, values of actions, both gains by a best response).

    nodes  first-street decisions for which action values are returned

    * [2, H] counterfactual values of both players' hands at the root
    * for each node [A, H] values of the acting player's hands after each action
    * each player's gain by a best response, in chips a deal

    Values of hands and actions are for both players following `strategy`.  They are chips, summed over the other
    player's hands by their weights, except hands that share a card with the player's hand.
    """
    walk = _walk(game, strategy, None, threads)
    walks = [walk.hand_values(game, player, nodes) for player in range(2)]
    gains = [float(each.total[RESPOND] - each.total[FOLLOW]) / walk.joint_weight for each in walks]
    actions = [walks[int(game.tree.arrays.player[node])].actions[position] for position, node in enumerate(nodes)]
    return np.array([each.hands for each in walks]), actions, (gains[0], gains[1])


def is_large(game: Game) -> bool:
    """Return whether a game's strategy sums are so many that they are read without a float64 copy.

    This holds from 131,072 sums (`IN_PLACE_CELLS`) on, in games with cards and without a card abstraction.
    """
    return game.cards.dealt and game.known_cards is None and int(game.tree.row_slots @ game.buckets) >= IN_PLACE_CELLS


def measuring_tree(game: Game, public: PublicTree | None = None) -> PublicTree | None:
    """Return the public tree for reading a game's strategy sums in place, or None.

    None means that they are first converted to probabilities in float64.

    public  the game's public tree if it exists already

    Raises `ValueError` for cards that cannot be listed, a hand without a bucket, and boards or hands that are not dealt
    uniformly.
    """
    return tree_by_rows(game, public) if is_large(game) else None


def _sums(strategy: Strategy) -> list[npt.NDArray[Any]] | None:
    """Return the strategy sums of each block, [slots, buckets], as they are stored; else None.

    A block is one player on one street, a slot is one action of a decision.  The result is None unless all blocks store
    sums, in one dtype, with all buckets of a slot adjacent.
    """
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
    """Return a walk on strategy sums in 16-bit cells.

    public  public tree from `tree_by_rows`, in float32
    blocks  for each street and player, (cells [slot, bucket] int16, scales [row, bucket] uint8); a row is one decision,
            a slot one action of it
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
    """Return a walk of the strategy: an `ArrayWalk` in a small game, else a `Walk` of the public tree.

    public   the game's public tree if it exists already; None: it is built if it is needed
    threads  most threads of a `Walk`

    Raises `ValueError` for a game with chance nodes in its tree, or with cards that cannot be listed.
    """
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
        """Return action probabilities [slots, buckets] of a street and player.

        A slot is one action of a decision; stored strategy sums are normalised.
        """
        return full_rows(strategy.blocks[block], row_starts(game, block), threads)

    public = public or public_tree(game, LazyBlocks(len(strategy.blocks), lambda block: table(block).T))
    return Walk(public, [table(block) for block in range(len(strategy.blocks))], threads)
