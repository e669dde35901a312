"""Available memory by machine and control groups, and file systems that are in memory."""

from pathlib import Path

import pytest

from storage import free_space


def machine(tmp_path, cgroup, files):
    """Write the files of a machine's /proc and /sys below `tmp_path`; return it."""
    files = {"proc/meminfo": "MemTotal: 900 kB\nMemAvailable: 800 kB\n", "proc/self/cgroup": cgroup, **files}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def group(version, folder, limit, usage, cache):
    """Return {name: text} of the files of a control group, version 1 or 2."""
    if version == 2:
        names, prefix, base = ("memory.max", "memory.current"), "", "sys/fs/cgroup"
    else:
        names, prefix, base = ("memory.limit_in_bytes", "memory.usage_in_bytes"), "total_", "sys/fs/cgroup/memory"
    path = f"{base}/{folder}".rstrip("/")
    statistics = f"anon 5\n{prefix}inactive_file {cache}\n{prefix}active_file 1\n"
    return {f"{path}/{names[0]}": f"{limit}\n", f"{path}/{names[1]}": f"{usage}\n", f"{path}/memory.stat": statistics}


@pytest.mark.parametrize(
    ("cgroup", "files", "expected"),
    [
        ("0::/\n", {}, 800 * 1024),
        ("0::/\n", group(2, "", "max", 5, 0), 800 * 1024),
        ("0::/a/b\n", group(2, "a/b", 10000, 4000, 500), 6501),
        ("0::/a/b\n", group(2, "a", 10000, 4000, 500), 6501),  # the limit of an ancestor
        ("3:cpu:/\n9:memory:/docker/x\n", group(1, "", 10000, 9000, 500), 1501),  # only the mount's root is visible
        ("9:cpu,memory:/y\n", group(1, "y", 2**63 - 4096, 9000, 500), 800 * 1024),
    ],
)
def test_available_memory_is_the_least_of_machine_and_control_groups(tmp_path, cgroup, files, expected):
    assert free_space.available_memory_bytes(machine(tmp_path, cgroup, files)) == expected


def test_memory_and_memory_file_systems_of_this_machine_are_found():
    assert 0 < free_space.available_memory_bytes() < 1 << 50
    assert not free_space.is_in_memory(Path("/proc"))
    if Path("/dev/shm").is_dir():
        assert free_space.is_in_memory(Path("/dev/shm"))
    with pytest.raises(FileNotFoundError):
        free_space.is_in_memory(Path("/does/not/exist"))
