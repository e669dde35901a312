"""Updates a decision's rows for whole ranges in vectors of one cache line (64 bytes).

A range of fifty hands is a few vectors.  Compiled loops over it spend more time on overlap checks and remainders, once
for each action, than on arithmetic.  Here all actions of a decision are handled for each vector, and the remainder is
one masked vector.  Results have the same bits as those of `mccfr.solvers.minimisers`.

Tables are [slot, column]: a slot is one action of a decision, columns are hands or buckets.  They are read and written
for a board's `count` columns and no further.  Rows of scratch arrays (ranges, strategies and values) are whole vectors
long: cells after `count` up to the end of a vector are changed too.
"""

import numpy as np
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, part_njit, types
from abstraction.kernels.prefetch import emit_prefetch, prefetch_to_write
from mccfr.common.float_tolerance import gain_share
from mccfr.solvers.minimisers import current_strategy, update_regrets
from mccfr.solvers.public.terminals.lane_code import I64, LINE_BYTES, Code, counting, swept
from mccfr.solvers.regret import as_element

_I32 = ir.IntType(32)
_LINE_CELLS = 16  # of float32 in a cache line


class _Vectors:
    """Emits LLVM code of this module's functions: loads, stores and loops of 64-byte vectors of cells.

    Arrays are addressed by name; a table is [slot, column], scratch is [row, column].
    """

    def __init__(self, context, builder, kinds, values, names):
        self.builder, self.code = builder, Code(context, builder, kinds, values, names)
        self.kind = self.code.vector(names.split()[0], LINE_BYTES // (kinds[0].dtype.bitwidth // 8))
        self.nothing = ir.Constant(self.kind, [0.0] * self.kind.count)
        self.mask = None  # set for the last, partial vector

    def all(self, value):
        """Emit a vector with the same value in all cells."""
        found = self.builder.insert_element(ir.Constant(self.kind, ir.Undefined), value, _I32(0))
        same = ir.Constant(ir.VectorType(_I32, self.kind.count), [0] * self.kind.count)
        return self.builder.shuffle_vector(found, ir.Constant(self.kind, ir.Undefined), same)

    def each(self, count, body):
        """Emit body(k) for each vector of the first `count` cells of a row, k being the vector's first cell.

        In the last vector, if it is partial, `mask` selects the cells before `count`.
        """
        builder, size = self.builder, self.kind.count
        whole = builder.and_(count, I64(-size))
        with counting(builder, I64(0), whole, size) as k:
            body(k)
        with builder.if_then(builder.icmp_signed("<", whole, count)):
            wide, numbers = ir.VectorType(_I32, size), list(range(size))
            left = builder.trunc(builder.sub(count, whole), _I32)
            left = builder.insert_element(ir.Constant(wide, ir.Undefined), left, _I32(0))
            left = builder.shuffle_vector(left, ir.Constant(wide, ir.Undefined), ir.Constant(wide, [0] * size))
            self.mask = builder.icmp_signed("<", ir.Constant(wide, numbers), left)
            body(whole)
            self.mask = None

    def row(self, name, number, k):
        """Emit the address of cell k in row `number` of the array `name`."""
        return self.builder.gep(self.code.at(name, number), [k])

    def load(self, place):
        """Emit a load of a whole vector from an address in scratch."""
        return self.code.block(place, I64(0), self.kind.count)

    def load_table(self, place):
        """Emit a load of a vector from an address in a table; `mask`, if set, leaves out later cells."""
        if self.mask is None:
            return self.load(place)
        return self._masked("load", self.kind, [self._vector(place), _I32(4), self.mask, self.nothing])

    def store_table(self, value, place):
        """Emit a store of a vector at an address in a table; `mask`, if set, leaves out later cells."""
        if self.mask is None:
            self.code.store(value, place)
        else:
            self._masked("store", ir.VoidType(), [value, self._vector(place), _I32(4), self.mask])

    def _vector(self, place):
        return self.builder.bitcast(place, self.kind.as_pointer())

    def _masked(self, verb, result, arguments):
        width = "f64" if isinstance(self.kind.element, ir.DoubleType) else "f32"
        name = f"llvm.masked.{verb}.v{self.kind.count}{width}.p0"
        kind = ir.FunctionType(result, [each.type for each in arguments])
        names = self.builder.module.globals
        return self.builder.call(names.get(name) or ir.Function(self.builder.module, kind, name), arguments)

    def ask_for(self, place):
        """Emit a prefetch of the cache line at an address that will be written soon."""
        emit_prefetch(self.builder, self.builder.bitcast(place, ir.IntType(8).as_pointer()), write=True)

    def each_ahead(self, name, count, body):
        """Emit body(k, ahead) for each vector of the first `count` cells of a row, as `each` does.

        ahead  how many cells later to prefetch: `count` (the next board's columns), or None in a table of one board
        name   name of the table
        """
        with self.builder.if_else(self.builder.icmp_signed("<", count, self.code.cells(name))) as (several, alone):
            with several:
                self.each(count, lambda k: body(k, count))
            with alone:
                self.each(count, lambda k: body(k, None))

    def floored(self, value):
        """Emit LLVM code that replaces the cells of the vector `value` that are below 0 by 0."""
        return self.builder.select(self.builder.fcmp_ordered(">", self.nothing, value), self.nothing, value)

    def size(self, value):
        """Emit LLVM code that computes the absolute value of each cell of the vector `value`."""
        names, width = self.builder.module.globals, "f64" if isinstance(self.kind.element, ir.DoubleType) else "f32"
        name = f"llvm.fabs.v{self.kind.count}{width}"
        function = names.get(name) or ir.Function(self.builder.module, ir.FunctionType(self.kind, [self.kind]), name)
        return self.builder.call(function, [value])


def _unpacked(builder, tuple_, count):
    return [builder.extract_value(tuple_, i) for i in range(count)]


def _matching(names):
    """Return the function that emits the code of `_match` or `_match_reach`.

    names  arrays in the order of its arguments: "sigma basis"; or "sigma basis reach", to multiply by reach
    """

    def codegen(context, builder, signature, arguments):
        arrays = len(names.split())
        vectors = _Vectors(context, builder, signature.args[:arrays], arguments[:arrays], names)
        place, slot, column, actions, count = _unpacked(builder, arguments[arrays], 5)
        otherwise = vectors.all(arguments[arrays + 1])

        def body(k, ahead):
            cell = builder.add(column, k)

            def regret(a):
                return vectors.floored(vectors.load_table(vectors.row("basis", builder.add(slot, a), cell)))

            total = swept(builder, I64(1), actions, [regret(I64(0))], lambda a, c: [builder.fadd(c[0], regret(a))])[0]
            some = builder.fcmp_ordered(">", total, vectors.nothing)
            with counting(builder, I64(0), actions) as a:
                if ahead:
                    vectors.ask_for(builder.gep(vectors.row("basis", builder.add(slot, a), cell), [ahead]))
                share = builder.select(some, builder.fdiv(regret(a), total), otherwise)
                if arrays > 2:
                    share = builder.fmul(share, vectors.load(builder.gep(vectors.code.data("reach"), [k])))
                vectors.code.store(share, vectors.row("sigma", builder.add(place, a), k))

        vectors.each_ahead("basis", count, body)
        return context.get_dummy_value()

    return codegen


@intrinsic
def _match(typing_context, sigma, basis, span, uniform):
    """Write a decision's regret matching to sigma[place+a, k] for each action a and column k.

    sigma    [., W] scratch array
    basis    [slot, column] regrets (or strategy sums)
    span     (place, slot, column, actions, count) int64: regrets are basis[slot+a, column+k] for k < count
    uniform  probability of each action where no regret is positive
    """
    return types.void(sigma, basis, types.UniTuple(types.int64, 5), sigma.dtype), _matching("sigma basis")


@intrinsic
def _match_reach(typing_context, out, basis, reach, span, uniform):
    """Write reach[k] times a decision's regret matching to out[place+a, k] for action a and column k.

    out      [., W] scratch array
    basis    [slot, column] regrets
    reach    [W] scratch
    span     (place, slot, column, actions, count) int64: regrets are basis[slot+a, column+k] for k < count
    uniform  probability of each action where no regret is positive
    """
    return types.void(out, basis, reach, types.UniTuple(types.int64, 5), out.dtype), _matching("sigma basis reach")


@intrinsic
def _average(typing_context, sums, sigma, reach, span, keep, weight):
    """Multiply sums[slot+a, column+k] by keep; add weight · reach[k] · sigma[place+a, k] to it.

    sums          [slot, column] strategy sums
    sigma, reach  [., W] and [W] scratch
    span          (place, slot, column, actions, count) int64, with a < actions and k < count
    """

    def codegen(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[:3], arguments[:3], "sums sigma reach")
        place, slot, column, actions, count = _unpacked(builder, arguments[3], 5)
        kept, weighed = vectors.all(arguments[4]), vectors.all(arguments[5])

        def body(k, ahead):
            counted = builder.fmul(weighed, vectors.load(builder.gep(vectors.code.data("reach"), [k])))
            with counting(builder, I64(0), actions) as a:
                cell = vectors.row("sums", builder.add(slot, a), builder.add(column, k))
                if ahead:
                    vectors.ask_for(builder.gep(cell, [ahead]))
                share = vectors.load(vectors.row("sigma", builder.add(place, a), k))
                found = builder.fadd(builder.fmul(kept, vectors.load_table(cell)), builder.fmul(counted, share))
                vectors.store_table(found, cell)

        vectors.each_ahead("sums", count, body)
        return context.get_dummy_value()

    return types.void(sums, sigma, reach, types.UniTuple(types.int64, 5), sums.dtype, sums.dtype), codegen


def _gaining(vectors, slot, column, first, actions, factors):
    """Return a function (k, mean) that emits the regret update of all actions for a vector of columns.

    Here k is the vector's first column, `mean` a vector of the decision's values.  Each regret grows by the action's
    value minus `mean` and is multiplied by a factor by its sign.

    factors  LLVM tuple (factor of positive regrets, of negative ones, limit); gains up to limit · |mean| count as 0
    """
    builder = vectors.builder
    positive, negative, limit = (vectors.all(each) for each in _unpacked(builder, factors, 3))

    def gain(k, mean):
        least, zero = builder.fmul(limit, vectors.size(mean)), builder.fsub(mean, mean)
        with counting(builder, I64(0), actions) as a:
            cell = vectors.row("regrets", builder.add(slot, a), builder.add(column, k))
            gained = builder.fsub(vectors.load(vectors.row("values", builder.add(first, a), k)), mean)
            clear = builder.fcmp_ordered(">", vectors.size(gained), least)
            regret = builder.fadd(vectors.load_table(cell), builder.select(clear, gained, zero))
            above = builder.fcmp_ordered(">", regret, vectors.nothing)
            vectors.store_table(builder.fmul(regret, builder.select(above, positive, negative)), cell)

    return gain


@intrinsic
def _gains(typing_context, regrets, values, total, span, factors):
    """Add values[first+a, k] - total[k] to regrets[slot+a, column+k], then multiply by a factor by sign.

    regrets        [slot, column]
    values, total  [., W] and [W] scratch: values of the actions, and of the decision
    span           (first, slot, column, actions, count) int64, with a < actions and k < count
    factors        (factor of positive regrets, factor of negative ones, limit): a difference of at most limit · |total|
                   counts as 0, because it is only rounding
    """

    def codegen(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[:3], arguments[:3], "regrets values total")
        first, slot, column, actions, count = _unpacked(builder, arguments[3], 5)
        gain = _gaining(vectors, slot, column, first, actions, arguments[4])
        vectors.each(count, lambda k: gain(k, vectors.load(builder.gep(vectors.code.data("total"), [k]))))
        return context.get_dummy_value()

    kind = types.UniTuple(regrets.dtype, 3)
    return types.void(regrets, values, total, types.UniTuple(types.int64, 5), kind), codegen


@intrinsic
def _mean_gains(typing_context, regrets, values, sigma, span, means, factors):
    """Set values[target, k] to the decision's value and update regrets[slot+a, column+k] with it.

    The value is the sum of sigma[place+a, k] · values[first+a, k].  Each regret grows by values[first+a, k] minus it
    and is then multiplied by a factor by sign.

    span     (first, slot, column, actions, count) int64, with a < actions and k < count
    means    (target, place): row of `values` for the decision, row of `sigma` for its first action
    factors  (factor of positive regrets, factor of negative ones, limit): a difference of at most limit · |value|
             counts as 0, because it is only rounding
    """

    def codegen(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[:3], arguments[:3], "regrets values sigma")
        first, slot, column, actions, count = _unpacked(builder, arguments[3], 5)
        target, place = _unpacked(builder, arguments[4], 2)
        gain = _gaining(vectors, slot, column, first, actions, arguments[5])

        def body(k):
            mean = _mean(vectors, first, place, actions, k)
            vectors.code.store(mean, vectors.row("values", target, k))
            gain(k, mean)

        vectors.each(count, body)
        return context.get_dummy_value()

    kind, numbers = types.UniTuple(regrets.dtype, 3), types.UniTuple(types.int64, 5)
    return types.void(regrets, values, sigma, numbers, types.UniTuple(types.int64, 2), kind), codegen


@intrinsic
def times_rows(typing_context, out, rows, reach, span):
    """Set out[place+a, k] = rows[first+a, k] · reach[k] for each action a.

    out, rows, reach  [., W], [., W] and [W] scratch
    span              (place, first, actions, count) int64, with k < count
    """

    def codegen(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[:3], arguments[:3], "out rows reach")
        place, first, actions, count = _unpacked(builder, arguments[3], 4)

        def body(k):
            counted = vectors.load(builder.gep(vectors.code.data("reach"), [k]))
            with counting(builder, I64(0), actions) as a:
                found = builder.fmul(vectors.load(vectors.row("rows", builder.add(first, a), k)), counted)
                vectors.code.store(found, vectors.row("out", builder.add(place, a), k))

        vectors.each(count, body)
        return context.get_dummy_value()

    return types.void(out, rows, reach, types.UniTuple(types.int64, 4)), codegen


@intrinsic
def weigh(typing_context, out, cells, weights, start, count):
    """Set out[k] = weights[start+k] · cells[k] for k < count.

    out, cells  rows of scratch, which may be the same
    weights     [>= start+count]; not read from start+count on
    """

    def codegen(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[:3], arguments[:3], "out cells weights")
        code, first = vectors.code, arguments[3]

        def body(k):
            weight = vectors.load_table(builder.gep(code.data("weights"), [builder.add(first, k)]))
            found = builder.fmul(weight, vectors.load(builder.gep(code.data("cells"), [k])))
            code.store(found, builder.gep(code.data("out"), [k]))

        vectors.each(arguments[4], body)
        return context.get_dummy_value()

    return types.void(out, cells, weights, types.int64, types.int64), codegen


def _mean(vectors, first, place, actions, k):
    """Emit the sum over actions a of values[first+a], each times sigma[place+a] unless `place` is None.

    k  first column of the vector, the same in `values` and `sigma`, whose rows are actions
    """
    builder = vectors.builder

    def value(a):
        found = vectors.load(vectors.row("values", builder.add(first, a), k))
        if place is None:
            return found
        return builder.fmul(vectors.load(vectors.row("sigma", builder.add(place, a), k)), found)

    return swept(builder, I64(1), actions, [value(I64(0))], lambda a, c: [builder.fadd(c[0], value(a))])[0]


@intrinsic
def add_rows(typing_context, values, sigma, span):
    """Set values[target] to the sum of values[first+a], each times sigma[place+a] unless place < 0.

    values, sigma  [., W] scratch
    span           (target, first, place, actions, count) int64, with a < actions; the first `count` columns are set
    """

    def codegen(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[:2], arguments[:2], "values sigma")
        target, first, place, actions, count = _unpacked(builder, arguments[2], 5)

        def summed(place):
            def body(k):
                vectors.code.store(_mean(vectors, first, place, actions, k), vectors.row("values", target, k))

            vectors.each(count, body)

        with builder.if_else(builder.icmp_signed("<", place, I64(0))) as (plain, mean):
            with plain:
                summed(None)
            with mean:
                summed(place)
        return context.get_dummy_value()

    return types.void(values, sigma, types.UniTuple(types.int64, 5)), codegen


# --- kernels ---


@part_njit
def _span(place, rows):
    """Return (place, slot, column, actions, count) as int64: row `place` of scratch, the fields of `rows`."""
    return np.int64(place), np.int64(rows.slot), np.int64(rows.column), np.int64(rows.actions), np.int64(rows.count)


@part_njit
def ask_for_next(table, rows):
    """Prefetch the `count` cells after a decision's own in each of its table rows.

    They belong to the next board.  In a table of one board they are the next slot's.

    table  [slot, column]
    rows   Rows: first slot, actions, first column and number of columns (`count`)
    """
    for a in range(rows.actions):
        start = (rows.slot + a) * table.shape[1] + rows.column + rows.count
        for cell in range(start, start + rows.count, _LINE_CELLS):
            prefetch_to_write(table, cell)


@part_njit
def ask_if_alone(table, rows):
    """Prefetch the cells after a decision's rows if the table [slot, column] has the columns of one board.

    With several boards, the vector loops prefetch.
    """
    if rows.count == table.shape[1]:
        ask_for_next(table, rows)


@part_njit
def match_rows(basis, rows, sigma, place):
    """Write a decision's regret matching to sigma[place : place+actions, :count].

    basis  [slot, column] regrets or strategy sums
    rows   Rows: first slot, actions, first column and number of columns (`count`)
    sigma  [., W] scratch array; its row `place` is for the first action
    """
    _match(sigma, basis, _span(place, rows), as_element(sigma, 1.0) / as_element(sigma, rows.actions))


@part_njit
def strategy_rows(step, tables, rows, sigma, place):
    """Write a decision's current strategy to sigma[place : place+actions, :count].

    It is regret matching on `tables.basis`, or the rule that `step.rule` gives: NormalHedge or a user's.

    rows   Rows: first slot, actions, first column and number of columns (`count`)
    sigma  [., W] scratch array; its row `place` is for the first action
    """
    if step.rule is None:
        match_rows(tables.basis, rows, sigma, place)
    else:
        current_strategy(step, tables, rows, sigma, place)


@part_njit
def average_rows(step, tables, rows, sigma, place, reach):
    """Set each strategy sum of a decision to keep · sum + weight · reach[k] · sigma[place+a, k].

    step   Step, with `keep` and `weight`
    rows   Rows: first slot, actions, first column and number of columns (`count`)
    sigma  [., W] scratch array of the strategy: row place+a is for action a
    reach  [W] scratch: the player's reach by column k
    """
    sums = tables.strategy_sum
    _average(sums, sigma, reach, _span(place, rows), as_element(sums, step.keep), as_element(sums, step.weight))


@part_njit
def range_rows(basis, rows, reach, out, place):
    """Write the ranges after a decision's actions, reach times regret matching, to rows of `out`.

    basis       [slot, column] regrets
    rows        Rows: first slot, actions, first column and number of columns (`count`)
    reach, out  [W] and [., W] scratch; rows place to place+actions-1 of `out` are set
    """
    ask_if_alone(basis, rows)
    _match_reach(out, basis, reach, _span(place, rows), as_element(out, 1.0) / as_element(out, rows.actions))


@part_njit
def _factors(step, regret):
    """Return (factor of positive regrets, of negative ones, relative rounding limit) in `regret`'s dtype."""
    limit = as_element(regret, gain_share(regret))
    return as_element(regret, step.positive), as_element(regret, step.negative), limit


@part_njit
def regret_rows(step, tables, rows, values, first, total):
    """Add each action's gain, values[first+a, k] - total[k], to a decision's regrets and discount these.

    step           Step, with the factors of regrets by sign; with a prediction, predicted regrets go to `tables.basis`
    rows           Rows: first slot, actions, first column and number of columns (`count`)
    values, total  [., W] and [W] scratch: values of the actions (row first+a of action a), and of the decision
    """
    if step.predicts is None:
        _gains(tables.regret, values, total, _span(first, rows), _factors(step, tables.regret))
    else:
        update_regrets(step, tables, rows, values, first, total)


@part_njit
def mean_and_regrets(step, regret, rows, values, sigma, at):
    """Set values[target] to a decision's value, and update its regrets with it, in one pass.

    The value is the sum of sigma[place+a] · values[first+a] over actions a.

    step    Step, with the factors of regrets by sign; `step.predicts` must be None
    regret  [slot, column]
    rows    Rows: first slot, actions, first column and number of columns (`count`)
    at      (target, first, place): row of `values` for the decision; rows of `values` and `sigma` for the first action
    """
    target, first, place = at
    _mean_gains(regret, values, sigma, _span(first, rows), (np.int64(target), np.int64(place)), _factors(step, regret))
