"""Runs where the home directory cannot be written, or shared memory is small, as in containers.

Shows:

* No home directory is needed that can be written (test_a_home_that_cannot_be_written_is_not_needed)
* Without room in /dev/shm a run has the bits that it has with room
  (test_a_run_without_room_in_shared_memory_has_the_same_bits)
"""

import os
import subprocess
import sys

from sessions import assert_same, go, make

from mccfr.policy import Policy
from storage import free_space, zarr_format

NO_HOME = "/sys"
"""A directory in which not even root can create files."""


def test_a_home_that_cannot_be_written_is_not_needed(tmp_path):
    """Compiled kernels go to the temporary directory, and nothing is said about it."""
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


def test_a_run_without_room_in_shared_memory_has_the_same_bits(tmp_path, monkeypatch):
    """The tables go to anonymous shared memory, which the worker maps."""
    plain, run = (make(tmp_path / name, nodes=300_000, workers=1) for name in ("plain", "run"))
    go(plain)
    placed, real, create = [], free_space.free_bytes, zarr_format.create_live_anonymous
    monkeypatch.setattr(free_space, "free_bytes", lambda path: 1000 if "shm" in str(path) else real(path))
    monkeypatch.setattr(zarr_format, "create_live_anonymous", lambda *given: placed.append(given) or create(*given))
    go(run)
    assert len(placed) == 1
    assert_same(run, plain)
