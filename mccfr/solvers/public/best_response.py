"""Exact value and exact best response over a public tree: the walk of full-width CFR on fixed strategies.

`mccfr.solvers.public.street_walk` says what a best response is, and that it is exact.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.solvers.public.public_tree import PublicTree, public_tree
from mccfr.solvers.public.public_walk import Scope, value
from mccfr.solvers.public.street_walk import FOLLOW, RESPOND, Views, new_scratch, street_tables
from mccfr.tables.strategy import Strategy


def values(
    game: Game, strategy: Strategy, players: Sequence[int] = (0, 1), public: PublicTree | None = None
) -> npt.NDArray[np.float64]:
    """[players, 2] chips each player gets on average, without `offset_chips`, against the other's part of `strategy`.

    `FOLLOW` when he follows his own, `RESPOND` when he plays a best response.  `public` is the game's public tree, to
    save making it again; without it, boards on which hands play alike but for their suits are walked once, also where
    the game tells them apart.  `ValueError` for a game without listed cards.
    """
    public = public or public_tree(game, strategy.probability)
    # Slots first, as in training; read-only or foreign layouts would have the kernels compiled once more.
    tables = [np.require(table.T, np.float64, ["C", "W"]) for table in strategy.probability]
    sides = [street_tables(tables, player) for player in range(2)]
    views = tuple(Views(None, side, None) for side in sides)
    root, scratch = (new_scratch(public, streets, np.float64, 2) for streets in (range(1), range(1, public.streets)))
    (first, stop), parts = public.root_boards.tolist(), len(public.tasks) + 2
    found = np.zeros((len(players), 2))
    for row, player in enumerate(players):
        root.hand_value.fill(0)
        scope = Scope(player, player, first, stop, 0, parts)
        value(public, views, scope, root, scratch)
        found[row] = root.hand_value[0] @ public.reach[player] / public.joint_weight
    return found


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
