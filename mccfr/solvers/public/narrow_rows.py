"""Trains on tables of 16-bit cells: converts each decision's cells to float32 and back.

A cell is an int16 in units of 2^(scale - 128).  The actions of one decision for one bucket (or column of hands alike)
have one scale, uint8 [decision, bucket].  With it the largest of their cells has 2^14 to 2^15 units.  The format is
that of `mccfr.tables.int16_cells`, with the axes in the other order: [slot, bucket], a slot being one action of a
decision.

Cells are rounded up or down at random, so that they are right on average; rounding to nearest would lose small
increments.  Numbers that a cell can hold exactly do not change.  The random bits are a hash of iteration, slot, bucket
and number, so results do not depend on the thread.

These arguments are the same in all kernels here:

step         Step: rule, factors and weight of the iteration
tables       Tables of floats [slot, bucket], used if `narrow_rows` is None
narrow_rows  Int16Rows, or None for float tables
street       street of the decision, from 0
rows         Rows: first slot, actions, first bucket (`column`) and number of buckets (`count`)
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, part_njit, types
from mccfr.common.rounding import LEAST_SCALE, MOST_SCALE, SCALE_ZERO
from mccfr.solvers.minimisers import Rows, Tables
from mccfr.solvers.public.row_vectors import (
    ask_for_next,
    ask_if_alone,
    average_rows,
    match_rows,
    regret_rows,
    strategy_rows,
)

_MOST_UNITS = 32767.0
_BIAS = 127  # of exponents of float32
_HAIR = np.float32(1 + 2.0**-14)  # leaves room to round the largest cell up
_ODD, _OTHER_ODD = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77)  # mix bits (from the golden ratio, and from xxHash)
_ITERATION, _SLOT, _COLUMN = 0x27D4EB2F, 0x165667B1, 0x9E3779B9  # odd multipliers of the hash
_DIGITS = 9  # bits of a random number: with a cell's 15 they fit float32, so that whole units stay exact


class Int16Rows(NamedTuple):
    """A player's tables with 16-bit cells, one array for each street; slots are actions.

    A cell c with the scale s stands for the number c · 2^(s - 128).  All actions of a decision have the same scale in a
    bucket: that of cell [slot, bucket] is [row[slot], bucket].

    regret        [slot, bucket] int16      regrets
    strategy_sum  [slot, bucket] int16      strategy sums
    regret_scale  [decision, bucket] uint8  scales of `regret`; those below 28 mean 28
    sum_scale     [decision, bucket] uint8  scales of `strategy_sum`; those below 28 mean 28
    row           [slot] int64              number of the decision to which each slot belongs
    """

    regret: tuple[npt.NDArray[np.int16], ...]
    strategy_sum: tuple[npt.NDArray[np.int16], ...]
    regret_scale: tuple[npt.NDArray[np.uint8], ...]
    sum_scale: tuple[npt.NDArray[np.uint8], ...]
    row: tuple[npt.NDArray[np.int64], ...]


class Int16Work(NamedTuple):
    """Scratch and seed for updates of decisions with 16-bit cells, of at most X actions and W hands.

    wide       [X+1, W] float32  a decision's actions as floats, changed in place; the last row is spare
    iteration  int               seeds the rounding
    """

    wide: npt.NDArray[np.floating]
    iteration: int


@intrinsic
def _as_float(typing_context, bits):
    """Return the float32 that has these bits (int32)."""

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), codegen


@intrinsic
def _as_bits(typing_context, number):
    """Return the bits (int32) of a float32."""

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), codegen


@part_njit
def _power(exponent):
    """Return 2^exponent in float32, for an int32 exponent from -126 to 127."""
    return _as_float(np.int32((exponent + np.int32(_BIAS)) << np.int32(23)))


@part_njit
def widen(cells, scales, row, rows, out):
    """Convert a decision's 16-bit cells to float32 and write them to out [actions, :count].

    cells   [slot, bucket] int16
    scales  [decision, bucket] uint8
    row     number of the decision in `scales`
    """
    column, stop = rows.column, rows.column + rows.count
    scale = scales[row, column:stop]
    for a in range(rows.actions):
        cell_row, out_row = cells[rows.slot + a, column:stop], out[a]
        for k in range(rows.count):
            power = max(np.int32(scale[k]), np.int32(LEAST_SCALE))  # a new table's scales are 0
            out_row[k] = np.float32(cell_row[k]) * _power(power - np.int32(SCALE_ZERO))


@part_njit
def _chance(number, salt):
    """Return a random float32 in [0, 1) with 9 bits, hashed from a float32 and a salt (uint32)."""
    bits = np.uint32(np.uint32(_as_bits(number)) ^ salt)
    bits = np.uint32((bits ^ (bits >> np.uint32(15))) * _ODD)
    bits = np.uint32((bits ^ (bits >> np.uint32(13))) * _OTHER_ODD)
    bits = np.uint32((bits ^ (bits >> np.uint32(16))) >> np.uint32(32 - _DIGITS))
    return np.float32(np.int32(bits)) * np.float32(2.0**-_DIGITS)


@part_njit
def narrow(cells, scales, row, rows, numbers, spare, iteration):
    """Round numbers [actions, :count] float32 at random to 16-bit cells, and write these and scales.

    cells      [slot, bucket] int16, changed in place
    scales     [decision, bucket] uint8, changed in place
    row        number of the decision in `scales`
    numbers    [actions, >= count] regrets or strategy sums of the decision
    spare      [>= count] float32 scratch
    iteration  seeds the rounding
    """
    column, stop = rows.column, rows.column + rows.count
    scale = scales[row, column:stop]
    for k in range(rows.count):
        spare[k] = abs(numbers[0, k])
    for a in range(1, rows.actions):
        exact = numbers[a]
        for k in range(rows.count):
            spare[k] = max(spare[k], abs(exact[k]))
    for k in range(rows.count):
        exponent = (_as_bits(spare[k] * _HAIR) >> np.int32(23)) - np.int32(_BIAS - 1)  # the largest is below 2^exponent
        stored_scale = exponent + np.int32(SCALE_ZERO - 15)
        stored_scale = min(max(stored_scale, np.int32(LEAST_SCALE)), np.int32(MOST_SCALE))
        scale[k] = np.uint8(stored_scale)
        spare[k] = _power(np.int32(SCALE_ZERO) - stored_scale)
    most = np.float32(_MOST_UNITS)
    for a in range(rows.actions):
        out, exact = cells[rows.slot + a, column:stop], numbers[a]
        salt = np.uint32(iteration * _ITERATION + (rows.slot + a) * _SLOT + column * _COLUMN)
        for k in range(rows.count):
            units = np.floor(
                exact[k] * spare[k] + _chance(exact[k], np.uint32(salt + np.uint32(k) * np.uint32(_COLUMN)))
            )
            out[k] = np.int16(min(max(units, -most), most))


# --- updates of a decision's rows, as in `mccfr.solvers.minimisers` ---


@part_njit
def strategy_of(step, tables, narrow_rows, street, rows, sigma, offset, wide):
    """Write a decision's current strategy to sigma[offset : offset+actions], from float or 16-bit regrets.

    wide  [actions, >= count] float32 scratch, overwritten if cells have 16 bits
    """
    if narrow_rows is None:
        ask_if_alone(tables.basis, rows)
        strategy_rows(step, tables, rows, sigma, offset)
    else:
        row = narrow_rows.row[street][rows.slot]
        ask_for_next(narrow_rows.regret[street], rows)
        widen(narrow_rows.regret[street], narrow_rows.regret_scale[street], row, rows, wide)
        wide_rows = Rows(np.int64(0), rows.actions, np.int64(0), rows.count)
        strategy_rows(step, Tables(wide, wide, wide), wide_rows, sigma, offset)


@part_njit
def sums_strategy(table, narrow_rows, street, rows, sigma, offset, wide):
    """Write a decision's average strategy to sigma[offset : offset+actions], from float or 16-bit sums.

    table  [slot, bucket] strategy sums of floats, read if `narrow_rows` is None
    wide   [actions, >= count] float32 scratch, overwritten if cells have 16 bits
    """
    if narrow_rows is None:
        ask_if_alone(table, rows)
        match_rows(table, rows, sigma, offset)
    else:
        row = narrow_rows.row[street][rows.slot]
        ask_for_next(narrow_rows.strategy_sum[street], rows)
        widen(narrow_rows.strategy_sum[street], narrow_rows.sum_scale[street], row, rows, wide)
        match_rows(wide, Rows(np.int64(0), rows.actions, np.int64(0), rows.count), sigma, offset)


@part_njit
def add_to_average(step, tables, narrow_rows, street, rows, strategy, reach, work):
    """Update a decision's float or 16-bit strategy sums: keep · sum + weight · reach · strategy.

    strategy  (sigma, offset): the strategy is sigma[offset : offset+actions]
    reach     [>= count] the player's reach with each hand
    work      Int16Work, overwritten if cells have 16 bits

    `keep` and `weight` are those of `step`.  With `narrow_rows` None the float `tables` are updated.
    """
    sigma, offset = strategy
    if narrow_rows is None:
        ask_if_alone(tables.strategy_sum, rows)
        average_rows(step, tables, rows, sigma, offset, reach)
    else:
        cells, scales, wide = narrow_rows.strategy_sum[street], narrow_rows.sum_scale[street], work.wide
        ask_for_next(cells, rows)
        row = narrow_rows.row[street][rows.slot]
        widen(cells, scales, row, rows, wide)
        wide_rows = Rows(np.int64(0), rows.actions, np.int64(0), rows.count)
        average_rows(step, Tables(wide, wide, wide), wide_rows, sigma, offset, reach)
        narrow(cells, scales, row, rows, wide, wide[wide.shape[0] - 1], work.iteration)


@part_njit
def add_regrets(step, tables, narrow_rows, street, rows, counted, total, work):
    """Add each action's gain over the decision's value to float or 16-bit regrets; discount these.

    counted  (values, first): values[first+a] are the values of action a by hand
    total    [>= count] value of the decision by hand
    work     Int16Work, overwritten if cells have 16 bits

    The discounts are `step.positive` and `step.negative`.  With `narrow_rows` None the float `tables` are updated.
    """
    values, first = counted
    if narrow_rows is None:
        regret_rows(step, tables, rows, values, first, total)
    else:
        cells, scales, wide = narrow_rows.regret[street], narrow_rows.regret_scale[street], work.wide
        row = narrow_rows.row[street][rows.slot]
        widen(cells, scales, row, rows, wide)
        wide_rows = Rows(np.int64(0), rows.actions, np.int64(0), rows.count)
        regret_rows(step, Tables(wide, wide, wide), wide_rows, values, first, total)
        narrow(cells, scales, row, rows, wide, wide[wide.shape[0] - 1], work.iteration)
