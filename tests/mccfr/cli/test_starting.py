"""Imports of commands: numba, zarr and h5py are loaded only if needed."""

import json
import os
import socket
import subprocess
import sys

import pytest
from commands import answer, call, command, refusal
from places import RUNS
from policies import write_random
from sessions import make, trained, wait_for

from mccfr.config.game_tables import KuhnGame
from mccfr.runs.directory.run import lock, open_run
from mccfr.runs.directory.run_status import run_status
from storage.run_lock import holder_of

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


def imported(*commands, **variables):
    """Return each command's exit status in one process, and the modules of HEAVY imported at its end."""
    given = [json.dumps([[str(part) for part in command] for command in commands]), json.dumps(HEAVY)]
    environment = {**os.environ, **variables}
    program = [sys.executable, "-c", SCRIPT, *given]
    done = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
    return [tuple(found) for found in json.loads(done.stdout.splitlines()[-1])]


@pytest.fixture
def policy(tmp_path):
    return write_random(tmp_path / "kuhn", KuhnGame())


def test_commands_that_call_no_kernel_import_no_numba(policy, tmp_path):
    run = trained(make(tmp_path / "run", {"algorithm": "cfr"}, "kuhn"), iterations=5).directory
    found = imported(
        ["--help"],
        ["plan", RUNS / "kuhn.toml", "--speed", "3e7"],
        ["status", run],
        ["query", policy, "", "--hand", "K"],
        ["evaluate", policy, "--json"],
        ["evaluate", policy, "--json", "--method", "lbr", "--hands", "100"],
    )
    assert found == [*[(0, [])] * 5, (0, ["numba"])]  # only the last one needs kernels


def test_completion_imports_no_numba():
    assert imported([], _MCCFR_COMPLETE="bash_complete", COMP_WORDS="mccfr sta", COMP_CWORD="1") == [(0, [])]


def test_a_run_needs_neither_zarr_nor_h5py(tmp_path):
    run = tmp_path / "run"
    found = imported(["solve", RUNS / "kuhn.toml", "--run", run, "--iterations", "10"], ["verify", run])
    loaded = [(code, "zarr" in modules, "h5py" in modules) for code, modules in found]
    assert loaded == [(0, False, False), (0, True, False)]


# --- `mccfr stop`: stops a run from another terminal, or states why it cannot ---


@pytest.mark.parametrize(
    ("options", "message"),
    [((), "to write a checkpoint and end"), (("--after-checkpoint",), "to end at its next regular checkpoint")],
)
def test_stop_ends_a_run_with_a_checkpoint(capsys, tmp_path, options, message):
    run = tmp_path / "run"
    solve = [sys.executable, "-m", "mccfr", "solve", RUNS / "leduc.toml", "--run", run, "--time", "10m"]
    solve += ["--workers", "0", "--set", "run.checkpoint_seconds=1"]
    with subprocess.Popen(solve, stderr=subprocess.PIPE) as process:
        wait_for(lambda: run.is_dir() and run_status(open_run(run))["nodes_touched"], 60)
        code, out, _ = call(capsys, "status", run)
        assert code == 0 and f"process      {process.pid} on {socket.gethostname()}" in out
        code, out, err = call(capsys, "stop", run, *options)
        assert process.wait(10) == 75
        assert "stopped by signal 15" in process.stderr.read().decode()
    found = run_status(open_run(run))
    assert (code, found["state"], found["process"]) == (0, "stopped", None) and found["checkpoint"] is not None
    assert f"asked process {process.pid} {message}" in err
    assert out.startswith(f"stopped at {found['nodes_touched']:,} nodes") and f"mccfr resume {run}" in out
    assert answer(capsys, "status", run)["machine"] is None
    assert refusal(capsys, "stop", run) == f"mccfr: {run} is stopped: no process works on it\n"


def test_a_run_on_another_machine_is_not_stopped(capsys, tmp_path):
    assert command("solve", RUNS / "kuhn.toml", "--run", tmp_path / "run", "--iterations", 50) == 0
    run = open_run(tmp_path / "run")
    for line, there in (("7 elsewhere\n", "elsewhere"), ("7\n", "a machine that it does not name")):
        with lock(run):
            run.path("run.lock").write_text(line)
            assert f"process 7 of {there}: stop it there, with kill 7" in refusal(capsys, "stop", run.directory)
    with lock(run):
        run.path("run.lock").write_text("")
        assert holder_of(run.path("run.lock")) is None
    assert call(capsys, "stop", tmp_path)[0] == 2
