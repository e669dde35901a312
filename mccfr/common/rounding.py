"""Stochastic rounding to float32, up or down at random with the exact value as mean.

Strategy sums in float32 need it.  With rounding to nearest, the error of a cell is 3 % after 10^6 additions of one sign
and 10 % after 10^7.  A cell stops growing once an addition is below half a unit in the last place (ulp).

Stochastic rounding has an error of mean 0 and a standard deviation of at most 2.1·10^-4 of the sum.  An addition x to a
sum s has a variance of at most x·ulp(s).  All additions together have a variance of at most
(m - 2/3)/m^2 · 2^-23 of the sum's square.  Here the sum is 2^K·m with 1 <= m < 2; the largest value is at m = 4/3.

float64 numbers, such as discounted sums, are rounded with 29 bits, the digits that float64 has beyond float32.
Additions in kernels stay in float32 and use 23 of these bits.  There the addend is rounded to nearest, and
probabilities are multiples of 2^-23, so that additions below 2^-46 of a sum are lost.

One word of 64 random bits serves a whole table row.  Each cell of the row, for an action or hand, derives 29 bits from
it and from the cell's number, called lane.
"""

from typing import Any

from llvmlite import ir

from abstraction.kernels.jit import intrinsic, types

SCALE_ZERO, LEAST_SCALE, MOST_SCALE = 128, 28, 228
"""Scales of rows of 16-bit cells, whose unit is 2^(scale - SCALE_ZERO): scale of unit 1, smallest and largest scale."""

_EXTRA = 52 - 23  # binary digits that float64 has beyond float32
_LANE = 0x9E3779B9  # 2^32 / golden ratio, rounded to odd, so that multiples of it are far apart


def _alike(kind: Any, number: float) -> Any:
    """Return `number` as an LLVM constant of the type `kind`; for a vector type, in each element."""
    return ir.Constant(kind, [number] * kind.count if isinstance(kind, ir.VectorType) else number)


def emit_bits(builder: Any, low: Any, high: Any, lane: Any) -> Any:
    """Emit LLVM code for 29 random bits for each lane, an action or hand of a table row.

    builder    llvmlite's `IRBuilder`
    low, high  lower and upper half of the row's random word of 64 bits
    lane       number of the lane

    All values are 32-bit integers or vectors of them.  The result holds the 29 bits: the upper bits of high + low·c,
    with a constant c for each lane.  They are uniform.  Two lanes are independent if their constants differ by an odd
    number times at most 8, as in a row of eight.  Lanes farther apart are independent except for the last few bits.

    Source: Dietzfelbinger 1996, "Universal hashing and k-wise independent random variables via integer arithmetic
    without primes".
    """
    product = builder.mul(low, builder.mul(lane, _alike(lane.type, _LANE)))
    return builder.lshr(builder.add(product, high), _alike(product.type, 32 - _EXTRA))


def emit_rounded(builder: Any, number: Any, bits: Any) -> Any:
    """Emit LLVM code that rounds a float64 number, or a vector of them, to float32 by random bits.

    builder  llvmlite's `IRBuilder`
    number   LLVM value to round
    bits     29 random bits for each number, as integers of 32 or 64 bits

    The random bits are added below float32's last digit, and the digits there are then cut off.  Numbers that float32
    can hold, such as 0, infinity and nan, do not change.
    """
    lanes = number.type.count if isinstance(number.type, ir.VectorType) else 0
    integer: Any = ir.VectorType(ir.IntType(64), lanes) if lanes else ir.IntType(64)
    single: Any = ir.VectorType(ir.FloatType(), lanes) if lanes else ir.FloatType()
    bits = bits if bits.type == integer else builder.zext(bits, integer)
    raised = builder.add(builder.bitcast(number, integer), bits)
    cut = builder.and_(raised, _alike(integer, -1 << _EXTRA))
    return builder.fptrunc(builder.bitcast(cut, number.type), single)


def emit_added(builder: Any, total: Any, addend: Any, bits: Any) -> Any:
    """Emit LLVM code for total + addend of float32 numbers or vectors, rounded stochastically.

    builder        llvmlite's `IRBuilder`
    total, addend  LLVM values, at least 0
    bits           29 random bits for each number, as 32-bit integers

    Returns the LLVM value of the sum, which is rounded to nearest at first.  Its rounding error r (from -1/2 to 1/2
    ulp, unit in the last place) decides on a step of one ulp.  r is exact if total >= addend (Dekker 1971, "A
    floating-point technique for extending the available precision").  With a random u in [1, 2), the step is the
    integer part of r + u, less 1.

    Probabilities may be wrong for an addend larger than the total, and if the sum rounds up to a power of two.  Sums
    below 2^-104 are rounded to nearest.
    """
    single, lanes = total.type, total.type.count if isinstance(total.type, ir.VectorType) else 0
    integer: Any = ir.VectorType(ir.IntType(32), lanes) if lanes else ir.IntType(32)
    nearest = builder.fadd(total, addend)
    remainder = builder.fsub(addend, builder.fsub(nearest, total))
    nearest_bits = builder.bitcast(nearest, integer)
    exponent = builder.and_(nearest_bits, _alike(integer, 0x7F800000))
    per_unit = builder.bitcast(builder.sub(_alike(integer, (2 * 127 + 23) << 23), exponent), single)
    mantissa = builder.lshr(bits, _alike(integer, _EXTRA - 23))
    one_to_two = builder.bitcast(builder.or_(mantissa, _alike(integer, 127 << 23)), single)
    step = builder.fptosi(builder.fadd(builder.fmul(remainder, per_unit), one_to_two), integer)
    return builder.bitcast(builder.add(builder.add(nearest_bits, step), _alike(integer, -1)), single)


def halves(builder: Any, word: Any) -> tuple[Any, Any]:
    """Emit LLVM code that splits a 64-bit word; return the LLVM values (lower 32 bits, upper 32 bits).

    builder  llvmlite's `IRBuilder`
    """
    narrow = ir.IntType(32)
    return builder.trunc(word, narrow), builder.trunc(builder.lshr(word, word.type(32)), narrow)


@intrinsic
def lane_bits(typing_context, word, lane):
    """Return 29 random bits (int64) for one cell of a table row.

    word  uint64 random word of the row
    lane  int64 number of the cell in its row: the index of an action or hand
    """

    def codegen(context, builder, signature, arguments):
        bits = emit_bits(builder, *halves(builder, arguments[0]), builder.trunc(arguments[1], ir.IntType(32)))
        return builder.zext(bits, ir.IntType(64))

    return types.int64(types.uint64, types.int64), codegen


@intrinsic
def added(typing_context, array, total, addend, bits):
    """Return total + addend in the dtype of `array`; a float32 sum is rounded stochastically.

    total, addend  of the dtype of `array`; at least 0 if float32
    bits           int64 with 29 random bits from `lane_bits`; unused for float64
    """

    def codegen(context, builder, signature, arguments):
        _, total_, addend_, bits_ = arguments
        if array.dtype == types.float64:
            return builder.fadd(total_, addend_)
        return emit_added(builder, total_, addend_, builder.trunc(bits_, ir.IntType(32)))

    return array.dtype(array, array.dtype, array.dtype, types.int64), codegen


@intrinsic
def rounded(typing_context, array, number, bits):
    """Return a float64 `number` in the dtype of `array`; to float32 it is rounded stochastically.

    bits  int64 with 29 random bits from `lane_bits`; unused for float64
    """

    def codegen(context, builder, signature, arguments):
        wide = array.dtype == types.float64
        return arguments[1] if wide else emit_rounded(builder, arguments[1], arguments[2])

    return array.dtype(array, types.float64, types.int64), codegen
