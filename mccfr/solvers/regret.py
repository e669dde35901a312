"""Regret matching and updates of table rows, action by action: the arithmetic that every sampled kernel shares.

The packed kernels do the same to a whole row at once (`mccfr.solvers.sampling.rows`), bit for bit: both add in the
order that suits eight lanes, so sums here look more roundabout than they need to.  Rows may have any number of actions;
tables, strategies and values may be float32 or float64.
"""

import numpy as np

from abstraction.kernels.jit import intrinsic, njit, part_njit
from mccfr.rounding import added, lane_bits

_LANES = 8


@intrinsic
def as_element(typing_context, array, number):
    """`number` converted to the dtype of `array`: keeps float32 arithmetic in float32."""

    def codegen(context, builder, signature, arguments):
        return context.cast(builder, arguments[1], number, array.dtype)

    return array.dtype(array, number), codegen


# Places and counts come as integers of several widths and as literals, and numba compiles a part for each of them: they
# are handed on as int64.


@part_njit
def _lane(values, first, end):
    """Sum of every eighth value from `first` on."""
    total = as_element(values, 0.0)
    for i in range(first, end, _LANES):
        total += values[i]
    return total


@njit
def total_of(values, place, count):
    """Sum of values[place : place+count] in the order of eight lanes folded in half three times."""
    first, end = np.int64(place), np.int64(place) + np.int64(count)
    return (
        (_lane(values, first, end) + _lane(values, first + 4, end))
        + (_lane(values, first + 2, end) + _lane(values, first + 6, end))
    ) + (
        (_lane(values, first + 1, end) + _lane(values, first + 5, end))
        + (_lane(values, first + 3, end) + _lane(values, first + 7, end))
    )


@njit
def regret_matching(regret, start, actions, sigma, place):
    """Current strategy of a row: sigma[place:place+actions] in proportion to positive regrets, else uniform.

    Hart & Mas-Colell 2000; Zinkevich et al. 2007, equation 8.  `regret` is the flat table, `start` the row's first
    cell; `sigma`, of the same dtype, is changed in place.
    """
    one = as_element(sigma, 1.0)
    for a in range(actions):
        sigma[place + a] = max(regret[start + a], as_element(sigma, 0.0))
    total = total_of(sigma, place, actions)
    if total > 0:
        for a in range(actions):
            sigma[place + a] /= total
    else:
        for a in range(actions):
            sigma[place + a] = one / as_element(sigma, actions)


@part_njit
def _weight(weights, place, actions, a):
    return max(weights[place + a], as_element(weights, 0.0)) if 0 <= a < actions else as_element(weights, 0.0)


@part_njit
def _pair(weights, place, actions, a):
    here = _weight(weights, place, actions, a)
    return here + _weight(weights, place, actions, a - 1) if a % 4 >= 1 else here


@part_njit
def _four(weights, place, actions, a):
    here = _pair(weights, place, actions, a)
    return here + _pair(weights, place, actions, a - 2) if a % 4 >= 2 else here


@part_njit
def _prefix(weights, place, actions, a):
    """Sum of the positive weights up to action a < 8, added within each half of eight lanes first."""
    here = _four(weights, place, actions, a)
    return here + _four(weights, place, actions, np.int64(3)) if a >= 4 else here


@part_njit
def last_positive(weights, place, actions):
    """The last action of positive weight, -1 if there is none."""
    for a in range(actions - 1, -1, -1):
        if weights[place + a] > 0:
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
def _choose_of_many(weights, place, actions, u):
    total = as_element(weights, 0.0)
    for a in range(actions):
        total += _weight(weights, place, actions, a)
    limit, last, total = as_element(weights, u) * total, 0, as_element(weights, 0.0)
    for a in range(actions):
        if weights[place + a] > 0:
            last = a
            total += weights[place + a]
            if not total <= limit:
                break
    return last


@njit
def choose(weights, place, actions, u, even=False):
    """Action drawn by u in [0, 1) in proportion to the positive parts of weights[place:place+actions].

    Weights are regrets, or probabilities of any sum.  Where none is positive, and with `even`, every action is equally
    likely.  The first positive weight whose prefix sum exceeds u·sum, or else (by rounding) the last positive one: what
    has no probability is never drawn.
    """
    place, actions, u = np.int64(place), np.int64(actions), np.float64(u)
    if even or last_positive(weights, place, actions) < 0:
        return _choose_evenly(weights, actions, u)
    if actions > _LANES:
        return _choose_of_many(weights, place, actions, u)
    limit = as_element(weights, u) * _prefix(weights, place, actions, np.int64(_LANES - 1))
    for a in range(actions):
        if weights[place + a] > 0 and not _prefix(weights, place, actions, a) <= limit:
            return a
    return last_positive(weights, place, actions)


@njit
def add(sums, start, actions, sigma, place, weight, word):
    """sums[start:start+actions] += weight · sigma[place:...], in place.

    word  uint64  random bits by which float32 sums are rounded (`mccfr.rounding`); float64 ones take no notice
    """
    factor = as_element(sums, weight)
    for a in range(actions):
        addend = factor * as_element(sums, sigma[place + a])
        sums[start + a] = added(sums, sums[start + a], addend, lane_bits(word, a))


@njit
def update(regret, start, actions, value, first, total, weight):
    """regret[start:start+actions] += weight · (value[first:...] - total), in place."""
    factor = as_element(regret, weight)
    for a in range(actions):
        regret[start + a] += (value[first + a] - total) * factor


@njit
def update_explored(regret, start, actions, value, first, total, weight, floor):
    """As `update` for the actions whose value is not nan (the others were pruned); no regret is left below `floor`."""
    factor, least = as_element(regret, weight), as_element(regret, floor)
    for a in range(actions):
        if value[first + a] == value[first + a]:
            regret[start + a] = max(regret[start + a] + (value[first + a] - total) * factor, least)


@njit
def update_sampled(regret, start, actions, action, value, here, weight):
    """regret[start:start+actions] += weight · ((value at the sampled action, else 0) - here), in place."""
    factor = as_element(regret, weight)
    for a in range(actions):
        gain = as_element(regret, value if a == action else 0.0) - as_element(regret, here)
        regret[start + a] += gain * factor
