"""Passes named tuples of many arrays to kernels by reference: one pointer to a struct in memory.

numba passes a named tuple by value, as seven or more numbers for each array in it.  It copies all of them wherever the
tuple is used.  Typing, lowering and optimising these copies takes a third of the compile time of large kernels.  By
reference, a call passes one pointer and an attribute is one load.

The struct does not change during a call.  Its loads are marked so (`!invariant.load`): LLVM moves them out of loops.
"""

import operator
from functools import cache
from hashlib import sha256
from importlib import import_module
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

_Fields = TypeVar("_Fields", bound=type)
_WORD_BYTES = 8
_KINDS: set[type] = set()  # decorated by `by_reference`
PLAIN_TYPES: set[type] = {np.ndarray, np.int64, np.float64, bool, int, float}
"""Types that hold no reference; `kernel_argument` adds those that it meets.

A look-up here saves a look into every tuple in every call, which took 1 % of the time of a batch of sampling.
"""


def by_reference(kind: _Fields) -> _Fields:
    """Decorate a `NamedTuple` whose instances kernels take by reference, nested tuples included.

    A kernel reads attributes as usual, but cannot unpack the tuple or take its length.  The struct is made when an
    instance is first passed to a kernel and lives as long as the instance, which must keep its arrays.
    """
    subclass = type(kind.__name__, (kind,), {"__getstate__": lambda _: None})
    for name in ("__module__", "__qualname__", "__doc__"):
        setattr(subclass, name, getattr(kind, name))
    _KINDS.add(subclass)
    return subclass  # type: ignore[return-value]  # a subclass, which has a dictionary for the struct


def kernel_argument(value: Any) -> Any:
    """Return the argument that a kernel takes for `value`: the value, or a `StructPointer` to it.

    Instances of classes decorated by `by_reference` become pointers, also inside of other tuples.
    """
    kind = type(value)
    if kind in PLAIN_TYPES:
        return value
    if not isinstance(value, tuple):
        if value is not None:
            PLAIN_TYPES.add(kind)
        return value
    if kind in _KINDS:
        return _reference(value)
    items = [kernel_argument(item) for item in value]
    if not all(map(operator.is_, items, value)):
        return kind(*items) if hasattr(value, "_fields") else tuple(items)
    if hasattr(value, "_fields") and all(type(item) in PLAIN_TYPES for item in items):
        PLAIN_TYPES.add(kind)  # without a None, in whose place another instance may have a reference
    return value


class StructPointer:
    """Struct with the fields of a named tuple, which a kernel takes as its argument.

    address  memory address of the struct
    """

    __slots__ = ("_numba_type_", "_words", "address")

    def __init__(self, value: Any) -> None:
        words: list[int] = []
        self._numba_type_ = _append(value, words)
        self._words = np.array(words, np.uint64)
        self.address = self._words.ctypes.data


def _reference(value: Any) -> StructPointer:
    """Return the struct of a named tuple, made on first use and kept with the tuple."""
    attributes: dict[str, StructPointer] = vars(value)
    if "_struct" not in attributes:
        attributes["_struct"] = StructPointer(value)
    return attributes["_struct"]


def _append(value: Any, words: list[int]) -> Any:
    """Append a field's value to `words`, the 64-bit words of a struct; return its numba type.

    An array takes 1 + 2 * ndim words: its address, shape and strides.  A number takes one, None none.  The fields of a
    tuple follow each other.
    """
    if isinstance(value, np.ndarray):
        words.append(value.__array_interface__["data"][0])
        words.extend(value.shape)
        words.extend(stride % (1 << 64) for stride in value.strides)
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return _array_type(value.dtype, value.ndim, layout, flags.writeable)
    if isinstance(value, tuple):
        kinds = tuple([_append(item, words) for item in value])
        fields = getattr(value, "_fields", None) or tuple(map(str, range(len(kinds))))
        return struct_type(type(value).__name__, fields, kinds)
    if value is not None:
        number = np.array([value])
        words.append(int(number.view(f"u{number.itemsize}")[0]))
    return import_module("numba").typeof(value)


@cache
def _array_type(dtype: Any, ndim: int, layout: str, writeable: bool) -> Any:
    numba = import_module("numba")
    return numba.types.Array(numba.from_dtype(dtype), ndim, layout, readonly=not writeable)


@cache
def struct_type(name: str, fields: tuple[str, ...], kinds: tuple[Any, ...]) -> Any:
    """Return numba's type of a reference to a struct with the given names and types of fields."""
    return _declared().kind(name, fields, kinds)


def _words_of(kind: Any) -> int:
    """Return the number of 64-bit words that a field of a numba type takes in a struct."""
    if hasattr(kind, "kinds"):
        return sum(map(_words_of, kind.kinds))
    return 1 + 2 * kind.ndim if hasattr(kind, "ndim") else int(kind != import_module("numba").types.none)


def _unbox(kind: Any, value: Any, c: Any) -> Any:
    """Emit code that reads the address of a `StructPointer` argument as a pointer.

    kind, value, c  numba type, Python object and context that numba gives to functions that convert arguments
    """
    number = c.pyapi.object_getattr_string(value, "address")
    pointer = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return import_module("numba").extending.NativeValue(pointer)


def _struct_class() -> Any:
    """Return a subclass of numba's `Type`, whose instances are types of pointers to structs."""
    types: Any = import_module("numba.core.types")

    class Struct(types.Type):
        """A pointer to a struct, with the names and types of its fields."""

        def __init__(self, name: str, fields: tuple[str, ...], kinds: tuple[Any, ...]) -> None:
            self.fields, self.kinds, self._short = fields, kinds, name
            super().__init__(f"{name}.{sha256(f'{fields} {kinds}'.encode()).hexdigest()[:16]}")

        def __reduce__(self) -> Any:
            return struct_type, (self._short, self.fields, self.kinds)

    return Struct


@cache
def _declared() -> SimpleNamespace:
    """Declare struct pointers to numba; return a namespace whose `kind` is their class of types."""
    types: Any = import_module("numba.core.types")
    extending: Any = import_module("numba.extending")
    cgutils: Any = import_module("numba.core.cgutils")
    arrays: Any = import_module("numba.np.arrayobj")

    Struct = _struct_class()
    extending.register_model(Struct)(extending.models.OpaqueModel)

    extending.unbox(Struct)(_unbox)

    def load(builder: Any, kind: Any, pointer: Any) -> Any:
        value = builder.load(builder.bitcast(pointer, kind.as_pointer()), align=_WORD_BYTES)
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    def moved(builder: Any, pointer: Any, words: Any) -> Any:
        return builder.gep(pointer, [builder.mul(words, cgutils.intp_t(_WORD_BYTES))])

    def field(context: Any, builder: Any, kind: Any, pointer: Any) -> Any:
        """Emit code that loads a field of numba type `kind` at a pointer; return its LLVM value."""
        if isinstance(kind, Struct):
            return pointer
        if kind == types.none:
            return context.get_dummy_value()
        if not isinstance(kind, types.Array):
            model = context.data_model_manager[kind]
            return model.from_data(builder, load(builder, model.get_data_type(), pointer))
        words = [
            load(builder, cgutils.intp_t, moved(builder, pointer, cgutils.intp_t(i))) for i in range(_words_of(kind))
        ]
        cell = context.get_data_type(kind.dtype)
        array = context.make_array(kind)(context, builder)
        arrays.populate_array(
            array,
            data=builder.inttoptr(words[0], cell.as_pointer()),
            shape=words[1 : 1 + kind.ndim],
            strides=words[1 + kind.ndim :],
            itemsize=context.get_constant(types.intp, context.get_abi_sizeof(cell)),
            meminfo=None,
        )
        return array._getvalue()

    def attribute(context: Any, builder: Any, kind: Any, pointer: Any, name: str) -> Any:
        index = kind.fields.index(name)
        before = sum(map(_words_of, kind.kinds[:index]))
        return field(context, builder, kind.kinds[index], moved(builder, pointer, cgutils.intp_t(before)))

    extending.lower_getattr_generic(Struct)(attribute)
    _declare_typing(Struct)

    def item(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, (pointer, index) = signature.args[0].kinds[0], arguments
        step = cgutils.intp_t(_words_of(kind))
        return field(context, builder, kind, moved(builder, pointer, builder.mul(index, step)))

    extending.lower_builtin(operator.getitem, Struct, types.Integer)(item)
    return SimpleNamespace(kind=Struct)


def _declare_typing(struct: Any) -> None:
    """Declare to numba the types of `x.field`, and of `x[i]` if all fields of x have one type.

    struct  class of the numba types of pointers to structs, such as x
    """
    types: Any = import_module("numba.core.types")
    templates: Any = import_module("numba.core.typing.templates")

    class Attribute(templates.AttributeTemplate):
        key = struct

        def generic_resolve(self, kind: Any, name: str) -> Any:
            return kind.kinds[kind.fields.index(name)] if name in kind.fields else None

    templates.infer_getattr(Attribute)

    class Item(templates.AbstractTemplate):
        """Gives numba the type of `x[i]`, for a struct pointer x whose fields all have one type."""

        def generic(self, arguments: Any, named: Any) -> Any:
            kind, index = arguments
            if isinstance(kind, struct) and isinstance(index, types.Integer) and len(set(kind.kinds)) == 1:
                return templates.signature(kind.kinds[0], kind, types.intp)
            return None

    templates.infer_global(operator.getitem)(Item)
