"""How long functions may be, and how many arguments a kernel may take."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKED = {"external_sampling_packed", "outcome_sampling_packed"}
"""The two kernels that training spends its time in, each one loop over a worklist: split up they are slower."""
LINES, PACKED_LINES, ARGUMENTS = 90, 125, 10


def functions(package):
    """(where, function) of every function of a package."""
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node


def lines(function):
    return function.end_lineno - function.lineno + 1


def kernel_arguments(function):
    """Arguments of a kernel, 0 of other functions; an intrinsic takes the context of typing beside its own."""
    decorators = {ast.unparse(decorator) for decorator in function.decorator_list}
    count = len(function.args.posonlyargs + function.args.args + function.args.kwonlyargs)
    return (count - ("intrinsic" in decorators)) if any("njit" in d or d == "intrinsic" for d in decorators) else 0


@pytest.mark.parametrize("package", ["mccfr", "abstraction", "storage", "tools"])
def test_no_function_is_long_and_no_kernel_takes_many_arguments(package):
    found = list(functions(package))
    assert len(found) > 10
    long = [where for where, f in found if lines(f) > (PACKED_LINES if f.name in PACKED else LINES)]
    assert long == []
    assert [where for where, f in found if kernel_arguments(f) > ARGUMENTS] == []


def test_the_bounds_bite():
    """The packed kernels are longer than others may be, and kernels with as many arguments as allowed are counted."""
    every = dict(functions("mccfr/sampling"))
    assert sorted(f.name for f in every.values() if lines(f) > LINES) == sorted(PACKED)
    assert max(map(kernel_arguments, every.values())) == ARGUMENTS
