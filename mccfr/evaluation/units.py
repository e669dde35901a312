"""Sampled evaluations as numbered units - a board, a hand, a pair of hands: shared by processes, kept as they come.

What a unit finds follows from its number alone, so that results do not depend on who played it, on how many played, or
on a stop in between.  Units are given out in order and what is given out is finished, also when time is up: which units
count must not depend on how long they took.
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
from concurrent import futures  # whose pool of processes is imported where it is made
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from abstraction.kernels.compiling import working_seconds
from mccfr.policy.profile import Profile
from mccfr.signals import SIGNALS, SignalInterrupt, signals_held, signals_noted
from storage import durable
from storage.cleanup import failure_logged
from storage.damage import reading
from storage.outputs import begins_with, check_output

_MAGIC = b"mccfr units 1\n"
_SYNC_SECONDS = 1.0
_WATCH_SECONDS = 1.0
_TRIED_SECONDS = 3.0
Progress = Callable[[int, int], None]
Found = TypeVar("Found")


class StoppedError(RuntimeError):
    """A signal has stopped work that is kept piece by piece; the sentence says how much is done and how to go on."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"stopped by signal {number} after {text}")
        self.exit_status = 128 + number


class Units(ABC):
    """Something that is evaluated by units.

    fields  how many numbers a unit gives
    """

    fields: int

    @abstractmethod
    def play(self, unit: int) -> npt.NDArray[np.float64]:
        """[fields] what unit number `unit` finds, from 0; a function of the number alone."""


@dataclass(frozen=True)
class Effort:
    """How much is put into a sampled evaluation, and where.

    workers  processes that share the units; results do not depend on it
    seconds  instead of a number of units: as many as these seconds allow, by the time that the first ones take
    keep     file that finished units are kept in: the same evaluation goes on from it
    note     called with what all units have found, [count, fields], once they have
    """

    workers: int = 1
    seconds: float | None = None
    keep: Path | None = None
    note: Callable[[npt.NDArray[np.float64]], object] | None = None


def play_units(
    units: Units,
    count: int,
    effort: Effort = Effort(),
    *,
    what: Mapping[str, Any],
    sides: Sequence[Profile] = (),
    progress: Progress | None = None,
) -> npt.NDArray[np.float64]:
    """[count, fields] what units 0 .. count-1 find.

    what      all that the units follow from beside the strategies: method, options, seed
    sides     whose strategies they follow from; kept units of anything else are refused
    progress  called with the units done and their number, as they come

    Raises `ValueError` where `effort.keep` is of another evaluation, `OSError` where it is damaged, `StoppedError` at a
    signal, `RuntimeError` where a worker dies.
    """
    found = np.zeros((count, units.fields))
    if effort.keep is not None:  # reading whole strategies takes time
        what = {**what, "strategies": [side.fingerprint() for side in sides]}
    with closing(_KeptUnits(effort.keep, what, units.fields)) as kept, signals_noted(spared=0):
        done = 0
        for unit, numbers in kept.read():
            if unit < count:
                found[unit], done = numbers, done + 1
        left = [unit for unit in range(count) if unit not in kept.units]
        try:
            for unit, numbers in shared(units.play, left, effort.workers, kept.leave):
                found[unit], done = numbers, done + 1
                kept.write(unit, numbers)
                if progress is not None:
                    progress(done, count)
        except SignalInterrupt as stop:
            again = f"the same command goes on from {effort.keep}" if effort.keep else "give --keep FILE to go on later"
            raise StoppedError(stop.number, f"{done:,} of {count:,} units; {again}") from None
    if effort.note is not None:
        effort.note(found)
    return found


def units_in(
    units: Units, seconds: float, workers: int, *, least: int, most: int | None = None, ready: int | None = None
) -> int:
    """How many units so many seconds allow, by the time that those after the first take, which compiles kernels.

    As many are tried as a twentieth of the time allows, but one at the least: short units differ.
    least, most  bounds of the answer; an even number is given wherever these allow it
    ready        how many can be played already, where not all can
    """
    last = min(limit for limit in (most, ready, sys.maxsize) if limit is not None) - 1
    units.play(0)
    began = working_seconds()
    played, took = 0, 0.0
    while played == 0 or (played < last and took < min(seconds / 20, _TRIED_SECONDS)):
        played += 1
        units.play(min(played, last))
        took = working_seconds() - began
    count = max(least, int(seconds * max(workers, 1) * played / max(took, 1e-6)) // 2 * 2)
    return count if most is None else min(count, most)


def shared(
    play: Callable[[int], Found], left: list[int], workers: int, leave: Callable[[], None] = lambda: None
) -> Iterator[tuple[int, Found]]:
    """(unit, `play(unit)`) of what is left, in this process or in `workers` others, as they come.

    `leave` is called in each of the others at its beginning, to have no part in what this one holds.  Raises
    `RuntimeError` where one dies.
    """
    alone = min(workers, len(left)) <= 1 or "fork" not in multiprocessing.get_all_start_methods()
    if not alone:  # kernels are compiled here, once, and not in every worker
        yield left[0], play(left[0])
        left = left[1:]
    with nullcontext() if alone else _pool(play, workers, leave) as pool:
        if pool is None:
            for unit in left:
                yield unit, play(unit)
            return
        waiting: dict[futures.Future[Any], int] = {}
        following = iter(left)
        while True:
            for unit in following:
                with signals_held():  # the first of them starts the workers: half a start would never end
                    waiting[pool.submit(_play, unit)] = unit
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
"""In a worker: what plays units."""


def _play(unit: int) -> Any:
    return _OWN[0](unit)


def _begin_work(play: Callable[[int], Any], parent: int, leave: Callable[[], None]) -> None:
    """In a worker: take over the units, which a fork has brought along, and end with the process that made it."""
    _OWN[:] = [play]
    leave()
    # A terminal and a scheduler signal all processes, and the first one decides.  A worker that died of it would take
    # the lock of the queue with it, for which the others wait.  The pool ends its own by SIGTERM where one is lost.
    for number in SIGNALS:
        if number != signal.SIGTERM:
            signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

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
    """Workers that share this process's memory as it is now: strategies are not copied or read again."""
    context = multiprocessing.get_context("fork")
    pool = futures.ProcessPoolExecutor(workers, context, _begin_work, (play, os.getpid(), leave))
    try:
        yield pool
    except BaseException:  # what is being played is of no use: the workers need not finish it
        for process in list(getattr(pool, "_processes", None) or {}):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class KeptFile:
    """A file of what is finished, for the same command to go on from: a line that says of what, then records.

    Nothing is in it before the first record: a file that this object has made and not written is removed at the end.
    """

    def __init__(self, path: Path | None, magic: bytes, what: Mapping[str, Any], of: str) -> None:
        """`magic` begins all files of the kind; `of` is what sentences call another's records."""
        self.path, self._magic, self._of = path, magic, of
        self._head = magic + json.dumps(what, sort_keys=True).encode() + b"\n"
        self._file: FileIO | None = None
        self._made = self._begun = False
        self._synced, self._failed = time.monotonic(), False

    def records(self, whole: Callable[[bytes], int]) -> bytes:
        """What is there behind the line; the file is open for more from then on.

        whole  how many bytes of it are records: what is cut off behind them, as a kill leaves it, is dropped

        Raises `ValueError` where the file is of something else, or in use.
        """
        if self.path is None:
            return b""
        check_output(self.path, begins_with(self._magic))
        self._file = self._locked(self.path)
        with reading(self.path):
            held, head = self.path.read_bytes(), self._head
        if held and not held.startswith(head):
            if not head.startswith(held) or len(held) < len(self._magic):
                raise ValueError(f"{self.path} holds {self._of}: give another file to --keep, or remove it")
            held = b""  # cut off while the line was written
        length = whole(held[len(head) :])
        self._begun = bool(held)
        durable.cut(self.path, self._file, len(head) + length if held else 0)
        if held:
            self._sync()
            durable.fsync_dir(self.path.parent)
        return held[len(head) : len(head) + length]

    def _locked(self, path: Path) -> FileIO:
        """Open the file, made if absent, and lock it; `ValueError` where it is in use."""
        while True:
            made = not path.exists()
            file = path.open("a+b", buffering=0)  # nothing is left to be written when it is closed
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                kind = self._of.split()[-1]
                raise ValueError(f"{path} is in use by another {kind}: give another file to --keep") from None
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                self._made = made
                return file
            file.close()  # the process that had made it has removed it

    def append(self, record: bytes) -> None:
        """Keep a record; on the disk within a second."""
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
        """Bring it to the disk; after that has failed it is not tried again, for what it has dropped is gone."""
        if self._file is None or self.path is None or self._failed:
            return
        self._failed = True
        durable.fsync_file(self.path, self._file)
        self._failed = False

    def leave(self) -> None:
        """In a forked process: have no part in the file, which would be in use for as long as that process lives."""
        if self._file is not None:
            self._file.close()

    def close(self) -> None:
        """Bring what was written to the disk; where nothing was, the file goes if it was made for it.

        A failure is logged, since what was found is known all the same.
        """
        if self._file is not None and self.path is not None:
            with failure_logged("not everything is kept"), self._file, durable.naming(self.path):
                if self._begun:
                    self._sync()
                elif self._made:
                    self.path.unlink(missing_ok=True)


class _KeptUnits(KeptFile):
    """Finished units: (number, numbers, CRC-32) each."""

    def __init__(self, path: Path | None, what: Mapping[str, Any], fields: int) -> None:
        super().__init__(path, _MAGIC, {**what, "fields": fields}, "units of another evaluation")
        self.units = set[int]()
        self._record = struct.Struct(f"<q{fields}d")

    def read(self) -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
        """The units that are there; damaged ones are left aside, and played again.  Raises as `play_units`."""
        size, damaged = self._record.size + 4, 0
        held = self.records(lambda found: len(found) // size * size)
        for place in range(0, len(held), size):
            record = held[place : place + size - 4]
            if zlib.crc32(record) != int.from_bytes(held[place + size - 4 : place + size], "little"):
                damaged += 1
            else:
                unit, *numbers = self._record.unpack(record)
                self.units.add(unit)
                yield unit, np.array(numbers)
        if damaged:
            said = "mccfr: %s: %d of its units are damaged, and are played again"
            logging.getLogger("mccfr.units").warning(said, self.path, damaged)

    def write(self, unit: int, numbers: npt.NDArray[np.float64]) -> None:
        """Keep a unit."""
        record = self._record.pack(unit, *numbers.tolist())
        self.append(record + zlib.crc32(record).to_bytes(4, "little"))
