"""Creates directories of live tables, and removes those whose owner process has ended.

Live tables are the arrays in shared memory on which a run trains. Shared memory that is not removed stays used until
the machine reboots. A directory therefore shows at every moment who may remove it.

* Created (mode 0700): no lock, no marker. Other processes may remove it after 10 minutes, and only if empty.
* Locked: a `flock`, which the kernel frees when the owner dies.
* Marked: the marker is written under the lock. From now on a free lock means that the owner has ended.
* Filled: tables and the files beside them.
* Emptied and removed in the opposite order, the marker and then the lock last.

The lock decides, not the process id. Ids are reused, and mean nothing in another container that shares the memory.
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
from storage.run_lock import RunLock, lock_is_held

_MARKER, _LOCK = ".mccfr-live", ".lock"
_NAME = re.compile(r"mccfr-\d+-[0-9a-f]{8}")
_UNMARKED_SECONDS = 600.0  # an owner needs a millisecond between creating and marking


def new_directory(parent: Path) -> Path:
    """Return a new unique path in `parent` for the tables on which a run trains; create nothing."""
    return parent / f"mccfr-{os.getpid()}-{secrets.token_hex(4)}"


def claim(directory: Path, link: Path) -> RunLock:
    """Create a directory for the tables on which this process trains; lock it, and return its lock.

    It writes a marker to the directory, a file with the process's id, its start time and `link`. From lock and marker
    other processes learn whether the owner has ended.

    directory  path from `new_directory`
    link       path of the run directory's link that will point to the directory
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
    """Remove a directory of tables on which a run trained, if it exists.

    The files that state its owner, marker and lock, are removed last.
    """
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
    """Remove a directory of tables on which a run trained, if the run's process has ended.

    Returns whether it was removed. Symbolic links, directories that `new_directory` has not named, those of other
    users, and locked ones stay. System errors are ignored.
    """
    try:
        if not _is_abandoned(directory):
            return False
        with RunLock(directory / _LOCK):
            if not _is_abandoned(directory, locked=True):
                return False
            remove(directory)
    except OSError:  # another process removed it, or it is in use
        return False
    return True


def sweep(directories: Iterable[Path]) -> list[Path]:
    """Remove the directories of tables on which dead processes of this user trained; return their paths.

    directories  parent directories in which to search
    """
    live_tables = []
    for parent in dict.fromkeys(directories):
        with contextlib.suppress(OSError):  # the directory is missing or not readable
            live_tables += sorted(entry for entry in parent.iterdir() if _NAME.fullmatch(entry.name))
    return [directory for directory in live_tables if remove_if_abandoned(directory)]


def _is_abandoned(directory: Path, *, locked: bool = False) -> bool:
    """Return whether a process of this user created a directory for live tables and has ended.

    locked  True if this process holds the directory's lock

    The marker, a file in the directory, states the process. Without a valid marker the result is True if two conditions
    hold. The directory has no files besides marker and lock, and this process has locked it or it is older than 10
    minutes. Raises `FileNotFoundError` if the directory does not exist.
    """
    facts = directory.lstat()
    if not (_NAME.fullmatch(directory.name) and stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()):
        return False
    if not locked and lock_is_held(directory / _LOCK):
        return False
    owner = _owner(directory)
    if owner is None:
        foreign = {entry.name for entry in directory.iterdir()} - {_MARKER, _LOCK}
        return not foreign and (locked or time.time() - facts.st_mtime > _UNMARKED_SECONDS)
    pid, start_ticks = owner
    return _start_ticks(pid) != start_ticks


def _owner(directory: Path) -> tuple[int, int] | None:
    """Return (process id, start in clock ticks since boot) of the process that created a directory.

    Both are in the directory's marker file. Returns None if that is absent or incomplete.
    """
    try:
        owner = json.loads((directory / _MARKER).read_text())
        return int(owner["pid"]), int(owner["start_ticks"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _start_ticks(pid: int) -> int | None:
    """Return the start of process `pid` in clock ticks since boot; None if no such process runs.

    It tells apart processes that have had the same id.
    """
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if fields[0] not in ("Z", "X"):
            return int(fields[19])
    return None
