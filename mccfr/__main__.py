"""Runs the program as `python -m mccfr`, without its installed script."""

import sys
from pathlib import Path

# Python searches the current folder first, where a file may hide a module; it is kept only if it is the clone.
if Path(__file__).resolve().parent.parent != Path.cwd():
    sys.path[:] = [place for place in sys.path if place not in ("", str(Path.cwd()))]

from mccfr.cli import main

if __name__ == "__main__":
    main()
