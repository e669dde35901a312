"""Runs a command as one MPI process of a cluster, started by `mccfr.cluster.launch`.

One of the processes, the coordinator, leads the others. MPI launchers replace exit statuses, so it writes its process
id and status into a file.
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
    """Execute a command line as one process of an MPI job; then end all processes of the job.

    One process, the coordinator, leads the others. It is killed when the launching process has ended.

    ended      file to which the coordinator writes its process id and exit status
    launcher   process id of the launching process
    text       descriptor of an open file that becomes stderr; "-": keep the stderr that MPI provides
    arguments  words of the command line
    """
    from mccfr.cluster.launch import write_end
    from mccfr.cluster.mpi import abort_all_ranks
    from mccfr.cluster.startup_signals import is_coordinator, set_startup_signals

    if text != "-":
        os.dup2(int(text), sys.stderr.fileno())
    pid = os.getpid()
    set_startup_signals(lambda status: write_end(ended, pid=pid, status=status))
    if is_coordinator():
        write_end(ended, pid=pid)
        threading.Thread(target=_die_with, args=(launcher,), daemon=True).start()
    try:
        main(arguments)
    except SystemExit as end:
        if is_coordinator():
            write_end(ended, pid=pid, status=end.code if isinstance(end.code, int) else 1)
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        abort_all_ranks()


def _die_with(launcher: int) -> None:
    """Wait until the process with id `launcher` has ended, then kill this process.

    MPI then ends all other processes of the job.
    """
    while Path(f"/proc/{launcher}").exists():
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
