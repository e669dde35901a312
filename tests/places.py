"""Paths of the repository, shipped files and test data."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "runs"
DATA = ROOT / "tests" / "data"
ENDGAMES = ROOT.parent / "shared" / "data" / "libratus_endgames"
"""The LibratusEndgames files, which the repository may not contain; without them, tests that need them skip."""


def journal_lines(path: Path) -> list[str]:
    """Return the complete lines of a file; [] if it is absent."""
    return path.read_bytes().decode(errors="surrogateescape").split("\n")[:-1] if path.exists() else []
