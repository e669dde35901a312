"""What commands import: numba where a kernel is called, zarr and h5py where tables of theirs are read."""

import json
import subprocess
import sys

import pytest
from archives import unpack
from places import RUNS

HEAVY = ("numba", "zarr", "h5py")
SCRIPT = """
import json, sys
from mccfr.cli import main

found = []
for arguments in json.loads(sys.argv[1]):
    try:
        main(arguments)
    except SystemExit as ended:
        found.append([ended.code, [name for name in json.loads(sys.argv[2]) if name in sys.modules]])
print(json.dumps(found))
"""


def imported(*commands):
    """Exit status of each command, all given to one process in turn, and what of HEAVY had been imported by its end."""
    given = [json.dumps([[str(part) for part in command] for command in commands]), json.dumps(HEAVY)]
    done = subprocess.run([sys.executable, "-c", SCRIPT, *given], capture_output=True, text=True, check=True)
    return [tuple(found) for found in json.loads(done.stdout.splitlines()[-1])]


@pytest.fixture
def policy(tmp_path):
    """Kuhn's, as an older version wrote it."""
    return unpack("format2", tmp_path) / "kuhn"


def test_commands_that_call_no_kernel_do_without_numba(policy, tmp_path):
    run = unpack("runs1", tmp_path) / "full-width"
    found = imported(
        ["--help"],
        ["plan", RUNS / "kuhn.toml"],
        ["status", run],
        ["query", policy, "", "--hand", "K"],
        ["evaluate", policy, "--json"],
    )
    assert found == [*[(0, [])] * 4, (0, ["numba"])]  # the last one has kernels


def test_a_run_needs_neither_zarr_nor_h5py(tmp_path):
    run = tmp_path / "run"
    found = imported(["solve", RUNS / "kuhn.toml", "--run", run, "--iterations", "10"], ["verify", run])
    assert [(code, "zarr" in modules, "h5py" in modules) for code, modules in found] == [
        (0, False, False),
        (0, True, False),
    ]
