"""Signals that end the program: their handlers, the exception that unwinds a command, and exit statuses.

One rule holds everywhere: the first signal ends what is done, signals within a second of it are the same request, and
a later one is a second request.  Handlers are Python's, so all of this is for the main thread; in other threads
signals are left alone.  Only the standard library is imported here, as the handlers must be there before anything else.
"""

import _thread
import os
import resource
import select
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from math import inf
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
EXIT_RESUMABLE = 75
"""A signal has stopped the training of a run that goes on where it stands; no command ends so for another reason."""
SAME_REQUEST_SECONDS = 1.0
UNAWAITED = "unawaited"
"""Name of threads that the process does not wait for at its end, although they may be in a kernel."""
_AGAIN_SECONDS = 0.02  # until an exception is raised again that Python could not raise where the signal came
_Handler = Callable[[int, FrameType | None], object] | signal.Handlers

_contexts = 0  # that handle signals now, one inside the other
_heeded_at = -inf  # when the last signal came that was no repetition
_taken = False  # whether other handlers than the command line's have the signals until the process ends


class SignalInterrupt(KeyboardInterrupt):
    """A signal ends the command.

    number     the signal's
    when       what the sentence says of the moment
    directory  of the run that goes on, where it is not the one that the command was given: it was moved meanwhile
    """

    def __init__(self, number: int, when: str = "", directory: Path | None = None) -> None:
        super().__init__(f"stopped by signal {number} {when}".rstrip())
        self.number, self.directory = number, directory

    @property
    def exit_status(self) -> int:
        """The status of a command that leaves nothing to go on from."""
        return 128 + self.number


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def signals_to(heed: Callable[[int], object]) -> Iterator[None]:
    """Inside, call `heed` with the number of each signal of `SIGNALS` that is a new request; in the main thread only.

    SIGHUP is left alone where it is ignored, as `nohup` has it.
    """
    global _contexts, _heeded_at  # noqa: PLW0603 - signals belong to the process
    if not _is_main():
        yield
        return

    def handle(number: int, _: FrameType | None) -> None:
        global _heeded_at  # noqa: PLW0603
        if number == signal.SIGHUP:
            leave_closed_terminal()
        if time.monotonic() - _heeded_at >= SAME_REQUEST_SECONDS:
            _heeded_at = time.monotonic()
            heed(number)

    if _contexts == 0:
        _heeded_at = -inf
    _contexts += 1
    before = _exchange(handle)
    try:
        yield
    finally:
        _contexts -= 1
        for number, earlier in before.items():
            if signal.getsignal(number) is handle:  # else `take` or `end` has given it away
                signal.signal(number, earlier)


def _exchange(handler: _Handler) -> dict[int, Any]:
    """Set the handler of all signals but an ignored SIGHUP; the handlers before, by number."""
    numbers = [each for each in SIGNALS if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in numbers}


def take(handler: _Handler) -> None:
    """Give all signals but an ignored SIGHUP to a handler until the process ends; `command_line` changes nothing then.

    A session has them while it trains.
    """
    global _taken  # noqa: PLW0603
    _taken = True
    _exchange(handler)


def is_taken() -> bool:
    """Return whether `take` was called."""
    return _taken


@contextmanager
def signals_noted(*, spared: float) -> Iterator[list[int]]:
    """Inside, note signals in the list; all but the first `spared` raise `SignalInterrupt`."""
    seen: list[int] = []

    def note(number: int) -> None:
        seen.append(number)
        if len(seen) > spared:
            raise SignalInterrupt(number)

    with signals_to(note):
        yield seen


@contextmanager
def signals_held() -> Iterator[None]:
    """Inside, the first signal waits for the end of the block, where it goes to the handler before."""
    if not _is_main():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    before = _exchange(lambda *what: came.append(what))
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
    for number, frame in came[:1]:
        if callable(handler := before[number]):
            handler(number, frame)


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Inside, no signal arrives; processes that are started inside block them until they unblock them themselves."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Program:
    """What a signal does to the command line: it raises `SignalInterrupt`, or waits while `waits`.

    pending  the signal that waits
    """

    def __init__(self) -> None:
        self.waits, self.pending = True, 0

    def heed(self, number: int) -> None:
        """Raise, or wait."""
        if _is_openblas(number):
            raise RuntimeError(no_threads_text())
        if not self.waits:
            raise SignalInterrupt(number)
        self.pending = number


_program = _Program()


@contextmanager
def command_line() -> Iterator[None]:
    """Inside, signals are the program's; they wait until `release`, and after `settle`.  In the main thread only."""
    global _program
    if not _is_main():
        yield
        return
    _program, hook = _Program(), sys.unraisablehook

    def raise_again(unraisable: Any) -> None:
        """Python could only print it, as in a callback of its importer: raise it soon, from the loop of bytecode."""
        if not isinstance(unraisable.exc_value, SignalInterrupt):
            hook(unraisable)
            return
        lost = unraisable.exc_value
        signal.signal(signal.SIGALRM, lambda *_: _raise(lost))
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)

    sys.unraisablehook = raise_again
    try:
        with nullcontext() if _taken else signals_to(_program.heed):
            yield
    finally:
        sys.unraisablehook = hook


def _raise(error: BaseException) -> None:
    raise error


def release() -> None:
    """From now on a signal raises `SignalInterrupt`; one that has waited does so now."""
    if not _is_main():
        return
    _program.waits, pending = False, _program.pending
    _program.pending = 0
    if pending:
        raise SignalInterrupt(pending)


def settle() -> None:
    """The exit status is known: signals change nothing any more."""
    if _is_main():
        _program.waits = True


def is_unread(stream: TextIO) -> bool:
    """Return whether the reader of a stream has closed its pipe, as `head` does: that is no error."""
    poll = select.poll()
    try:
        poll.register(stream.fileno(), 0)
    except (OSError, ValueError):  # it is no file, or closed
        return False
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def end(status: int) -> None:
    """End the process with a status, whatever comes now: signals, or a terminal or reader that is gone."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: it was closed at the start
        try:
            stream.flush()
        except (OSError, ValueError) as error:
            if stream is sys.stdout and not isinstance(error, BrokenPipeError):
                status = status or 1
                with suppress(OSError, ValueError):
                    print(f"mccfr: standard output: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
            with suppress(OSError, ValueError):  # Python would try again, and end with status 120
                _to_nothing(stream.fileno())
    if any(thread.name == UNAWAITED for thread in threading.enumerate()):
        os._exit(status)  # what else ends with the interpreter would go from under their feet
    sys.exit(status)


def leave_closed_terminal() -> None:
    """Send output nowhere where its terminal is gone: every line would be an error."""
    for descriptor in range(3):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor):
                _to_nothing(descriptor)


def _to_nothing(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    os.close(null)


def _is_openblas(number: int) -> bool:
    """Whether a signal is OpenBLAS's, which raises SIGINT where it cannot start threads while numpy is imported."""
    spec = getattr(sys.modules.get("numpy"), "__spec__", None)
    if number != signal.SIGINT or not getattr(spec, "_initializing", False):
        return False
    try:
        _thread.start_new_thread(int, ())  # `threading` has a lock, which the interrupted code may hold
    except RuntimeError:
        return True
    return False


def no_threads_text() -> str:
    """A sentence that names the limits that keep threads from being started."""
    limits = {"ulimit -u": resource.RLIMIT_NPROC, "ulimit -v": resource.RLIMIT_AS}
    known = {name: resource.getrlimit(limit)[0] for name, limit in limits.items()}
    told = ", ".join(f"{name}: {value}" for name, value in known.items() if value != resource.RLIM_INFINITY)
    return (
        f"no thread can be started: the limit on processes and threads or on memory is too small "
        f"({told or 'ulimit -u, or that of the control group'}); raise it and run the command again"
    )
