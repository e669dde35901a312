"""Prunes branches on `x is None` before numba types a kernel, if the type of `x` is known by then.

numba itself prunes them only where `x` is an argument that is None.  Here `x` may also be an argument of another type,
an item or attribute of one, or a named tuple that the kernel makes.  The code of pruned branches is neither typed nor
compiled, so an option that a command does not use costs it nothing.
"""

import inspect
import operator
from collections.abc import Sequence
from importlib import import_module
from typing import Any

_TESTS = {operator.is_: True, operator.is_not: False}


def prune_by_type() -> None:
    """Change numba so that it decides `x is None` by the type of x before it prunes branches."""
    analysis: Any = import_module("numba.core.analysis")
    passes: Any = import_module("numba.core.untyped_passes")
    prune = analysis.dead_branch_prune

    def dead_branch_prune(function_ir: Any, arguments: Sequence[Any]) -> Any:
        _decide(function_ir, arguments)
        return prune(function_ir, arguments)

    analysis.dead_branch_prune = passes.dead_branch_prune = dead_branch_prune


def _decide(function_ir: Any, arguments: Sequence[Any]) -> None:
    """Replace `x is None` and `x is not None` by constants where the type of x is known; in place.

    function_ir  numba's intermediate code of the function
    arguments    numba types of the function's arguments
    """
    ir: Any = import_module("numba.core.ir")
    for block in function_ir.blocks.values():
        for statement in block.body:
            test = getattr(statement, "value", None)
            if not isinstance(test, ir.Expr) or test.op != "binop" or test.fn not in _TESTS:
                continue
            sides = [_is_none(function_ir, arguments, side) for side in (test.lhs, test.rhs)]
            if True in sides and None not in sides:
                decided = ir.Const(all(sides) == _TESTS[test.fn], loc=statement.loc)
                definitions = function_ir._definitions[statement.target.name]
                definitions[definitions.index(test)] = statement.value = decided


def _is_none(function_ir: Any, arguments: Sequence[Any], variable: Any) -> bool | None:
    """Return True if a variable is None, False if it is not, None if types do not decide it.

    function_ir  numba's intermediate code of the function
    arguments    numba types of the function's arguments
    variable     variable in that code
    """
    types: Any = import_module("numba.core.types")
    kind = _kind(function_ir, arguments, variable)
    if kind in (None, types.unknown, types.pyobject) or isinstance(kind, types.Optional | types.Omitted):
        return None  # pyobject stands for the arguments of a function to be inlined
    return isinstance(kind, types.NoneType)


def _kind(function_ir: Any, arguments: Sequence[Any], variable: Any) -> Any:
    """Return a variable's numba type if the types of the arguments decide it, else None.

    For a named tuple that the compiled function makes, the result is the Python class.

    function_ir  numba's intermediate code of the function
    arguments    numba types of the function's arguments
    variable     variable in that code
    """
    definition = _definition(function_ir, variable)
    operation = getattr(definition, "op", type(definition).__name__)
    if operation == "Arg":
        return arguments[definition.index] if definition.index < len(arguments) else None
    if operation == "Const":
        return import_module("numba").types.none if definition.value is None else None
    if operation == "call":
        function = getattr(_definition(function_ir, definition.func), "value", None)
        return function if inspect.isclass(function) and hasattr(function, "_fields") else None
    if operation not in ("getattr", "getitem", "static_getitem"):
        return None
    owner = _kind(function_ir, arguments, definition.value)
    if inspect.isclass(owner):  # an attribute of a named tuple that is made here: the argument of its class
        call, fields = _definition(function_ir, definition.value), getattr(owner, "_fields", ())
        field_values = dict(zip(fields, call.args, strict=False)) | dict(call.kws)
        field = getattr(definition, "attr", None)
        return _kind(function_ir, arguments, field_values[field]) if field in field_values else None
    items = getattr(owner, "kinds", None) or getattr(owner, "types", None)
    if not items:
        return None
    if operation == "getattr":
        fields = getattr(owner, "fields", ())
        return items[fields.index(definition.attr)] if definition.attr in fields else None
    return items[0] if len(set(items)) == 1 else None


def _definition(function_ir: Any, variable: Any) -> Any:
    """Return the only expression assigned to a variable in numba's intermediate code, or None.

    The result is None if several expressions are assigned to it.
    """
    tools: Any = import_module("numba.core.ir_utils")
    return tools.guard(tools.get_definition, function_ir, variable)
