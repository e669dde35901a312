"""What signals do to ranks until a session heeds them: the coordinator ends with a sentence, the others go on.

Who trains is told by the coordinator when to end; whoever sends a signal to all processes of a job means it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from mccfr.cluster.mpi import end_the_others
from mccfr.runs.session.signals import SIGNALS

_STOPPED = 75
_LOSS_SECONDS = 3.0  # gforker sends SIGINT where a rank has died, and SIGQUIT, which ends this one, a second later
_RANK_NAMES = ("PMI_RANK", "PMIX_RANK")


@contextmanager
def held_back() -> Iterator[None]:
    """Processes that are started inside get no signal of `SIGNALS` until they call `heed`; it waits for them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def coordinates() -> bool:
    """Whether this process is the coordinator, by what a launcher of MPI has told it."""
    return next((os.environ[name] for name in _RANK_NAMES if name in os.environ), "0") == "0"


def heed(ending: Callable[[int], None] = lambda _: None) -> None:
    """From now on a signal ends the coordinator, and with it the job, by status 75; ranks that train pass it over.

    ending  is told the status before the process ends, so that it can be noted

    Nothing changes where signals are heeded already.
    """
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def end(number: int, _: FrameType | None) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        if number == signal.SIGINT:
            time.sleep(_LOSS_SECONDS)
        ending(_STOPPED)
        # By hand: an exception would have to find its way out of imports and of MPI, which waits for all others.
        os.write(sys.stderr.fileno(), f"mccfr: stopped by signal {number}\n".encode())
        end_the_others(_STOPPED)
        os._exit(_STOPPED)

    for number in SIGNALS:
        signal.signal(number, end if coordinates() else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
