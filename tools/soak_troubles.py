"""Faults that a soak test injects: kind, moment and allowed exit statuses."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from soak_world import Command, SoakPlace, free_bytes

from storage.block_tables import open_with_blocks
from storage.checkpoint import checkpoint_path, list_checkpoints

DONE, STOPPED, FAILED, REFUSED = 0, 75, 1, 2
KILLED = -signal.SIGKILL
_STOP_SECONDS, _FULL_SECONDS = 3.0, 8.0
_SHARED_LEFT = 2_000_000
_MOMENT_SECONDS = 0.002
_CLOCK_JUMPS = (-400 * 86400.0, -7200.0, -1.0, 3600.0, 30 * 86400.0)


@dataclass
class SoakRun:
    """A run with injected faults.

    Attributes:
        damaged: names of files damaged on purpose, which `verify` may report
        falls:   number of checkpoints that may be lost by the damage
    """

    place: SoakPlace
    directory: Path
    random: random.Random
    damaged: list[str] = field(default_factory=list)
    falls: int = 0

    @property
    def policy(self) -> Path:
        return self.directory.with_name(f"{self.directory.name}-policy")


Moment = Callable[[SoakRun, Command, float], bool]
"""Waits for the moment of a fault; returns False if the command ends before.

Its third argument is the duration of an undisturbed run in seconds.
"""
Strike = Callable[[SoakRun, Command], None]


@dataclass(frozen=True)
class Trouble:
    """A fault before or during a session, and the exit statuses that the session may have."""

    what: str
    statuses: tuple[int, ...]
    moment: Moment | None = None
    strike: Strike | None = None
    before: Callable[[SoakRun], bool] | None = None
    """Fault before the session; returns False if it was not possible."""
    around: Callable[[SoakRun], Iterator[None]] | None = None
    """Context in which the session runs."""


def at_random(run: SoakRun, command: Command, seconds: float) -> bool:
    end = time.monotonic() + seconds * run.random.uniform(0.05, 0.6)
    while command.lives() and time.monotonic() < end:
        time.sleep(_MOMENT_SECONDS)
    return command.lives()


def at_name(pattern: str) -> Moment:
    """Return a moment at which a file matches this pattern, relative to the folder of runs.

    It starts to look at a random time, so that the first match is not always the moment.
    """

    def comes(run: SoakRun, command: Command, seconds: float) -> bool:
        at_random(run, command, seconds / 2)
        while command.lives():
            if next(run.directory.parent.glob(pattern.format(run=run.directory.name)), None) is not None:
                return True
            time.sleep(_MOMENT_SECONDS)
        return False

    return comes


def at_phase(word: str) -> Moment:
    """Return a moment up to a second after this word has appeared on stderr."""

    def comes(run: SoakRun, command: Command, seconds: float) -> bool:
        while command.lives():
            if word in command.log.read_text(errors="replace"):
                time.sleep(run.random.uniform(0, 1))
                return command.lives()
            time.sleep(_MOMENT_SECONDS)
        return False

    return comes


def sends(number: signal.Signals) -> Strike:
    def strike(run: SoakRun, command: Command) -> None:
        with suppress(ProcessLookupError):
            os.kill(command.process.pid, number)

    return strike


def kills_helper(run: SoakRun, command: Command) -> None:
    if helpers := command.helpers():
        with suppress(ProcessLookupError):
            os.kill(run.random.choice(helpers), signal.SIGKILL)


def rests(run: SoakRun, command: Command) -> None:
    """Stop one process of the run for some seconds."""
    number = run.random.choice([command.process.pid, *command.helpers()])
    with suppress(ProcessLookupError):
        os.kill(number, signal.SIGSTOP)
        time.sleep(_STOP_SECONDS)
        os.kill(number, signal.SIGCONT)


def fills_disk(run: SoakRun, command: Command) -> None:
    """Fill the disk for some seconds."""
    with filled(run.place.disk, 0):
        time.sleep(_FULL_SECONDS)


@contextmanager
def filled(folder: Path, left: int) -> Iterator[None]:
    path = folder / "ballast"
    try:
        with suppress(OSError), path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(free_bytes(folder) - left, 1))
        with suppress(OSError), path.open("ab") as file:
            while free_bytes(folder) > left:
                file.write(bytes(65536))
                file.flush()
        yield
    finally:
        path.unlink(missing_ok=True)


def shared_is_full(run: SoakRun) -> Iterator[None]:
    """Fill shared memory, except for 2 MB, during the session."""
    with filled(run.place.shared, _SHARED_LEFT):
        yield


def jumps(run: SoakRun, command: Command) -> None:
    for _ in range(3):
        run.place.offset.write_text(str(run.random.choice(_CLOCK_JUMPS)))
        time.sleep(0.5)


def clock_jumps(run: SoakRun) -> Iterator[None]:
    run.place.clock = True
    try:
        yield
    finally:
        run.place.clock = False
        run.place.offset.write_text("0")


def moves(run: SoakRun) -> bool:
    """Rename the run's directory and its policy."""
    to = run.directory.with_name(f"{run.directory.name}+")
    if not run.directory.exists():
        return False
    if run.policy.exists():
        run.policy.rename(to.with_name(f"{to.name}-policy"))
    run.directory.rename(to)
    run.directory = to
    return True


def checkpoints_of(run: SoakRun) -> list[Path]:
    root = run.directory / "checkpoints"
    return [checkpoint_path(root, number) for number in list_checkpoints(root)] if root.is_dir() else []


def swaps(run: SoakRun) -> bool:
    """Replace a file of the newest checkpoint by that of the previous one with its name and length."""
    found = checkpoints_of(run)
    return len(found) > 1 and _swap(run, found[-1], found[-2])


def swaps_block(run: SoakRun) -> bool:
    """Replace a file of a block's newest version by that of an older version.

    It takes a version to which only the newest checkpoint refers.
    """
    found = checkpoints_of(run)
    if len(found) < 2:
        return False
    new, old = (sorted(open_with_blocks(path).parents) for path in found[-1:-3:-1])
    pairs = [(name, other) for name in new for other in old if name != other and _block(name) == _block(other)]
    for name, other in run.random.sample(pairs, len(pairs)):
        if name not in old and _swap(run, run.directory / name, run.directory / other):
            run.damaged.append(found[-1].name)  # `verify` reports the checkpoint that refers to the block
            return True
    return False


def _block(name: str) -> str:
    return name.rpartition("/")[0]


def _swap(run: SoakRun, new: Path, old: Path) -> bool:
    files = [file for file in sorted(new.rglob("*")) if file.is_file()]
    for file in run.random.sample(files, len(files)):
        other = old / file.relative_to(new)
        if other.is_file() and other.stat().st_size == file.stat().st_size and other.read_bytes() != file.read_bytes():
            file.unlink()  # not overwritten, because other checkpoints may share it by a hard link
            shutil.copyfile(other, file)
            run.damaged.append(
                new.name if new.parent.name == "checkpoints" else new.relative_to(run.directory).as_posix()
            )
            run.falls = 1
            return True
    return False


def flips(run: SoakRun) -> bool:
    """Flip one bit of a file of the newest checkpoint."""
    found = checkpoints_of(run)
    if len(found) < 2:
        return False
    file = run.random.choice([file for file in sorted(found[-1].rglob("*")) if file.is_file() and file.stat().st_size])
    data = bytearray(file.read_bytes())
    data[run.random.randrange(len(data))] ^= 1 << run.random.randrange(8)
    file.unlink()
    file.write_bytes(data)
    run.damaged.append(found[-1].name)
    run.falls = 1
    return True


def _killed(what: str, moment: Moment) -> Trouble:
    return Trouble(what, (KILLED, DONE), moment, sends(signal.SIGKILL))


COMMON: Sequence[Trouble] = (
    _killed("kill -9 at random", at_random),
    _killed("kill -9 while a checkpoint is written", at_name("{run}/checkpoints/.tmp-*")),
    Trouble("a worker is killed", (FAILED, DONE), at_random, kills_helper),
    # The signal kills the process if no handler is set yet.
    Trouble("SIGTERM", (STOPPED, DONE, -signal.SIGTERM), at_random, sends(signal.SIGTERM)),
    Trouble("a process stands still for 3 s", (DONE,), at_random, rests),
    Trouble("the clock jumps", (DONE,), at_random, jumps, around=clock_jumps),
    Trouble("the folder moves", (DONE,), before=moves),
    Trouble("a file of an older checkpoint in a newer", (DONE,), before=swaps),
    Trouble("a bit flips in a checkpoint", (DONE,), before=flips),
)
APART: Sequence[Trouble] = (
    # A session is refused if either is full when it begins, because it checks the free space first.
    Trouble("the disk is full for 8 s", (DONE, FAILED, REFUSED), at_random, fills_disk),
    Trouble("no shared memory", (DONE, REFUSED), around=shared_is_full),
)
BLOCKS: Sequence[Trouble] = (
    _killed("kill -9 while a block is written back", at_name("{run}/blocks/*/.tmp-*")),
    Trouble("an older version of a block in a newer", (DONE,), before=swaps_block),
)
CONCLUDING: Sequence[Trouble] = (
    _killed("kill -9 while it is evaluated", at_phase("evaluat")),
    _killed("kill -9 while the policy is written", at_name(".tmp-{run}-policy-*")),
)
