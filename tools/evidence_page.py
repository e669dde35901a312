"""Writes the lower part of docs/evidence.md from the `Shows:` parts of test modules' docstrings.

    python tools/evidence_page.py

A claim is `* STATEMENT (test_a, test_b; planted: test_c)`, with names of tests or of test files in any folder.
`tests/test_docs.py` checks that they exist and that the page is up to date.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "evidence.md"
TESTS = ROOT / "tests"
GENERATED = "## Solvers\n"
"""First line of the generated part; the part above is written by hand."""
SECTIONS = {
    "Solvers": ("mccfr/solvers", "mccfr/gallery", "mccfr/tables", "mccfr/test_sums.py"),
    "Games and cards": ("mccfr/games", "mccfr/trees", "mccfr/cards", "abstraction"),
    "Evaluation": ("mccfr/evaluation", "mccfr/common/test_intervals.py", "mccfr/experiments"),
    "At the table": ("mccfr/play", "mccfr/cli/test_bot_commands.py", "mccfr/view"),
    "Python, and code of users": ("mccfr/api", "mccfr/config/test_plugins.py", "test_extend.py"),
    "Runs and files": ("",),
}
"""Folders and files of each section; a file belongs to the first section that fits."""


class Claim(NamedTuple):
    """A claim that tests show.

    tests    names of tests and of test files
    planted  True if one of the tests plants errors
    """

    says: str
    tests: list[str]
    planted: bool


def claims(path: Path) -> Iterator[Claim]:
    """Yield the claims in a test module's docstring."""
    _, _, text = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("Shows:\n")
    for part in re.split(r"^\* ", text, flags=re.MULTILINE)[1:]:
        says, _, names = " ".join(part.split()).rpartition(" (")
        yield Claim(says, re.findall(r"\btest_\w+", names), bool(re.search("[Pp]lanted|_caught", says + names)))


def every() -> dict[str, list[Claim]]:
    """Return the claims of each test file, by its path below tests/."""
    paths = sorted(TESTS.rglob("test_*.py"))
    return {str(path.relative_to(TESTS)): found for path in paths if (found := list(claims(path)))}


def page() -> str:
    """Return the whole page."""
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(GENERATED)
    lines: dict[str, list[str]] = {title: [] for title in SECTIONS}
    for file, found in every().items():
        title = next(title for title, places in SECTIONS.items() if file.startswith(places))
        says = " ".join(f"{claim.says}.{'†' if claim.planted else ''}" for claim in found)
        lines[title].append(f"* `{file}`: {says}")
    return head + "\n".join(f"## {title}\n\n" + "\n".join(texts) + "\n" for title, texts in lines.items())


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
