"""What signals do to ranks until a session heeds them: the coordinator ends with a sentence, the others go on.

Who trains is told by the coordinator when to end; whoever sends a signal to all processes of a job means it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

from mccfr.cluster.mpi import end_the_others
from mccfr.signals import EXIT_RESUMABLE, SIGNALS, is_taken, take

_LOSS_SECONDS = 3.0  # gforker sends SIGINT where a rank has died, and SIGQUIT, which ends this one, a second later
_RANK_NAMES = ("PMI_RANK", "PMIX_RANK")


def coordinates() -> bool:
    """Whether this process is the coordinator, by what a launcher of MPI has told it."""
    return next((os.environ[name] for name in _RANK_NAMES if name in os.environ), "0") == "0"


def heed(
    ending: Callable[[int], None] = lambda _: None, status_of: Callable[[int], int] = lambda _: EXIT_RESUMABLE
) -> None:
    """From now on a signal ends the coordinator, and with it the job; ranks that train pass it over.

    ending     is told the status before the process ends, so that it can be noted
    status_of  gives the status for a signal

    Nothing changes the second time.
    """
    if is_taken():
        return

    def end(number: int, _: FrameType | None) -> None:
        take(signal.SIG_IGN)
        if number == signal.SIGINT:
            time.sleep(_LOSS_SECONDS)
        status = status_of(number)
        ending(status)
        # By hand: an exception would have to find its way out of imports and of MPI, which waits for all others.
        os.write(sys.stderr.fileno(), f"mccfr: stopped by signal {number}\n".encode())
        end_the_others(status)
        os._exit(status)

    take(end if coordinates() else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
