"""Updates of strategy sums in trees of general records."""

from abstraction.kernels.jit import part_njit
from mccfr.solvers.regret import add


@part_njit
def add_strategy(tree, tables, hand, node, strategy, weight, word):
    """Add the current strategy at a decision to its strategy sums, in place, if its block keeps any.

    strategy  (sigma [E], index of the first action's probability)
    weight    weight of the addition
    word      uint64 random bits for the stochastic rounding of float32 sums
    """
    sigma, place = strategy
    row = hand.sums[tree.block[node]]
    if row >= 0:
        add(tables.strategy_sum, row + tree.slot[node], tree.count[node], sigma, place, weight, word)
