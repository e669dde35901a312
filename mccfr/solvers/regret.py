"""Regret matching and updates of table rows, action by action, for all sampled kernels.

A row is the cells of one infoset's actions, consecutive in a flat table.  Rows may have any number of actions; tables,
strategies and values may be float32 or float64.

`mccfr.solvers.sampling.packed_rows` does the same to a row of up to eight actions at once, in a vector of eight
numbers.  Its results are equal to the last bit.  So sums here are added in the order of such a vector's sum: first
every eighth number, then the eight results by halves.
"""

import numpy as np

from abstraction.kernels.jit import intrinsic, njit, part_njit
from mccfr.common.rounding import added, lane_bits

_LANES = 8


@intrinsic
def as_element(typing_context, array, number):
    """Return `number` converted to the dtype of `array`, which keeps float32 arithmetic in float32."""

    def codegen(context, builder, signature, arguments):
        return context.cast(builder, arguments[1], number, array.dtype)

    return array.dtype(array, number), codegen


# numba compiles a function for each integer type of its arguments, literals included: places and counts become int64.


@part_njit
def _lane(values, first, end):
    """Return the sum of every eighth value from index `first` on, before index `end`."""
    total = as_element(values, 0.0)
    for i in range(first, end, _LANES):
        total += values[i]
    return total


@njit
def total_of(values, offset, count):
    """Return the sum of values[offset : offset+count], added in the order of a sum of vectors of eight.

    Sum i of eight takes every eighth value from offset+i on.  Then sum i+4 is added to sum i, i+2 to i, and i+1 to i.
    """
    first, end = np.int64(offset), np.int64(offset) + np.int64(count)
    return (
        (_lane(values, first, end) + _lane(values, first + 4, end))
        + (_lane(values, first + 2, end) + _lane(values, first + 6, end))
    ) + (
        (_lane(values, first + 1, end) + _lane(values, first + 5, end))
        + (_lane(values, first + 3, end) + _lane(values, first + 7, end))
    )


@njit
def regret_matching(regret, start, actions, sigma, offset):
    """Write the current strategy of a row into sigma[offset : offset+actions], in place.

    It is in proportion to positive regrets, or uniform if none is positive.  Source: Hart & Mas-Colell 2000; Zinkevich
    et al. 2007, equation 8.

    regret   flat table of regrets, float32 or float64
    start    index of the row's first cell in `regret`
    actions  number of actions
    sigma    flat array of the same dtype
    offset   index in `sigma` of the first action's probability
    """
    one = as_element(sigma, 1.0)
    for a in range(actions):
        sigma[offset + a] = max(regret[start + a], as_element(sigma, 0.0))
    total = total_of(sigma, offset, actions)
    if total > 0:
        for a in range(actions):
            sigma[offset + a] /= total
    else:
        for a in range(actions):
            sigma[offset + a] = one / as_element(sigma, actions)


@part_njit
def _weight(weights, offset, actions, a):
    return max(weights[offset + a], as_element(weights, 0.0)) if 0 <= a < actions else as_element(weights, 0.0)


@part_njit
def _pair(weights, offset, actions, a):
    lane_sum = _weight(weights, offset, actions, a)
    return lane_sum + _weight(weights, offset, actions, a - 1) if a % 4 >= 1 else lane_sum


@part_njit
def _four(weights, offset, actions, a):
    lane_sum = _pair(weights, offset, actions, a)
    return lane_sum + _pair(weights, offset, actions, a - 2) if a % 4 >= 2 else lane_sum


@part_njit
def _prefix(weights, offset, actions, a):
    """Return the sum of the positive weights of a row's actions 0 to a, for a below 8.

    The row is weights[offset : offset+actions], regrets or probabilities; `a` may lie beyond its end.

    Weights of actions 0 to 3 and 4 to 7 are summed up apart, and the two sums are added.
    """
    lane_sum = _four(weights, offset, actions, a)
    return lane_sum + _four(weights, offset, actions, np.int64(3)) if a >= 4 else lane_sum


@part_njit
def last_positive(weights, offset, actions):
    """Return the last action a below `actions` with a positive weights[offset + a], or -1."""
    for a in range(actions - 1, -1, -1):
        if weights[offset + a] > 0:
            return a
    return -1


@part_njit
def _choose_evenly(weights, actions, u):
    limit = as_element(weights, u) * as_element(weights, actions)
    for a in range(actions - 1):
        if not as_element(weights, a + 1) <= limit:
            return a
    return actions - 1


@part_njit
def _choose_of_many(weights, offset, actions, u):
    total = as_element(weights, 0.0)
    for a in range(actions):
        total += _weight(weights, offset, actions, a)
    limit, last, total = as_element(weights, u) * total, 0, as_element(weights, 0.0)
    for a in range(actions):
        if weights[offset + a] > 0:
            last = a
            total += weights[offset + a]
            if not total <= limit:
                break
    return last


@njit
def choose(weights, offset, actions, u, even=False):
    """Return an action, 0 to actions-1, drawn in proportion to positive parts of weights from `offset` on.

    weights  flat array of regrets, or of probabilities of any sum
    u        random number in [0, 1)
    even     True: draw every action with the same probability, whatever the weights are

    If no weight is positive, all actions are equally likely.  Else, without `even`, an action of weight 0 or below is
    never drawn, also after rounding.
    """
    offset, actions, u = np.int64(offset), np.int64(actions), np.float64(u)
    if even or last_positive(weights, offset, actions) < 0:
        return _choose_evenly(weights, actions, u)
    if actions > _LANES:
        return _choose_of_many(weights, offset, actions, u)
    limit = as_element(weights, u) * _prefix(weights, offset, actions, np.int64(_LANES - 1))
    for a in range(actions):
        if weights[offset + a] > 0 and not _prefix(weights, offset, actions, a) <= limit:
            return a
    return last_positive(weights, offset, actions)


@njit
def add(sums, start, actions, sigma, offset, weight, word):
    """Add weight · sigma[offset : offset+actions] to sums[start : start+actions], in place.

    sums   flat table of strategy sums, float32 or float64
    sigma  flat array of strategies
    word   uint64 random bits for the stochastic rounding of float32 sums (`mccfr.common.rounding`); unused for float64
    """
    factor = as_element(sums, weight)
    for a in range(actions):
        addend = factor * as_element(sums, sigma[offset + a])
        sums[start + a] = added(sums, sums[start + a], addend, lane_bits(word, a))


@part_njit
def add_strategy(tree, tables, hand, node, strategy, weight, word):
    """Add weight times the current strategy at a decision to its strategy sums, in place.

    Blocks (tables of one street and player) without strategy sums do not change.

    tree      TreeArrays of the game
    tables    TableArrays; `strategy_sum`, a flat array, is changed
    hand      HandRows: `sums` [B] has by block the index in `strategy_sum` at which the cells of the deal's bucket
              begin; below 0: the block has no sums
    node      tree node of the decision
    strategy  (flat array of strategies, index of the first action's probability)
    weight    factor of the strategy
    word      uint64 random bits for the stochastic rounding of float32 sums
    """
    sigma, offset = strategy
    row = hand.sums[tree.block[node]]
    if row >= 0:
        add(tables.strategy_sum, row + tree.slot[node], tree.count[node], sigma, offset, weight, word)


@njit
def update(regret, start, actions, value, first, total, weight):
    """Add weight · (value[first : first+actions] - total) to regret[start : start+actions], in place.

    regret  flat table of regrets
    value   flat array of the actions' values; total is the value of the row's strategy
    """
    factor = as_element(regret, weight)
    for a in range(actions):
        regret[start + a] += (value[first + a] - total) * factor


@njit
def update_explored(regret, start, actions, value, first, total, weight, floor):
    """Add weight · (value[first+a] - total) to regret[start+a] of each action a not pruned, in place.

    value  flat array of the actions' values; nan: the action is pruned, and its regret does not change
    total  value of the row's strategy
    floor  least regret; smaller results become `floor`
    """
    factor, least = as_element(regret, weight), as_element(regret, floor)
    for a in range(actions):
        if value[first + a] == value[first + a]:
            regret[start + a] = max(regret[start + a] + (value[first + a] - total) * factor, least)


@njit
def update_sampled(regret, start, actions, action, value, node_value, weight):
    """Add weight · (v - node_value) to regret[start+a] of each action a of a row, in place.

    v is `value` at the sampled `action` and 0 elsewhere (outcome sampling, Lanctot et al. 2009).

    regret      flat table of regrets
    actions     number of actions of the row
    action      index of the sampled action, from 0
    value       sampled value of that action
    node_value  value of the row's strategy: `value` times the probability of `action`
    """
    factor = as_element(regret, weight)
    for a in range(actions):
        gain = as_element(regret, value if a == action else 0.0) - as_element(regret, node_value)
        regret[start + a] += gain * factor
