"""`mccfr stop`: a run is stopped from another terminal, or it is said why not."""

import socket
import subprocess
import sys

from commands import answer, call, command, refusal
from places import RUNS
from sessions import wait_for

from mccfr.runs.directory.run import lock, open_run
from mccfr.runs.directory.status import run_status
from storage.lock import holder_of


def test_stop_ends_a_run_with_a_checkpoint(capsys, tmp_path):
    run = tmp_path / "run"
    solve = [sys.executable, "-m", "mccfr", "solve", RUNS / "leduc.toml", "--run", run, "--time", "10m"]
    with subprocess.Popen(solve, stderr=subprocess.PIPE) as process:
        wait_for(lambda: run.is_dir() and (open_run(run).path("metrics.jsonl")).exists(), 60)
        code, out, _ = call(capsys, "status", run)
        assert code == 0 and f"process      {process.pid} on {socket.gethostname()}" in out
        code, out, err = call(capsys, "stop", run)
        assert process.wait(10) == 75
        assert "stopped by signal 15" in process.stderr.read().decode()
    found = run_status(open_run(run))
    assert (code, found["state"], found["process"]) == (0, "stopped", None) and found["checkpoint"] is not None
    assert f"asked process {process.pid} to write a checkpoint" in err
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
