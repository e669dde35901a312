"""Stochastic rounding to float32: up or down at random, with chances that make it right on average.

Strategy sums in float32 need it.  Rounded to the nearest number, additions of one sign to a cell leave it 3 % off after
10^6 of them and 10 % after 10^7, and once an addition is less than half a unit in the last place the cell stands still.
Rounded at random the error has mean 0, and a standard deviation of at most 2.1·10^-4 of the sum however many are added:
an addition x to a sum s has a variance of at most x·ulp(s), which adds up to 2^-23·(m - 2/3)/m^2 of the square of a sum
of 2^K·m, 1 <= m < 2; most at m = 4/3.

Two forms.  Numbers in float64, as discounts make them, are rounded with 29 bits, as many digits as float64 has beyond
float32's.  Additions to sums, which kernels make at every decision, stay in single width and use 23 of the bits: the
addend is itself rounded to nearest (2^-24 of it), and chances are whole multiples of 2^-23, so that what is below 2^-46
of a sum is lost.

A word of 64 random bits serves a whole row: every lane (action, or hand) makes 29 bits of its own out of it.
"""

from typing import Any

from llvmlite import ir

from abstraction.kernels.jit import intrinsic, types

LARGEST_VARIANCE = 0.375 * 2.0**-23
"""Of a float32 sum of many additions of one sign, by rounding, relative to its square: (m - 2/3)/m^2 at m = 4/3."""

SCALE_ZERO, LEAST_SCALE, MOST_SCALE = 128, 28, 228
"""Scales of rows of 16-bit cells: that of a unit of 1, and the least and largest; a unit is 2^(scale - SCALE_ZERO)."""

_EXTRA = 52 - 23  # binary digits that float64 has and float32 has not
_LANE = 0x9E3779B9  # 2^32 / golden ratio, to odd: lanes far apart


def _alike(kind: Any, number: float) -> Any:
    """A constant of an integer type, or of a vector of one with all elements alike."""
    return ir.Constant(kind, [number] * kind.count if isinstance(kind, ir.VectorType) else number)


def emit_bits(builder: Any, low: Any, high: Any, lane: Any) -> Any:
    """29 random bits for each lane: values, or vectors, of 32-bit integers.  low, high  halves of the random word.

    The upper bits of high + low·c for a constant c of the lane: uniform because `high` is, and independent for any two
    lanes whose constants differ by an odd number times at most 8, as in a row of eight (Dietzfelbinger 1996, "Universal
    hashing and k-wise independent random variables via integer arithmetic without primes"), for lanes farther apart all
    but in their last few bits.  More is not needed: the variance of any total is that of independent bits.
    """
    product = builder.mul(low, builder.mul(lane, _alike(lane.type, _LANE)))
    return builder.lshr(builder.add(product, high), _alike(product.type, 32 - _EXTRA))


def emit_rounded(builder: Any, number: Any, bits: Any) -> Any:
    """float32 numbers, or a vector of them, from float64 ones and 29 random bits for each.

    The bits are added below float32's last digit, and what is left there is cut off.  What float32 can hold (0 above
    all) has nothing there and stays as it is; so do infinity and what is not a number.
    """
    lanes = number.type.count if isinstance(number.type, ir.VectorType) else 0
    integer: Any = ir.VectorType(ir.IntType(64), lanes) if lanes else ir.IntType(64)
    single: Any = ir.VectorType(ir.FloatType(), lanes) if lanes else ir.FloatType()
    bits = bits if bits.type == integer else builder.zext(bits, integer)
    raised = builder.add(builder.bitcast(number, integer), bits)
    cut = builder.and_(raised, _alike(integer, -1 << _EXTRA))
    return builder.fptrunc(builder.bitcast(cut, number.type), single)


def emit_added(builder: Any, total: Any, addend: Any, bits: Any) -> Any:
    """total + addend of float32 numbers, or vectors of them, rounded stochastically with 29 random bits for each.

    Both are at least 0, and what is added is the smaller, but for the first few times: then, and where the sum rounds
    up to a power of two, a chance may be off, once.  All in single width: the sum rounded to nearest, what that leaves
    (exact where total >= addend: Dekker 1971, "A floating-point technique for extending the available precision"), and
    a step of one unit in the last place with the chance that is left.  With the rest r, from -1/2 to 1/2 units, and a
    random number u in [1, 2), the step is the whole part of r + u, less 1.  Below 2^-104 it is rounding to nearest.
    """
    single, lanes = total.type, total.type.count if isinstance(total.type, ir.VectorType) else 0
    integer: Any = ir.VectorType(ir.IntType(32), lanes) if lanes else ir.IntType(32)
    found = builder.fadd(total, addend)
    left = builder.fsub(addend, builder.fsub(found, total))
    found_bits = builder.bitcast(found, integer)
    exponent = builder.and_(found_bits, _alike(integer, 0x7F800000))
    per_unit = builder.bitcast(builder.sub(_alike(integer, (2 * 127 + 23) << 23), exponent), single)
    mantissa = builder.lshr(bits, _alike(integer, _EXTRA - 23))
    drawn = builder.bitcast(builder.or_(mantissa, _alike(integer, 127 << 23)), single)
    step = builder.fptosi(builder.fadd(builder.fmul(left, per_unit), drawn), integer)
    return builder.bitcast(builder.add(builder.add(found_bits, step), _alike(integer, -1)), single)


def halves(builder: Any, word: Any) -> tuple[Any, Any]:
    """Lower and upper 32 bits of a 64-bit word."""
    narrow = ir.IntType(32)
    return builder.trunc(word, narrow), builder.trunc(builder.lshr(word, word.type(32)), narrow)


@intrinsic
def lane_bits(typing_context, word, lane):
    """29 random bits (int64) of a row's random `word` (uint64) for its lane number `lane` (int64)."""

    def codegen(context, builder, signature, arguments):
        bits = emit_bits(builder, *halves(builder, arguments[0]), builder.trunc(arguments[1], ir.IntType(32)))
        return builder.zext(bits, ir.IntType(64))

    return types.int64(types.uint64, types.int64), codegen


@intrinsic
def added(typing_context, array, total, addend, bits):
    """total + addend in the dtype of `array`: float64 as usual, float32 (of numbers from 0) by `emit_added`."""

    def codegen(context, builder, signature, arguments):
        _, total_, addend_, bits_ = arguments
        if array.dtype == types.float64:
            return builder.fadd(total_, addend_)
        return emit_added(builder, total_, addend_, builder.trunc(bits_, ir.IntType(32)))

    return array.dtype(array, array.dtype, array.dtype, types.int64), codegen


@intrinsic
def rounded(typing_context, array, number, bits):
    """A float64 `number` in the dtype of `array`: float64 as it is, float32 rounded stochastically by `lane_bits`."""

    def codegen(context, builder, signature, arguments):
        wide = array.dtype == types.float64
        return arguments[1] if wide else emit_rounded(builder, arguments[1], arguments[2])

    return array.dtype(array, types.float64, types.int64), codegen
