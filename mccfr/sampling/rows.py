"""Table rows as vectors: what `mccfr.regret` does action by action, done to a row of up to eight actions at once.

Each function here is one LLVM sequence over eight masked lanes; its scalar twin of the same name without `_row` in
`mccfr.regret` gives the same bits (tests compare them), because both add in the same order.  Elements may be float32 or
float64; lanes beyond the row's actions are never read or written.  LLVM lowers the masked accesses to the machine's
vector instructions, and to plain code where it has none.
"""

from llvmlite import ir

from abstraction.jit import intrinsic, types

LANES = 8
_I1, _I32 = ir.IntType(1), ir.IntType(32)
_LANE_NUMBERS = ir.Constant(ir.VectorType(_I32, LANES), list(range(LANES)))


def _pointer(context, builder, array_type, array, index):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


def _splat(builder, value, lanes=LANES):
    vector = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    vector = builder.insert_element(vector, value, _I32(0))
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(_I32, lanes), [0] * lanes))


def _suffix(element):
    return "f32" if isinstance(element, ir.FloatType) else "f64"


def _function(builder, name, result, arguments):
    found = builder.module.globals.get(name)
    return found or ir.Function(builder.module, ir.FunctionType(result, arguments), name)


def _int32(builder, number):
    return builder.trunc(number, _I32) if number.type.width > 32 else builder.sext(number, _I32)


def _mask(builder, actions):
    return builder.icmp_signed("<", _LANE_NUMBERS, _splat(builder, _int32(builder, actions)))


def _load(builder, pointer, mask):
    element = pointer.type.pointee
    vector = ir.VectorType(element, LANES)
    place = builder.bitcast(pointer, vector.as_pointer())
    name = f"llvm.masked.load.v{LANES}{_suffix(element)}.p0"
    load = _function(builder, name, vector, [place.type, _I32, mask.type, vector])
    return builder.call(load, [place, _I32(4), mask, ir.Constant(vector, [0.0] * LANES)])


def _store(builder, vector, pointer, mask):
    place = builder.bitcast(pointer, vector.type.as_pointer())
    name = f"llvm.masked.store.v{LANES}{_suffix(vector.type.element)}.p0"
    store = _function(builder, name, ir.VoidType(), [vector.type, place.type, _I32, mask.type])
    builder.call(store, [vector, place, _I32(4), mask])


def _shuffled(builder, vector, lanes):
    nothing = ir.Constant(vector.type, [0.0] * LANES)
    return builder.shuffle_vector(vector, nothing, ir.Constant(ir.VectorType(_I32, LANES), lanes))


def _total(builder, vector):
    """Sum of the lanes in the order ((0+4)+(2+6)) + ((1+5)+(3+7))."""
    for half in (4, 2, 1):
        vector = builder.fadd(vector, _shuffled(builder, vector, [(i + half) % LANES for i in range(LANES)]))
    return builder.extract_element(vector, _I32(0))


@intrinsic
def regret_matching_row(typing_context, regret, start, actions, sigma, place):
    """sigma[place : place+8] = current strategy of the regret row; lanes beyond `actions` are set to 0.

    As `mccfr.regret.regret_matching`; regret and sigma have one dtype.
    """

    def codegen(context, builder, signature, arguments):
        regret_, start_, actions_, sigma_, place_ = arguments
        source = _pointer(context, builder, signature.args[0], regret_, start_)
        element = source.type.pointee
        mask = _mask(builder, actions_)
        row = _load(builder, source, mask)
        zero = ir.Constant(row.type, [0.0] * LANES)
        positive = builder.select(builder.fcmp_ordered(">", row, zero), row, zero)
        total = _total(builder, positive)
        some = builder.fcmp_ordered(">", total, element(0.0))
        # Division, not a product with 1/total, which overflows where discounting has made a whole row tiny.
        matched = builder.fdiv(positive, _splat(builder, builder.select(some, total, element(1.0))))
        share = builder.fdiv(element(1.0), builder.sitofp(actions_, element))
        even = builder.select(mask, _splat(builder, share), zero)
        result = builder.select(_splat(builder, some), matched, even)
        target = _pointer(context, builder, signature.args[3], sigma_, place_)
        builder.store(result, builder.bitcast(target, result.type.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(regret, types.int64, actions, sigma, types.int64), codegen


@intrinsic
def choose_row(typing_context, sigma, place, u):
    """Number of inclusive prefix sums of sigma[place : place+8] that are <= u: the action drawn, or 8 by rounding.

    As `mccfr.regret.choose`, which handles the rounding too.
    """

    def codegen(context, builder, signature, arguments):
        sigma_, place_, u_ = arguments
        source = _pointer(context, builder, signature.args[0], sigma_, place_)
        element = source.type.pointee
        vector = ir.VectorType(element, LANES)
        sums = builder.load(builder.bitcast(source, vector.as_pointer()), align=4)
        for step in (1, 2, 4):
            moved = _shuffled(builder, sums, [LANES] * step + list(range(LANES - step)))
            sums = builder.fadd(sums, moved)
        limit = context.cast(builder, u_, signature.args[2], signature.args[0].dtype)
        below = builder.fcmp_ordered("<=", sums, _splat(builder, limit))
        bits = builder.bitcast(below, ir.IntType(LANES))
        return builder.zext(builder.ctpop(bits), ir.IntType(64))

    return types.int64(sigma, types.int64, u), codegen


@intrinsic
def add_row(typing_context, sums, start, actions, sigma, place, weight):
    """sums[start : start+actions] += weight · sigma[place : ...], in the dtype of `sums`.  As `mccfr.regret.add`."""

    def codegen(context, builder, signature, arguments):
        sums_, start_, actions_, sigma_, place_, weight_ = arguments
        target = _pointer(context, builder, signature.args[0], sums_, start_)
        source = _pointer(context, builder, signature.args[3], sigma_, place_)
        element = target.type.pointee
        vector = ir.VectorType(element, LANES)
        shares = builder.load(builder.bitcast(source, ir.VectorType(source.type.pointee, LANES).as_pointer()), align=4)
        if source.type.pointee != element:
            change = builder.fpext if isinstance(element, ir.DoubleType) else builder.fptrunc
            shares = change(shares, vector)
        factor = context.cast(builder, weight_, signature.args[5], signature.args[0].dtype)
        mask = _mask(builder, actions_)
        row = _load(builder, target, mask)
        row = builder.fadd(row, builder.fmul(shares, _splat(builder, factor)))
        _store(builder, row, target, mask)
        return context.get_dummy_value()

    return types.void(sums, types.int64, actions, sigma, types.int64, weight), codegen


@intrinsic
def update_row(typing_context, regret, start, actions, sigma, place, value, child, endings, weight):
    """Regret update of a traverser's node; returns the node's value.

    endings    (folds, fold value, ends, call value): the actions that end the hand come first
    value      [.] values by place in the worklist; the other actions' are value[child : ...]

    v = sum of sigma·values; regret += weight · (values - v).  As `mccfr.regret.update`.
    """

    def codegen(context, builder, signature, arguments):
        regret_, start_, actions_, sigma_, place_, value_, child_, endings_, weight_ = arguments
        target = _pointer(context, builder, signature.args[0], regret_, start_)
        element = target.type.pointee
        vector = ir.VectorType(element, LANES)
        folds, fold, ends, call = (
            context.cast(builder, builder.extract_value(endings_, i), signature.args[7].types[i], kind)
            for i, kind in enumerate((types.int32, signature.args[0].dtype) * 2)
        )
        mask = _mask(builder, actions_)
        before = builder.add(folds, ends)
        children = builder.and_(mask, builder.icmp_signed(">=", _LANE_NUMBERS, _splat(builder, before)))
        first = builder.sub(child_, builder.sext(before, child_.type))
        values = _load(builder, _pointer(context, builder, signature.args[5], value_, first), children)
        at_fold = builder.icmp_signed("<", _LANE_NUMBERS, _splat(builder, folds))
        at_call = builder.and_(
            builder.icmp_signed(">=", _LANE_NUMBERS, _splat(builder, folds)),
            builder.icmp_signed("<", _LANE_NUMBERS, _splat(builder, before)),
        )
        values = builder.select(at_call, _splat(builder, call), values)
        values = builder.select(at_fold, _splat(builder, fold), values)
        source = _pointer(context, builder, signature.args[3], sigma_, place_)
        shares = builder.load(builder.bitcast(source, vector.as_pointer()), align=4)
        total = _total(builder, builder.fmul(shares, values))
        gain = builder.fsub(values, _splat(builder, total))
        factor = context.cast(builder, weight_, signature.args[8], signature.args[0].dtype)
        row = _load(builder, target, mask)
        _store(builder, builder.fadd(row, builder.fmul(gain, _splat(builder, factor))), target, mask)
        return total

    signature = regret.dtype(regret, types.int64, actions, sigma, types.int64, value, types.int64, endings, weight)
    return signature, codegen


@intrinsic
def update_sampled_row(typing_context, regret, start, actions, action, worth, here, weight):
    """regret[start : start+actions] += weight · ((worth at the sampled action, else 0) - here).

    As `mccfr.regret.update_sampled`.
    """

    def codegen(context, builder, signature, arguments):
        regret_, start_, actions_, action_, worth_, here_, weight_ = arguments
        dtype = signature.args[0].dtype
        target = _pointer(context, builder, signature.args[0], regret_, start_)
        zero = ir.Constant(ir.VectorType(target.type.pointee, LANES), [0.0] * LANES)
        taken = builder.icmp_signed("==", _LANE_NUMBERS, _splat(builder, _int32(builder, action_)))
        gains = builder.select(taken, _splat(builder, context.cast(builder, worth_, signature.args[4], dtype)), zero)
        gains = builder.fsub(gains, _splat(builder, context.cast(builder, here_, signature.args[5], dtype)))
        factor = _splat(builder, context.cast(builder, weight_, signature.args[6], dtype))
        mask = _mask(builder, actions_)
        row = _load(builder, target, mask)
        _store(builder, builder.fadd(row, builder.fmul(gains, factor)), target, mask)
        return context.get_dummy_value()

    return types.void(regret, types.int64, actions, action, worth, here, weight), codegen
