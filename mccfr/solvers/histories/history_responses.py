"""Best responses inside CFR: for a whole player (CFR-BR), or where the player's own reach is zero.

* CFR-BR (Johanson, Bard, Burch & Bowling 2012): one player plays CFR, the other a best response to it in each
  iteration.  The responder has no regret, so both average strategies approach an equilibrium.
* Zero-reach best response (Brown & Sandholm 2015, section 3): a strategy after an action of probability 0 changes no
  other player's regret in that iteration.  There a best response counts as played: no regret after the action grows,
  and the action gets the best response's value.

The paper's condition R <= -Δ(I) is not used, because the bound (8) does not need it.  Best responses are exact: one for
each infoset, summed over its histories.
"""

from abstraction.kernels.jit import part_njit
from mccfr.trees.compiled import NO_SLOT, TERMINAL


@part_njit
def respond(tree, walk, side, player, visited, everywhere):
    """Write the counterfactual values of a player's actions, with best responses below.

    visited     number of inner nodes that a traversal has just visited; it gives the opponent's reach
    everywhere  True: the best response replaces all of the player's rows of `side.sigma`; False: only rows with own
                reach 0 (`side.row_reach`)

    The values go to `side.increment`, which must be 0 before.  A best response takes the first of equal actions.
    """
    increment, sigma, sign = side.increment, side.sigma, 1.0 - 2.0 * player
    for place in range(visited):
        node = walk.order[place]
        for child in range(tree.first[node], tree.first[node] + tree.count[node]):
            if tree.kind[child] == TERMINAL and side.last[child] != NO_SLOT:
                increment[side.last[child], 0] += sign * walk.reach[1 - player, child] * walk.value[child]
    for row in range(side.above.shape[0] - 1, -1, -1):
        first, stop = side.starts[row], side.starts[row + 1]
        if everywhere or side.row_reach[row] == 0.0:
            best = first
            for slot in range(first, stop):
                sigma[slot, 0] = 0.0
                if increment[slot, 0] > increment[best, 0]:
                    best = slot
            sigma[best, 0] = 1.0
        if side.above[row] != NO_SLOT:
            for slot in range(first, stop):
                increment[side.above[row], 0] += sigma[slot, 0] * increment[slot, 0]
