"""A rank that `mccfr.cluster.launch` has started: a command of the program, whose exit status is noted in a file.

Launchers of MPI report statuses of their own; so the coordinator writes its process id and its status into a file.
"""

import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

from mccfr.cli import main

_LOOK_SECONDS = 0.5


def run(ended: Path, launcher: int, text: str, arguments: list[str]) -> None:
    """Execute a command line; the coordinator notes how it ends, and does not outlive the process that launched it.

    text  number of the open file that what is said goes to; "-": the one that MPI has given
    """
    from mccfr.cluster.launch import write_end
    from mccfr.cluster.mpi import end_the_others
    from mccfr.cluster.starting import coordinates, heed

    if text != "-":
        os.dup2(int(text), sys.stderr.fileno())
    pid = os.getpid()
    heed(lambda status: write_end(ended, pid=pid, status=status))
    if coordinates():
        write_end(ended, pid=pid)
        threading.Thread(target=_die_with, args=(launcher,), daemon=True).start()
    try:
        main(arguments)
    except SystemExit as end:
        if coordinates():
            write_end(ended, pid=pid, status=end.code if isinstance(end.code, int) else 1)
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        end_the_others()


def _die_with(launcher: int) -> None:
    """End this process when another one has ended: MPI ends all ranks then."""
    while Path(f"/proc/{launcher}").exists():
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
