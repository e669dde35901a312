"""Table rows as vectors: what `mccfr.solvers.regret` does action by action, done to up to eight actions at once.

Each function here is one LLVM sequence over eight masked lanes; its scalar twin of the same name without `_row` in
`mccfr.solvers.regret` gives the same bits (tests compare them), because both add in the same order.  Elements may be
float32 or float64; lanes beyond the row's actions are never read or written.  LLVM lowers the masked accesses to the
machine's vector instructions, and to plain code where it has none.  Cells may be int16 as well, which have no scalar
twins.  Where a row is says `mccfr.solvers.sampling.cells.row_at`: a number, but of int16 tables.
"""

from llvmlite import ir

from abstraction.kernels.jit import intrinsic, types
from mccfr.rounding import emit_added, emit_bits, halves
from mccfr.solvers.sampling.cells import (
    I1,
    I32,
    LANE_NUMBERS,
    LANES,
    first_cell,
    int32,
    lane_mask,
    load,
    load_row,
    number_type,
    pointer,
    splat,
    store,
    store_sum,
)


def _shuffled(builder, vector, lanes):
    nothing = ir.Constant(vector.type, [0.0] * LANES)
    return builder.shuffle_vector(vector, nothing, ir.Constant(ir.VectorType(I32, LANES), lanes))


def _total(builder, vector):
    """Sum of the lanes in the order ((0+4)+(2+6)) + ((1+5)+(3+7))."""
    for half in (4, 2, 1):
        vector = builder.fadd(vector, _shuffled(builder, vector, [(i + half) % LANES for i in range(LANES)]))
    return builder.extract_element(vector, I32(0))


def _prefix_sums(builder, vector):
    """Inclusive prefix sums, first within each half: shuffles that stay inside a half are the cheap ones."""
    nothing = LANES
    vector = builder.fadd(vector, _shuffled(builder, vector, [nothing, 0, 1, 2, nothing, 4, 5, 6]))
    vector = builder.fadd(vector, _shuffled(builder, vector, [nothing, nothing, 0, 1, nothing, nothing, 4, 5]))
    return builder.fadd(vector, _shuffled(builder, vector, [nothing] * 4 + [3] * 4))


def _strategy(builder, row, mask, actions):
    """Regret matching of a loaded row, 0 in the lanes beyond its actions."""
    element = row.type.element
    zero = ir.Constant(row.type, [0.0] * LANES)
    positive = builder.select(builder.fcmp_ordered(">", row, zero), row, zero)
    total = _total(builder, positive)
    some = builder.fcmp_ordered(">", total, element(0.0))
    # Division, not a product with 1/total, which overflows where discounting has made a whole row tiny.
    ones = builder.select(mask, ir.Constant(row.type, [1.0] * LANES), zero)
    divisor = builder.select(some, total, builder.sitofp(int32(builder, actions), element))
    return builder.fdiv(builder.select(splat(builder, some), positive, ones), splat(builder, divisor))


def _drawn(builder, row, mask, actions, u, even):
    """The action (i64) that `choose_row` draws from a loaded row; u in its dtype."""
    element, bits = row.type.element, ir.IntType(LANES)
    zero = ir.Constant(row.type, [0.0] * LANES)
    is_positive = builder.fcmp_ordered(">", row, zero)
    sums = _prefix_sums(builder, builder.select(is_positive, row, zero))
    positive = builder.bitcast(is_positive, bits)
    even = builder.or_(even, builder.icmp_unsigned("==", positive, bits(0)))
    evens = splat(builder, even)
    ones = ir.Constant(row.type, [lane + 1.0 for lane in range(LANES)])  # prefix sums of equal weights
    count = splat(builder, builder.sitofp(int32(builder, actions), element))
    total = builder.select(evens, count, _shuffled(builder, sums, [LANES - 1] * LANES))
    limit = builder.fmul(splat(builder, u), total)
    above = builder.fcmp_unordered(">", builder.select(evens, ones, sums), limit)
    possible = builder.zext(builder.select(even, builder.bitcast(mask, bits), positive), I32)
    last = builder.lshr(I32(1 << 31), builder.ctlz(possible, I1(0)))
    found = builder.and_(possible, builder.or_(builder.zext(builder.bitcast(above, bits), I32), last))
    return builder.zext(builder.cttz(found, I1(0)), ir.IntType(64))


def _put(context, builder, array_type, array, place, vector):
    """Store eight lanes at array[place]."""
    target = pointer(context, builder, array_type, array, place)
    builder.store(vector, builder.bitcast(target, vector.type.as_pointer()), align=4)


@intrinsic
def regret_matching_row(typing_context, regret, start, actions, sigma, place):
    """sigma[place : place+8] = current strategy of the regret row; lanes beyond `actions` are set to 0.

    As `mccfr.solvers.regret.regret_matching`; regret and sigma have one dtype.
    """

    def codegen(context, builder, signature, arguments):
        regret_, start_, actions_, sigma_, place_ = arguments
        mask = lane_mask(builder, actions_)
        row = load_row(context, builder, signature.args[0], regret_, start_, mask)
        _put(context, builder, signature.args[3], sigma_, place_, _strategy(builder, row, mask, actions_))
        return context.get_dummy_value()

    return types.void(regret, start, actions, sigma, types.int64), codegen


@intrinsic
def choose_row(typing_context, weights, start, actions, u, even):
    """Action drawn by u in [0, 1) from the positive parts of a row; with `even` (a boolean) every action alike.

    As `mccfr.solvers.regret.choose`.  Free of branches: what is drawn cannot be predicted.
    """

    def codegen(context, builder, signature, arguments):
        weights_, start_, actions_, u_, even_ = arguments
        mask = lane_mask(builder, actions_)
        row = load_row(context, builder, signature.args[0], weights_, start_, mask)
        number = context.cast(builder, u_, signature.args[3], number_type(signature.args[0].dtype))
        return _drawn(builder, row, mask, actions_, number, even_)

    return types.int64(weights, start, actions, u, types.boolean), codegen


@intrinsic
def match_and_choose_row(typing_context, regret, start, actions, u, even, sigma):
    """`regret_matching_row` into sigma[0 : 8] and `choose_row` at once; returns the action."""

    def codegen(context, builder, signature, arguments):
        regret_, start_, actions_, u_, even_, sigma_ = arguments
        mask = lane_mask(builder, actions_)
        row = load_row(context, builder, signature.args[0], regret_, start_, mask)
        number = context.cast(builder, u_, signature.args[3], number_type(signature.args[0].dtype))
        first = ir.IntType(64)(0)
        _put(context, builder, signature.args[5], sigma_, first, _strategy(builder, row, mask, actions_))
        return _drawn(builder, row, mask, actions_, number, even_)

    return types.int64(regret, start, actions, u, types.boolean, sigma), codegen


def _in_element(builder, vector, element):
    """A vector of floating-point numbers with elements of another width."""
    kind = ir.VectorType(element, LANES)
    if vector.type == kind:
        return vector
    return (builder.fpext if isinstance(element, ir.DoubleType) else builder.fptrunc)(vector, kind)


@intrinsic
def add_row(typing_context, sums, start, actions, sigma, place, weight, word):
    """sums[start : start+actions] += weight · sigma[place : ...].  As `mccfr.solvers.regret.add`."""
    number = number_type(sums.dtype)

    def codegen(context, builder, signature, arguments):
        sums_, start_, actions_, sigma_, place_, weight_, word_ = arguments
        source = pointer(context, builder, signature.args[3], sigma_, place_)
        element, mask = context.get_value_type(number), lane_mask(builder, actions_)
        shares = builder.load(builder.bitcast(source, ir.VectorType(source.type.pointee, LANES).as_pointer()), align=4)
        factor = splat(builder, context.cast(builder, weight_, types.float64, number))
        row = load_row(context, builder, sums, sums_, start_, mask)
        addend = builder.fmul(factor, _in_element(builder, shares, element))
        if sums.dtype != types.float32:
            store_sum(context, builder, sums, sums_, start_, mask, row, addend, word_)
        else:
            bits = emit_bits(builder, *(splat(builder, half) for half in halves(builder, word_)), LANE_NUMBERS)
            target = pointer(context, builder, sums, sums_, first_cell(builder, start_))
            store(builder, emit_added(builder, row, addend, bits), target, mask)
        return context.get_dummy_value()

    return types.void(sums, start, actions, sigma, types.int64, types.float64, types.uint64), codegen


def _action_values(context, builder, signature, arguments, mask):
    """Values of a node's actions: endings first, then the children's from the worklist.  Arguments of `update_row`."""
    value_, child_ = (builder.extract_value(arguments[4], i) for i in (0, 1))
    kinds = (types.int32, number_type(signature.args[0].dtype)) * 2
    folds, fold, ends, call = (
        context.cast(builder, builder.extract_value(arguments[5], i), signature.args[5].types[i], kind)
        for i, kind in enumerate(kinds)
    )
    before = builder.add(folds, ends)
    children = builder.and_(mask, builder.icmp_signed(">=", LANE_NUMBERS, splat(builder, before)))
    first = builder.sub(child_, builder.sext(before, child_.type))
    values = load(builder, pointer(context, builder, signature.args[4].types[0], value_, first), children)
    at_fold = builder.icmp_signed("<", LANE_NUMBERS, splat(builder, folds))
    at_call = builder.and_(
        builder.icmp_signed(">=", LANE_NUMBERS, splat(builder, folds)),
        builder.icmp_signed("<", LANE_NUMBERS, splat(builder, before)),
    )
    values = builder.select(at_call, splat(builder, call), values)
    return builder.select(at_fold, splat(builder, fold), values)


def _gains(context, builder, signature, arguments, mask):
    """(the node's value, each action's value less it, which lanes have been explored: None where all have)."""
    dtype, (sigma_, place_) = signature.args[3].types[0], (builder.extract_value(arguments[3], i) for i in (0, 1))
    vector = ir.VectorType(context.get_value_type(dtype.dtype), LANES)
    values = _action_values(context, builder, signature, arguments, mask)
    source = pointer(context, builder, dtype, sigma_, place_)
    products = builder.fmul(builder.load(builder.bitcast(source, vector.as_pointer()), align=4), values)
    explored = None
    if isinstance(signature.args[6], types.BaseTuple):
        explored = builder.fcmp_ordered("ord", values, values)
        products = builder.select(explored, products, ir.Constant(vector, [0.0] * LANES))
    total = _total(builder, products)
    return total, builder.fsub(values, splat(builder, total)), explored


def _update(context, builder, signature, arguments):
    """The code of `update_row`, and where its weight is one of two numbers, of `update_explored_row`."""
    regret_, start_, actions_, _, _, _, weight_, word_ = arguments
    regret, weight = signature.args[0], signature.args[6]
    dtype, mask = number_type(regret.dtype), lane_mask(builder, actions_)
    total, gain, explored = _gains(context, builder, signature, arguments, mask)
    if explored is not None:
        floor_, weight_ = builder.extract_value(weight_, 1), builder.extract_value(weight_, 0)
        floor, weight = splat(builder, context.cast(builder, floor_, weight.types[1], dtype)), weight.types[0]
    row = load_row(context, builder, regret, regret_, start_, mask)
    change = builder.fmul(gain, splat(builder, context.cast(builder, weight_, weight, dtype)))
    if explored is not None:
        below = builder.fcmp_ordered("<", builder.fadd(row, change), floor)  # false where a value is nan
        nothing = ir.Constant(row.type, [0.0] * LANES)
        change = builder.select(builder.and_(explored, builder.not_(below)), change, nothing)
        row = builder.select(below, floor, row)
        if dtype == regret.dtype:  # else a row is written whole, because its scale may change
            mask = builder.and_(mask, explored)
    store_sum(context, builder, regret, regret_, start_, mask, row, change, word_)
    return total


@intrinsic
def update_row(typing_context, regret, start, actions, strategy, values, endings, weight, word):
    """Regret update of a traverser's node; returns the node's value.

    strategy   (sigma, place of the first action's probability)
    values     (values by place in the worklist, place of the value of the first action that goes on)
    endings    (folds, fold value, ends, call value): the actions that end the hand come first
    word       64 random bits, by which int16 cells are rounded

    v = sum of sigma·values; regret += weight · (values - v).  As `mccfr.solvers.regret.update`.
    """
    result = number_type(regret.dtype)
    return result(regret, start, actions, _placed(strategy), _placed(values), endings, weight, types.uint64), _update


@intrinsic
def update_explored_row(typing_context, regret, start, actions, strategy, values, endings, floored, word):
    """As `update_row` where actions may have been pruned: their value is nan, and their regret stays.

    floored    (weight, floor): no regret that is updated is left below `floor`

    As `mccfr.solvers.regret.update_explored`.
    """
    result = number_type(regret.dtype)
    return result(regret, start, actions, _placed(strategy), _placed(values), endings, floored, types.uint64), _update


def _placed(pair):
    """The type of (array, place in it) with the place as int64."""
    return types.Tuple((pair.types[0], types.int64))


@intrinsic
def update_sampled_row(typing_context, regret, start, actions, action, values, weight, word):
    """regret[start : start+actions] += weight · ((worth at the sampled action, else 0) - here).

    values  (worth, here)
    word    64 random bits, by which int16 cells are rounded

    As `mccfr.solvers.regret.update_sampled`.
    """

    def codegen(context, builder, signature, arguments):
        regret_, start_, actions_, action_, values_, weight_, word_ = arguments
        dtype = number_type(regret.dtype)
        worth, here = (
            splat(builder, context.cast(builder, builder.extract_value(values_, i), values.types[i], dtype))
            for i in (0, 1)
        )
        zero = ir.Constant(ir.VectorType(context.get_value_type(dtype), LANES), [0.0] * LANES)
        taken = builder.icmp_signed("==", LANE_NUMBERS, splat(builder, int32(builder, action_)))
        gains = builder.fsub(builder.select(taken, worth, zero), here)
        factor = splat(builder, context.cast(builder, weight_, weight, dtype))
        mask = lane_mask(builder, actions_)
        row, change = load_row(context, builder, regret, regret_, start_, mask), builder.fmul(gains, factor)
        store_sum(context, builder, regret, regret_, start_, mask, row, change, word_)
        return context.get_dummy_value()

    return types.void(regret, start, actions, action, values, weight, types.uint64), codegen
