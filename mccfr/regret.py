"""Regret matching and updates of table rows: the helpers that every sampled kernel shares."""

from math import exp

from abstraction.jit import njit


@njit
def regret_matching(regret, start, actions, sigma, place):
    """Current strategy of a row: sigma[place:place+actions] in proportion to positive regrets, else uniform.

    Hart & Mas-Colell 2000; Zinkevich et al. 2007, equation 8.  `regret` is the flat table, `start` the row's first
    cell; `sigma` float64 is changed in place.
    """
    total = 0.0
    for a in range(actions):
        positive = max(float(regret[start + a]), 0.0)
        sigma[place + a] = positive
        total += positive
    if total > 0.0:
        scale = 1.0 / total
        for a in range(actions):
            sigma[place + a] *= scale
    else:
        for a in range(actions):
            sigma[place + a] = 1.0 / actions


@njit
def choose(sigma, place, actions, u):
    """Action drawn from sigma[place:place+actions] by u in [0, 1): the number of prefix sums <= u, at most the last.

    An action of probability 0 is never drawn, also where rounding leaves the sum a hair below 1.
    """
    total = 0.0
    last = 0
    for a in range(actions):
        if sigma[place + a] > 0.0:
            total += sigma[place + a]
            last = a
            if u < total:
                return a
    return last


@njit
def add_sums(tables, block, start, actions, sigma, place, weight):
    """strategy_sum row += weight · sigma, in the block's own dtype, in place."""
    if tables.wide[block]:
        for a in range(actions):
            tables.wide_sum[start + a] += weight * sigma[place + a]
    else:
        for a in range(actions):
            tables.narrow_sum[start + a] += weight * sigma[place + a]


@njit
def discount_regrets(tables, start, actions, stamp, discount):
    """Bring a regret row forward to the present period: factors of the period ends since its stamp, by sign, in place."""
    seen = tables.stamp[stamp]
    if seen != discount.ends:
        positive = exp(discount.log_positive[discount.ends] - discount.log_positive[seen])
        negative = exp(discount.log_negative[discount.ends] - discount.log_negative[seen])
        for a in range(actions):
            tables.regret[start + a] *= positive if tables.regret[start + a] > 0 else negative
        tables.stamp[stamp] = discount.ends


@njit
def discount_sums(tables, block, start, actions, stamp, discount):
    """Bring a strategy-sum row forward to the present period, in place."""
    seen = tables.stamp[stamp]
    if seen != discount.ends:
        factor = exp(discount.log_sum[discount.ends] - discount.log_sum[seen])
        if tables.wide[block]:
            for a in range(actions):
                tables.wide_sum[start + a] *= factor
        else:
            for a in range(actions):
                tables.narrow_sum[start + a] *= factor
        tables.stamp[stamp] = discount.ends
