"""Targeted CFR (Eric Jackson 2017, "Targeted CFR", the sampler of Slumbot 2017; algorithm 1 and the extensions).

Every traversal is for some streets, all of them or a drawn set.  On these the traverser walks all his actions and
regrets are updated, as in external sampling.  On the others one action is drawn from his current strategy and nothing
is updated: what comes back is still an unbiased value of the node.  Where two actions are close in regret he may walk
all of them on any street.  Strategy sums are added to by traversals for all streets alone.

A heuristic, as published: an infoset is updated more often the more often its street is targeted and the likelier the
traverser's own current strategy leads to it through streets that are not, and this is not divided out, because
dividing made convergence slower.  So a regret grows by the exact one times that probability (his own reach of the
infoset over untargeted decisions, summed over the drawn sets that have its street), which leaves its sign alone.
"""

from abstraction.jit import part_njit
from mccfr.rng import uniform


@part_njit
def draw_target(ends, rng):
    """Which set of streets a traversal is for; `ends` [T] float64 are sums of their shares."""
    if ends.shape[0] == 1:
        return 0
    drawn, target = uniform(rng), 0
    while target < ends.shape[0] - 1 and drawn >= ends[target]:
        target += 1
    return target


@part_njit
def is_close(regret, row, actions, gap):
    """Whether the two highest regrets of a row differ by less than `gap`."""
    highest, second = regret[row], regret[row]
    for a in range(1, actions):
        this = regret[row + a]
        if a == 1 or this > second:
            second = this
        if second > highest:
            highest, second = second, highest
    return actions > 1 and highest - second < gap
