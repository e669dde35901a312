"""`python -m mccfr`: the program without its installed script."""

import sys
from pathlib import Path

# Python puts the current folder first, where any file may have the name of a module; ours may lie there in a clone.
if Path(__file__).resolve().parent.parent != Path.cwd():
    sys.path[:] = [place for place in sys.path if place not in ("", str(Path.cwd()))]

from mccfr.cli import main

if __name__ == "__main__":
    main()
