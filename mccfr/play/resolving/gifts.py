"""What the opponent has given away on his way to a spot: reach subgame solving.

Brown & Sandholm 2017, "Safe and nested subgame solving for imperfect-information games", section 4.  At a decision of
his on the way, with some hand, another action may win him more than the one that leads here.  Then his value here may
rise by that difference, a *gift*, before he would come here at all.  So alternatives are raised by the gifts of all his
decisions on the path: by values of best responses against the strategy in force, which is safe however many spots are
solved, since a value before chance and our actions is a mean of those behind them (and a sum of gifts is used up from
the last decision to the first).
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.play.resolving.spot import Spot
from mccfr.tables.strategy import Strategy


def gifts(spot: Spot, board_of: Callable[[int], Any], player: int, strategy: Strategy) -> npt.NDArray[np.float64]:
    """[H] what may be added to the alternatives of `player`'s opponent at a spot, counterfactual.

    board_of  function of a street: the board of that street that the spot's was dealt on, as `Spot` takes it
    """
    arrays, path = spot.origin.tree.arrays, spot.origin.tree.path(spot.node)
    here = spot.ranges(strategy)[player]
    weight_here, given = spot.dealing.disjoint_weight(here), np.zeros(len(here))
    for above, node in pairwise(path):
        if int(arrays.player[above]) == player:
            continue
        before = Spot(spot.origin, above, board_of(int(arrays.block[above]) // 2))
        ours = before.ranges(strategy)[player]
        found = before.best_response(1 - player, ours, before.tables(strategy))
        weight_before = before.dealing.disjoint_weight(ours)
        # A gift is chips a hand, the same wherever the hand then goes; counterfactual values shrink with our range.
        chips = found.value - found.action[node - int(arrays.first[above])]
        given += np.divide(chips * weight_here, weight_before, out=np.zeros_like(chips), where=weight_before > 0)
    return given
