"""Exact value and exact best response over a public tree: the walk of full-width CFR on fixed strategies.

`RESPOND` and `FOLLOW` of `mccfr.fullwidth.street_walk` say what a best response is, and that it is exact.
"""

import numpy as np

from mccfr.fullwidth.public_walk import Scope, traverse
from mccfr.fullwidth.street_walk import FOLLOW, RESPOND, Views, new_scratch, street_tables
from mccfr.games.game import Game
from mccfr.strategy import Strategy
from mccfr.vector.minimisers import Step
from mccfr.vector.public_tree import PublicTree, public_tree


def _value(game: Game, strategy: Strategy, player: int, mode: int, public: PublicTree | None) -> float:
    """Chips `player` gets on average, over the joint distribution of hands."""
    public = public or public_tree(game)
    # Slots first, as in training; read-only or foreign layouts would have the kernels compiled once more.
    tables = [np.require(table.T, np.float64, ["C", "W"]) for table in strategy.probability]
    mine, theirs = (street_tables(tables, who) for who in (player, 1 - player))
    views = Views(mine, mine, mine, theirs)
    root, scratch = (new_scratch(public, streets, np.float64) for streets in (range(1), range(1, public.streets)))
    first, stop = public.root_boards.tolist()
    scope = Scope(player, player, first, stop, 0, len(public.tasks) + 2)
    traverse(public, (views, views), mode, np.zeros((1, len(Step._fields))), scope, root, scratch)
    return float(public.reach[player] @ root.hand_value[0]) / public.joint_weight


def expected_value(game: Game, strategy: Strategy, public: PublicTree | None = None) -> float:
    """Chips player 0 gets on average when both follow `strategy`, without `offset_chips`.

    `public` is the game's public tree, to save making it again.  `ValueError` for a game without listed cards.
    """
    return _value(game, strategy, 0, FOLLOW, public)


def best_response_value(game: Game, strategy: Strategy, player: int, public: PublicTree | None = None) -> float:
    """Chips `player` gets on average when he plays a best response to the other's part of `strategy`.

    Without `offset_chips`; `public` is the game's public tree.  `ValueError` for a game without listed cards or another
    player than 0 or 1.
    """
    if player not in (0, 1):
        raise ValueError(f"player = {player}: it must be 0 or 1")
    return _value(game, strategy, player, RESPOND, public)
