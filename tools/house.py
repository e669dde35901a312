"""Counts code lines, keys, words, kernels and structs of the tracked files, for their budget.

    python tools/house.py           print all figures
    python tools/house.py --lower   write each figure of tools/budget.toml that has fallen into it

A code line has a token that is neither a comment nor a docstring.  Words are counted as by `wc -w`.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from plain_words import PLACES, all_findings
from source_files import BUDGET, ROOT, parsed, tracked

BESIDE_THE_CORE = ("mccfr/view", "mccfr/cli", "mccfr/experiments", "mccfr/gallery", "tools")
STRATA = ("mccfr/runs/session/strata", "mccfr/cluster")
KERNELS = ("njit", "intrinsic")
PACKAGES = ("mccfr", "abstraction", "storage", "tools", "tests")
NO_CODE = {getattr(tokenize, name) for name in ("COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER")}
NUMBA_PACKAGE = ROOT / "abstraction/kernels"
EXTERNAL = "mccfr/solvers/sampling/external/external_packed.py"
PROTOCOL = "mccfr/solvers/solver.py"


def lines(files: list[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in files)


def code_lines(path: Path) -> int:
    """Return the number of lines with a token that is neither a comment nor a docstring.

    A docstring is any statement that is only a string.
    """
    found, lines, kinds = set[int](), set[int](), list[int]()
    for kind, _, (first, _), (last, _), _ in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if kind not in NO_CODE:
            lines.update(range(first, last + 1))
            kinds.append(kind)
        elif kind == tokenize.NEWLINE:
            found |= lines if kinds != [tokenize.STRING] else set()
            lines, kinds = set(), []
    return len(found)


def package_of(path: Path) -> str:
    """Return `mccfr/NAME` for a file of a package of `mccfr`, else the name of its top folder."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2]) if parts[0] == "mccfr" and len(parts) > 2 else parts[0]


def lines_of_packages() -> dict[str, int]:
    """Return the code lines of each package; "mccfr" counts its modules outside of packages."""
    found = Counter[str]()
    for path in tracked(*PACKAGES):
        found[package_of(path)] += code_lines(path)
    return dict(sorted(found.items()))


def functions(files: list[Path]) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield (place, function) for every function."""
    for path in files:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node


def kernel_arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of a kernel's arguments, 0 for other functions.

    The typing context of an intrinsic does not count.
    """
    decorators = {ast.unparse(decorator) for decorator in function.decorator_list}
    count = len(function.args.posonlyargs + function.args.args + function.args.kwonlyargs)
    return (count - ("intrinsic" in decorators)) if any(name in d for d in decorators for name in KERNELS) else 0


def structs(files: list[Path]) -> dict[str, int]:
    """Return the number of fields of every named tuple."""
    found = {}
    for path in files:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "NamedTuple" for base in node.bases):
                found[f"{path.relative_to(ROOT)} {node.name}"] = sum(isinstance(x, ast.AnnAssign) for x in node.body)
    return found


def keys() -> dict[str, int]:
    """Return the number of configuration keys that each struct of `mccfr.config` adds to its base."""
    found = {}
    for path in tracked("mccfr/config"):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and any(word.arg == "frozen" for word in node.keywords):
                added = [x for x in node.body if isinstance(x, ast.AnnAssign) and "ClassVar" not in ast.unparse(x)]
                if node.name not in ("Config", "OpaqueGame", "OpaqueSolver", "CodeEntry"):
                    found[node.name] = len(added)
    return found


def methods(path: Path, name: str) -> list[str]:
    """Return the methods and properties of a class, without `__init__`."""
    (found,) = (node for node in parsed(path).body if isinstance(node, ast.ClassDef) and node.name == name)
    return [node.name for node in found.body if isinstance(node, ast.FunctionDef) and node.name != "__init__"]


def imported(path: Path) -> set[Path]:
    """Return a module's file and all files of this project that it imports, directly or indirectly.

    `abstraction/kernels`, the only place that imports numba, is left out.
    """
    found, waiting = set[Path](), [path]
    while waiting:
        here = waiting.pop()
        if here in found or here.is_relative_to(NUMBA_PACKAGE):
            continue
        found.add(here)
        for node in ast.walk(parsed(here)):
            if isinstance(node, ast.ImportFrom) and node.module:
                file = ROOT.joinpath(*node.module.split(".")).with_suffix(".py")
                waiting += [file] if file.is_file() else []
    return found


def words(measured: bool = False) -> dict[str, int]:
    """Return the words of each page: of the measurements in `docs/measured`, or of all other pages."""
    pages = [*tracked("docs", ending=".md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return {path.stem: len(path.read_text("utf-8").split()) for path in pages if ("measured" in path.parts) == measured}


def classes_named_twice(files: list[Path]) -> list[str]:
    """Return names that several classes have."""
    found = Counter(node.name for path in files for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef))
    return sorted(name for name, count in found.items() if count > 1)


def figures() -> dict[str, int]:
    """Return all figures other than code lines of packages."""
    source = tracked("mccfr", "abstraction", "storage", "tools")
    outside = tuple(str(ROOT / name) + "/" for name in (*BESIDE_THE_CORE, *STRATA))
    packed = {f.name: f.end_lineno - f.lineno + 1 for _, f in functions([ROOT / EXTERNAL]) if f.end_lineno}
    return {
        "source, lines": lines(source),
        "... core: without view, cli, experiments, gallery, tools, strata": lines(
            [path for path in source if not str(path).startswith(outside)]
        ),
        "... gallery": lines(tracked("mccfr/gallery")),
        "source, files": len(source),
        "tests, lines": lines(tracked("tests")),
        "configuration keys": sum(keys().values()),
        "words of pages": sum(words().values()),
        "words of measurements": sum(words(measured=True).values()),
        "words of CHANGELOG.md": len((ROOT / "CHANGELOG.md").read_text("utf-8").split()),
        "kernels of more than 8 arguments": sum(kernel_arguments(f) > 8 for _, f in functions(source)),
        "structs of more than 10 fields": sum(count > 10 for count in structs(source).values()),
        "class names given twice": len(classes_named_twice(source)),
        "methods of Algorithm": len(methods(ROOT / PROTOCOL, "Algorithm")),
        "external_sampling_packed, lines": packed["external_sampling_packed"],
        "files that external sampling's kernel is made of": len(imported(ROOT / EXTERNAL)),
    }


def lower(found: dict[str, int]) -> None:
    """Lower the entries of `tools/budget.toml` whose figure has fallen; keep the others."""

    def entry(match: re.Match[str]) -> str:
        name, most = match[1].strip('"'), int(match[2])
        return f"{match[1]} = {min(most, found.get(name, most))}"

    text = re.sub(r"^(\S.*?) = (\d+)", entry, BUDGET.read_text(encoding="utf-8"), flags=re.MULTILINE)
    BUDGET.write_text(text, encoding="utf-8")


def main() -> None:
    packages, others = lines_of_packages(), figures()
    if "--lower" in sys.argv[1:]:
        lower(packages | others | {"findings of plain_words.py": len(all_findings(*PLACES))})
    program = sum(count for name, count in packages.items() if name not in ("tools", "tests"))
    for name, count in {**packages, "mccfr, abstraction and storage": program, **others}.items():
        sys.stdout.write(f"{count:>8,}  {name}\n")


if __name__ == "__main__":
    main()
