"""Creates and closes live tables in a process that is killed (SIGKILL) at each step in turn.

`python killed_steps.py FORMAT FOLDER`. A step is an audit event of Python; the first creates the tables' directory.
After each kill the tables are in FOLDER/STEP/place and the link is in FOLDER/STEP/run. Prints the number of steps.
"""

import os
import signal
import sys
from pathlib import Path

from storage import hdf5_format, live_tables, zarr_format  # noqa: F401 - imported now, so that imports are no steps
from storage.schema import ArraySpec

_EVENTS = ("open", "os.", "shutil.", "fcntl.")


def kill_at(step):
    """Kill this process just before a step; step 1 creates the tables' directory."""
    seen = [0]

    def count(event, arguments):
        begins = event == "os.mkdir" and "mccfr-" in Path(arguments[0]).name
        seen[0] += event.startswith(_EVENTS) and (begins or seen[0] > 0)
        if seen[0] == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def main(layout, folder):
    step = 0
    while True:
        step += 1
        place, run = folder / str(step) / "place", folder / str(step) / "run"
        place.mkdir(parents=True)
        run.mkdir()
        child = os.fork()
        if child == 0:
            kill_at(step)
            specs = [ArraySpec(name, (50, 3), "float32", ("x", "y")) for name in ("a", "b/c")]
            live_tables.create_live(specs, format=layout, live_dir=place, link=run / "live").close()
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if os.WIFEXITED(status):
            sys.exit(os.WEXITSTATUS(status) or print(step - 1))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
