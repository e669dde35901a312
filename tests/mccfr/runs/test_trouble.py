"""Runs in trouble: workers that hang or die, signals that cannot wait, disks that are full."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sessions
from places import ROOT
from sessions import NO_EVALUATION, Listener, assert_same_tables, go, wait_for

from mccfr.runs import saving as saving_module
from mccfr.runs.results import find_checkpoint
from mccfr.runs.rundir import EVALUATIONS, METRICS
from mccfr.runs.status import run_status
from mccfr.runs.trends import TRENDS
from mccfr.runs.verification import problems_of
from storage import checkpoint as checkpoints
from storage import durable

SECOND = {
    "mccfr.runs.watch.SILENT_SECONDS": 1.0,
    "mccfr.runs.run.REST_SECONDS": 2.0,
    "mccfr.runs.saving.FINAL_WAITS_SECONDS": (0.3, 0.3),
}


def make(path, evaluation=NO_EVALUATION, **settings):
    """A new run directory of Leduc, without evaluations unless told otherwise."""
    return sessions.make(path, {"discount": "linear", "seed": 5}, evaluation=evaluation, **settings)


def start(run, *arguments, **constants):
    """`mccfr resume` of a run as a process of its own, with shorter times than users have."""
    changes = "; ".join(
        f"import {module}; {module}.{name} = {value!r}"
        for path, value in {**SECOND, **constants}.items()
        for module, _, name in [path.rpartition(".")]
    )
    program = f"{changes}; from mccfr.cli import main; main({['resume', str(run.directory), *map(str, arguments)]!r})"
    return subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, cwd=ROOT)


def workers_of(process):
    """Process ids of a coordinator's workers, in order; one that is not the worker's program yet, is none.

    Stopped between fork and exec it would hold up the coordinator, which waits there for the exec.
    """
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children if b"mccfr.runs.worker" in Path(f"/proc/{child}/cmdline").read_bytes()]


def trains(run, process, workers=2):
    """Whether all workers are there and a checkpoint is made."""
    return run_status(run)["checkpoint"] is not None and len(workers_of(process)) == workers


def ends(process, *signals, seconds=40.0):
    """Send signals, half a second between them; (exit status, what was said, seconds until the end)."""
    began = time.monotonic()
    for number in signals:
        process.send_signal(number)
        time.sleep(0.5)
    try:
        _, errors = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return process.returncode, errors, time.monotonic() - began


@pytest.fixture
def stopped(tmp_path, request):
    """A run of two workers, the second of which is stopped: (run, its process, the worker's id).

    A parameter says how many seconds workers have to come to rest.
    """
    run = make(tmp_path / "run", workers=2, checkpoint_seconds=0.5)
    process = start(run, **{"mccfr.runs.run.REST_SECONDS": getattr(request, "param", 2.0)})
    try:
        wait_for(lambda: trains(run, process))
        worker = workers_of(process)[1]
        os.kill(worker, signal.SIGSTOP)
        yield run, process, worker
    finally:
        for child in workers_of(process) if process.poll() is None else []:
            os.kill(child, signal.SIGKILL)
        process.kill()
        process.communicate()


def gone(pid):
    return not Path(f"/proc/{pid}").exists()


def test_a_stopped_worker_is_named_and_goes_on_when_it_may(stopped, capsys):
    run, process, worker = stopped
    wait_for(lambda: run_status(run)["silent_workers"], 15)
    [silent] = run_status(run)["silent_workers"]
    assert silent["worker"] == 1 and "SIGSTOP" in silent["why"] and silent["seconds"] >= 1
    text = subprocess.run(
        [sys.executable, "-m", "mccfr", "status", str(run.directory)], capture_output=True, text=True, check=True
    ).stdout
    assert "silent       worker 1 for" in text
    nodes = run_status(run)["nodes_touched"]
    os.kill(worker, signal.SIGCONT)
    wait_for(lambda: not run_status(run)["silent_workers"] and run_status(run)["nodes_touched"] > nodes, 15)
    code, errors, _ = ends(process, signal.SIGINT)
    assert code == 75 and "worker 1 has given no sign for" in errors and "worker 1 goes on" in errors
    assert run_status(run)["silent_workers"] == []


def test_one_signal_ends_a_run_with_a_stopped_worker_in_bounded_time(stopped):
    """The stopped worker is ended; the checkpoint holds what both had published, and the run goes on from it."""
    run, process, worker = stopped
    live = (run.directory / "live").readlink()
    code, errors, seconds = ends(process, signal.SIGTERM)
    assert code == 75 and seconds < 20, errors
    assert "worker 1 did not rest within" in errors and gone(worker)
    assert not live.exists() and not (run.directory / "live").is_symlink()
    state = find_checkpoint(run, None).state
    assert state["nodes_touched"] == sum(w["nodes"] for w in state["workers"]) and state["workers"][1]["nodes"] > 0
    assert problems_of(run.directory) == []
    assert go(run, nodes=state["nodes_touched"] + 100_000).totals.nodes > state["nodes_touched"]


@pytest.mark.parametrize("stopped", [60.0], indirect=True)
def test_a_second_signal_ends_at_once(stopped):
    run, process, worker = stopped
    live = (run.directory / "live").readlink()
    saved = run_status(run)["checkpoint"]
    code, errors, seconds = ends(process, signal.SIGINT, signal.SIGTERM)
    assert code == 75 and seconds < 20, errors
    assert "ended at once" in errors and "are lost" in errors and gone(worker)
    assert not live.exists() and not (run.directory / "live").is_symlink()
    assert find_checkpoint(run, None).number >= saved and problems_of(run.directory) == []


def test_a_single_worker_that_is_ended_leaves_the_last_checkpoint(tmp_path):
    """Its tables hold a part of a batch: the checkpoint before is what a repeatable run goes on from."""
    run = make(tmp_path / "run", workers=1, checkpoint_nodes=2_000_000, checkpoint_seconds=1000.0)
    process = start(run)
    wait_for(lambda: trains(run, process, 1))
    os.kill(workers_of(process)[0], signal.SIGSTOP)
    time.sleep(0.5)  # a checkpoint may be under way
    number = run_status(run)["checkpoint"]
    code, errors, seconds = ends(process, signal.SIGINT)
    assert code == 1 and seconds < 20 and "is dropped" in errors
    state = find_checkpoint(run, None).state
    assert find_checkpoint(run, None).number == number
    whole = make(tmp_path / "whole", workers=0)
    go(whole, iterations=state["iterations"])
    assert_same_tables(whole, run)


def test_a_signal_before_the_workers_are_there_waits_for_nobody(tmp_path):
    run = make(tmp_path / "run", workers=2)
    process = start(run)
    wait_for(lambda: len(workers_of(process)) == 2)
    for worker in workers_of(process):
        os.kill(worker, signal.SIGSTOP)
    code, errors, seconds = ends(process, signal.SIGINT)
    assert code == 75 and seconds < 20, errors
    assert run_status(run)["nodes_touched"] == 0 and run_status(run)["checkpoint"] == 1


def test_a_dead_worker_of_two_leaves_what_both_had(tmp_path):
    run = make(tmp_path / "run", workers=2, checkpoint_seconds=1000.0, checkpoint_nodes=500_000)
    process = start(run)
    wait_for(lambda: trains(run, process))
    time.sleep(0.5)
    before = find_checkpoint(run, None).number
    os.kill(workers_of(process)[0], signal.SIGKILL)
    code, errors, seconds = ends(process)
    assert code == 1 and seconds < 20
    assert "worker 0 died (signal 9" in errors and "holds what was trained" in errors
    found = find_checkpoint(run, None)
    assert found.number > before and found.state["nodes_touched"] == sum(w["nodes"] for w in found.state["workers"])
    assert run_status(run)["state"] == "interrupted" and problems_of(run.directory) == []
    go(run, nodes=found.state["nodes_touched"] + 100_000)


@pytest.mark.parametrize(("killed", "available", "said"), [(1, 10**12, "has killed"), (0, 10**6, "1,000,000 bytes")])
def test_a_kill_for_want_of_memory_is_called_by_its_name(tmp_path, monkeypatch, killed, available, said):
    from mccfr.runs import pool as pool_module

    counts = iter([0])
    monkeypatch.setattr(pool_module.space, "killed_for_memory", lambda: next(counts, killed))
    find = pool_module.ProcessPool._find_dead

    def robbed(pool):
        if pool.totals()[0]:
            monkeypatch.setattr(pool_module.space, "available_memory_bytes", lambda: available)
            os.kill(pool._processes[0].pid, signal.SIGKILL)
        return find(pool)

    monkeypatch.setattr(pool_module.ProcessPool, "_find_dead", robbed)
    run = make(tmp_path / "run", workers=1)
    with pytest.raises(RuntimeError, match=f"signal 9.*for want of memory.*{said}|{said}.*for want of memory"):
        go(run)


# --- full disks ---


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 700 kB."""
    path = tmp_path / "disk"
    path.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", path], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("mounting needs root")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def fill(disk):
    """Take all the room there is; returns the file that has it."""
    with (disk / "ballast").open("wb") as file:
        try:
            while True:
                os.write(file.fileno(), bytes(4096))
        except OSError:
            return disk / "ballast"


@pytest.mark.parametrize("form", ["zarr", "hdf5"])
def test_a_full_disk_is_told_of_and_the_run_goes_on(tmp_path, small_disk, form):
    run = make(small_disk / "run", tables={"format": form}, workers=1, checkpoint_seconds=0.5)
    process = start(run)
    lines = []
    try:
        wait_for(lambda: trains(run, process, 1))
        ballast = fill(small_disk)
        wait_for(lambda: lines.append(process.stderr.readline()) or "no checkpoint at" in lines[-1])
        assert "No space left on device" in lines[-1] and "bytes are needed and" in lines[-1]
        assert "bytes are free; trying again in" in lines[-1] and str(small_disk) in lines[-1]
        number, nodes = run_status(run)["checkpoint"], find_checkpoint(run, None).state["nodes_touched"]
        assert not list((run.directory / "checkpoints").glob(".tmp-*")) or process.poll() is None
        ballast.unlink()
        wait_for(lambda: run_status(run)["checkpoint"] > number)
    finally:
        code, errors, _ = ends(process, signal.SIGINT)
    assert code == 75, errors
    assert find_checkpoint(run, None).state["nodes_touched"] > nodes
    assert problems_of(run.directory) == []
    assert not list((run.directory / "checkpoints").glob(".tmp-*"))
    told = (*lines, *errors.splitlines())  # on a busy machine phases have lines of their own
    assert not any(re.match(r"Traceback|  File |\w*(Error|Warning):", line) for line in told), told


def test_a_disk_that_stays_full_is_no_quiet_loss(tmp_path, small_disk):
    """The last checkpoint is tried three times; then exit 1, and what is lost and what to do is said."""
    run = make(small_disk / "run", workers=1, checkpoint_seconds=0.5)
    process = start(run)
    wait_for(lambda: trains(run, process, 1))
    fill(small_disk)
    time.sleep(1.0)
    code, errors, _ = ends(process, signal.SIGINT)
    saved = find_checkpoint(run, None)
    assert code == 1
    assert errors.count("trying again in 0 s") >= 2
    assert f"nodes trained since checkpoint {saved.number} are lost" in errors and "mccfr resume" in errors
    (small_disk / "ballast").unlink()
    assert problems_of(run.directory) == []
    assert go(run, nodes=saved.state["nodes_touched"] + 1).totals.nodes > saved.state["nodes_touched"]


def test_lines_that_the_disk_does_not_take_are_written_later(tmp_path, monkeypatch):
    """Every fsync of a journal fails for a while: nothing is lost, nothing is said twice."""
    append, refused = durable.append_lines, []

    def failing(path, lines):
        if path.name in (METRICS, EVALUATIONS, TRENDS) and len(refused) < 9:
            refused.append(path.name)
            raise OSError(28, "No space left on device", str(path))
        append(path, lines)

    monkeypatch.setattr(durable, "append_lines", failing)
    monkeypatch.setattr("mccfr.runs.meter._METRICS_SECONDS", 0.05)
    evaluation = {"at_nodes": [20_000 * k for k in range(1, 12)], "every_checkpoint": False}
    run, listener = make(tmp_path / "run", evaluation=evaluation, workers=0, checkpoint_nodes=30_000), Listener()
    go(run, listener, nodes=400_000)
    assert len(refused) == 9
    for name in {*refused}:
        assert len([text for text in listener.told if name in text and "No space left" in text]) == 1
    assert len(run.read(EVALUATIONS)) == 12
    assert [line["checkpoint"] for line in run.read(TRENDS)] == list(range(1, 1 + len(run.read(TRENDS))))
    assert problems_of(run.directory) == []


@pytest.mark.parametrize("step", ["write_file", "fsync_file", "fsync_dir", "rename", "append_line", "remove_tree"])
def test_any_step_of_a_commit_may_fail_and_nothing_that_was_said_is_lost(tmp_path, monkeypatch, step):
    """One failure at a step of the second checkpoint; the run ends with everything, and everything is sound."""
    original, commit, failed = getattr(durable, step), checkpoints.commit, []

    def failing(*arguments):
        failed.append(step)
        monkeypatch.setattr(durable, step, original)
        raise OSError(5, "Input/output error")

    def second_commit(root, number, *more, **options):
        if number == 3 and not failed:
            monkeypatch.setattr(durable, step, failing)
        return commit(root, number, *more, **options)

    monkeypatch.setattr(saving_module.checkpoints, "commit", second_commit)
    monkeypatch.setattr(saving_module, "FINAL_WAITS_SECONDS", (0.0,))
    run, listener = make(tmp_path / "run", workers=0, checkpoint_nodes=50_000, keep_checkpoints=2), Listener()
    outcome = go(run, listener, nodes=200_000)
    assert failed == [step]
    assert [text for text in listener.told if "Input/output error" in text]
    assert find_checkpoint(run, None).state["nodes_touched"] == outcome.totals.nodes
    assert problems_of(run.directory) == []
    entries = [json.loads(line) for line in run.path("journal.jsonl").read_text().splitlines()]
    numbers = [entry["checkpoint"] for entry in entries if "manifest" in entry]
    assert numbers == sorted(set(numbers)) and numbers[-1] == outcome.checkpoint
    whole = make(tmp_path / "whole", workers=0)
    go(whole, iterations=outcome.totals.iterations)
    assert_same_tables(whole, run)
