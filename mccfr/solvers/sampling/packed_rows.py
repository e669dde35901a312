"""Updates of table rows of up to eight actions as vectors; vector forms of `mccfr.solvers.regret`.

Each function is one LLVM sequence on a vector of eight cells (*lanes*).  A mask selects those of the row.  Its scalar
form in `mccfr.solvers.regret` has the same name without `_row` and gives the same bits, because both add in the same
order.  Elements are float32 or float64.  Lanes beyond the row's actions are never read or written in tables.

These arguments are the same in all intrinsics (functions that numba compiles from LLVM code) here:

regret         flat table of regrets; the row is regret[start : start+actions]
start          index of the row's first cell
actions        number of actions, at most eight
sigma, offset  flat array of strategies, and index in it of the first action's probability

Callers pass no `typing_context`; numba does.  In functions that emit code, arguments are LLVM values.
"""

from llvmlite import ir

from abstraction.kernels.jit import intrinsic, types
from abstraction.kernels.numba_settings import stores_masked_vectors
from mccfr.common.rounding import emit_added, emit_bits, halves

LANES = 8
_I1, _I32 = ir.IntType(1), ir.IntType(32)
_ALIGNED = 4  # bytes; the smallest cell is a float32
_LANE_NUMBERS = ir.Constant(ir.VectorType(_I32, LANES), list(range(LANES)))


def _pointer(context, builder, array_type, array, index):
    """Emit the address of cell `index` of a one-dimensional array."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


def _splat(builder, value):
    """Emit a vector of eight cells that all have the same number."""
    vector = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
    vector = builder.insert_element(vector, value, _I32(0))
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES))


def _int32(builder, number):
    """Emit the conversion of an LLVM integer to 32 bits, sign included."""
    return builder.trunc(number, _I32) if number.type.width > 32 else builder.sext(number, _I32)


def _lane_mask(builder, actions):
    """Emit a mask of eight booleans: true for the cells of a vector that hold a row's actions."""
    return builder.icmp_signed("<", _LANE_NUMBERS, _splat(builder, _int32(builder, actions)))


def _masked(builder, verb, result, arguments):
    """Emit a call of LLVM's masked load or store of a vector of eight cells.

    verb       "load" or "store"
    result     LLVM type of the result
    arguments  LLVM arguments of the call
    """
    vector = result if verb == "load" else arguments[0].type
    width = "f32" if isinstance(vector.element, ir.FloatType) else "f64"
    name, kind = f"llvm.masked.{verb}.v{LANES}{width}.p0", ir.FunctionType(result, [a.type for a in arguments])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    return builder.call(function, arguments)


def _load(builder, address, mask):
    """Emit a load of the cells that a mask selects from eight at an address; the others are 0."""
    vector = ir.VectorType(address.type.pointee, LANES)
    address, nothing = builder.bitcast(address, vector.as_pointer()), ir.Constant(vector, [0.0] * LANES)
    return _masked(builder, "load", vector, [address, _I32(_ALIGNED), mask, nothing])


def _store(builder, vector, address, mask, actions=None):
    """Emit a store, at an address, of those of a vector's eight cells that a mask selects.

    actions  number of actions, if the mask is that of a row, else None; with it the code may use a faster form for
             machines without masked stores
    """
    if actions is None or stores_masked_vectors() or isinstance(vector.type.element, ir.DoubleType):
        _store_masked(builder, vector, address, mask)
        return
    # Rows of two to four actions are stored as two pairs: the first two lanes and the last two.
    beyond = builder.sub(_int32(builder, actions), _I32(2))
    with builder.if_else(builder.icmp_unsigned("<", beyond, _I32(3))) as (few, many):
        with few:
            word = ir.IntType(64)
            pairs = builder.bitcast(vector, ir.VectorType(word, LANES // 2))
            first, last = (builder.extract_element(pairs, _I32(i)) for i in (0, 1))
            middle = builder.or_(builder.lshr(first, word(32)), builder.shl(last, word(32)))
            last = builder.select(builder.icmp_unsigned("==", beyond, _I32(1)), middle, last)
            last = builder.select(builder.icmp_unsigned("==", beyond, _I32(0)), first, last)
            for start, two in ((_I32(0), first), (beyond, last)):
                target = builder.bitcast(builder.gep(address, [start]), word.as_pointer())
                builder.store(two, target, align=_ALIGNED)
        with many:
            _store_masked(builder, vector, address, mask)


def _store_masked(builder, vector, address, mask):
    address = builder.bitcast(address, vector.type.as_pointer())
    _masked(builder, "store", ir.VoidType(), [vector, address, _I32(_ALIGNED), mask])


def _shuffled(builder, vector, lanes):
    nothing = ir.Constant(vector.type, [0.0] * LANES)
    return builder.shuffle_vector(vector, nothing, ir.Constant(ir.VectorType(_I32, LANES), lanes))


def _totals(builder, vector):
    """Emit a vector of eight cells that all have the sum of the cells of `vector`.

    Cells are added as ((0+4)+(2+6)) + ((1+5)+(3+7)).
    """
    for half in (4, 2, 1):
        vector = builder.fadd(vector, _shuffled(builder, vector, [i ^ half for i in range(LANES)]))
    return vector


def _prefix_sums(builder, vector):
    """Emit a vector of eight cells; cell i has the sum of cells 0 to i of `vector`.

    Each half is summed first, because its shuffles are cheap.
    """
    nothing = LANES
    vector = builder.fadd(vector, _shuffled(builder, vector, [nothing, 0, 1, 2, nothing, 4, 5, 6]))
    vector = builder.fadd(vector, _shuffled(builder, vector, [nothing, nothing, 0, 1, nothing, nothing, 4, 5]))
    return builder.fadd(vector, _shuffled(builder, vector, [nothing] * 4 + [3] * 4))


def _strategy(builder, row, mask, actions):
    """Emit regret matching of a row in a vector of eight cells; cells beyond its actions are 0.

    row      vector of the row's regrets; cells beyond its actions are 0
    mask     eight booleans: the cells that hold actions
    actions  number of actions
    """
    zero = ir.Constant(row.type, [0.0] * LANES)
    positive = builder.select(builder.fcmp_ordered(">", row, zero), row, zero)
    totals = _totals(builder, positive)
    some = builder.fcmp_ordered(">", totals, zero)
    # 1/total overflows if discounting has made a whole row tiny; division does not.
    ones = builder.select(mask, ir.Constant(row.type, [1.0] * LANES), zero)
    divisors = builder.select(some, totals, _counts(builder, actions, row.type.element))
    return builder.fdiv(builder.select(some, positive, ones), divisors)


def _counts(builder, actions, element):
    """Emit a vector of eight cells of the type `element`, which all have the number of actions."""
    return builder.sitofp(_splat(builder, _int32(builder, actions)), ir.VectorType(element, LANES))


def _drawn(builder, row, mask, actions, u, even):
    """Emit the action (int64) that u draws in proportion to the positive cells of a row.

    row      vector of eight cells
    mask     eight booleans: the cells that hold actions
    actions  number of actions
    u        random number in [0, 1) in the row's dtype
    even     boolean: all actions are equally likely

    All actions are equally likely too if no cell is positive.  The code has no branches.
    """
    element, bits = row.type.element, ir.IntType(LANES)
    zero = ir.Constant(row.type, [0.0] * LANES)
    is_positive = builder.fcmp_ordered(">", row, zero)
    sums = _prefix_sums(builder, builder.select(is_positive, row, zero))
    positive = builder.bitcast(is_positive, bits)
    totals = _shuffled(builder, sums, [LANES - 1] * LANES)
    even_lanes = _splat(builder, builder.sext(even, _I32))
    even_lanes = builder.icmp_signed("<", even_lanes, ir.Constant(even_lanes.type, [0] * LANES))
    evens = builder.or_(even_lanes, builder.fcmp_unordered("<=", totals, zero))
    even = builder.or_(even, builder.icmp_unsigned("==", positive, bits(0)))
    ones = ir.Constant(row.type, [lane + 1.0 for lane in range(LANES)])  # prefix sums of equal weights
    total = builder.select(evens, _counts(builder, actions, element), totals)
    limit = builder.fmul(_splat(builder, u), total)
    above = builder.fcmp_unordered(">", builder.select(evens, ones, sums), limit)
    possible = builder.zext(builder.select(even, builder.bitcast(mask, bits), positive), _I32)
    last = builder.lshr(_I32(1 << 31), builder.ctlz(possible, _I1(0)))
    candidates = builder.and_(possible, builder.or_(builder.zext(builder.bitcast(above, bits), _I32), last))
    return builder.zext(builder.cttz(candidates, _I1(0)), ir.IntType(64))


def _put(context, builder, array_type, array, index, vector):
    """Emit a store of a vector of eight cells to array[index] and the seven cells after it."""
    target = _pointer(context, builder, array_type, array, index)
    builder.store(vector, builder.bitcast(target, vector.type.as_pointer()), align=4)


@intrinsic
def regret_matching_row(typing_context, regret, start, actions, sigma, offset):
    """Write the current strategy of a regret row into sigma[offset : offset+8].

    Cells of sigma beyond the row's actions become 0.

    Vector form of `mccfr.solvers.regret.regret_matching`; regret and sigma have the same dtype.
    """

    def codegen(context, builder, signature, arguments):
        regret_, start_, actions_, sigma_, place_ = arguments
        mask = _lane_mask(builder, actions_)
        row = _load(builder, _pointer(context, builder, signature.args[0], regret_, start_), mask)
        _put(context, builder, signature.args[3], sigma_, place_, _strategy(builder, row, mask, actions_))
        return context.get_dummy_value()

    return types.void(regret, types.int64, actions, sigma, types.int64), codegen


@intrinsic
def match_and_choose_row(typing_context, regret, start, actions, u, even, sigma, offset):
    """Write a regret row's current strategy to sigma[offset : offset+8]; return an action drawn by it.

    u     random number in [0, 1), converted to the dtype of regret
    even  boolean: draw all actions with equal probability instead; the strategy written is the same

    Cells of sigma, which has the dtype of regret, become 0 beyond the row's actions.  Returns int64, 0 to actions-1.
    Vector form of `regret_matching` and `choose` of `mccfr.solvers.regret`.
    """

    def codegen(context, builder, signature, arguments):
        regret_, start_, actions_, u_, even_, sigma_, place_ = arguments
        mask = _lane_mask(builder, actions_)
        row = _load(builder, _pointer(context, builder, signature.args[0], regret_, start_), mask)
        number = context.cast(builder, u_, signature.args[3], signature.args[0].dtype)
        _put(context, builder, signature.args[5], sigma_, place_, _strategy(builder, row, mask, actions_))
        return _drawn(builder, row, mask, actions_, number, even_)

    return types.int64(regret, types.int64, actions, u, types.boolean, sigma, types.int64), codegen


def _in_element(builder, vector, element):
    """Emit a vector converted to cells of the type `element`, float32 or float64."""
    kind = ir.VectorType(element, LANES)
    if vector.type == kind:
        return vector
    return (builder.fpext if isinstance(element, ir.DoubleType) else builder.fptrunc)(vector, kind)


@intrinsic
def add_row(typing_context, sums, start, actions, sigma, offset, weight, word):
    """Add weight · sigma[offset : offset+actions] to sums[start : start+actions], in place.

    sums    flat table of strategy sums, float32 or float64
    sigma   float32 or float64; it must have eight cells from `offset` on
    weight  float64 factor of the strategy
    word    uint64 random bits for the stochastic rounding of float32 sums; unused for float64

    Vector form of `mccfr.solvers.regret.add`.
    """

    def codegen(context, builder, signature, arguments):
        sums_, start_, actions_, sigma_, place_, weight_, word_ = arguments
        source = _pointer(context, builder, signature.args[3], sigma_, place_)
        element, mask = context.get_value_type(sums.dtype), _lane_mask(builder, actions_)
        shares = builder.load(builder.bitcast(source, ir.VectorType(source.type.pointee, LANES).as_pointer()), align=4)
        factor = _splat(builder, context.cast(builder, weight_, types.float64, sums.dtype))
        target = _pointer(context, builder, sums, sums_, start_)
        row, addend = _load(builder, target, mask), builder.fmul(factor, _in_element(builder, shares, element))
        if sums.dtype == types.float32:
            bits = emit_bits(builder, *(_splat(builder, half) for half in halves(builder, word_)), _LANE_NUMBERS)
            found = emit_added(builder, row, addend, bits)
        else:
            found = builder.fadd(row, addend)
        _store(builder, found, target, mask, actions_)
        return context.get_dummy_value()

    return types.void(sums, types.int64, actions, sigma, types.int64, types.float64, types.uint64), codegen


def _action_values(context, builder, signature, arguments, mask):
    """Emit the values of a node's actions: first those that end the hand, then those of children.

    arguments  LLVM values of the arguments of `update_row` or `update_explored_row`
    mask       eight booleans: the cells that hold actions
    """
    value_, child_ = (builder.extract_value(arguments[4], i) for i in (0, 1))
    kinds = (types.int32, signature.args[0].dtype) * 2
    folds, fold, ends, call = (
        context.cast(builder, builder.extract_value(arguments[5], i), signature.args[5].types[i], kind)
        for i, kind in enumerate(kinds)
    )
    before = builder.add(folds, ends)
    children = builder.and_(mask, builder.icmp_signed(">=", _LANE_NUMBERS, _splat(builder, before)))
    first = builder.sub(child_, builder.sext(before, child_.type))
    values = _load(builder, _pointer(context, builder, signature.args[4].types[0], value_, first), children)
    at_fold = builder.icmp_signed("<", _LANE_NUMBERS, _splat(builder, folds))
    at_call = builder.and_(
        builder.icmp_signed(">=", _LANE_NUMBERS, _splat(builder, folds)),
        builder.icmp_signed("<", _LANE_NUMBERS, _splat(builder, before)),
    )
    values = builder.select(at_call, _splat(builder, call), values)
    return builder.select(at_fold, _splat(builder, fold), values)


def _gains(context, builder, signature, arguments, mask):
    """Emit (node value, value of each action minus it, mask of the actions that were not pruned).

    arguments  LLVM values of the arguments of `update_row`, with which the last result is None, or
               `update_explored_row`
    mask       eight booleans: the cells that hold actions
    """
    dtype, (sigma_, place_) = signature.args[3].types[0], (builder.extract_value(arguments[3], i) for i in (0, 1))
    vector = ir.VectorType(context.get_value_type(dtype.dtype), LANES)
    values = _action_values(context, builder, signature, arguments, mask)
    source = _pointer(context, builder, dtype, sigma_, place_)
    products = builder.fmul(builder.load(builder.bitcast(source, vector.as_pointer()), align=4), values)
    explored = None
    if isinstance(signature.args[6], types.BaseTuple):
        explored = builder.fcmp_ordered("ord", values, values)
        products = builder.select(explored, products, ir.Constant(vector, [0.0] * LANES))
    totals = _totals(builder, products)
    return builder.extract_element(totals, _I32(0)), builder.fsub(values, totals), explored


def _update(context, builder, signature, arguments):
    """Emit the code of `update_row`, or of `update_explored_row`; return the node's value.

    arguments  LLVM values of the arguments; the last is the weight, or in `update_explored_row` the pair (weight,
               floor)
    """
    regret_, start_, actions_, _, _, _, weight_ = arguments
    regret, weight = signature.args[0], signature.args[6]
    dtype, mask = regret.dtype, _lane_mask(builder, actions_)
    total, gain, explored = _gains(context, builder, signature, arguments, mask)
    if explored is not None:
        floor_, weight_ = builder.extract_value(weight_, 1), builder.extract_value(weight_, 0)
        floor, weight = _splat(builder, context.cast(builder, floor_, weight.types[1], dtype)), weight.types[0]
    address = _pointer(context, builder, regret, regret_, start_)
    change = builder.fmul(gain, _splat(builder, context.cast(builder, weight_, weight, dtype)))
    row = builder.fadd(_load(builder, address, mask), change)
    if explored is not None:
        row, mask = builder.select(builder.fcmp_ordered("<", row, floor), floor, row), builder.and_(mask, explored)
    _store(builder, row, address, mask, actions_ if explored is None else None)
    return total


@intrinsic
def update_row(typing_context, regret, start, actions, strategy, values, terminals, weight):
    """Update the regrets of a traverser's node, in place, and return the node's value v in chips.

    strategy   (sigma, index of the first action's probability)
    values     (flat array of node values, index of the value of the first action that does not end the hand)
    terminals  (folds, fold value, ends, call value): `folds` and `ends` are 1 if the first actions are a fold and a
               call that end the hand, else 0; the values are in chips. With three and more players they are any actions
               that do
    weight     discount weight of the update

    v = sum of sigma·values; regret += weight · (values - v).  Vector form of `mccfr.solvers.regret.update`.
    """
    return regret.dtype(regret, types.int64, actions, _placed(strategy), _placed(values), terminals, weight), _update


@intrinsic
def update_explored_row(typing_context, regret, start, actions, strategy, values, terminals, floored):
    """Update the regrets of a traverser's node, in place, where actions may be pruned; return its value v.

    The value of a pruned action is nan; it adds nothing to v, and its regret stays.

    strategy   (sigma, index of the first action's probability)
    values     (flat array of node values, index of the value of the first action that does not end the hand)
    terminals  (folds, fold value, ends, call value): `folds` and `ends` are 1 if the first actions are a fold and a
               call that end the hand, else 0; the values are in chips. With three and more players they are any actions
               that do
    floored    (weight of the update, floor); updated regrets below `floor` become `floor`

    Vector form of `mccfr.solvers.regret.update_explored`.
    """
    return regret.dtype(regret, types.int64, actions, _placed(strategy), _placed(values), terminals, floored), _update


def _placed(pair):
    """Return the numba type of an (array, index) tuple, whose type is `pair`, with int64 for the index."""
    return types.Tuple((pair.types[0], types.int64))


@intrinsic
def update_sampled_row(typing_context, regret, start, actions, action, values, weight):
    """Add weight · (v - here) to the regret of each action of a row, in place (outcome sampling).

    action  the sampled action, 0 to actions-1
    values  (value, here): sampled values of this action and of the row's strategy
    weight  discount weight of the update

    v is `value` at the sampled action and 0 elsewhere.  Vector form of `mccfr.solvers.regret.update_sampled`.
    """

    def codegen(context, builder, signature, arguments):
        regret_, start_, actions_, action_, values_, weight_ = arguments
        dtype, mask = regret.dtype, _lane_mask(builder, actions_)
        value, here = (
            _splat(builder, context.cast(builder, builder.extract_value(values_, i), values.types[i], dtype))
            for i in (0, 1)
        )
        zero = ir.Constant(ir.VectorType(context.get_value_type(dtype), LANES), [0.0] * LANES)
        taken = builder.icmp_signed("==", _LANE_NUMBERS, _splat(builder, _int32(builder, action_)))
        gains = builder.fsub(builder.select(taken, value, zero), here)
        factor = _splat(builder, context.cast(builder, weight_, weight, dtype))
        place = _pointer(context, builder, regret, regret_, start_)
        _store(builder, builder.fadd(_load(builder, place, mask), builder.fmul(gains, factor)), place, mask, actions_)
        return context.get_dummy_value()

    return types.void(regret, types.int64, actions, action, values, weight), codegen
