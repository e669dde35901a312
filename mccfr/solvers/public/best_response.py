"""Exact value and exact best response over a public tree: the walk of full-width CFR on fixed strategies.

`mccfr.solvers.public.street_walk` says what a best response is, and that it is exact.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.solvers.public.public_walk import Scope, value
from mccfr.solvers.public.street_arrays import FOLLOW, RESPOND, StreetScratch, Views, new_scratch, street_tables
from mccfr.solvers.public.walk_threads import Crew, shares_by_cost, walk_together
from mccfr.tables.row_tables import whole_rows
from mccfr.tables.strategy import LazyBlocks, Strategy, row_starts

_BLOCKS = 8  # kernels are compiled anew for each number of tables


class Walk:
    """A public tree with a strategy on it, to be valued for either player."""

    def __init__(
        self,
        public: PublicTree,
        tables: Sequence[npt.NDArray[np.float64]],
        threads: int = 1,
        choices: Sequence[npt.NDArray[np.float64]] | None = None,
    ) -> None:
        """`tables` are those of all blocks, [slots, buckets] each; values do not depend on the number of threads.

        choices  [2·slots, buckets] of each block, to which is added, by one thread, what a player's own range wins by
                 each action, and, in the lower half, by the best action for each hand (in the row of the first);
                 best responses are left out then
        """
        # Read-only or foreign layouts would have the kernels compiled once more.
        own = [np.require(table, np.float64, ["C", "W"]) for table in tables]
        self._public = public
        self._views = tuple(
            Views(None, street_tables(own, player), None if choices is None else street_tables(choices, player))
            for player in range(2)
        )
        values = 2 if choices is None else 1
        self.root = new_scratch(public, range(1), np.float64, values)
        self._scratch = [
            new_scratch(public, range(1, public.streets), np.float64, values)
            for _ in range(max(1, min(threads, len(public.tasks))))
        ]
        self._shares = shares_by_cost(public)

    def values(self, player: int, respond_from: int = 0) -> npt.NDArray[np.float64]:
        """[2] counterfactual values of a player's hands, weighed by his own deal weights and summed.

        `FOLLOW` where he follows his strategy, `RESPOND` where he plays a best response from a street on.  Divided by
        `joint_weight` they are chips a deal.  `root` keeps what was found on the first street.
        """
        public, root = self._public, self.root
        root.by_hand.value.fill(0)

        first, stop = public.boards.root.tolist()
        scope = Scope(player, player, first, stop, respond_from)

        def work(crew: Crew, scratch: StreetScratch) -> None:
            value(public, self._views, scope, root, scratch, crew)

        walk_together(work, self._shares, self._scratch)
        found: npt.NDArray[np.float64] = root.by_hand.value[0] @ public.reach[player]
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


def hand_values(
    game: Game, strategy: Strategy, threads: int = 1
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], tuple[float, float]]:
    """Counterfactual values of both players' hands [2, H], and of who acts first after each of his actions [A, H].

    Chips times the weight of the other's hands that they meet, both following `strategy`; and what each gains, chips a
    deal, by a best response in its place.
    """
    public, walk = _walk(game, strategy, None, threads)
    trees, first, gains = public.trees, int(game.tree.arrays.player[0]), []
    hands = public.reach.shape[1]
    value, action = np.zeros((2, hands)), np.zeros((int(trees.actions[0]), hands))
    for player in range(2):
        found = walk.values(player)
        gains.append(float(found[RESPOND] - found[FOLLOW]) / public.joint_weight)
        value[player] = walk.root.by_hand.value[0, FOLLOW]
        if player == first:
            own = public.ranges.hand[slice(*public.ranges.first[player, :2])]
            top = int(walk.root.member_first[0]) + int(trees.child[0])
            action[:, own] = walk.root.value[FOLLOW, top : top + len(action), : len(own)]
    return value, action, (gains[0], gains[1])


def _walk(game: Game, strategy: Strategy, public: PublicTree | None, threads: int) -> tuple[PublicTree, Walk]:
    """The public tree with the strategy on it."""

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
