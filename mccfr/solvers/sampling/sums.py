"""Strategy sums at decisions of general records."""

from abstraction.kernels.jit import part_njit
from mccfr.solvers.regret import add


@part_njit
def add_strategy(tree, tables, hand, node, strategy, weight, word):
    """Add the current strategy at a decision to its sums, in place, where its block keeps any.

    strategy  (sigma [E], place of the first action's probability)
    weight    of the addition
    word      uint64 random bits that float32 sums are rounded by
    """
    sigma, place = strategy
    row = hand.sums[tree.block[node]]
    if row >= 0:
        add(tables.strategy_sum, row + tree.slot[node], tree.count[node], sigma, place, weight, word)
