"""Handles signals of a run's MPI processes before training starts: only process 0 reacts to them.

Process 0, the coordinator, leads the others, which train, and ends them. A signal that is sent to all processes is
therefore meant for it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

from mccfr.cluster.mpi import abort_all_ranks
from mccfr.common.signals import EXIT_RESUMABLE, SIGNALS, is_taken, take

_LOSS_SECONDS = 3.0  # gforker sends SIGINT when a rank has died, and SIGQUIT, which ends this process, a second later
_RANK_NAMES = ("PMI_RANK", "PMIX_RANK")


def is_coordinator() -> bool:
    """Return True if this is MPI process 0, the coordinator, which leads the others.

    The launcher's environment variables tell it. Returns True also if no MPI launcher has set them.
    """
    return next((os.environ[name] for name in _RANK_NAMES if name in os.environ), "0") == "0"


def set_startup_signals(
    ending: Callable[[int], None] = lambda _: None, status_of: Callable[[int], int] = lambda _: EXIT_RESUMABLE
) -> None:
    """Make signals end MPI process 0 (coordinator) and with it all others, which ignore signals.

    ending     function that receives the exit status before the process ends
    status_of  function from the number of a signal to the exit status

    A second call does nothing.
    """
    if is_taken():
        return

    def end(number: int, _: FrameType | None) -> None:
        take(signal.SIG_IGN)
        if number == signal.SIGINT:
            time.sleep(_LOSS_SECONDS)
        status = status_of(number)
        ending(status)
        # Not by an exception, which would have to leave imports, and MPI calls that wait for other ranks.
        os.write(sys.stderr.fileno(), f"mccfr: stopped by signal {number}\n".encode())
        abort_all_ranks(status)
        os._exit(status)

    take(end if is_coordinator() else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
