"""Lists and parses the files that git tracks, and reads their budget."""

import ast
import subprocess
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET = ROOT / "tools/budget.toml"


def tracked(*below: str, ending: str = ".py") -> list[Path]:
    """Return the files that git tracks and that exist."""
    listed = subprocess.run(["git", "ls-files", *below], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.splitlines() if name.endswith(ending) and (ROOT / name).is_file()]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def budget() -> dict[str, dict[str, int]]:
    """Return the tables of `tools/budget.toml`."""
    return tomllib.loads(BUDGET.read_text(encoding="utf-8"))
