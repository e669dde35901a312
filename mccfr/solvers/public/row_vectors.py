"""Rows of whole ranges as vectors, a cache line at a time: what `mccfr.solvers.minimisers` does, with the same bits.

A range of some fifty hands is three vectors.  What compilers make of a loop over it - checks whether arrays overlap, a
loop of vectors, what is left hand by hand, all that once for each action - takes longer than the arithmetic.  Here all
actions of a decision are gone through for each vector, and what is left over is a vector of which a part is masked.

Rows of tables are read and written up to `count` and no further.  Rows of scratch are whole vectors long
(`street_arrays`): cells behind `count` up to the end of a vector are changed as well.
"""

import numpy as np
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, part_njit, types
from abstraction.kernels.prefetch import emit_prefetch, prefetch_to_write
from mccfr.noise import gain_share
from mccfr.solvers.minimisers import NOTHING, REGRET_MATCHING, current_strategy, update_regrets
from mccfr.solvers.public.terminals.lane_code import I64, LINE_BYTES, Code, counting, swept
from mccfr.solvers.regret import as_element

_I32 = ir.IntType(32)
_LINE_CELLS = 16  # of float32 in a cache line


class _Vectors:
    """Code for vectors of rows of some arrays, by their names."""

    def __init__(self, context, builder, kinds, values, names):
        self.builder, self.code = builder, Code(context, builder, kinds, values, names)
        self.kind = self.code.vector(names.split()[0], LINE_BYTES // (kinds[0].dtype.bitwidth // 8))
        self.nothing = ir.Constant(self.kind, [0.0] * self.kind.count)
        self.mask = None  # of a vector that is not whole

    def all(self, value):
        """A vector of equal cells."""
        found = self.builder.insert_element(ir.Constant(self.kind, ir.Undefined), value, _I32(0))
        same = ir.Constant(ir.VectorType(_I32, self.kind.count), [0] * self.kind.count)
        return self.builder.shuffle_vector(found, ir.Constant(self.kind, ir.Undefined), same)

    def each(self, count, body):
        """body(k) for each vector of `count` cells, and with a mask for what is left over."""
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
        """Where a vector of a row begins."""
        return self.builder.gep(self.code.at(name, number), [k])

    def load(self, place):
        """A vector of scratch."""
        return self.code.block(place, I64(0), self.kind.count)

    def load_table(self, place):
        """A vector of a table."""
        if self.mask is None:
            return self.load(place)
        return self._masked("load", self.kind, [self._vector(place), _I32(4), self.mask, self.nothing])

    def store_table(self, value, place):
        """The other way."""
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

    def ask_for_next(self, name, place, count):
        """Have a vector of the next board's row, `count` cells behind this one, brought near; of one board none."""
        builder = self.builder
        with builder.if_then(builder.icmp_signed("<", count, self.code.cells(name))):
            emit_prefetch(builder, builder.bitcast(builder.gep(place, [count]), ir.IntType(8).as_pointer()), write=True)

    def floored(self, value):
        """max(value, 0)."""
        return self.builder.select(self.builder.fcmp_ordered(">", self.nothing, value), self.nothing, value)

    def size(self, value):
        """abs(value)."""
        names, width = self.builder.module.globals, "f64" if isinstance(self.kind.element, ir.DoubleType) else "f32"
        name = f"llvm.fabs.v{self.kind.count}{width}"
        function = names.get(name) or ir.Function(self.builder.module, ir.FunctionType(self.kind, [self.kind]), name)
        return self.builder.call(function, [value])


def _unpacked(builder, tuple_, count):
    return [builder.extract_value(tuple_, i) for i in range(count)]


@intrinsic
def _match(typing_context, sigma, basis, span, uniform):
    """sigma[place+a] = positive regrets over their total, else uniform.

    span  (place, slot, column, actions, count)
    """

    def codegen(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[:2], arguments[:2], "sigma basis")
        place, slot, column, actions, count = _unpacked(builder, arguments[2], 5)
        otherwise = vectors.all(arguments[3])

        def body(k):
            cell = builder.add(column, k)

            def regret(a, ahead=False):
                place = vectors.row("basis", builder.add(slot, a), cell)
                if ahead:
                    vectors.ask_for_next("basis", place, count)
                return vectors.floored(vectors.load_table(place))

            def added(a, total):
                return [builder.fadd(total[0], regret(a, ahead=True))]

            total = swept(builder, I64(1), actions, [regret(I64(0), ahead=True)], added)[0]
            some = builder.fcmp_ordered(">", total, vectors.nothing)
            with counting(builder, I64(0), actions) as a:
                share = builder.select(some, builder.fdiv(regret(a), total), otherwise)
                vectors.code.store(share, vectors.row("sigma", builder.add(place, a), k))

        vectors.each(count, body)
        return context.get_dummy_value()

    return types.void(sigma, basis, types.UniTuple(types.int64, 5), sigma.dtype), codegen


@intrinsic
def _average(typing_context, sums, sigma, reach, span, keep, weight):
    """sums[slot+a] = keep · sums[slot+a] + weight · reach · sigma[place+a]; span as of `_match`."""

    def codegen(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[:3], arguments[:3], "sums sigma reach")
        place, slot, column, actions, count = _unpacked(builder, arguments[3], 5)
        kept, weighed = vectors.all(arguments[4]), vectors.all(arguments[5])

        def body(k):
            counted = builder.fmul(weighed, vectors.load(builder.gep(vectors.code.data("reach"), [k])))
            with counting(builder, I64(0), actions) as a:
                cell = vectors.row("sums", builder.add(slot, a), builder.add(column, k))
                vectors.ask_for_next("sums", cell, count)
                share = vectors.load(vectors.row("sigma", builder.add(place, a), k))
                found = builder.fadd(builder.fmul(kept, vectors.load_table(cell)), builder.fmul(counted, share))
                vectors.store_table(found, cell)

        vectors.each(count, body)
        return context.get_dummy_value()

    return types.void(sums, sigma, reach, types.UniTuple(types.int64, 5), sums.dtype, sums.dtype), codegen


@intrinsic
def _gains(typing_context, regrets, values, total, span, factors):
    """regrets[slot+a] += values[first+a] - total, where that is no noise, then discounted by sign.

    span     (first, slot, column, actions, count)
    factors  (of positive regrets, of negative ones, the limit of `gain`)
    """

    def codegen(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[:3], arguments[:3], "regrets values total")
        first, slot, column, actions, count = _unpacked(builder, arguments[3], 5)
        positive, negative, limit = (vectors.all(each) for each in _unpacked(builder, arguments[4], 3))

        def body(k):
            mean = vectors.load(builder.gep(vectors.code.data("total"), [k]))
            least, zero = builder.fmul(limit, vectors.size(mean)), builder.fsub(mean, mean)
            with counting(builder, I64(0), actions) as a:
                cell = vectors.row("regrets", builder.add(slot, a), builder.add(column, k))
                gained = builder.fsub(vectors.load(vectors.row("values", builder.add(first, a), k)), mean)
                clear = builder.fcmp_ordered(">", vectors.size(gained), least)
                regret = builder.fadd(vectors.load_table(cell), builder.select(clear, gained, zero))
                above = builder.fcmp_ordered(">", regret, vectors.nothing)
                vectors.store_table(builder.fmul(regret, builder.select(above, positive, negative)), cell)

        vectors.each(count, body)
        return context.get_dummy_value()

    kind = types.UniTuple(regrets.dtype, 3)
    return types.void(regrets, values, total, types.UniTuple(types.int64, 5), kind), codegen


@intrinsic
def times_rows(typing_context, out, rows, reach, span):
    """out[place+a] = rows[first+a] · reach, rows of scratch; span (place, first, actions, count)."""

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
    """out[k] = weights[start+k] · cells[k]; out and cells are rows of scratch, the same one or not."""

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


@intrinsic
def add_rows(typing_context, values, sigma, span):
    """values[target] = sum of values[first+a], each times sigma[place+a] unless place is below 0; rows of scratch.

    span  (target, first, place, actions, count)
    """

    def codegen(context, builder, signature, arguments):
        vectors = _Vectors(context, builder, signature.args[:2], arguments[:2], "values sigma")
        target, first, place, actions, count = _unpacked(builder, arguments[2], 5)

        def summed(weighed):
            def body(k):
                def value(a):
                    found = vectors.load(vectors.row("values", builder.add(first, a), k))
                    if not weighed:
                        return found
                    return builder.fmul(vectors.load(vectors.row("sigma", builder.add(place, a), k)), found)

                total = swept(builder, I64(1), actions, [value(I64(0))], lambda a, c: [builder.fadd(c[0], value(a))])
                vectors.code.store(total[0], vectors.row("values", target, k))

            vectors.each(count, body)

        with builder.if_else(builder.icmp_signed("<", place, I64(0))) as (plain, mean):
            with plain:
                summed(False)
            with mean:
                summed(True)
        return context.get_dummy_value()

    return types.void(values, sigma, types.UniTuple(types.int64, 5)), codegen


# --- kernels ---


@part_njit
def _span(place, rows):
    """What is asked of rows of a table and of scratch."""
    return np.int64(place), np.int64(rows.slot), np.int64(rows.column), np.int64(rows.actions), np.int64(rows.count)


@part_njit
def ask_for_next(table, rows):
    """Have the rows behind a decision's brought near: the next board's or, of one board, the next decisions'."""
    for a in range(rows.actions):
        start = (rows.slot + a) * table.shape[1] + rows.column + rows.count
        for cell in range(start, start + rows.count, _LINE_CELLS):
            prefetch_to_write(table, cell)


@part_njit
def ask_if_alone(table, rows):
    """`ask_for_next` of a table of one board; with several, rows are asked for vector by vector, beside arithmetic."""
    if rows.count == table.shape[1]:
        ask_for_next(table, rows)


@part_njit
def match_rows(basis, rows, sigma, place):
    """`regret_matching`."""
    _match(sigma, basis, _span(place, rows), as_element(sigma, 1.0) / as_element(sigma, rows.actions))


@part_njit
def strategy_rows(step, tables, rows, sigma, place):
    """`current_strategy`."""
    if step.rule == REGRET_MATCHING:
        match_rows(tables.basis, rows, sigma, place)
    else:
        current_strategy(step, tables, rows, sigma, place)


@part_njit
def average_rows(step, tables, rows, sigma, place, reach):
    """`update_average`."""
    sums = tables.strategy_sum
    _average(sums, sigma, reach, _span(place, rows), as_element(sums, step.keep), as_element(sums, step.weight))


@part_njit
def regret_rows(step, tables, rows, values, first, total):
    """`update_regrets`."""
    if step.predicts == NOTHING:
        regret, limit = tables.regret, as_element(tables.regret, gain_share(tables.regret))
        factors = as_element(regret, step.positive), as_element(regret, step.negative), limit
        _gains(regret, values, total, _span(first, rows), factors)
    else:
        update_regrets(step, tables, rows, values, first, total)
