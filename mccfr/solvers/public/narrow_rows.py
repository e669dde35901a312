"""Rows of 16-bit cells in full width: read into float32 where a decision is met, and rounded back.

A cell is an int16 in units of 2^(scale - 128); each row - a hand's, or a column's of hands alike - has a scale of its
own, uint8 [row, bucket], so that its largest cell lies from 2^14 to 2^15 units.  These are the cells and scales of
`mccfr.tables.narrow`, which everything that reads tables knows, with slots first.

Cells are rounded up or down with chances that make them right on average: to the nearest one, increments of late
iterations, small beside what has been added up, would be lost.  A number that a cell can hold stays as it is.  The
bits are a hash of the iteration, the row, the column and the number, so what comes out does not depend on who computes
it, and there is no state beside the tables.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, part_njit, types
from mccfr.rounding import LEAST_SCALE, MOST_SCALE, SCALE_ZERO
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
_HAIR = np.float32(1 + 2.0**-14)  # so that the largest cell may be rounded up
_ODD, _OTHER_ODD = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77)  # mix bits (the golden ratio's, and xxHash's prime)
_ITERATION, _SLOT, _COLUMN = 0x27D4EB2F, 0x165667B1, 0x9E3779B9  # odd: no two of a table are alike for long
_DIGITS = 9  # of a chance: with the 15 of a cell no more than float32 has, so that whole units stay as they are


class NarrowRows(NamedTuple):
    """A player's tables with cells of 16 bits, street by street.

    regret        [slot, bucket] int16 each
    strategy_sum  the same
    regret_scale  [row, bucket] uint8 each
    sum_scale     the same of the strategy sums
    row           [slot] int64 each: the row that a slot belongs to
    """

    regret: tuple[npt.NDArray[np.int16], ...]
    strategy_sum: tuple[npt.NDArray[np.int16], ...]
    regret_scale: tuple[npt.NDArray[np.uint8], ...]
    sum_scale: tuple[npt.NDArray[np.uint8], ...]
    row: tuple[npt.NDArray[np.int64], ...]


class NarrowWork(NamedTuple):
    """What rows of 16-bit cells are worked on with.

    wide       [X+1, W] float32  a decision's rows as floats, in place; the last one is spare
    iteration  by which they are rounded
    """

    wide: npt.NDArray[np.floating]
    iteration: int


@intrinsic
def _as_float(typing_context, bits):
    """The float32 of these bits (int32)."""

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), codegen


@intrinsic
def _as_bits(typing_context, number):
    """The bits (int32) of a float32."""

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), codegen


@part_njit
def _power(exponent):
    """2^exponent in float32, exponent int32 from -126 to 127."""
    return _as_float(np.int32((exponent + np.int32(_BIAS)) << np.int32(23)))


@part_njit
def widen(cells, scales, row, rows, out):
    """out [actions, :count] float32 = the numbers of cells [slot, bucket] int16 with scales [row, bucket]."""
    column, stop = rows.column, rows.column + rows.count
    scale = scales[row, column:stop]
    for a in range(rows.actions):
        found, here = cells[rows.slot + a, column:stop], out[a]
        for k in range(rows.count):
            power = max(np.int32(scale[k]), np.int32(LEAST_SCALE))  # a new table's scales are 0
            here[k] = np.float32(found[k]) * _power(power - np.int32(SCALE_ZERO))


@part_njit
def _chance(number, salt):
    """A number from 0 to 1, 1 excluded, out of the bits of another and of the salt (uint32), multiplied and shifted."""
    bits = np.uint32(np.uint32(_as_bits(number)) ^ salt)
    bits = np.uint32((bits ^ (bits >> np.uint32(15))) * _ODD)
    bits = np.uint32((bits ^ (bits >> np.uint32(13))) * _OTHER_ODD)
    bits = np.uint32((bits ^ (bits >> np.uint32(16))) >> np.uint32(32 - _DIGITS))
    return np.float32(np.int32(bits)) * np.float32(2.0**-_DIGITS)


@part_njit
def narrow(cells, scales, row, rows, numbers, spare, iteration):
    """Round numbers [actions, :count] float32 into cells and scales, in place; spare [:count] float32 is changed."""
    column, stop = rows.column, rows.column + rows.count
    scale = scales[row, column:stop]
    for k in range(rows.count):
        spare[k] = abs(numbers[0, k])
    for a in range(1, rows.actions):
        here = numbers[a]
        for k in range(rows.count):
            spare[k] = max(spare[k], abs(here[k]))
    for k in range(rows.count):
        exponent = (_as_bits(spare[k] * _HAIR) >> np.int32(23)) - np.int32(_BIAS - 1)  # the largest is below 2^exponent
        found = exponent + np.int32(SCALE_ZERO - 15)
        found = min(max(found, np.int32(LEAST_SCALE)), np.int32(MOST_SCALE))
        scale[k] = np.uint8(found)
        spare[k] = _power(np.int32(SCALE_ZERO) - found)
    most = np.float32(_MOST_UNITS)
    for a in range(rows.actions):
        out, here = cells[rows.slot + a, column:stop], numbers[a]
        salt = np.uint32(iteration * _ITERATION + (rows.slot + a) * _SLOT + column * _COLUMN)
        for k in range(rows.count):
            units = np.floor(here[k] * spare[k] + _chance(here[k], np.uint32(salt + np.uint32(k) * np.uint32(_COLUMN))))
            out[k] = np.int16(min(max(units, -most), most))


# --- what is done with the rows of a decision, as `mccfr.solvers.minimisers` does it with tables of floats ---


@part_njit
def strategy_of(step, tables, narrow_rows, street, rows, sigma, place, wide):
    """`current_strategy`; wide [actions, W] float32 is changed."""
    if narrow_rows is None:
        ask_if_alone(tables.basis, rows)
        strategy_rows(step, tables, rows, sigma, place)
    else:
        row = narrow_rows.row[street][rows.slot]
        ask_for_next(narrow_rows.regret[street], rows)
        widen(narrow_rows.regret[street], narrow_rows.regret_scale[street], row, rows, wide)
        here = Rows(np.int64(0), rows.actions, np.int64(0), rows.count)
        strategy_rows(step, Tables(wide, wide, wide), here, sigma, place)


@part_njit
def sums_strategy(table, narrow_rows, street, rows, sigma, place, wide):
    """sigma[place : place+actions] = what strategy sums say, of a table of floats or of narrow rows."""
    if narrow_rows is None:
        ask_if_alone(table, rows)
        match_rows(table, rows, sigma, place)
    else:
        row = narrow_rows.row[street][rows.slot]
        ask_for_next(narrow_rows.strategy_sum[street], rows)
        widen(narrow_rows.strategy_sum[street], narrow_rows.sum_scale[street], row, rows, wide)
        match_rows(wide, Rows(np.int64(0), rows.actions, np.int64(0), rows.count), sigma, place)


@part_njit
def add_to_average(step, tables, narrow_rows, street, rows, strategy, reach, work):
    """`update_average` of a strategy (sigma, place); `work.wide` is changed."""
    sigma, place = strategy
    if narrow_rows is None:
        ask_if_alone(tables.strategy_sum, rows)
        average_rows(step, tables, rows, sigma, place, reach)
    else:
        cells, scales, wide = narrow_rows.strategy_sum[street], narrow_rows.sum_scale[street], work.wide
        ask_for_next(cells, rows)
        row = narrow_rows.row[street][rows.slot]
        widen(cells, scales, row, rows, wide)
        here = Rows(np.int64(0), rows.actions, np.int64(0), rows.count)
        average_rows(step, Tables(wide, wide, wide), here, sigma, place, reach)
        narrow(cells, scales, row, rows, wide, wide[wide.shape[0] - 1], work.iteration)


@part_njit
def add_regrets(step, tables, narrow_rows, street, rows, counted, total, work):
    """`update_regrets` by what actions are worth (values, first); `work.wide` is changed."""
    values, first = counted
    if narrow_rows is None:
        regret_rows(step, tables, rows, values, first, total)
    else:
        cells, scales, wide = narrow_rows.regret[street], narrow_rows.regret_scale[street], work.wide
        row = narrow_rows.row[street][rows.slot]
        widen(cells, scales, row, rows, wide)
        here = Rows(np.int64(0), rows.actions, np.int64(0), rows.count)
        regret_rows(step, Tables(wide, wide, wide), here, values, first, total)
        narrow(cells, scales, row, rows, wide, wide[wide.shape[0] - 1], work.iteration)
