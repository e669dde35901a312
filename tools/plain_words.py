"""Finds unclear words, long sentences and unclear names in docstrings and pages.

python tools/plain_words.py          compare the number of findings with tools/budget.toml; status 1: it is higher
python tools/plain_words.py PATH...  print the findings in files and folders
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from source_files import ROOT, budget, parsed, tracked

MOST_WORDS, MOST_COLUMNS = 25, 100
PLACES = "mccfr", "abstraction", "storage", "tools", "docs", "README.md"
PERSONS = "whoever|somebody|anybody|nobody|one another|he|him|his|himself"
METAPHORS = "desk|shelf|gifts|leftovers|keeper"  # words for a request, a list of strategies, margins, files, a state
RIDDLES = "is what|are what|what is|what it is|of whom|whose one"
WORDS = re.compile(rf"\b({PERSONS}|{METAPHORS}|{RIDDLES})\b", re.IGNORECASE)
FIRST = re.compile(r"(What|Whose|Whether|Where|Who|How|Which|As `)\b")
PARTICIPLES = {"asked", "dealt", "learned", "made", "said", "seated", "written", "served", "told", "met", "owed"}
CODE = re.compile(r"```.*?```|^ {4}.*?$|^\s*[|#!<].*?$|`[^`]*`", re.DOTALL | re.MULTILINE)
BREAKS = re.compile(r"\n\s*\n|\n\s*(?:[*-]|\d+\.) |\n(?=\S+ {2,}\S)|(?<=[.;:!?])\)?\s+")
EXCEPTIONS = {"docs/evidence.md", "docs/commands.md"}  # generated from docstrings of tests and from help texts


def of_text(text: str) -> Iterator[str]:
    """Yield the forbidden words and the too long sentences of a text, without the code in it."""
    plain = CODE.sub("`x`", text)
    yield from (f"word '{found[0]}'" for found in WORDS.finditer(plain))
    for sentence in BREAKS.split(plain):
        if (count := len(sentence.split())) > MOST_WORDS:
            yield f"sentence of {count} words: {' '.join(sentence.split()[:8])} ..."


def of_docstring(text: str) -> Iterator[str]:
    """Yield the findings in a docstring."""
    first = text.partition("\n")[0]
    if FIRST.match(first):
        yield f"first line begins with '{first.split()[0]}'"
    if len(first) > MOST_COLUMNS:
        yield f"first line of {len(first)} columns"
    yield from of_text(text)


def names_of(node: ast.AST) -> Iterator[str]:
    """Yield the names that a function definition introduces: its own and its parameters'."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from (node.name, *(each.arg for each in (*node.args.args, *node.args.kwonlyargs)))


def findings(path: Path) -> Iterator[str]:
    """Yield a line for each finding in a module or page."""
    name = str(path.relative_to(ROOT))
    if path.suffix == ".md":
        yield from (f"{name}: {found}" for found in of_text(path.read_text(encoding="utf-8")))
        return
    if path.stem in PARTICIPLES:
        yield f"{name}: module named '{path.stem}'"
    for node in ast.walk(parsed(path)):
        where = f"{name}:{getattr(node, 'lineno', 1)}"
        yield from (f"{where}: name '{each}'" for each in names_of(node) if each in PARTICIPLES)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield from (f"{where}: {found}" for found in of_docstring(text))


def all_findings(*places: str) -> list[str]:
    """Return the findings of the files below these places, without the exceptions."""
    files = [*tracked(*places), *tracked(*places, ending=".md")]
    return [each for path in files if str(path.relative_to(ROOT)) not in EXCEPTIONS for each in findings(path)]


if __name__ == "__main__":
    found = all_findings(*sys.argv[1:] or PLACES)
    (most,) = budget()["plain words"].values()
    for line in found if sys.argv[1:] else ():
        sys.stdout.write(line + "\n")
    sys.stdout.write(f"{len(found):,} findings; tools/budget.toml allows {most:,} in all\n")
    sys.exit(len(found) > most and not sys.argv[1:])
