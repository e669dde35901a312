"""Environment of a soak test: its folder, commands, processes and their resources."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low

import numpy as np

from mccfr.runs.directory.run import CHECKPOINTS, is_run, open_run
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from storage.block_tables import open_with_blocks
from storage.checkpoint import checkpoint_path, list_checkpoints

MCCFR = Path(sys.executable).with_name("mccfr")
_MARK = "MCCFR_SOAK"
_APART = "SOAK_APART"  # "1": this process has its own mounts
_LOOKS_SECONDS = 0.5
_ENDS_SECONDS = 30.0  # time for workers of a killed process to end
_EMPTY_LOOKS = 3  # a process that is starting another program has no environment for a moment
_CLOCK = '''"""Adds the seconds in a file to the wall clock."""
import os, time
_time, _path = time.time, os.environ["MCCFR_SOAK_CLOCK"]
def _jumping():
    with open(_path) as file:
        return _time() + float(file.read() or 0)
time.time = _jumping
'''


@dataclass
class HeldAtOnce:
    """Resources of a life's processes: largest memory and number of processes, median of open files.

    Open files are a median because a session opens all tables for a third of a second at its start.
    """

    anonymous_bytes: int = 0
    files: int = 0
    processes: int = 0
    _seen: list[int] = field(default_factory=list, repr=False, compare=False)

    def rise(self, other: "HeldAtOnce") -> None:
        """Include another observation."""
        self._seen.append(other.files)
        self.anonymous_bytes = max(self.anonymous_bytes, other.anonymous_bytes)
        self.processes = max(self.processes, other.processes)
        self.files = median_low(self._seen)


@dataclass
class SoakPlace:
    """Folders of a soak test.

    apart  True if `disk` and `shared` are file systems of limited size, mounted for this process
    """

    folder: Path
    apart: bool
    clock: bool = False  # True: the wall clock of the next command has the seconds of `offset` added
    level: HeldAtOnce = field(default_factory=HeldAtOnce)

    @property
    def disk(self) -> Path:
        return self.folder / "disk"

    @property
    def shared(self) -> Path:
        return Path("/dev/shm")

    @property
    def offset(self) -> Path:
        return self.folder / "offset"

    @classmethod
    def make(cls, folder: Path, disk_bytes: int, shared_bytes: int) -> "SoakPlace":
        """Create the folders, and mount both file systems if this process has its own mounts."""
        for name in ("disk", "tmp", "clock"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "clock/sitecustomize.py").write_text(_CLOCK)
        place = cls(folder, os.environ.get(_APART) == "1")
        place.offset.write_text("0")
        if place.apart:
            subprocess.run(["mount", "--make-rprivate", "/"], check=True)
            for path, size in ((place.disk, disk_bytes), (place.shared, shared_bytes)):
                subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], check=True)
        return place

    def environment(self) -> dict[str, str]:
        own = {_MARK: str(self.folder), "TMPDIR": str(self.folder / "tmp")}
        if self.clock:
            own |= {"PYTHONPATH": str(self.folder / "clock"), "MCCFR_SOAK_CLOCK": str(self.offset)}
        return {**os.environ, **own}

    def processes(self) -> Iterator[int]:
        """Yield the ids of all living processes that commands of this test have started."""
        mark = f"{_MARK}={self.folder}\0".encode()
        for path in Path("/proc").iterdir():
            if path.name.isdigit() and int(path.name) != os.getpid():
                with suppress(OSError):
                    if mark in (path / "environ").read_bytes() and _state(path) != "Z":
                        yield int(path.name)

    def look(self) -> None:
        """Observe the resources of all processes now."""
        now = HeldAtOnce()
        for number in self.processes():
            with suppress(OSError, ValueError, IndexError):
                status = Path(f"/proc/{number}/status").read_text()
                now.anonymous_bytes += 1024 * int(status.split("RssAnon:")[1].split()[0])
                now.files += sum(1 for _ in Path(f"/proc/{number}/fd").iterdir())
                now.processes += 1
        self.level.rise(now)


def _state(process: Path) -> str:
    return (process / "stat").read_text().rpartition(")")[2].split()[0]


class Command:
    """A running `mccfr` command, with its output in a file."""

    def __init__(self, place: SoakPlace, *arguments: object) -> None:
        self.place, self.arguments = place, list(map(str, arguments))
        self.log = place.folder / "output.txt"
        self._looked = 0.0
        with self.log.open("wb") as file:
            self.process = subprocess.Popen(
                [MCCFR, *self.arguments],
                cwd=place.folder,
                env=place.environment(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def lives(self) -> bool:
        """Return whether the command is running; observes its processes every half second."""
        if time.monotonic() > self._looked + _LOOKS_SECONDS:
            self.place.look()
            self._looked = time.monotonic()
        return self.process.poll() is None

    def helpers(self) -> list[int]:
        """Return the ids of the command's processes except the first."""
        return [number for number in self.place.processes() if number != self.process.pid]

    def end(self) -> tuple[int, str]:
        """Wait for the command's end; return (exit status, output)."""
        while self.lives():
            time.sleep(0.02)
        return self.process.returncode, self.log.read_text(errors="replace")


def run_command(place: SoakPlace, *arguments: object) -> tuple[int, str]:
    """Run an `mccfr` command without faults; return (exit status, output)."""
    return Command(place, *arguments).end()


def left_running(place: SoakPlace) -> list[int]:
    """Kill processes that have outlived their command by 30 seconds; return their ids."""
    end, empty = time.monotonic() + _ENDS_SECONDS, 0
    while empty < _EMPTY_LOOKS and ((left := list(place.processes())) == [] or time.monotonic() < end):
        empty = 0 if left else empty + 1
        time.sleep(0.05)
    for number in left:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    return left


def nodes_of(directory: Path, back: int = 0) -> int:
    """Return the nodes touched at the newest checkpoint that can be opened; 0 for none.

    back  number of newest checkpoints to skip
    """
    root = directory / CHECKPOINTS
    numbers = list_checkpoints(root) if is_run(directory) else []
    for number in numbers[::-1][back:]:
        with suppress(OSError, ValueError):
            return int(open_with_blocks(checkpoint_path(root, number)).state["nodes_touched"])
    return 0


def same_bits(one: Path, other: Path) -> bool:
    """Return whether the newest checkpoints of two runs have the same nodes and tables, bit for bit."""
    found = [find_checkpoint(open_run(path), None) for path in (one, other)]
    first, second = map(read_tables, found)
    return found[0].state["nodes_touched"] == found[1].state["nodes_touched"] and all(
        np.array_equal(first[name], second[name]) for name in first.keys() | second.keys()
    )


def free_bytes(path: Path) -> int:
    return shutil.disk_usage(path).free
