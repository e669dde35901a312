"""Regret minimisers as kernels on blocks of table rows: current strategy, regret update, average.

A *row block* is `table[slot : slot+actions, column : column+count]` of arrays [slots, columns].  Each column is the row
of one infoset; columns are hands, buckets, or a single one.  The inner loops run over columns and are vectorised.

* Regret matching (Hart & Mas-Colell 2000; Zinkevich et al. 2007, equation 8): in proportion to positive regrets.
* Regret matching plus (Tammelin 2014): the same with regrets floored at 0, which is a discount with β = -∞.
* NormalHedge (Chaudhuri, Freund & Hsu 2009; Brown & Sandholm 2019, "NormalHedge for CFR Variants").
* Optimistic (Brown & Sandholm 2019, "Optimistic CFR Variants"): next strategy from R_old + 2r instead of R_old + r.
* Predictive regret matching plus (Farina, Kroer & Sandholm 2021), the last regret as prediction: next strategy from
  R_new + r.  R_new is [R_old + r]₊ after its discount (Xu et al. 2024, section 4: PDCFR+).

A user's rule (`mccfr.solvers.user_regret_rules`) replaces regret matching.  No minimiser depends on the scale of
regrets, so callers omit constant factors of counterfactual values (deal weights, board probabilities).  Kernels compute
in the dtype of the tables, float32 or float64; NormalHedge's line search is in float64.
"""

from math import exp, log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import njit, part_njit
from mccfr.common.float_tolerance import gain_share
from mccfr.solvers.regret import as_element
from mccfr.solvers.user_regret_rules import own_rule

NORMAL_HEDGE = 1
"""`Step.rule` of NormalHedge."""

OPTIMISTIC, PREDICTIVE = 1, 2
"""Values of `Step.predicts`: the next strategy is from R_old + 2r, or R_new + r (r: last regrets)."""

_NARROW = 4  # bytes of a float32
_LAST_STEP_NARROW, _LAST_STEP_WIDE = 1e-4, 1e-7  # relative; they leave relative errors of 1e-8 and 1e-14
_MOST_STEPS = 64  # Newton's method needs fewer than ten here


class Step(NamedTuple):
    """Parameters of the kernels for one iteration of a variant.

    R_old and R_new are a regret before and after the iteration's update; r is the regret that the iteration adds.
    Kernels contain no code for a rule or prediction that is None.

    rule      int64    None: regret matching; NORMAL_HEDGE; or the address of a user's rule
                       (`mccfr.solvers.user_regret_rules`)
    predicts  int64    None: the next strategy follows from R_new.  OPTIMISTIC: from R_old + 2r.  PREDICTIVE: from
                       R_new + r.  With either, `Tables.basis` is a separate table that holds these numbers
    positive  float64  R_new = positive · (R_old + r) where the sum is positive
    negative  float64  R_new = negative · (R_old + r) elsewhere
    keep      float64  factor of the strategy sums before this iteration's strategy is added
    weight    float64  weight of this iteration's strategy in the sums
    """

    rule: int | None
    predicts: int | None
    positive: float
    negative: float
    keep: float
    weight: float


class Tables(NamedTuple):
    """Tables of one block (player and street) for kernels, all [slots, columns], of one dtype, in C order.

    A slot is one action of a decision; columns are hands or buckets.

    regret        cumulative regrets R
    basis         regrets that give the next strategy: `regret` itself, or with a prediction (`Step.predicts`) the table
                  "predicted_regret"
    strategy_sum  sums of strategies weighted by the player's own reach
    """

    regret: npt.NDArray[np.floating]
    basis: npt.NDArray[np.floating]
    strategy_sum: npt.NDArray[np.floating]


class Rows(NamedTuple):
    """The part of a table for one decision: table[slot : slot+actions, column : column+count].

    slot     first slot; the decision's actions have one slot each
    actions  number of actions
    column   first column: a hand or bucket
    count    number of columns
    """

    slot: int
    actions: int
    column: int
    count: int  # type: ignore[assignment]  # hides the tuple's own method


@njit
def current_strategy(step, tables, rows, sigma, offset):
    """Write the current strategy of a decision into sigma[offset : offset+actions, :count], in place.

    step    Step: `rule` of the strategy
    tables  Tables; `basis` [slots, columns] gives the strategy
    rows    Rows: slots and columns of the decision
    sigma   [., >= count]; row offset+a receives action a
    """
    if step.rule is None:
        regret_matching(tables.basis, rows, sigma, offset)
    elif step.rule == NORMAL_HEDGE:
        _normal_hedge(tables.basis, rows, sigma, offset)
    else:
        own_rule(np.int64(step.rule), tables.basis, rows, sigma, offset)


@part_njit
def regret_matching(basis, rows, sigma, offset):
    """Write the strategy by regret matching into sigma[offset : offset+actions, :count], in place.

    basis  [slots, columns] regrets
    rows   Rows: slots and columns of the decision
    sigma  [., >= count]; row offset+a receives action a, and the last one holds the totals meanwhile

    Columns without a positive regret become uniform.
    """
    column, stop, last = rows.column, rows.column + rows.count, rows.actions - 1
    zero, uniform = as_element(sigma, 0.0), as_element(sigma, 1.0) / as_element(sigma, rows.actions)
    total = sigma[offset + last]
    row = basis[rows.slot, column:stop]
    for k in range(rows.count):
        total[k] = max(row[k], zero)
    for a in range(1, rows.actions):
        row = basis[rows.slot + a, column:stop]
        for k in range(rows.count):
            total[k] += max(row[k], zero)
    for a in range(last):
        row, out = basis[rows.slot + a, column:stop], sigma[offset + a]
        for k in range(rows.count):
            share = max(row[k], zero) / total[k]
            out[k] = share if total[k] > zero else uniform
    row = basis[rows.slot + last, column:stop]
    for k in range(rows.count):
        share = max(row[k], zero) / total[k]
        total[k] = share if total[k] > zero else uniform


@part_njit
def _hedge_scale(basis, rows, column, largest):
    """Return the s >= 1 at which the mean of exp(s·x) over the actions is e, by Newton's method.

    x = (R₊ / largest)², and in the paper's letters s = largest²/(2c).  The mean lies between exp(s)/actions and exp(s),
    so the root lies between 1 and 1 + log(actions).  From the upper end Newton's steps approach the root from above.
    Each step squares the relative error, so the last step may be as large as the root of the tolerance.

    basis    [slots, columns] regrets R
    rows     Rows: slots of the decision
    column   column of `basis`
    largest  largest regret in it, above 0
    """
    s, target = 1.0 + log(rows.actions), rows.actions * exp(1.0)
    last_step = _LAST_STEP_NARROW if basis.itemsize == _NARROW else _LAST_STEP_WIDE
    for _ in range(_MOST_STEPS):
        total, slope = 0.0, 0.0
        for a in range(rows.actions):
            regret, square, term = basis[rows.slot + a, column], 0.0, 1.0
            if regret > 0.0:
                square = (np.float64(regret) / largest) ** 2
                term = exp(s * square)
            total += term
            slope += square * term
        change = (total - target) / slope
        s -= change
        if abs(change) <= last_step * s:
            break
    return s


@part_njit
def _normal_hedge(basis, rows, sigma, offset):
    """Write NormalHedge's strategy of a decision into sigma[offset : offset+actions, :count], in place.

    It is in proportion to R₊·exp(R₊²/(2c)), or uniform if no regret is positive.  c is chosen such that the mean of
    exp(R₊²/(2c)) over the actions is e.

    basis  [slots, columns] regrets R
    rows   Rows: slots and columns of the decision
    sigma  [., >= count]; row offset+a receives action a
    """
    for k in range(rows.count):
        column, largest, positive = rows.column + k, 0.0, 0
        for a in range(rows.actions):
            largest = max(largest, np.float64(basis[rows.slot + a, column]))
            positive += basis[rows.slot + a, column] > 0.0
        if positive == 0:
            for a in range(rows.actions):
                sigma[offset + a, k] = as_element(sigma, 1.0 / rows.actions)
            continue
        s = (
            _hedge_scale(basis, rows, column, largest) if positive > 1 else 0.0
        )  # a single positive action gets probability 1 at any scale
        total = 0.0
        for a in range(rows.actions):
            ratio, share = max(np.float64(basis[rows.slot + a, column]), 0.0) / largest, 0.0
            if ratio > 0.0:
                share = ratio * exp(s * ratio * ratio)
            sigma[offset + a, k] = as_element(sigma, share)
            total += share
        for a in range(rows.actions):
            sigma[offset + a, k] = as_element(sigma, np.float64(sigma[offset + a, k]) / total)


@part_njit
def gain(value, total, limit):
    """Return value - total, or 0 if the difference is at most limit · |total| and so only rounding.

    limit  `mccfr.common.float_tolerance.gain_share` in the dtype of the values: 1e-6 for float32, 1e-12 for float64
    """
    regret = value - total
    return regret if abs(regret) > limit * abs(total) else total - total


@njit
def update_regrets(step, tables, rows, values, first, total):
    """Add r = values[first+a, k] - total[k] to the regret of each action a, and discount, in place.

    An r that is only rounding counts as 0 (`gain`).  R_old + r is multiplied by `step.positive` or `step.negative`
    according to its sign, which gives R_new (Brown & Sandholm 2019, equations of DCFR).  With `step.predicts` the
    separate table `tables.basis` is written as well.  A column k is a hand or bucket.

    step    Step, with these factors
    tables  Tables, changed in place
    rows    Rows: slots and columns of the decision
    values  [., >= count] value of each action (row first+a) by column
    total   [>= count] value of the current strategy by column
    """
    column, stop = rows.column, rows.column + rows.count
    positive, negative = as_element(tables.regret, step.positive), as_element(tables.regret, step.negative)
    zero, limit = as_element(tables.regret, 0.0), as_element(tables.regret, gain_share(tables.regret))
    for a in range(rows.actions):
        row, value = tables.regret[rows.slot + a, column:stop], values[first + a]
        if step.predicts is not None and step.predicts == OPTIMISTIC:
            basis = tables.basis[rows.slot + a, column:stop]
            for k in range(rows.count):
                gained = gain(value[k], total[k], limit)
                basis[k] = row[k] + gained + gained
        for k in range(rows.count):
            regret = row[k] + gain(value[k], total[k], limit)
            row[k] = regret * (positive if regret > zero else negative)
        if step.predicts is not None and step.predicts == PREDICTIVE:
            basis = tables.basis[rows.slot + a, column:stop]
            for k in range(rows.count):
                basis[k] = row[k] + gain(value[k], total[k], limit)


@njit
def update_average(step, tables, rows, sigma, offset, reach):
    """Update strategy sums in place: keep · strategy_sum + weight · reach[k] · sigma[offset+a, k].

    A column k is a hand or bucket.

    step    Step with `keep` and `weight`
    tables  Tables; `strategy_sum` is changed
    rows    Rows: slots and columns of the decision
    sigma   [., >= count] strategy; row offset+a is action a
    reach   [>= count] by column: own reach of the player who acts at the decision
    """
    column, stop = rows.column, rows.column + rows.count
    keep, weight = as_element(tables.strategy_sum, step.keep), as_element(tables.strategy_sum, step.weight)
    for a in range(rows.actions):
        row, share = tables.strategy_sum[rows.slot + a, column:stop], sigma[offset + a]
        for k in range(rows.count):
            row[k] = keep * row[k] + weight * reach[k] * share[k]
