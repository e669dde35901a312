"""Mechanical changes of a module's code, drawn by a seed.

Of four kinds: a condition negated, a statement dropped, two arguments swapped, one more or one less.  Each is one line
of text in the place of another, which occurs once in its module.  `python tests/mutations.py SEED MODULE...` prints
those that the seed draws, one of each module.
"""

import ast
import random
import sys
from collections.abc import Iterator
from typing import NamedTuple

from mutants import source_file

KINDS = ("negated", "dropped", "swapped", "one off")
_NEXT_TO = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}


class Change(NamedTuple):
    """A stripped line of a module, and the line that replaces it."""

    kind: str
    old: str
    new: str


def drawn(module: str, seed: int) -> Change:
    """Return a change of a module drawn by a seed: first its kind, then one of that kind."""
    found = list(changes(source_file(module).read_text(encoding="utf-8")))
    generator = random.Random(f"{seed} {module}")
    kind = generator.choice(sorted({change.kind for change in found}))
    return generator.choice([change for change in found if change.kind == kind])


def changes(source: str) -> Iterator[Change]:
    """All changes of a module's functions that fit into a line of their own, in the order of the text."""
    lines = source.splitlines()
    for node in _in_functions(ast.parse(source)):
        for kind, place, new in _of_node(node, source):
            if place.lineno != place.end_lineno:
                continue
            line = lines[place.lineno - 1]
            whole = line[: place.col_offset] + new + line[place.end_col_offset :]
            if line.isascii() and source.count(line.strip()) == 1:
                yield Change(kind, line.strip(), whole.strip())


def _of_node(node: ast.AST, source: str) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """Return (kind, old text, new text) of each change of one node."""

    def text(part: ast.AST) -> str:
        return ast.get_source_segment(source, part) or ""

    if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
        yield "negated", node.test, f"not ({text(node.test)})"
    elif isinstance(node, ast.Expr | ast.Assign | ast.AugAssign | ast.Raise | ast.Continue) and _can_go(node):
        yield "dropped", node, "pass"
    elif isinstance(node, ast.Call) and len(node.args) > 1 and node.args[0].lineno == node.args[1].end_lineno:
        one, other = node.args[:2]
        if text(one) != text(other):
            whole = text(node)
            start = one.col_offset - node.col_offset
            end = other.end_col_offset - node.col_offset
            yield "swapped", node, f"{whole[:start]}{text(other)}, {text(one)}{whole[end:]}"
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "one off", node, str(node.value + 1)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _NEXT_TO and len(node.ops) == 1:
        sign = _NEXT_TO[type(node.ops[0])]
        yield "one off", node, f"{text(node.left)} {sign} {text(node.comparators[0])}"


def _can_go(node: ast.AST) -> bool:
    """Return True if code without a statement may run; names need their values, and docstrings do nothing."""
    if isinstance(node, ast.Assign):
        return not isinstance(node.targets[0], ast.Name | ast.Tuple)
    return not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _in_functions(tree: ast.AST, inside: bool = False) -> Iterator[ast.AST]:
    """Yield the nodes of a module's functions in order, without annotations, defaults and messages."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.JoinedStr | ast.arguments):
            continue
        if inside:
            yield child
        if not isinstance(child, ast.Raise):
            yield from _in_functions(child, inside or isinstance(child, ast.FunctionDef))


if __name__ == "__main__":
    for name in sys.argv[2:]:
        print(name, *drawn(name, int(sys.argv[1])), sep="\n  ")
