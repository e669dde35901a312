"""Available memory, free disk space, and whether a directory is in memory.

An argument `root` is the directory that contains `proc` and `sys`; another one than "/" is given only in tests.
"""

import ctypes
import os
from contextlib import suppress
from pathlib import Path

from storage.damage import reading

_TMPFS_MAGIC = 0x01021994
_RAMFS_MAGIC = 0x858458F6

_libc = ctypes.CDLL(None, use_errno=True)


def available_memory_bytes(root: Path = Path("/")) -> int:
    """Return the bytes of memory available without swapping, within the limits of control groups.

    Control groups are how Linux limits the memory of containers.

    Args:
        root: directory that contains `proc` and `sys`; another one than "/" only in tests

    Raises:
        OSError: the kernel does not report the available memory.
    """
    available = None
    for line in (root / "proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) * 1024
    if available is None:
        raise OSError(f"{root / 'proc/meminfo'} has no MemAvailable: Linux 3.14 or later is needed")
    return min([available, *_control_group_bytes(root)])


def _control_group_bytes(root: Path) -> list[int]:
    """Return a list of the bytes left under each memory limit of this process; [] if it has none.

    The limits are those of Linux's control groups, versions 1 and 2. `root` is the directory that contains `proc` and
    `sys`.
    """
    memberships = root / "proc/self/cgroup"
    free_bytes: list[int] = []
    if not memberships.exists():
        return free_bytes
    for line in memberships.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mount, limit, usage = root / "sys/fs/cgroup", "memory.max", "memory.current"
            reclaimable = ("inactive_file", "active_file")
        elif "memory" in controllers.split(","):
            mount, limit, usage = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            reclaimable = ("total_inactive_file", "total_active_file")
        else:
            continue
        # In a container only the mount's root may be visible, so every ancestor is read.
        inner = Path(path.lstrip("/"))
        for group in dict.fromkeys(mount / folder for folder in (inner, *inner.parents)):
            free_bytes.extend(_left_in_group(group, limit, usage, reclaimable))
    return free_bytes


def _left_in_group(group: Path, limit: str, usage: str, reclaimable: tuple[str, str]) -> list[int]:
    if not (group / limit).exists() or not (group / usage).exists():
        return []
    stated = (group / limit).read_text().strip()
    if stated == "max":
        return []
    cache = 0
    if (group / "memory.stat").exists():
        statistics = dict(line.split(maxsplit=1) for line in (group / "memory.stat").read_text().splitlines())
        cache = sum(int(statistics.get(name, 0)) for name in reclaimable)
    return [max(0, int(stated) - int((group / usage).read_text()) + cache)]


def total_memory_bytes(root: Path = Path("/")) -> int:
    """Return the size of this machine's memory in bytes."""
    return int((root / "proc/meminfo").read_text().partition("MemTotal:")[2].split()[0]) * 1024


def killed_for_memory(root: Path = Path("/")) -> int:
    """Return how many processes Linux has killed for lack of memory since the machine was started.

    Returns 0 if the number is unknown.
    """
    try:
        lines = (root / "proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def free_bytes(path: Path) -> int:
    """Return the bytes that this user can still write in the file system of `path`."""
    statistics = os.statvfs(path)
    return statistics.f_bavail * statistics.f_frsize


@reading()
def tree_bytes(path: Path) -> int:
    """Return the size in bytes of a file, or of all files below a directory; links are not followed.

    Files that are removed meanwhile, and folders that cannot be listed, do not count. Raises `FileNotFoundError` if
    `path` does not exist.
    """
    if not path.is_dir():
        return path.lstat().st_size
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(folder, name).lstat().st_size
    return total


def is_in_memory(path: Path) -> bool:
    """Return whether the file system of `path` is in memory (tmpfs or ramfs).

    Raises:
        OSError: the path does not exist.
    """
    buffer = ctypes.create_string_buffer(512)  # struct statfs; its first member, a long, is the type
    if _libc.statfs(os.fsencode(path), buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))
    kind = ctypes.c_ulong.from_buffer(buffer).value & 0xFFFFFFFF
    return kind in (_TMPFS_MAGIC, _RAMFS_MAGIC)


def bytes_text(count: float) -> str:
    """Return a number of bytes as text for people: 512 B, 1.5 MB, 12.3 GB; a kB is 1,000 bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
