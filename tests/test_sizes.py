"""Size limits: lines of functions, arguments of kernels, keys, words, inlined kernels."""

import ast
import sys

import pytest
from places import ROOT

sys.path.append(str(ROOT / "tools"))
import house
from source_files import budget, parsed, tracked

from mccfr.config.game_tables import GAMES
from mccfr.evaluation.methods.registry import _METHODS
from mccfr.policy.export.export_formats import FORMATS
from mccfr.solvers.registry import _ALGORITHMS
from mccfr.solvers.variants import MINIMISERS, PRESETS

PACKED = {"external_sampling_packed"}
"""The kernel in which training spends most of its time; splitting its loop would make it slower."""
LINES, PACKED_LINES, ARGUMENTS = 60, 85, 8
KEYS = {
    "DeepCfrConfig": 17,
    "EvaluationConfig": 9,
    "PokerGame": 13,
    "LeducGame": 6,
    "FullWidthConfig": 10,
    "RunSettings": 12,
    "HoldemSubgame": 10,
    "HoldemGame": 10,
    "StreetMenu": 6,
    "Menu": 9,
    "PlayerMenu": 7,
    "TablesConfig": 6,
}
KEYS_OF_OTHERS = 5
"""Most keys of any other table, without the keys that it inherits."""
ENTRIES = [(_ALGORITHMS, 6), (GAMES, 12), (_METHODS, 6), (PRESETS, 16), (MINIMISERS, 4), (FORMATS, 6)]
FILE_LINES, PAGE_WORDS = 500, 4_300


def test_packages_and_figures_stay_within_the_budget():
    """Every package has an entry. After a figure has fallen, run `python tools/house.py --lower`."""
    found, allowed = {"code lines": house.lines_of_packages(), "figures": house.figures()}, budget()
    assert found["code lines"].keys() == allowed["code lines"].keys()
    assert {
        name: (found[table][name], most)
        for table in found
        for name, most in allowed[table].items()
        if found[table][name] > most
    } == {}


def test_an_entry_of_the_budget_falls_and_never_rises(tmp_path, monkeypatch):
    file = tmp_path / "budget.toml"
    file.write_text('# why\n[figures]\nkeys = 7  # a reason\n"words of pages" = 3\n')
    monkeypatch.setattr("house.BUDGET", file)
    house.lower({"keys": 5, "words of pages": 4})
    assert file.read_text() == '# why\n[figures]\nkeys = 5  # a reason\n"words of pages" = 3\n'


def test_code_lines_are_neither_comments_nor_docstrings(tmp_path):
    """Each line of a multi-line text is a code line unless the text is a docstring."""
    file = tmp_path / "module.py"
    file.write_text(
        '"""Doc.\n\nMore.\n"""\n\n# why\nX = 1  # one\n"""Of X."""\nTEXT = """a\n\nb"""\ndef f(): return X\n'
    )
    assert house.code_lines(file) == 5


def test_tables_registries_files_and_pages_stay_within_their_limits():
    """Count keys of tables, entries of registries, lines of files and words of pages."""
    assert {name: count for name, count in house.keys().items() if count > KEYS.get(name, KEYS_OF_OTHERS)} == {}
    assert [sorted(registry) for registry, most in ENTRIES if len(registry) > most] == []
    files = tracked("mccfr", "abstraction", "storage", "tools", "tests")
    assert [path for path in files if path.read_bytes().count(b"\n") > FILE_LINES] == []
    assert {page: count for page, count in house.words().items() if count > PAGE_WORDS} == {}


def lines(function):
    return function.end_lineno - function.lineno + 1


@pytest.mark.parametrize("package", ["mccfr", "abstraction", "storage", "tools"])
def test_no_function_is_long_and_no_kernel_takes_many_arguments(package):
    found = list(house.functions(tracked(package)))
    assert len(found) > 10
    long = [where for where, f in found if lines(f) > (PACKED_LINES if f.name in PACKED else LINES)]
    assert long == []
    assert [where for where, f in found if house.kernel_arguments(f) > ARGUMENTS] == []


def test_the_largest_kernel_reaches_the_limits():
    """Only the packed kernel is longer than `LINES`; some kernel has `ARGUMENTS` arguments."""
    every = dict(house.functions(tracked("mccfr/solvers")))
    assert sorted(f.name for f in every.values() if lines(f) > LINES) == sorted(PACKED)
    assert max(map(house.kernel_arguments, every.values())) == ARGUMENTS


def is_kernel(node):
    return isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(d) for d in node.decorator_list)


def names_outside_kernels(tree):
    """Yield every name that is used outside of kernels."""
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
    """Check that these kernels have no code for Python arguments, a quarter of the compile time."""
    declared = {
        (f.name, ast.unparse(decorator))
        for package in ("mccfr", "abstraction")
        for _, f in house.functions(tracked(package))
        for decorator in f.decorator_list
    }
    unused = {f for f, d in declared if d in ("njit", "nogil_njit")}
    for file in (file for part in ("mccfr", "abstraction", "tools", "tests") for file in (ROOT / part).rglob("*.py")):
        if any(name in file.read_text(encoding="utf-8") for name in unused):
            unused -= set(names_outside_kernels(parsed(file)))
    assert sorted(unused) == []
    parts = {f for f, d in declared if d == "part_njit"}
    assert len(parts) > 50 and "_ascend" in parts
