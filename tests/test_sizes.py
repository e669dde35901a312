"""How much there may be of what: lines of functions, arguments of kernels, keys, words; and which kernels are parts."""

import ast
import sys

import pytest
from places import ROOT

sys.path.append(str(ROOT / "tools"))
from house import figures, functions, kernel_arguments, keys, parsed, tracked, words

from mccfr.config.games import GAMES
from mccfr.evaluation.methods.registry import _METHODS
from mccfr.policy.export.formats import FORMATS
from mccfr.solvers.registry import _ALGORITHMS
from mccfr.solvers.variants import MINIMISERS, PRESETS

PACKED = {"external_sampling_packed"}
"""The kernel that training spends most of its time in, one loop over a worklist: split up it is slower."""
LINES, PACKED_LINES, ARGUMENTS = 60, 85, 8
BUDGETS = {
    "configuration keys": 151,
    "kernels of more than 8 arguments": 0,
    "structs of more than 10 fields": 1,
    "files that external sampling's kernel is made of": 5,
    "words of pages": 35_500,
    "methods of Algorithm": 11,
    "class names given twice": 11,
}
"""What there may be at most: a budget is raised in a commit of its own, with the reason (CONTRIBUTING)."""
KEYS = {
    "DeepCfrConfig": 17,
    "EvaluationConfig": 13,
    "PokerGame": 13,
    "FullWidthConfig": 12,
    "RunSettings": 12,
    "HoldemSubgame": 10,
    "Menu": 9,
    "PlayerMenu": 7,
    "SampledConfig": 6,
    "TablesConfig": 6,
}
KEYS_OF_OTHERS = 5
"""Of a table, those apart that it shares with others."""
ENTRIES = [(_ALGORITHMS, 6), (GAMES, 12), (_METHODS, 8), (PRESETS, 17), (MINIMISERS, 4), (FORMATS, 6)]
FILE_LINES, PAGE_WORDS = 500, 3_560


def test_the_house_stays_within_its_budgets():
    found = figures()
    assert {name: found[name] for name, most in BUDGETS.items() if found[name] > most} == {}


def test_tables_registries_files_and_pages_stay_within_theirs():
    """Keys of each table, entries of each registry, lines of each file, words of each page."""
    assert {name: count for name, count in keys().items() if count > KEYS.get(name, KEYS_OF_OTHERS)} == {}
    assert [sorted(registry) for registry, most in ENTRIES if len(registry) > most] == []
    files = tracked("mccfr", "abstraction", "storage", "tools", "tests")
    assert [path for path in files if path.read_bytes().count(b"\n") > FILE_LINES] == []
    assert {page: count for page, count in words().items() if count > PAGE_WORDS} == {}


def lines(function):
    return function.end_lineno - function.lineno + 1


@pytest.mark.parametrize("package", ["mccfr", "abstraction", "storage", "tools"])
def test_no_function_is_long_and_no_kernel_takes_many_arguments(package):
    found = list(functions(tracked(package)))
    assert len(found) > 10
    long = [where for where, f in found if lines(f) > (PACKED_LINES if f.name in PACKED else LINES)]
    assert long == []
    assert [where for where, f in found if kernel_arguments(f) > ARGUMENTS] == []


def test_the_bounds_bite():
    """The packed kernel is longer than others beside it, and kernels with as many arguments as allowed are counted."""
    every = dict(functions(tracked("mccfr/solvers")))
    assert sorted(f.name for f in every.values() if lines(f) > LINES) == sorted(PACKED)
    assert max(map(kernel_arguments, every.values())) == ARGUMENTS


def is_kernel(node):
    return isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(d) for d in node.decorator_list)


def names_outside_kernels(tree):
    """Every name that is used but inside kernels."""
    todo = [tree]
    while todo:
        for child in ast.iter_child_nodes(todo.pop()):
            if isinstance(child, ast.Name):
                yield child.id
            elif isinstance(child, ast.Attribute):
                yield child.attr
            if not is_kernel(child):
                todo.append(child)


def test_kernels_that_only_kernels_call_are_parts():
    """They need no code that takes arguments from Python, which a quarter of the time of compiling would go into."""
    declared = {
        (f.name, ast.unparse(decorator))
        for package in ("mccfr", "abstraction")
        for _, f in functions(tracked(package))
        for decorator in f.decorator_list
    }
    unused = {f for f, d in declared if d in ("njit", "nogil_njit")}
    for file in (file for part in ("mccfr", "abstraction", "tools", "tests") for file in (ROOT / part).rglob("*.py")):
        if any(name in file.read_text(encoding="utf-8") for name in unused):
            unused -= set(names_outside_kernels(parsed(file)))
    assert sorted(unused) == []
    parts = {f for f, d in declared if d == "part_njit"}
    assert len(parts) > 50 and "_ascend" in parts
