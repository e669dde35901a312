"""Best responses inside CFR: for a whole player (CFR-BR), or only where he does not play to (zero reach).

* CFR-BR (Johanson, Bard, Burch & Bowling 2012): one player plays CFR, the other a best response to his strategy in
  every iteration.  The responder has no regret, so both average strategies approach an equilibrium.
* Zero-reach best response (Brown & Sandholm 2015, section 3): a player's strategy after an action that he does not play
  changes nobody else's regret in that iteration.  There, a best response is declared to have been played: no regret
  after the action grows, and the action itself is worth what the response wins.  The paper's condition R <= -Δ(I) keeps
  the action's regret from becoming positive; the bound (8) does not need it, and neither do we ask for it.

Exact: one best response for an infoset, summed over its histories.
"""

from abstraction.kernels.jit import part_njit
from mccfr.trees.compiled import NO_SLOT, TERMINAL


@part_njit
def respond(tree, walk, side, player, visited, everywhere):
    """Counterfactual values of a player's actions, best responses below included: into `side.increment`, which was 0.

    Where his own reach (`side.row_reach`) is 0, or everywhere, his rows of `side.sigma` become the best response: the
    first of the actions that are worth most.  Elsewhere they count as they are.  The opponent's reach is taken from a
    traversal that has just visited `visited` inner nodes, those without it left out or not.
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
