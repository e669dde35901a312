"""Paths of the repository, shipped files and test data."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "runs"
DATA = ROOT / "tests" / "data"
ENDGAMES = ROOT.parent / "shared" / "data" / "libratus_endgames"
"""The LibratusEndgames files, which are not ours to pass on: what needs them skips in a bare clone."""
