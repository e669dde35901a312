"""Cluster ranks as MPI processes of one host: signals, kills, the Slurm script, larger games.

Shows:

* Each signal to the coordinator ends the session with a checkpoint and status 75
  (test_signals_end_the_coordinator_with_a_checkpoint_and_ranks_ignore_them)
* The Slurm script writes a checkpoint and requeues itself on SIGUSR1
  (test_the_script_for_slurm_checkpoints_and_requeues_itself_on_a_signal)
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from machines import LEDUC, on_machines, stratified_run
from places import ROOT
from refusals import refused
from sessions import NO_EVALUATION, assert_same, go, make, new_run, newest, wait_for
from slurm import MCCFR, slurm_job
from stratified import LEDUC_12, long_game

from mccfr.cluster.cluster_status import cluster_status
from mccfr.cluster.launch import local_launch, read_end
from mccfr.runs.directory.run import LOCK, is_locked, open_run
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.checkpoints import find_checkpoint
from storage.deferred_signals import SIGNALS, signals_blocked
from storage.run_lock import holder_of

PROGRAM = [sys.executable, "-m", "mccfr", "cluster"]


def test_machines_of_one_host_train_the_same_bits_by_mpi_and_stop_on_a_signal(tmp_path):
    plain = stratified_run(tmp_path / "plain")
    run, process = launch_with_checkpoint(tmp_path / "run", "--workers", "1")
    process.send_signal(signal.SIGUSR1)
    assert process.wait(60) == 75
    go(plain, iterations=find_checkpoint(run, None).state["iterations"])
    assert_same(run, plain)
    assert {rank["machine"] for rank in cluster_status(run)["ranks"]} == {0, 1}


def test_a_launcher_that_is_killed_leaves_no_rank_and_the_run_goes_on(tmp_path):
    plain = stratified_run(tmp_path / "plain")
    run, process = launch_with_checkpoint(tmp_path / "run", "--nodes", "400000", stderr=subprocess.PIPE)
    before = {rank["pid"] for rank in cluster_status(run)["ranks"]}
    os.kill(child_of(process), signal.SIGKILL)
    errors = process.communicate(timeout=300)[1].decode()
    assert process.returncode == 0, errors
    assert "a machine was lost; remaining machines (1) continue" in errors and "Traceback" not in errors, errors
    assert not [pid for pid in before if Path(f"/proc/{pid}/cmdline").exists()]
    go(plain, iterations=find_checkpoint(run, None).state["iterations"])
    assert_same(run, plain)


def test_the_shared_memory_file_of_mpi_is_unlinked_during_the_job():
    program = """
from mccfr.cluster.mpi import World, shared_by_mpich
world = World()
world.wait([world.comm.Ibarrier()])
maps = open("/proc/self/maps").read()
assert not shared_by_mpich(maps) and "/dev/shm/mpich_shm_" in maps, maps
world.leave()
"""
    mpi = local_launch(1, 1)
    command = [*mpi.command, sys.executable, "-c", program]
    environment = {**os.environ, **mpi.environment, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=environment, capture_output=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr


def test_ranks_are_not_started_without_shared_memory_for_their_messages(monkeypatch):
    """Without room MPICH writes beyond its shared memory: ranks would die of SIGBUS and leave megabytes."""
    monkeypatch.setattr("mccfr.cluster.launch.free_bytes", lambda path: 5 << 20)
    refused(r"/dev/shm has 5\.2 MB left and 3 ranks need 6\.3 MB of it", local_launch, 2, 1)
    assert local_launch(1, 1).command[-1] == "2"


@pytest.mark.parametrize("rank", [0, 1])
def test_a_signal_during_startup_ends_the_coordinator_with_a_message_but_no_other_rank(tmp_path, rank):
    ended = tmp_path / "ended.json"
    command = [sys.executable, "-P", "-m", "mccfr.cli.cluster_rank", str(ended), str(os.getpid()), "-", "--version"]
    environment = {**os.environ, "PMI_RANK": str(rank)}
    with signals_blocked():
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    process.send_signal(signal.SIGINT if rank else signal.SIGTERM)
    output, errors = process.communicate(timeout=120)
    if rank:
        assert (process.returncode, errors) == (0, "") and output.startswith("mccfr")
    else:
        assert (process.returncode, output, errors) == (75, "", "mccfr: stopped by signal 15\n")
        assert read_end(ended)["status"] == 75


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_signals_end_the_coordinator_with_a_checkpoint_and_ranks_ignore_them(tmp_path, number):
    run, process = launch_with_checkpoint(tmp_path / "run", "--nodes", str(10**12), stderr=subprocess.PIPE)
    for each in SIGNALS:
        os.kill(cluster_status(run)["ranks"][0]["pid"], each)
    before = newest(run)
    wait_for(lambda: process.poll() is not None or newest(run) > before + 1, 120)
    coordinator = holder_of(run.path(LOCK))
    assert coordinator is not None and coordinator.process != process.pid
    os.kill(coordinator.process, number)
    errors = process.communicate(timeout=300)[1].decode()
    assert process.returncode == 75 and f"stopped by signal {int(number)}" in errors, errors
    assert "Traceback" not in errors and "a machine was lost" not in errors, errors
    assert run_status(run)["state"] == "stopped" and problems_of(run.directory) == []


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0, 0.5, 1, 1.5, 2, 3])
def test_a_signal_to_all_ranks_that_start_ends_them_without_a_traceback(tmp_path, seconds):
    run = stratified_run(tmp_path / "run")
    process = launch(run, 2, "--nodes", str(10**12), stderr=subprocess.PIPE)
    wait_for(lambda: child_of(process))
    time.sleep(seconds)
    os.killpg(child_of(process), signal.SIGINT)
    errors = process.communicate(timeout=300)[1].decode()
    assert process.returncode == 75, errors
    assert "stopped by signal 2" in errors and "Traceback" not in errors and "Return code" not in errors
    assert not is_locked(run)
    go(run, iterations=100)


def cluster_job(folder, srun):
    """Start the script of docs/machines.md in a folder, with another command in place of srun."""
    (folder / "blueprint.toml").write_text(f"{LEDUC}[run]\nstrata = 4\n[evaluation]\nat_end = false\n")
    return slurm_job(folder, "machines.md", {"srun": srun, "mccfr": MCCFR}, UCX_TLS="self,sm")


@pytest.mark.parametrize(("status", "again"), [(0, False), (75, True), (138, True), (137, False)])
def test_the_script_for_slurm_ends_with_its_job(tmp_path, status, again):
    """Status 138 is SIGUSR1 before the run exists, and 137 a kill for lack of memory."""
    assert cluster_job(tmp_path, f"exit {status}").wait(60) == status
    assert (tmp_path / "requeued").exists() == again


@pytest.mark.slow
def test_the_script_for_slurm_checkpoints_and_requeues_itself_on_a_signal(tmp_path):
    mpiexec = Path(sys.prefix) / "bin" / "mpiexec.gforker"
    # That launcher drops text that is not ASCII, so the ranks write their messages to a file.
    process = cluster_job(tmp_path, f"""exec {mpiexec} -n 3 bash -c 'exec "$@" 2>> said.txt' - "${{@:3}}" """)
    metrics = tmp_path / "runs" / "blueprint" / "metrics.jsonl"
    wait_for(lambda: process.poll() is not None or (metrics.is_file() and metrics.stat().st_size > 0), 120)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(120) == 75
    assert (tmp_path / "requeued").read_text() == "requeue 7\n"
    assert find_checkpoint(open_run(tmp_path / "runs" / "blueprint"), None).state["iterations"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["twin", "flop-holdem", "hunl-quick"])
def test_bits_of_larger_games_are_the_same_on_one_two_and_four_machines(tmp_path, slot_abstractions, name):
    document, nodes = long_game(name, slot_abstractions[0])
    plain, run = new_run(tmp_path / "plain", document), new_run(tmp_path / "run", document)
    go(plain, nodes=nodes // 10)
    assert launch(run, 2, "--workers", "1", "--nodes", str(nodes // 40)).wait(600) == 0
    on_machines(run, 4, nodes=nodes // 20)
    go(run, workers=1, nodes=nodes // 14)
    assert launch(run, 1, "--workers", "2", "--nodes", str(nodes // 10)).wait(600) == 0
    assert_same(run, plain)
    assert not problems_of(run.directory)


@pytest.mark.slow
def test_bits_are_the_same_after_twenty_kills_on_changing_and_slow_machines(tmp_path):
    settings = {"strata": 12, "nodes": 60_000_000, "checkpoint_nodes": 2_000_000}
    solver = {"period_nodes": 1_000_000, "seed": 2}
    plain = make(tmp_path / "plain", solver, LEDUC_12, evaluation=NO_EVALUATION, workers=0, **settings)
    run = make(tmp_path / "run", solver, LEDUC_12, evaluation=NO_EVALUATION, workers=1, **settings)
    go(plain)
    moments = random.Random(7)
    for kill in range(20):
        wait_for(lambda: not is_locked(run))
        saved, process = newest(run), launch(run, 2 + kill % 3)
        wait_for(lambda saved=saved, process=process: process.poll() is not None or newest(run) > saved, 300)
        time.sleep(moments.uniform(0, 0.5))
        assert process.poll() is None, "it had ended before it was killed: make the run longer"
        pids = [rank["pid"] for rank in cluster_status(run)["ranks"]]
        os.kill(moments.choice(pids), signal.SIGKILL)
        if kill % 2:
            time.sleep(moments.uniform(0, 5))
            process.kill()
        else:
            process.terminate()
        process.wait(120)
    wait_for(lambda: not is_locked(run))
    process = launch(run, 3)
    slowing = threading.Thread(target=slow, args=(run, process))
    slowing.start()
    assert process.wait(900) == 0
    slowing.join()
    assert_same(run, plain)


def launch(run, machines, *more, stderr=subprocess.DEVNULL):
    command = [*PROGRAM, "local", str(run.directory), "--machines", str(machines), *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)


def launch_with_checkpoint(path, *more, **how):
    """Return (run, process that trains it on two machines) after the first checkpoint."""
    run = stratified_run(path, checkpoint_nodes=50_000)
    process = launch(run, 2, *more, **how)
    wait_for(lambda: process.poll() is not None or newest(run), 120)
    return run, process


def child_of(process):
    """Return the process ID of the launcher that a process started last, or None if there is none."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[-1]) if children else None


def slow(run, process):
    """Stop one machine for seven eighths of the time."""
    saved = newest(run)
    wait_for(lambda: process.poll() is not None or newest(run) > saved, 300)
    pid = cluster_status(run)["ranks"][0]["pid"]
    while process.poll() is None:
        for number, seconds in ((signal.SIGSTOP, 0.07), (signal.SIGCONT, 0.01)):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return
            time.sleep(seconds)
