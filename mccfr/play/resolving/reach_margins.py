"""Reach subgame solving: larger alternatives from the opponent's earlier mistakes.

Brown & Sandholm 2017, "Safe and nested subgame solving for imperfect-information games", section 4. At an earlier
decision, the opponent's hand may have had an action with a higher value than the one leading here. Its value here
may then rise by the difference, a *gift*, before coming here pays. The alternatives are raised by the gifts of all
the opponent's decisions on the path. Values are those of best responses to the strategy in force, which is safe for
any number of re-solved spots. The reason is that a value before chance or the player's actions is a mean of the
values after them.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.play.resolving.resolving_spot import Spot
from mccfr.tables.strategy import Strategy


def gifts(spot: Spot, board_of: Callable[[int], Any], player: int, strategy: Strategy) -> npt.NDArray[np.float64]:
    """Return [H] the counterfactual amounts that may be added to the opponent's alternatives at a spot.

    player    whose strategy is re-solved
    board_of  returns the earlier board of a street, in the form that `Spot` takes
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
        # A gift in chips per hand is the same at all later nodes, while counterfactual values shrink with the range.
        chips = found.value - found.action[node - int(arrays.first[above])]
        given += np.divide(chips * weight_here, weight_before, out=np.zeros_like(chips), where=weight_before > 0)
    return given
