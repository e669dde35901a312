"""Handles the signals that end the program: handlers, exception and exit statuses.

The first signal ends the current work.  Further signals within a second count as the same request, later ones as a
second request.  The context managers of this module do nothing outside of the main thread, because Python runs handlers
there only.  The module imports no library, because handlers must be set before other imports.
"""

import _thread
import atexit
import os
import resource
import select
import signal
import stat
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from math import inf
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from storage.deferred_signals import SIGNALS, Handler, exchange_handlers, in_main_thread

EXIT_RESUMABLE = 75
"""Exit status if a signal has stopped the training of a run that can be resumed; used for nothing else."""
SAME_REQUEST_SECONDS = 1.0
UNAWAITED = "unawaited"
"""Name of threads that the process does not wait for at its end, although they may be running a kernel."""
_AGAIN_SECONDS = 0.02  # delay before an exception is raised again that Python could only print

_contexts = 0  # number of nested contexts that handle signals now
_last_request_at = -inf  # time of the last signal that was a new request
_silent = False  # True after `silence`
_taken = False  # True after `take`: the command line sets no handlers any more


class SignalInterrupt(KeyboardInterrupt):
    """Raised when a signal ends the command.

    number     number of the signal
    when       end of the message, which says when the signal came, such as "before anything was trained"
    directory  directory of the run that can be resumed, which may have been moved since the command began; None: the
               command's own directory, or there is no such run
    """

    def __init__(self, number: int, when: str = "", directory: Path | None = None) -> None:
        super().__init__(f"stopped by signal {number} {when}".rstrip())
        self.number, self.directory = number, directory

    @property
    def exit_status(self) -> int:
        """Return the exit status of a command that leaves nothing to resume: 128 + the signal's number."""
        return 128 + self.number


@contextmanager
def signals_to(handle_request: Callable[[int], object]) -> Iterator[None]:
    """Within the context, call `handle_request` with the number of each signal that is a new request.

    A signal within `SAME_REQUEST_SECONDS` of the last request is no new one.  Outside of the main thread the context
    does nothing.  An ignored SIGHUP stays ignored, as `nohup` needs it.  At the end the earlier handlers are set again,
    except where `take` or `end` has set others.
    """
    global _contexts, _last_request_at  # noqa: PLW0603 - signals belong to the process
    if not in_main_thread():
        yield
        return

    def handle(number: int, _: FrameType | None) -> None:
        global _last_request_at  # noqa: PLW0603
        if number == signal.SIGHUP:
            leave_closed_terminal()
        if time.monotonic() - _last_request_at >= SAME_REQUEST_SECONDS:
            _last_request_at = time.monotonic()
            handle_request(number)

    if _contexts == 0:
        _last_request_at = -inf
    _contexts += 1
    before = exchange_handlers(handle)
    try:
        yield
    finally:
        _contexts -= 1
        for number, earlier in before.items():
            if signal.getsignal(number) is handle:  # else `take` or `end` has replaced it
                signal.signal(number, earlier)


def take(handler: Handler) -> None:
    """Set a handler for all signals of this module (`SIGNALS`) until the process ends.

    Afterwards the context `command_line` sets no handlers.  A SIGHUP that is ignored, as under `nohup`, stays so.  The
    processes of a run on several machines call this: the leading one to end, the others to ignore signals.

    handler  handler as for `signal.signal`
    """
    global _taken  # noqa: PLW0603
    _taken = True
    exchange_handlers(handler)


def is_taken() -> bool:
    """Return True if `take` has set a handler, so that the command line sets none."""
    return _taken


@contextmanager
def signals_collected(*, ignored: float) -> Iterator[list[int]]:
    """Within the context, append the number of each signal to the yielded list.

    Further signals within a second of one do not count.

    ignored  number of signals that are only appended; each later one also raises `SignalInterrupt`. May be infinite
    """
    received: list[int] = []

    def note(number: int) -> None:
        received.append(number)
        if len(received) > ignored:
            raise SignalInterrupt(number)

    with signals_to(note):
        yield received


class _Program:
    """State of the command line's signal handling.

    waits    True: a signal is only stored in `pending`; False: it raises `SignalInterrupt`
    pending  number of the stored signal, 0 for none
    """

    def __init__(self) -> None:
        self.waits, self.pending = True, 0

    def handle(self, number: int) -> None:
        """Raise `SignalInterrupt`, or only store the signal's number if `waits` is True.

        Raises `RuntimeError` if OpenBLAS sent the signal, because it can start no threads.
        """
        if _is_openblas(number):
            raise RuntimeError(no_threads_text())
        if not self.waits:
            raise SignalInterrupt(number)
        self.pending = number


_program = _Program()


@contextmanager
def command_line() -> Iterator[None]:
    """Within the context, handle signals as a command does; in the main thread only.

    Signals are stored until the function `release` is called, and then raise `SignalInterrupt`. Once `settle` is
    called, they have no effect. If `take` has set a handler, that one stays.
    """
    global _program, _silent
    if not in_main_thread():
        yield
        return
    _program, _silent, hook = _Program(), False, sys.unraisablehook

    def raise_again(unraisable: Any) -> None:
        """Raise a `SignalInterrupt` again that Python could only print, as in an importer's callback."""
        if not isinstance(unraisable.exc_value, SignalInterrupt):
            if not _silent:
                hook(unraisable)
            return
        lost = unraisable.exc_value
        signal.signal(signal.SIGALRM, lambda *_: _raise(lost))
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)

    sys.unraisablehook = raise_again
    try:
        with nullcontext() if _taken else signals_to(_program.handle):
            yield
    finally:
        sys.unraisablehook = hook


def _raise(error: BaseException) -> None:
    raise error


def release() -> None:
    """From now on raise `SignalInterrupt` for signals; at once for one that `command_line` has stored.

    Does nothing outside of the main thread.
    """
    if not in_main_thread():
        return
    _program.waits, pending = False, _program.pending
    _program.pending = 0
    if pending:
        raise SignalInterrupt(pending)


def silence() -> None:
    """Suppress Python's messages about objects that a signal left incomplete, such as asyncio tasks."""
    global _silent  # noqa: PLW0603
    import logging  # here, because handlers must be set before other imports

    _silent = True
    logging.getLogger("asyncio").disabled = True
    warnings.filterwarnings("ignore", "coroutine .* was never awaited")


def settle() -> None:
    """Ignore further signals, once the command has its result and only its exit status is left."""
    if in_main_thread():
        _program.waits = True


def is_unread(stream: TextIO) -> bool:
    """Return whether the reader of an output stream of this process has closed its end, as `head` does.

    False if the stream is no open file.
    """
    poll = select.poll()
    try:
        poll.register(stream.fileno(), 0)
    except (OSError, ValueError):  # it is no file, or closed
        return False
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def end(status: int) -> None:
    """End the process with an exit status, in spite of further signals or a closed output.

    A status of 0 becomes 1 if standard output cannot be written, except to a closed pipe.  Raises `SystemExit`; while
    threads named `UNAWAITED` exist, the process ends at once.
    """
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed when the process started
        try:
            stream.flush()
        except (OSError, ValueError) as error:
            if stream is sys.stdout and not isinstance(error, BrokenPipeError):
                status = status or 1
                with suppress(OSError, ValueError):
                    print(f"mccfr: standard output: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
            with suppress(OSError, ValueError):  # else Python flushes again at exit and ends with status 120
                _to_nothing(stream.fileno())
    if _silent:  # registered last, it runs first, when `command_line` has restored the hook
        atexit.register(setattr, sys, "unraisablehook", lambda _: None)
    if any(thread.name == UNAWAITED for thread in threading.enumerate()):
        os._exit(status)  # a normal exit would free memory that these threads still use
    sys.exit(status)


def leave_closed_terminal() -> None:
    """Redirect standard input, output and errors to /dev/null where their terminal is closed.

    Otherwise every line of output would raise an error.
    """
    for descriptor in range(3):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor):
                _to_nothing(descriptor)


def _to_nothing(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    os.close(null)


def _is_openblas(number: int) -> bool:
    """Return whether OpenBLAS raised the signal, because it cannot start threads during numpy's import.

    number  number of the signal; OpenBLAS raises SIGINT only
    """
    spec = getattr(sys.modules.get("numpy"), "__spec__", None)
    if number != signal.SIGINT or not getattr(spec, "_initializing", False):
        return False
    try:
        _thread.start_new_thread(int, ())  # not by `threading`, whose lock the interrupted code may hold
    except RuntimeError:
        return True
    return False


def no_threads_text() -> str:
    """Return a message with the limits that prevent new threads."""
    limits = {"ulimit -u": resource.RLIMIT_NPROC, "ulimit -v": resource.RLIMIT_AS}
    limits_set = {name: resource.getrlimit(limit)[0] for name, limit in limits.items()}
    shown = ", ".join(f"{name}: {value}" for name, value in limits_set.items() if value != resource.RLIM_INFINITY)
    return (
        f"no thread can be started: the limit on processes and threads or on memory is too small "
        f"({shown or 'ulimit -u, or that of the control group'}); raise it and run the command again"
    )
