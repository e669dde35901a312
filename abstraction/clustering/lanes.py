"""Distances of one point to 32 centres at once, in SIMD vectors of float32.

Centres are *packed* as [ceil(k / 32), D, 32] float32.  Panel p holds centres 32·p to 32·p + 31, coordinate by
coordinate, padded with infinities.  A *lane* is the vector element that sums the distance to one of the 32 centres.
It adds the terms in the order of `abstraction.clustering.metric`, without fused operations, so the result has the same
bits.
"""

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from abstraction.clustering.metric import EMD
from abstraction.kernels.jit import inline_njit, intrinsic, part_njit, types
from abstraction.kernels.prefetch import prefetch_to_read

LANES = 32
"""Centres measured together: two vectors of 16, which hides the latency of an addition."""
AHEAD = 8
"""Number of points by which prefetching runs ahead."""

_WIDTH = 16
_I32, _I64 = ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(ir.FloatType(), _WIDTH)
_BITS = ir.VectorType(_I32, _WIDTH)


def _splat(builder, value):
    vector = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, _I32(0))
    return builder.shuffle_vector(vector, vector, ir.Constant(_BITS, [0] * _WIDTH))


def _square(builder, difference):
    return builder.fmul(difference, difference)


def _absolute(builder, difference):
    bits = builder.and_(builder.bitcast(difference, _BITS), ir.Constant(_BITS, [0x7FFFFFFF] * _WIDTH))
    return builder.bitcast(bits, _VECTOR)


def _sum_terms(builder, point, panel, dimensions, term):
    """Emit LLVM code that sums term(point[j] − centre[j]) over j for 32 centres.

    builder     LLVM builder to which the code is added
    point       pointer to float32 [dimensions]
    panel       pointer to float32 [dimensions, 32], the 32 centres
    dimensions  int64 value, at least 1
    term        function of (builder, vector) that emits the square or the absolute value of the vector's elements

    Returns the 32 sums as two LLVM vectors of 16 float32.
    """
    before, loop, after = builder.block, builder.append_basic_block("terms"), builder.append_basic_block("summed")
    builder.branch(loop)
    builder.position_at_end(loop)
    index = builder.phi(_I64)
    index.add_incoming(_I64(0), before)
    totals = [builder.phi(_VECTOR) for _ in range(LANES // _WIDTH)]
    value = _splat(builder, builder.load(builder.gep(point, [index])))
    added = []
    for number, total in enumerate(totals):
        total.add_incoming(ir.Constant(_VECTOR, [0.0] * _WIDTH), before)
        offset = builder.add(builder.mul(index, _I64(LANES)), _I64(number * _WIDTH))
        address = builder.bitcast(builder.gep(panel, [offset]), _VECTOR.as_pointer())
        difference = builder.fsub(value, builder.load(address, align=4))
        added.append(builder.fadd(total, term(builder, difference)))
        total.add_incoming(added[-1], loop)
    following = builder.add(index, _I64(1))
    index.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, dimensions), loop, after)
    builder.position_at_end(after)
    return added


def _lanes(term):
    """Return the body of a numba intrinsic that computes the distances of one point to 32 centres.

    `term` emits LLVM code for the square (L2) or the absolute value (EMD) of a vector of differences.
    """

    def lanes(typing_context, points, row, panels, panel, dimensions, sums):
        def codegen(context, builder, signature, arguments):
            def data(number):
                return context.make_array(signature.args[number])(context, builder, arguments[number]).data

            _, row_, _, panel_, dimensions_, _ = arguments
            point = builder.gep(data(0), [builder.mul(row_, dimensions_)])
            columns = builder.gep(data(2), [builder.mul(builder.mul(panel_, dimensions_), _I64(LANES))])
            for number, vector in enumerate(_sum_terms(builder, point, columns, dimensions_, term)):
                address = builder.gep(data(5), [_I64(number * _WIDTH)])
                builder.store(vector, builder.bitcast(address, _VECTOR.as_pointer()), align=4)
            return context.get_dummy_value()

        return types.void(points, types.int64, panels, types.int64, types.int64, sums), codegen

    return lanes


_l2_lanes = intrinsic(_lanes(_square))
_emd_lanes = intrinsic(_lanes(_absolute))


@inline_njit
def prefetch_point(points, row):
    """Prefetch row `row` of points [N, D] float32 into the processor's caches.

    In random order each row is a cache miss, which costs more than the sum of its terms.
    """
    for column in range(0, points.shape[1], 16):
        prefetch_to_read(points, row * points.shape[1] + column)


@inline_njit
def lane_distances(points, row, panels, panel, metric, sums):
    """Write the distances of points[row] to the 32 centres of panels[panel] to sums [32] float32.

    points  [N, D] float32
    panels  [P, D, 32] float32, each panel holds 32 centres
    metric  L2 (squared distance) or EMD (earth mover's distance)

    Arrays are C-contiguous.
    """
    if metric == EMD:
        _emd_lanes(points, row, panels, panel, points.shape[1], sums)
    else:
        _l2_lanes(points, row, panels, panel, points.shape[1], sums)


@part_njit
def closest_lane(sums, numbers, start, count, best, best_label):
    """Return (distance, number) of a point's closest centre: the best so far or of `count` more.

    sums              [32] float32 distances of the point to `count` centres; infinite from index `count` on
    numbers           int32 numbers of the centres; the centre of sums[i] is numbers[start + i]
    best, best_label  least distance of the point so far, and the number of that centre

    Among equals the lowest number wins.  Distances are not negative, so their bits compare as integers.  The compiler
    vectorises integer comparisons, but not those of floats.
    """
    bits = sums.view(np.int32)
    least = bits[0]
    for lane in range(LANES):
        least = min(least, bits[lane])
    closest = np.int32(least).view(np.float32)
    if closest <= best:
        for lane in range(count):
            number = numbers[start + lane]
            if sums[lane] == closest and (closest < best or number < best_label):
                best, best_label = closest, number
    return best, best_label


def pack_centres(centres: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return centres [k, D] as panels [ceil(k / 32), D, 32] float32, padded with infinities.

    Panel p holds centres 32·p to 32·p + 31.
    """
    k, dimensions = centres.shape
    panels = -(-k // LANES)
    padded = np.full((panels * LANES, dimensions), np.inf, np.float32)
    padded[:k] = centres
    return np.ascontiguousarray(padded.reshape(panels, LANES, dimensions).transpose(0, 2, 1))
