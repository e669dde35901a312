"""Makes the helpers that tests share (naive twins, harness, mutants) importable from every test file."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
