"""Runs on machines with a read-only home directory or little shared memory, as in containers.

Shows:

* No writable home directory is needed (test_commands_work_without_a_writable_home_directory)
* Without room in /dev/shm a run has the same bits (test_a_run_without_room_in_shared_memory_has_the_same_bits)
"""

import os
import subprocess
import sys

import pytest
from sessions import assert_same, go, make

from mccfr.policy import Policy
from mccfr.runs.session import pools
from storage import free_space

NO_HOME = "/sys"
"""A directory in which not even root can create files."""


def test_commands_work_without_a_writable_home_directory(tmp_path):
    """Compiled kernels go to the temporary directory, and no message names the home directory."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("XDG_", "NUMBA_"))}
    environment |= {"HOME": NO_HOME, "TMPDIR": str(tmp_path)}

    def mccfr(*arguments):
        command = [sys.executable, "-m", "mccfr", *arguments]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0 and NO_HOME not in ended.stderr, ended.stderr

    mccfr("solve", "kuhn", "--run", "run", "--set", "run.workers=1", "--iterations", "1000")
    mccfr("evaluate", "run")
    mccfr("export", "run", "policy")
    assert Policy.open(tmp_path / "policy").query("", hand="K")["actions"]
    assert list(tmp_path.glob("mccfr-kernels-*/*"))


@pytest.mark.parametrize("form", ["zarr", "hdf5"])
def test_a_run_without_room_in_shared_memory_has_the_same_bits(tmp_path, monkeypatch, form):
    """The tables go to anonymous shared memory, which the worker maps."""
    plain, run = (make(tmp_path / name, tables={"format": form}, workers=1) for name in ("plain", "run"))
    go(plain, iterations=3_000)
    placed, real, create = [], free_space.free_bytes, pools.create_live
    monkeypatch.setattr(free_space, "free_bytes", lambda path: 1000 if "shm" in str(path) else real(path))
    monkeypatch.setattr(pools, "create_live", lambda *given, **how: placed.append(create(*given, **how)) or placed[0])
    go(run, iterations=3_000)
    assert [tables.anonymous for tables in placed] == [True]
    assert_same(run, plain)
