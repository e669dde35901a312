"""Table rows as vectors: what `mccfr.solvers.regret` does action by action, done to up to eight actions at once.

Each function here is one LLVM sequence over eight masked lanes; its scalar twin of the same name without `_row` in
`mccfr.solvers.regret` gives the same bits (tests compare them), because both add in the same order.  Elements may be
float32 or float64; lanes beyond the row's actions are never read or written.  LLVM lowers the masked accesses to the
machine's vector instructions, and to plain code where it has none.  Cells may have 16 bits as well, which have no
scalar twins (`mccfr.solvers.sampling.cells`): a row's place is then (first cell, address of its scale, random word).
"""

import numpy as np
from llvmlite import ir

from abstraction.kernels.jit import intrinsic, part_njit, types
from mccfr.rng import random_at
from mccfr.rounding import emit_added, emit_bits, emit_rounded, halves
from mccfr.solvers.regret import gap_factor, sum_discount
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
    place_type,
    pointer,
    splat,
    store,
    store_sum,
)
from mccfr.solvers.sampling.common import FORWARD, NARROW


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

    return types.void(regret, place_type(start), actions, sigma, types.int64), codegen


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

    return types.int64(weights, place_type(start), actions, u, types.boolean), codegen


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

    return types.int64(regret, place_type(start), actions, u, types.boolean, sigma), codegen


def _in_element(builder, vector, element):
    """A vector of floating-point numbers with elements of another width."""
    kind = ir.VectorType(element, LANES)
    if vector.type == kind:
        return vector
    return (builder.fpext if isinstance(element, ir.DoubleType) else builder.fptrunc)(vector, kind)


def _add(context, builder, kinds, arguments):
    """The code of `add_row`; kinds are the types of its first and fourth argument, the two arrays."""
    sums, start, actions, sigma, place, weight, word = arguments
    source, number = pointer(context, builder, kinds[1], sigma, place), number_type(kinds[0].dtype)
    element, mask = context.get_value_type(number), lane_mask(builder, actions)
    shares = builder.load(builder.bitcast(source, ir.VectorType(source.type.pointee, LANES).as_pointer()), align=4)
    factor = splat(builder, context.cast(builder, weight, types.float64, number))
    row = load_row(context, builder, kinds[0], sums, start, mask)
    addend = builder.fmul(factor, _in_element(builder, shares, element))
    if number != kinds[0].dtype or isinstance(element, ir.DoubleType):
        store_sum(context, builder, kinds[0], sums, start, mask, row, addend)
        return
    bits = emit_bits(builder, *(splat(builder, half) for half in halves(builder, word)), LANE_NUMBERS)
    target = pointer(context, builder, kinds[0], sums, first_cell(builder, start))
    store(builder, emit_added(builder, row, addend, bits), target, mask)


@intrinsic
def add_row(typing_context, sums, start, actions, sigma, place, weight, word):
    """sums[start : start+actions] += weight · sigma[place : ...].  As `mccfr.solvers.regret.add`."""

    def codegen(context, builder, signature, arguments):
        _add(context, builder, (signature.args[0], signature.args[3]), arguments)
        return context.get_dummy_value()

    return types.void(sums, place_type(start), actions, sigma, types.int64, types.float64, types.uint64), codegen


@intrinsic
def add_to_sums(typing_context, narrow, wide, form, start, actions, sigma, place, weight, word):
    """`add_row` to whichever of two arrays holds the sums of a block: `form` is its entry in `TableArrays.wide`.

    No compiled helper: arrays that are handed to one inside a loop cost a reference count each time.
    """

    def codegen(context, builder, signature, arguments):
        is_narrow = builder.icmp_unsigned("==", arguments[2], arguments[2].type(NARROW))
        with builder.if_else(is_narrow) as branches:
            for branch, which in zip(branches, (0, 1), strict=True):
                with branch:
                    kinds = signature.args[which], signature.args[5]
                    _add(context, builder, kinds, (arguments[which], *arguments[3:]))
        return context.get_dummy_value()

    return types.void(
        narrow, wide, form, place_type(start), actions, sigma, types.int64, types.float64, types.uint64
    ), codegen


def _action_values(context, builder, signature, arguments, mask):
    """Values of a node's actions: endings first, then the children's from the worklist.  Arguments of `update_row`."""
    value_, child_, endings_ = arguments[5:8]
    folds, fold, ends, call = (
        context.cast(builder, builder.extract_value(endings_, i), signature.args[7].types[i], kind)
        for i, kind in enumerate((types.int32, number_type(signature.args[0].dtype)) * 2)
    )
    before = builder.add(folds, ends)
    children = builder.and_(mask, builder.icmp_signed(">=", LANE_NUMBERS, splat(builder, before)))
    first = builder.sub(child_, builder.sext(before, child_.type))
    values = load(builder, pointer(context, builder, signature.args[5], value_, first), children)
    at_fold = builder.icmp_signed("<", LANE_NUMBERS, splat(builder, folds))
    at_call = builder.and_(
        builder.icmp_signed(">=", LANE_NUMBERS, splat(builder, folds)),
        builder.icmp_signed("<", LANE_NUMBERS, splat(builder, before)),
    )
    values = builder.select(at_call, splat(builder, call), values)
    return builder.select(at_fold, splat(builder, fold), values)


def _update(context, builder, signature, arguments):
    """The code of `update_row`, and with a ninth argument, the floor, of `update_explored_row`."""
    regret_, start_, actions_, sigma_, place_ = arguments[:5]
    dtype = number_type(signature.args[0].dtype)
    vector = ir.VectorType(context.get_value_type(dtype), LANES)
    mask, nothing = lane_mask(builder, actions_), ir.Constant(vector, [0.0] * LANES)
    values = _action_values(context, builder, signature, arguments, mask)
    source = pointer(context, builder, signature.args[3], sigma_, place_)
    products = builder.fmul(builder.load(builder.bitcast(source, vector.as_pointer()), align=4), values)
    prunes = len(arguments) > 9
    if prunes:
        explored = builder.fcmp_ordered("ord", values, values)
        products = builder.select(explored, products, nothing)
    total = _total(builder, products)
    gain = builder.fsub(values, splat(builder, total))
    factor = context.cast(builder, arguments[8], signature.args[8], dtype)
    row = load_row(context, builder, signature.args[0], regret_, start_, mask)
    change = builder.fmul(gain, splat(builder, factor))
    if prunes:
        floor = splat(builder, context.cast(builder, arguments[9], signature.args[9], dtype))
        below = builder.fcmp_ordered("<", builder.fadd(row, change), floor)  # false where a value is nan
        change = builder.select(builder.and_(explored, builder.not_(below)), change, nothing)
        row = builder.select(below, floor, row)
        if dtype == signature.args[0].dtype:  # else a row is written whole, because its scale may change
            mask = builder.and_(mask, explored)
    store_sum(context, builder, signature.args[0], regret_, start_, mask, row, change)
    return total


@intrinsic
def update_row(typing_context, regret, start, actions, sigma, place, value, child, endings, weight):
    """Regret update of a traverser's node; returns the node's value.

    endings    (folds, fold value, ends, call value): the actions that end the hand come first
    value      [.] values by place in the worklist; the other actions' are value[child : ...]

    v = sum of sigma·values; regret += weight · (values - v).  As `mccfr.solvers.regret.update`.
    """
    result, at = number_type(regret.dtype), place_type(start)
    return result(regret, at, actions, sigma, types.int64, value, types.int64, endings, weight), _update


@intrinsic
def update_explored_row(typing_context, regret, start, actions, sigma, place, value, child, endings, weight, floor):
    """As `update_row` where actions may have been pruned: their value is nan, and their regret stays.

    No regret that is updated is left below `floor`.  As `mccfr.solvers.regret.update_explored`.
    """
    result, at = number_type(regret.dtype), place_type(start)
    return result(regret, at, actions, sigma, types.int64, value, types.int64, endings, weight, floor), _update


@intrinsic
def update_sampled_row(typing_context, regret, start, actions, action, worth, here, weight):
    """regret[start : start+actions] += weight · ((worth at the sampled action, else 0) - here).

    As `mccfr.solvers.regret.update_sampled`.
    """

    def codegen(context, builder, signature, arguments):
        regret_, start_, actions_, action_, worth_, here_, weight_ = arguments
        dtype = number_type(signature.args[0].dtype)
        zero = ir.Constant(ir.VectorType(context.get_value_type(dtype), LANES), [0.0] * LANES)
        taken = builder.icmp_signed("==", LANE_NUMBERS, splat(builder, int32(builder, action_)))
        gains = builder.select(taken, splat(builder, context.cast(builder, worth_, signature.args[4], dtype)), zero)
        gains = builder.fsub(gains, splat(builder, context.cast(builder, here_, signature.args[5], dtype)))
        factor = splat(builder, context.cast(builder, weight_, signature.args[6], dtype))
        mask = lane_mask(builder, actions_)
        row, change = load_row(context, builder, signature.args[0], regret_, start_, mask), builder.fmul(gains, factor)
        store_sum(context, builder, signature.args[0], regret_, start_, mask, row, change)
        return context.get_dummy_value()

    return types.void(regret, place_type(start), actions, action, worth, here, weight), codegen


@intrinsic
def _discount_row(typing_context, regret, start, actions, positive, negative):
    """regret[start : start+actions] times the factor of its sign, in place."""

    def codegen(context, builder, signature, arguments):
        regret_, start_, actions_ = arguments[:3]
        dtype, mask = number_type(signature.args[0].dtype), lane_mask(builder, actions_)
        row = load_row(context, builder, signature.args[0], regret_, start_, mask)
        nothing = ir.Constant(row.type, [0.0] * LANES)
        factors = (splat(builder, context.cast(builder, arguments[i], types.float64, dtype)) for i in (3, 4))
        factor = builder.select(builder.fcmp_ordered(">", row, nothing), *factors)
        unchanged = ir.Constant(row.type, [-0.0] * LANES)  # -0.0 + -0.0 is -0.0
        store_sum(context, builder, signature.args[0], regret_, start_, mask, builder.fmul(row, factor), unchanged)
        return context.get_dummy_value()

    return types.void(regret, place_type(start), actions, types.float64, types.float64), codegen


@part_njit
def discount_regrets_row(regret, start, actions, stamps, stamp, ends, positive_factors, negative_factors):
    """As `mccfr.solvers.regret.discount_regrets`."""
    seen = np.int64(stamps[stamp])
    if seen < ends:  # another worker may be a period ahead
        positive, negative = gap_factor(positive_factors, seen, ends), gap_factor(negative_factors, seen, ends)
        _discount_row(regret, start, actions, positive, negative)
        stamps[stamp] = ends


@intrinsic
def discount_sums_row(typing_context, sums, start, actions, keep, word):
    """sums[start : start+actions] *= keep, in place.  As `mccfr.solvers.regret.discount_sums`."""

    def codegen(context, builder, signature, arguments):
        sums_, start_, actions_, keep_, word_ = arguments
        dtype, mask = sums.dtype, lane_mask(builder, actions_)
        row = load_row(context, builder, signature.args[0], sums_, start_, mask)
        if number_type(dtype) != dtype:
            factor = splat(builder, context.cast(builder, keep_, types.float64, types.float32))
            nothing = ir.Constant(row.type, [-0.0] * LANES)
            store_sum(context, builder, signature.args[0], sums_, start_, mask, builder.fmul(row, factor), nothing)
            return context.get_dummy_value()
        row = builder.fmul(_in_element(builder, row, ir.DoubleType()), splat(builder, keep_))
        if dtype == types.float32:
            bits = emit_bits(builder, *(splat(builder, half) for half in halves(builder, word_)), LANE_NUMBERS)
            row = emit_rounded(builder, row, bits)
        store(builder, row, pointer(context, builder, signature.args[0], sums_, first_cell(builder, start_)), mask)
        return context.get_dummy_value()

    return types.void(sums, place_type(start), actions, types.float64, types.uint64), codegen


@part_njit
def forward_sums_row(narrow, wide, form, at, actions, stamps, stamp, ends, factors):
    """As `mccfr.solvers.sampling.common.forward_sums`; at = (first cell, address of the scale, word of the addition).

    The row is rounded by another word that the addition's gives.
    """
    keep = sum_discount(stamps, stamp, ends, factors)
    if keep != 1.0:
        other = random_at(at[2], FORWARD)
        if form == NARROW:
            discount_sums_row(narrow, (at[0], at[1], other), actions, keep, other)
        else:
            discount_sums_row(wide, at[0], actions, keep, other)
