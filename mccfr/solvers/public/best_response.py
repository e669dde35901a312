"""Exact value and exact best response over a public tree: the walk of full-width CFR on fixed strategies.

`mccfr.solvers.public.street_walk` says what a best response is, and that it is exact.

Large strategy sums of full width are walked where they lie and in their dtype, row by row as they were trained, cells
of 16 bits too: an iteration's time, and no memory beside the hands by board.  Other strategies are made float64 tables
first.
"""

from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.solvers.locked_tables import LockedCells
from mccfr.solvers.public.merged_rows import in_dtype, tree_by_rows
from mccfr.solvers.public.narrow_rows import NarrowRows
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
from mccfr.solvers.public.walk_threads import Crew, shares_by_cost, walk_together
from mccfr.tables.row_tables import whole_rows
from mccfr.tables.strategy import LazyBlocks, Strategy, row_starts
from mccfr.trees.streets import street_members

_BLOCKS = 8  # kernels are compiled anew for each number of tables
IN_PLACE_CELLS = 1 << 17
"""Of strategy sums that are walked where they lie; fewer are measured in float64, whatever they are."""


class Walk:
    """A public tree with a strategy on it, to be valued for either player."""

    def __init__(
        self,
        public: PublicTree,
        tables: Sequence[npt.NDArray[np.floating]],
        threads: int = 1,
        choices: Sequence[npt.NDArray[np.floating]] | None = None,
        *,
        sums: bool = False,
        follow: bool = True,
        noted: Sequence[npt.NDArray[np.float64]] | None = None,
        narrow: tuple[NarrowRows, NarrowRows] | None = None,
    ) -> None:
        """`tables` are those of all blocks, [slots, buckets] each; values do not depend on the number of threads.

        noted    tables like these, which get the best action of each hand of who is valued, 1, and 0 for the others

        sums     whether they are strategy sums, which are read where they lie; the tree is one by rows then
                 (`tree_by_rows`), and of their dtype (`in_dtype`).  Else they are probabilities, in float64
        follow   False: best responses alone, in three quarters of the time
        narrow   both players' sums in cells of 16 bits, in the place of tables, which are of one cell then

        choices  [2·slots, buckets] of each block, to which is added, by one thread, what a player's own range wins by
                 each action, and, in the lower half, by the best action for each hand (in the row of the first);
                 best responses are left out then
        """
        # Read-only or foreign layouts would have the kernels compiled once more.
        dtype, self._sums = public.reach.dtype, sums
        own = [np.require(table, dtype, ["C", "W"]) for table in tables]
        self._public, nothing = public, no_tables(dtype)
        self._views = tuple(
            Views(
                nothing if noted is None else street_tables(noted, player),
                street_tables(own, player),
                nothing if choices is None else street_tables(choices, player),
                None if narrow is None else narrow[player],
            )
            for player in range(2)
        )
        self._threads, self._shares = max(1, min(threads, len(public.tasks))), shares_by_cost(public)
        self._make_room(2 if follow and choices is None else 1)

    def _make_room(self, values: int) -> None:
        public, dtype = self._public, self._public.reach.dtype
        self.root = new_scratch(public, range(1), dtype, values)
        later = range(1, public.streets)
        self._scratch = [new_scratch(public, later, dtype, values) for _ in range(self._threads)]

    def responding(self) -> "Walk":
        """The same, for best responses alone, in the same room."""
        found = copy(self)
        found.root, *found._scratch = (one_value(of) for of in (self.root, *self._scratch))
        return found

    def values(self, player: int, respond_from: int = 0) -> npt.NDArray[np.float64]:
        """[V] counterfactual values of a player's hands, weighed by his own deal weights and summed.

        `FOLLOW` where he follows his strategy, `RESPOND`, the last, where he plays a best response from a street on.
        Divided by `joint_weight` they are chips a deal.  `root` keeps what was found on the first street.
        """
        public, root = self._public, self.root
        root.by_hand.value.fill(0)

        first, stop = public.boards.root.tolist()
        scope = Scope(player, player, first, stop, respond_from, self._sums)

        def work(crew: Crew, scratch: StreetScratch) -> None:
            value(public, self._views, scope, root, scratch, crew)

        walk_together(work, self._shares, self._scratch)
        found: npt.NDArray[np.float64] = root.by_hand.value[0] @ public.reach[player].astype(np.float64)
        return found


def values(
    game: Game,
    strategy: Strategy,
    players: Sequence[int] = (0, 1),
    public: PublicTree | None = None,
    threads: int = 1,
) -> npt.NDArray[np.float64]:
    """[players, 2] chips each player gets on average, without `offset_chips`, against the other's part of `strategy`.

    `FOLLOW` when he follows his own, `RESPOND` when he plays a best response.  `public` is the game's public tree, to
    save making it again; without it, boards on which hands play alike but for their suits are walked once, also where
    the game tells them apart.  What is found does not depend on the number of threads.  `ValueError` for a game without
    listed cards.
    """

    public, walk = _walk(game, strategy, public, threads)
    return np.array([walk.values(player) for player in players]) / public.joint_weight


def value_and_responses(
    game: Game, strategy: Strategy, public: PublicTree | None = None, threads: int = 1
) -> tuple[float, tuple[float, float], float]:
    """As `values`: player 0's when he follows, both players' when they respond, and the rake taken when both follow.

    Without rake what player 1 gets by following is not asked for.
    """
    public, walk = _walk(game, strategy, public, threads)
    first = walk.values(0)
    second = (walk.responding() if game.rake is None else walk).values(1)
    taken = 0.0 if game.rake is None else -float(first[FOLLOW] + second[FOLLOW]) / public.joint_weight
    value, *best = (float(each) / public.joint_weight for each in (*first, second[-1]))
    return value, (best[0], best[1]), taken


def gains(
    game: Game, strategy: Strategy, first: int, public: PublicTree | None = None, threads: int = 1
) -> list[float]:
    """Chips a hand that a best response gains which follows the strategy before a street: for each from `first` on.

    Mean over both players; of street 0 it is the exploitability.  `public`, `threads` and `ValueError` as `values`.
    """
    public, walk = _walk(game, strategy, public, threads)
    found = [[walk.values(player, street) for player in range(2)] for street in range(first, public.streets)]
    return [float(sum(each[RESPOND] - each[FOLLOW] for each in both)) / public.joint_weight / 2 for both in found]


def best_strategy(
    game: Game, strategy: Strategy, players: Sequence[int] = (0, 1), threads: int = 1
) -> tuple[npt.NDArray[np.float64], Strategy]:
    """`values` of some players, and the strategy with a best response of each to the other's part of it as his own.

    Every hand on every board needs a row of its own, or one with hands alike (`is_lossless`).  Of equal actions the
    first is taken; locked rows stay as they are.  `ValueError` as `values`.
    """
    tables = [strategy.probability[block].T for block in range(len(strategy.probability))]
    noted = [np.ascontiguousarray(table) if table.size else np.zeros((1, 1)) for table in tables]
    public = public_tree(game)
    walk = Walk(public, [table if table.size else np.zeros((1, 1)) for table in tables], threads, noted=noted)
    found = np.array([walk.values(player) for player in players]) / public.joint_weight
    LockedCells(game).hold(noted)
    own = [
        new.T if table.size and block % 2 in players else table.T
        for block, (new, table) in enumerate(zip(noted, tables, strict=True))
    ]
    return found, Strategy(own, [np.ones_like(strategy.weight[block]) for block in range(len(own))])


def is_lossless(game: Game) -> bool:
    """Whether every hand on every board has a row of its own, or shares it with hands that are alike but for suits."""
    return tree_by_rows(game) is not None


def hand_values(
    game: Game, strategy: Strategy, threads: int = 1, nodes: Sequence[int] = (0,)
) -> tuple[npt.NDArray[np.float64], list[npt.NDArray[np.float64]], tuple[float, float]]:
    """Counterfactual values of both players' hands [2, H], and at some decisions of the first street, of those of who
    acts there, after each of his actions [A, H].

    Chips times the weight of the other's hands that they meet, both following `strategy`; and what each gains, chips a
    deal, by a best response in its place.
    """
    public, walk = _walk(game, strategy, None, threads)
    trees, members, gains = public.trees, street_members(game.tree), []
    reach, every = game.cards.listed().reach, public.ranges.every
    places = [members[: trees.first[1]].tolist().index(node) for node in nodes]
    value = np.zeros((2, reach.shape[1]))
    action = [np.zeros((int(trees.actions[place]), reach.shape[1])) for place in places]
    for player in range(2):
        found = walk.values(player)
        gains.append(float(found[RESPOND] - found[FOLLOW]) / public.joint_weight)
        weight = reach[1 - player].max() / float(public.reach[1 - player].max())  # of the walk's hands, in the game's
        value[player] = weight * walk.root.by_hand.value[0, FOLLOW]
        entries = slice(*every.first[player, :2])
        for place, out in zip(places, action, strict=True):
            if trees.player[place] == player:
                top = int(walk.root.member_first[0]) + int(trees.child[place])
                below = walk.root.value[FOLLOW, top : top + len(out)]
                out[:, every.hand[entries]] = weight * below[:, every.column[entries]]
    return value, action, (gains[0], gains[1])


def is_large(game: Game) -> bool:
    """Whether strategy sums of a game with cards, on no buckets, are so many that they are measured where they lie."""
    return game.cards.dealt and game.known_cards is None and int(game.tree.row_slots @ game.buckets) >= IN_PLACE_CELLS


def measuring_tree(game: Game, public: PublicTree | None = None) -> PublicTree | None:
    """The public tree on which strategy sums of a game are measured where they lie; None where they are not.

    `public` is the game's, if it is made already, this one included.  `ValueError` as `public_tree`.
    """
    return tree_by_rows(game, public) if is_large(game) else None


def _sums(strategy: Strategy) -> list[npt.NDArray[Any]] | None:
    """Strategy sums by block, slots first, where they lie like that, one dtype for all; else None."""
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
    """A walk on sums in cells of 16 bits, of each block as `Strategy.narrow` has them."""
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


def _walk(game: Game, strategy: Strategy, public: PublicTree | None, threads: int) -> tuple[PublicTree, Walk]:
    """The public tree with the strategy on it."""
    if strategy.narrow is not None and (by_rows := measuring_tree(game, public)) is not None:
        return by_rows, _narrow_walk(in_dtype(by_rows, np.float32), strategy.narrow, game, threads)
    sums = _sums(strategy)
    by_rows = None if sums is None else measuring_tree(game, public)
    if sums is not None and by_rows is not None:
        by_rows = in_dtype(by_rows, sums[0].dtype)
        return by_rows, Walk(by_rows, sums, threads, sums=True)

    @cache
    def table(block: int) -> npt.NDArray[np.float64]:
        """Slots first, as in training; made out of what is stored, so that there are no others in memory."""
        return whole_rows(strategy.blocks[block], row_starts(game, block), _BLOCKS, threads)

    public = public or public_tree(game, LazyBlocks(len(strategy.blocks), lambda block: table(block).T))
    return public, Walk(public, [table(block) for block in range(len(strategy.blocks))], threads)


def expected_value(game: Game, strategy: Strategy, public: PublicTree | None = None) -> float:
    """Chips player 0 gets on average when both follow `strategy`; see `values`."""
    return float(values(game, strategy, (0,), public)[0, FOLLOW])


def best_response_value(game: Game, strategy: Strategy, player: int, public: PublicTree | None = None) -> float:
    """Chips `player` gets on average when he plays a best response to the other's part of `strategy`; see `values`.

    `ValueError` for another player than 0 or 1.
    """
    if player not in (0, 1):
        raise ValueError(f"player = {player}: it must be 0 or 1")
    return float(values(game, strategy, (player,), public)[0, RESPOND])
