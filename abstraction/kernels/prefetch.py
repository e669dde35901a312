"""Intrinsics that prefetch a cache line, so that many cache misses overlap.

They return nothing and do not check the index, which counts elements from the start of an array's memory.
"""

from llvmlite import ir

from abstraction.kernels.jit import intrinsic, types


def address_of(context, builder, array_type, array, index):
    """Emit LLVM code for the address of element `index` of an array, counted from its start."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), ir.IntType(8).as_pointer())


def emit_prefetch(builder, address, *, write):
    """Emit LLVM's prefetch of an address, for reading or (`write`) writing, into all cache levels."""
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
    name = "llvm.prefetch.p0"
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    builder.call(function, [address, number(int(write)), number(3), number(1)])


@intrinsic
def prefetch_to_read(typing_context, array, index):
    """Prefetch the cache line of an element of `array` for reading.

    `index` is int64 and counts elements from the start of the array's memory.  It is not checked.
    """

    def codegen(context, builder, signature, arguments):
        emit_prefetch(builder, address_of(context, builder, signature.args[0], *arguments), write=False)
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@intrinsic
def prefetch_to_write(typing_context, array, index):
    """Prefetch the cache line of an element of `array` for writing.

    `index` is int64 and counts elements from the start of the array's memory.  It is not checked.
    """

    def codegen(context, builder, signature, arguments):
        emit_prefetch(builder, address_of(context, builder, signature.args[0], *arguments), write=True)
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen
