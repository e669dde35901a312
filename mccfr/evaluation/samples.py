"""Runs evaluations that are means over samples, in parallel, and saves results for resuming.

A sample is, for example, a board or a deal. Samples are numbered, and a result depends only on the sample's number. So
it does not depend on the worker process, the number of workers, or a stop in between. A time budget is converted to a
number of samples in advance, and all of these are played: the choice of samples must not depend on their duration.
"""

import fcntl
import json
import logging
import multiprocessing
import os
import signal
import struct
import sys
import threading
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures  # imports its process pool on first use only
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from abstraction.kernels.compiling import working_seconds
from mccfr.common.signals import SignalInterrupt, signals_collected
from mccfr.evaluation.evaluation_progress import report_step
from mccfr.policy.strategy_profile import Profile
from storage import durable
from storage.atomic_outputs import begins_with, check_output
from storage.cleanup import failure_logged
from storage.damage import reading
from storage.deferred_signals import SIGNALS, signals_blocked, signals_deferred
from storage.free_space import available_memory_bytes, bytes_text

_MAGIC = b"mccfr units 1\n"
_SYNC_SECONDS = 1.0
_WATCH_SECONDS = 1.0
_TRIED_SECONDS = 3.0
_LIST_BYTES = 40  # of one number in the list of samples that are left
Result = TypeVar("Result")


class StoppedError(RuntimeError):
    """Raised when a signal stops an evaluation.

    The message says how many samples are done and how to continue. The command ends with the status `exit_status`,
    which is 128 plus the number of the signal.
    """

    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"stopped by signal {number} after {text}")
        self.number, self.exit_status = number, 128 + number


def resuming(keep: Path | None) -> str:
    """Return text for the user on how to resume a stopped evaluation, for the end of a message.

    keep  journal file of the finished samples; None: there is none
    """
    return f"the same command goes on from {keep}" if keep else "give --keep FILE to go on later"


class SampledEvaluation(ABC):
    """Base class of evaluations by numbered samples, such as a head-to-head by sampled boards.

    fields           number of values in the result of a sample, known after `draw`
    identity_fields  {name: JSON value} of method, options and seed: with the strategies they determine the samples
    sides            games and strategies that are evaluated
    least            least number of samples, for a 95 % interval
    most             number of samples that exist; None: unlimited
    ready            number of samples to `draw` before `samples_in` times some for a time budget; None: none have to be
                     drawn
    option           name of the option for the number of samples, in error messages
    step             word for a sample in progress reports
    """

    fields: int
    identity_fields: dict[str, Any]
    sides: Sequence[Profile] = ()
    least: int = 2
    most: int | None = None
    ready: int | None = None
    option: str = "boards"
    step: str = "board"

    def draw(self, count: int) -> int:
        """Prepare `count` samples, such as by drawing their boards; return the number to play.

        The default does nothing, for evaluations whose samples do not depend on how many there are.
        """
        return count

    @abstractmethod
    def play(self, sample: int) -> npt.NDArray[np.float64]:
        """Return the result of a sample: a float64 array of `fields` values.

        sample  number of the sample, from 0; the result depends on it alone
        """

    def identity(self) -> dict[str, Any]:
        """Return a JSON object that determines the samples, for the header of a journal file.

        It contains hashes of the strategies, which are read in full.
        """
        return {**self.identity_fields, "strategies": [side.fingerprint() for side in self.sides]}


@dataclass(frozen=True)
class Effort:
    """Resources of a sampled evaluation.

    workers  number of processes that share the samples; results do not depend on it
    seconds  time budget in seconds, which replaces the requested number of samples; None: that number applies
    keep     journal file of finished samples, from which the same evaluation resumes; None: nothing is saved
    note     function that `run_samples` calls at the end with all results, [count, fields] float64; None: none
    """

    workers: int = 1
    seconds: float | None = None
    keep: Path | None = None
    note: Callable[[npt.NDArray[np.float64]], object] | None = None


@dataclass(frozen=True)
class LowerBound:
    """Chips per hand that a responder wins: in expectation a lower bound on exploitability.

    value_chips          chips per hand, the mean over both seats
    ci95_chips           95 % interval of it by Student's t; of zero width if `exact`
    best_response_chips  the responder's chips as player 0, plus the game's `offset_chips`, and as player 1, minus it.
                         `offset_chips` is half of a pot that comes from neither player
    samples              number of boards or deals, each played from both seats
    exact                True if all boards or deals of the game were played
    gain_chips           reduction of the responder's chips by the policy's re-solving, on the same samples, and its
                         95 % interval; None without re-solving
    """

    value_chips: float
    ci95_chips: tuple[float, float]
    best_response_chips: tuple[float, float]
    samples: int
    exact: bool = False
    gain_chips: tuple[float, tuple[float, float]] | None = None


def run_samples(evaluation: SampledEvaluation, count: int, effort: Effort = Effort()) -> npt.NDArray[np.float64]:
    """Draw and play `count` samples, and return [n, fields] float64 their results.

    With a time budget (`effort.seconds`), `samples_in` computes a number that replaces `count`. At most
    `SampledEvaluation.most` samples are played. Each finished sample is reported to
    `mccfr.evaluation.evaluation_progress`. Samples found in the journal file `effort.keep` are not played again.

    Raises `ValueError` for too few samples or too many for the memory, and if the journal belongs to another evaluation
    or is in use. Raises `OSError` if it cannot be read or written, and `FileExistsError` if it is no journal. Raises
    `StoppedError` if a signal stops the evaluation, and `RuntimeError` if a worker process dies.
    """
    if effort.seconds is not None:
        count = samples_in(evaluation, effort.seconds, effort.workers)
    least = evaluation.least
    if evaluation.most is not None:
        count, least = min(count, evaluation.most), min(least, evaluation.most)
    if count < least:
        raise ValueError(f"{evaluation.option} = {count}: at least {least} are needed, for an interval")
    needed, available = count * (8 * evaluation.fields + _LIST_BYTES), available_memory_bytes()
    if needed > available:
        sizes = f"their results take {bytes_text(needed)} of memory and {bytes_text(available)} are available"
        raise ValueError(f"{evaluation.option} = {count}: {sizes}; take fewer")
    count = evaluation.draw(count)
    results = np.zeros((count, evaluation.fields))
    header = {} if effort.keep is None else evaluation.identity()
    with closing(_SavedSamples(effort.keep, header, evaluation.fields)) as journal:
        for sample, numbers in journal.read():
            if sample < count:
                results[sample] = numbers

        def take(sample: int, numbers: npt.NDArray[np.float64]) -> None:
            results[sample] = numbers
            journal.write(sample, numbers)

        remaining = [sample for sample in range(count) if sample not in journal.samples]
        play_remaining(evaluation.play, remaining, count, effort.workers, journal, take, evaluation.step)
    if effort.note is not None:
        effort.note(results)
    return results


def samples_in(evaluation: SampledEvaluation, seconds: float, workers: int) -> int:
    """Estimate from a few timed samples how many samples `workers` processes play in `seconds`.

    seconds  time budget for the samples of the result, in seconds; compiling kernels does not count
    workers  number of processes; 0 counts as 1

    The samples are timed in this process, one after another. The first is not timed, because it compiles kernels.
    Timing ends after a twentieth of `seconds` or 3 seconds, whichever is shorter, but not before one sample. It ends
    earlier if no further samples exist or are drawn.

    The estimate is rounded down to an even number. Then it is raised to `evaluation.least` if smaller, and lowered to
    `evaluation.most` if larger. So the result is odd only if it is one of these two limits.
    """
    least, most, ready = evaluation.least, evaluation.most, evaluation.ready
    last = min(limit for limit in (most, ready, sys.maxsize) if limit is not None) - 1
    if ready is not None:
        evaluation.draw(last + 1)
    evaluation.play(0)
    began = working_seconds()
    timed, took = 0, 0.0
    while timed == 0 or (timed < last and took < min(seconds / 20, _TRIED_SECONDS)):
        timed += 1
        evaluation.play(min(timed, last))
        took = working_seconds() - began
    count = max(least, int(seconds * max(workers, 1) * timed / max(took, 1e-6)) // 2 * 2)
    return count if most is None else min(count, most)


def play_remaining(
    play: Callable[[int], Result],
    remaining: list[int],
    count: int,
    workers: int,
    journal: "SampleFile",
    take: Callable[[int, Result], object],
    step: str,
) -> None:
    """Play the samples that are not finished, in this process or in several worker processes.

    play       function that returns the result of a sample with the given number
    remaining  numbers of the samples to play
    count      number of all samples, for progress reports
    workers    number of processes; with 1 all samples are played in this process
    journal    file of finished samples, which each worker process closes at its start
    take       called with (number, result) of each finished sample
    step       name of a sample in progress reports

    Raises `StoppedError` if a signal stops it, and `RuntimeError` if a worker process dies.
    """
    done = count - len(remaining)
    try:
        with signals_collected(ignored=0):
            for sample, result in shared(play, remaining, workers, journal.leave):
                take(sample, result)
                done += 1
                report_step(step, done, count)
    except SignalInterrupt as stop:
        raise StoppedError(stop.number, f"{done:,} of {count:,} samples; {resuming(journal.path)}") from None


def shared(
    play: Callable[[int], Result], remaining: list[int], workers: int, leave: Callable[[], None] = lambda: None
) -> Iterator[tuple[int, Result]]:
    """Yield (number, `play(number)`) of the samples with the numbers `remaining`, as they finish.

    With several workers the first sample runs in this process, which compiles kernels once. The rest run in `workers`
    forked processes. With one worker all run in this process. Raises `RuntimeError` if a worker process dies.

    leave  called first in each worker process, to close files that it has inherited
    """
    alone = min(workers, len(remaining)) <= 1 or "fork" not in multiprocessing.get_all_start_methods()
    following = iter(remaining)
    for sample in following if alone else remaining[:1]:  # compile kernels once in this process, not in every worker
        yield sample, play(sample)
    if alone:
        return
    next(following)
    with _pool(play, workers, leave) as pool:
        waiting: dict[futures.Future[Any], int] = {}
        while True:
            for sample in following:
                # The first submit starts the workers. An interruption of it would hang, and a signal that a worker
                # takes before `_begin_work` would be lost in the handler that it has from this process.
                with signals_deferred(), signals_blocked():
                    waiting[pool.submit(_play, sample)] = sample
                if len(waiting) >= 2 * workers:
                    break
            if not waiting:
                return
            for future in futures.wait(waiting, return_when=futures.FIRST_COMPLETED).done:
                try:
                    yield waiting.pop(future), future.result()
                except futures.BrokenExecutor:
                    raise RuntimeError("a worker process died, killed from outside or out of memory") from None


_OWN: list[Callable[[int], Any]] = []
"""In a worker: the function that plays samples."""


def _play(sample: int) -> Any:
    return _OWN[0](sample)


def _begin_work(play: Callable[[int], Any], parent: int, leave: Callable[[], None]) -> None:
    """Initialise a worker process: keep the function to call, and ignore signals.

    play    function that plays a sample
    parent  process id of the parent. The worker exits when the parent ends, or sends it SIGTERM
    leave   called first, to close inherited files
    """
    _OWN[:] = [play]
    leave()
    # Terminals and schedulers signal all processes; the parent decides. A worker that died while it holds the
    # queue's lock would block the others. The pool ends its workers by SIGTERM if one is lost; it is blocked here since
    # the start of the process.
    for number in SIGNALS:
        if number != signal.SIGTERM:
            signal.signal(number, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            received = signal.sigtimedwait({signal.SIGTERM}, _WATCH_SECONDS)
            if received is not None and received.si_pid == parent:
                break
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _pool(
    play: Callable[[int], Any], workers: int, leave: Callable[[], None]
) -> "Iterator[futures.ProcessPoolExecutor]":
    """Yield a pool of worker processes, for a `with` block that submits `_play` with sample numbers.

    Processes are forked, so that they share strategies with this one instead of copying them. If the block raises, the
    processes are killed at once; otherwise running samples are awaited.

    play     function that returns the result of a sample; each worker stores it for `_play`
    workers  number of processes
    leave    called first in each worker process, to close inherited files
    """
    context = multiprocessing.get_context("fork")
    pool = futures.ProcessPoolExecutor(workers, context, _begin_work, (play, os.getpid(), leave))
    try:
        yield pool
    except BaseException:  # running samples are no longer needed
        for process in list(getattr(pool, "_processes", None) or {}):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)  # SIGTERM may be pending already, from another process
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class SampleFile:
    """A journal file for resuming interrupted work: a header line that identifies the work, then records.

    The work is an evaluation, with a record for each finished sample, or a review of played hands, with a record for
    each hand. `close` removes a file that this object created if it has no record.
    """

    def __init__(self, path: Path | None, magic: bytes, identity: Mapping[str, Any], of: str) -> None:
        """Take the path of the file; with None nothing is saved.

        magic     bytes with which all files of this kind begin
        identity  JSON object that identifies the work, for the header line
        of        words for error messages that describe a file of other work, such as "samples of another evaluation"
        """
        self.path, self._magic, self._of = path, magic, of
        self._head = magic + json.dumps(identity, sort_keys=True).encode() + b"\n"
        self._file: FileIO | None = None
        self._made = self._begun = False
        self._synced, self._failed = time.monotonic(), False

    def records(self, whole: Callable[[bytes], int]) -> bytes:
        """Return all complete records in the file as bytes, and open the file for appending.

        whole  function that gets the bytes after the header and returns how many of them are complete records; the
               rest, such as a record cut off by a kill, is removed from the file

        Raises `ValueError` if the file belongs to other work or is in use. Raises `OSError` if it cannot be read or
        written; a file of another kind gives `FileExistsError`.
        """
        if self.path is None:
            return b""
        check_output(self.path, begins_with(self._magic))
        self._file = self._locked(self.path)
        with reading(self.path):
            content, head = self.path.read_bytes(), self._head
        if content and not content.startswith(head):
            if not head.startswith(content) or len(content) < len(self._magic):
                raise ValueError(f"{self.path} holds {self._of}: give another file to --keep, or remove it")
            content = b""  # truncated within the header line
        length = whole(content[len(head) :])
        self._begun = bool(content)
        durable.cut(self.path, self._file, len(head) + length if content else 0)
        if content:
            self._sync()
            durable.fsync_dir(self.path.parent)
        return content[len(head) : len(head) + length]

    def _locked(self, path: Path) -> FileIO:
        """Open the file at `path`, create it if absent, and lock it; `ValueError` if it is in use."""
        while True:
            with reading(path):
                created = not path.exists()
            file = path.open("a+b", buffering=0)  # unbuffered: closing writes nothing
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                kind = self._of.split()[-1]
                raise ValueError(f"{path} is in use by another {kind}: give another file to --keep") from None
            with reading(path):
                is_same = path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())
            if is_same:
                self._made = created
                return file
            file.close()  # the process that created the file has removed it

    def append(self, record: bytes) -> None:
        """Append the bytes of a record, and sync the file to disk at most once per second.

        Does nothing without a file. Raises `OSError` if the disk is full or fails.
        """
        if self._file is None or self.path is None:
            return
        if not self._begun:
            durable.append(self.path, self._file, self._head)
            self._sync()
            durable.fsync_dir(self.path.parent)
        durable.append(self.path, self._file, record)
        self._begun = True
        if time.monotonic() - self._synced >= _SYNC_SECONDS:
            self._sync()
            self._synced = time.monotonic()

    def _sync(self) -> None:
        """Sync the file to disk, unless an earlier sync has failed.

        After a failure a second sync could succeed although data are lost.
        """
        if self._file is None or self.path is None or self._failed:
            return
        self._failed = True
        durable.fsync_file(self.path, self._file)
        self._failed = False

    def leave(self) -> None:
        """Close the file in a forked process, so that it does not keep the lock."""
        if self._file is not None:
            self._file.close()

    def close(self) -> None:
        """Sync and close the file, or remove it if this object created it and wrote nothing.

        A failure is only logged, since the results are available anyway.
        """
        if self._file is not None and self.path is not None:
            with failure_logged("not everything is kept"), self._file, durable.naming(self.path):
                if self._begun:
                    self._sync()
                elif self._made:
                    self.path.unlink(missing_ok=True)


class _SavedSamples(SampleFile):
    """Journal file of finished samples of an evaluation.

    A record is one sample: its number, the values of its result, and their CRC-32.

    samples  numbers of the undamaged samples that `read` has found in the file
    """

    def __init__(self, path: Path | None, identity: Mapping[str, Any], fields: int) -> None:
        super().__init__(path, _MAGIC, {**identity, "fields": fields}, "samples of another evaluation")
        self.samples = set[int]()
        self._record = struct.Struct(f"<q{fields}d")

    def read(self) -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
        """Yield (number, result) of each sample in the journal; the result is a float64 array.

        Damaged records are left out, with a warning in the log. Raises `ValueError` if the file belongs to another
        evaluation or is in use, and `OSError` if it cannot be read or written.
        """
        size, damaged = self._record.size + 4, 0
        content = self.records(lambda found: len(found) // size * size)
        for offset in range(0, len(content), size):
            record = content[offset : offset + size - 4]
            if zlib.crc32(record) != int.from_bytes(content[offset + size - 4 : offset + size], "little"):
                damaged += 1
            else:
                sample, *numbers = self._record.unpack(record)
                self.samples.add(sample)
                yield sample, np.array(numbers)
        if damaged:
            text = "mccfr: %s: %d of its samples are damaged, and are played again"
            logging.getLogger("mccfr.samples").warning(text, self.path, damaged)

    def write(self, sample: int, numbers: npt.NDArray[np.float64]) -> None:
        """Append a finished sample: its number, and `numbers`, the [fields] values of its result."""
        record = self._record.pack(sample, *numbers.tolist())
        self.append(record + zlib.crc32(record).to_bytes(4, "little"))
