"""Directories of live tables: whose one is, and removing what dead processes have left.

Memory that nobody can find any more is lost until the machine starts again, so a directory says at every moment of its
life who may remove it:

    made (mode 0700)  no lock, no marker: removed by a sweep once it is `_UNMARKED_SECONDS` old, and only if empty
    locked            a `flock` that the kernel frees when the owner dies, however it dies
    marked            the marker is written under the lock: from here on a free lock means that the owner is gone
    filled            tables and all that lies beside them
    emptied, removed  in the opposite order, the marker last but for the lock

The lock and not a process id is what counts: ids are reused, and mean nothing to a process in another container that
sees the same shared memory.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from storage import durable
from storage.lock import RunLock, is_held

_MARKER, _LOCK = ".mccfr-live", ".lock"
_NAME = re.compile(r"mccfr-\d+-[0-9a-f]{8}")
_UNMARKED_SECONDS = 600.0  # an owner is between making a directory and marking it for a millisecond


def new_directory(parent: Path) -> Path:
    """A name of ours in `parent` that nobody has had."""
    return parent / f"mccfr-{os.getpid()}-{secrets.token_hex(4)}"


def claim(directory: Path, link: Path) -> RunLock:
    """Make a directory that only its user may enter, lock and mark it; returns the lock, kept for life.

    `link` is what will point to it: for those who look at leftovers.
    """
    directory.mkdir(mode=0o700)
    lock = RunLock(directory / _LOCK)
    try:
        lock.acquire()
        owner = {"pid": os.getpid(), "start_ticks": _start_ticks(os.getpid()), "link": str(link.absolute())}
        durable.write_file(directory / _MARKER, json.dumps(owner).encode())
    except BaseException:
        lock.release()
        raise
    return lock


def remove(directory: Path) -> None:
    """Remove a directory of ours, and nothing if it is gone; the marker stays until all that is large is removed."""
    if not directory.exists():
        return
    for entry in sorted(directory.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name not in (_MARKER, _LOCK):
            entry.unlink()
    (directory / _MARKER).unlink(missing_ok=True)
    (directory / _LOCK).unlink(missing_ok=True)
    directory.rmdir()


def remove_if_abandoned(directory: Path) -> bool:
    """Remove a directory if it is ours and its owner is gone; returns whether it was.

    Left alone are links, directories of other users, names and markers that are not ours, and what anyone holds the
    lock of.
    """
    try:
        if not _is_abandoned(directory):
            return False
        with RunLock(directory / _LOCK):
            if not _is_abandoned(directory, locked=True):
                return False
            remove(directory)
    except OSError:  # another process was faster, or the directory came to life
        return False
    return True


def sweep(places: Iterable[Path]) -> list[Path]:
    """Remove what dead processes of this user have left in some directories; returns what was removed."""
    found = []
    for place in dict.fromkeys(places):
        with contextlib.suppress(OSError):  # a place that is not there, or not ours to read
            found += sorted(entry for entry in place.iterdir() if _NAME.fullmatch(entry.name))
    return [directory for directory in found if remove_if_abandoned(directory)]


def _is_abandoned(directory: Path, *, locked: bool = False) -> bool:
    """Whether a directory is one of ours and its owner is gone.  `locked`: this process holds its lock.

    Raises `FileNotFoundError` where there is no such directory.
    """
    facts = directory.lstat()
    if not (_NAME.fullmatch(directory.name) and stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()):
        return False
    if not locked and is_held(directory / _LOCK):
        return False
    owner = _owner(directory)
    if owner is None:
        foreign = {entry.name for entry in directory.iterdir()} - {_MARKER, _LOCK}
        return not foreign and (locked or time.time() - facts.st_mtime > _UNMARKED_SECONDS)
    pid, start_ticks = owner
    return _start_ticks(pid) != start_ticks


def _owner(directory: Path) -> tuple[int, int] | None:
    """Process id and start of the owner by the marker; None where there is none, or it was never finished."""
    try:
        owner = json.loads((directory / _MARKER).read_text())
        return int(owner["pid"]), int(owner["start_ticks"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot, or None where there is none: tells reused ids apart."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if fields[0] not in ("Z", "X"):
            return int(fields[19])
    return None
