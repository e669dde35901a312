"""Cells of tables as vectors of eight lanes: loads and stores for every dtype that a table may have.

float32 and float64 are read and written as they are.  int16 cells are whole multiples of a power of two that the row
has, 2^(scale - 128).  They are read as float32, which does all arithmetic, and written rounded stochastically: up or
down at random, with chances that make it right on average.  Rounded to nearest, a cell stands still once updates are
smaller than half a step of it, which with so few digits is soon.

A scale is a uint8 beside the row.  It follows from the row at each store: the largest cell lies from 2^14 to 2^15 of
its units, so no cell is ever cut off, weights may grow as they like, and no table is swept.  While it stays, cells that
an update leaves alone keep their bits, and so they do when it falls; when it rises they lose a digit, at random.

Chances are whole multiples of 2^-23 of a step.  What the addition in float32 leaves over is found (Knuth 1998, "The Art
of Computer Programming" 2, section 4.2.2, theorem B) and goes into the chance, so that updates far below a float32's
last digit are not lost either.

Where lanes are masked, cells beyond the row are never read or written.
"""

from llvmlite import ir

from abstraction.kernels.jit import intrinsic, types
from abstraction.kernels.prefetch import address_of, emit_prefetch
from mccfr.rounding import LEAST_SCALE, MOST_SCALE, SCALE_ZERO, emit_bits, halves

LANES = 8
I1, I32 = ir.IntType(1), ir.IntType(32)
_I8, _I16, _FLOAT = ir.IntType(8), ir.IntType(16), ir.FloatType()
_FLOATS, _WORDS, _CELLS = (ir.VectorType(kind, LANES) for kind in (_FLOAT, I32, _I16))
LANE_NUMBERS = ir.Constant(_WORDS, list(range(LANES)))
_MANTISSA, _BIAS, _SIGN = 23, 127, 0x80000000
_SCALED_BITS = 15  # of the largest cell of a row, in its units


def pointer(context, builder, array_type, array, index):
    """The address of a cell."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


def splat(builder, value, lanes=LANES):
    """A vector of one number."""
    vector = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    vector = builder.insert_element(vector, value, I32(0))
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))


def int32(builder, number):
    """An integer as 32 bits."""
    return builder.trunc(number, I32) if number.type.width > 32 else builder.sext(number, I32)


def lane_mask(builder, actions):
    """The lanes of a row's actions."""
    return builder.icmp_signed("<", LANE_NUMBERS, splat(builder, int32(builder, actions)))


def _function(builder, name, result, arguments):
    found = builder.module.globals.get(name)
    return found or ir.Function(builder.module, ir.FunctionType(result, arguments), name)


def _suffix(element):
    return {ir.FloatType(): "f32", ir.DoubleType(): "f64", _I16: "i16"}[element]


def load(builder, place, mask, align=4):
    """The masked lanes at an address, 0 in the others."""
    element = place.type.pointee
    vector = ir.VectorType(element, LANES)
    place = builder.bitcast(place, vector.as_pointer())
    name = f"llvm.masked.load.v{LANES}{_suffix(element)}.p0"
    function = _function(builder, name, vector, [place.type, I32, mask.type, vector])
    return builder.call(function, [place, I32(align), mask, ir.Constant(vector, [0] * LANES)])


def store(builder, vector, place, mask, align=4):
    """Store the masked lanes at an address."""
    place = builder.bitcast(place, vector.type.as_pointer())
    name = f"llvm.masked.store.v{LANES}{_suffix(vector.type.element)}.p0"
    function = _function(builder, name, ir.VoidType(), [vector.type, place.type, I32, mask.type])
    builder.call(function, [vector, place, I32(align), mask])


def is_narrow(dtype):
    """Whether cells of a dtype of numba's have 16 bits, and their rows scales."""
    return dtype == types.int16


def number_type(dtype):
    """What cells of a dtype of numba's are as numbers, in registers and in scratch."""
    return types.float32 if is_narrow(dtype) else dtype


def first_cell(builder, at):
    """The first cell of a row from where it is (`row_at`)."""
    return at if isinstance(at.type, ir.IntType) else builder.extract_value(at, 0)


def _scale_address(builder, at):
    return builder.extract_value(at, 1)


def load_row(context, builder, array_type, array, at, mask):
    """The row at a place (`row_at`) as numbers, 0 in the lanes beyond `mask`."""
    place, dtype = pointer(context, builder, array_type, array, first_cell(builder, at)), array_type.dtype
    if not is_narrow(dtype):
        return load(builder, place, mask)
    cells = builder.sitofp(load(builder, place, mask, 2), _FLOATS)
    return builder.fmul(cells, splat(builder, _unit(builder, _scale(builder, _scale_address(builder, at)))))


def _scale_pointer(builder, address):
    return builder.inttoptr(address, _I8.as_pointer())


def _scale(builder, address):
    """The scale (i32) at an address; an empty row's, 0, as the least: its cells are 0, and stay so."""
    found = builder.zext(builder.load(_scale_pointer(builder, address)), I32)
    return builder.select(builder.icmp_signed("<", found, I32(LEAST_SCALE)), I32(LEAST_SCALE), found)


def _unit(builder, scale):
    """2^(scale - SCALE_ZERO) as float32."""
    return builder.bitcast(builder.shl(builder.add(scale, I32(_BIAS - SCALE_ZERO)), I32(_MANTISSA)), _FLOAT)


def _new_scale(builder, numbers, mask, address):
    """Store the scale of a row with these numbers; returns one over its unit.

    A hair is added to the largest number, so that it may still be rounded up.
    """
    bits = builder.bitcast(numbers, _WORDS)
    bits = builder.and_(bits, ir.Constant(_WORDS, [_SIGN - 1] * LANES))
    bits = builder.select(mask, bits, ir.Constant(_WORDS, [0] * LANES))
    reduce = _function(builder, f"llvm.vector.reduce.umax.v{LANES}i32", I32, [_WORDS])
    largest = builder.fmul(builder.bitcast(builder.call(reduce, [bits]), _FLOAT), _FLOAT(1 + 2.0 ** (1 - _SCALED_BITS)))
    exponent = builder.lshr(builder.bitcast(largest, I32), I32(_MANTISSA))
    scale = builder.add(exponent, I32(SCALE_ZERO - _BIAS - (_SCALED_BITS - 1)))
    for relation, limit in (("<", LEAST_SCALE), (">", MOST_SCALE)):
        scale = builder.select(builder.icmp_signed(relation, scale, I32(limit)), I32(limit), scale)
    builder.store(builder.trunc(scale, _I8), _scale_pointer(builder, address))
    return _unit(builder, builder.sub(I32(2 * SCALE_ZERO), scale))


def _alike(number):
    return ir.Constant(_WORDS, [number] * LANES)


def emit_drawn(builder, word):
    """For each lane a random number from 1 to 2, of 23 bits; `word` has 64 random bits."""
    bits = emit_bits(builder, *(splat(builder, half) for half in halves(builder, word)), LANE_NUMBERS)
    mantissa = builder.lshr(bits, _alike(29 - _MANTISSA))
    return builder.bitcast(builder.or_(mantissa, _alike(_BIAS << _MANTISSA)), _FLOATS)


def _rounded(builder, numbers, addends, word):
    """int16 cells of the sums of two vectors, in the row's units."""
    found = builder.fadd(numbers, addends)
    back = builder.fsub(found, numbers)
    left = builder.fadd(builder.fsub(numbers, builder.fsub(found, back)), builder.fsub(addends, back))
    bits = builder.bitcast(found, _WORDS)
    sign = builder.and_(bits, _alike(_SIGN))
    size = builder.bitcast(builder.xor(bits, sign), _FLOATS)
    left = builder.bitcast(builder.xor(builder.bitcast(left, _WORDS), sign), _FLOATS)
    limit = ir.Constant(_FLOATS, [2.0**_SCALED_BITS - 1] * LANES)  # of what is not finite, or at the largest scale
    inside = builder.fcmp_ordered("<", size, limit)
    size = builder.select(inside, size, limit)
    whole = builder.fptosi(size, _WORDS)
    chance = builder.fadd(builder.fsub(size, builder.sitofp(whole, _FLOATS)), left)
    chance = builder.select(inside, chance, ir.Constant(_FLOATS, [0.0] * LANES))
    step = builder.fptosi(builder.fadd(chance, emit_drawn(builder, word)), _WORDS)
    whole = builder.sub(builder.add(whole, step), _alike(1))
    minus = builder.ashr(sign, _alike(31))
    return builder.trunc(builder.sub(builder.xor(whole, minus), minus), _CELLS)


def store_sum(context, builder, array_type, array, at, mask, numbers, addends, word=None):
    """Store the sums of two vectors as a row; `word`: 64 random bits, which int16 cells are rounded by."""
    place, dtype = pointer(context, builder, array_type, array, first_cell(builder, at)), array_type.dtype
    if not is_narrow(dtype):
        store(builder, builder.fadd(numbers, addends), place, mask)
        return
    scale = _new_scale(builder, builder.fadd(numbers, addends), mask, _scale_address(builder, at))
    inverse = splat(builder, scale)
    numbers, addends = builder.fmul(numbers, inverse), builder.fmul(addends, inverse)
    store(builder, _rounded(builder, numbers, addends, word), place, mask, 2)


@intrinsic
def is_scaled(typing_context, table):
    """Whether rows of a table have scales: known when a kernel is compiled."""
    known = is_narrow(table.dtype)

    def codegen(context, builder, signature, arguments):
        return I1(known)

    return types.boolean(table), codegen


@intrinsic
def row_at(typing_context, table, scales, cell, scale):
    """Where a row of `table` is: the number of its first cell, of an int16 table the address of scales[scale] too."""
    known = is_narrow(table.dtype)

    def codegen(context, builder, signature, arguments):
        if not known:
            return arguments[2]
        address = pointer(context, builder, signature.args[1], arguments[1], arguments[3])
        parts = arguments[2], builder.ptrtoint(address, ir.IntType(64))
        return context.make_tuple(builder, signature.return_type, parts)

    where = types.UniTuple(types.int64, 2) if known else types.int64
    return where(table, scales, types.int64, types.int64), codegen


@intrinsic
def prefetch_row(typing_context, table, scales, cell, scale):
    """Ask for the lines of a row, to be written soon, and of its scale where it has one; arguments as of `row_at`."""
    known = is_narrow(table.dtype)

    def codegen(context, builder, signature, arguments):
        table_, scales_, cell_, scale_ = arguments
        emit_prefetch(builder, address_of(context, builder, signature.args[0], table_, cell_), write=True)
        if known:
            emit_prefetch(builder, address_of(context, builder, signature.args[1], scales_, scale_), write=True)
        return context.get_dummy_value()

    return types.void(table, scales, types.int64, types.int64), codegen


@intrinsic
def prefetch_scale(typing_context, table, scales, scale):
    """Ask for the line of scales[scale], to be written soon, where rows of `table` have scales."""
    known = is_narrow(table.dtype)

    def codegen(context, builder, signature, arguments):
        if known:
            emit_prefetch(builder, address_of(context, builder, signature.args[1], *arguments[1:]), write=True)
        return context.get_dummy_value()

    return types.void(table, scales, types.int64), codegen


@intrinsic
def cell_number(typing_context, table, at, action):
    """The number in one cell of the row at a place (`row_at`)."""

    def codegen(context, builder, signature, arguments):
        cells, at_, action_ = arguments
        index = builder.add(first_cell(builder, at_), action_)
        dtype, place = table.dtype, pointer(context, builder, signature.args[0], cells, index)
        if not is_narrow(dtype):
            return builder.load(place)
        cell = builder.sitofp(builder.load(place, align=2), _FLOAT)
        return builder.fmul(cell, _unit(builder, _scale(builder, _scale_address(builder, at_))))

    return number_type(table.dtype)(table, at, types.int64), codegen
