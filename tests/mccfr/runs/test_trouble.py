"""Failures during runs: workers that hang or die, signals, full disks.

Shows:

* Full disks and dead or hanging workers never end a run silently (test_trouble)
"""

import os
import re
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
import sessions
from commands import call, command
from refusals import refused
from sessions import NO_EVALUATION, assert_same_tables, go, trained, wait_for

from mccfr.cli.progress_display import PlainReporter
from mccfr.runs.directory.run_status import run_status
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.runs.session import worker_pool as pool_module

SHORT_TIMES = {
    "mccfr.runs.session.stalled_workers.SILENT_SECONDS": 1.0,
    "mccfr.runs.session.training_session.REST_SECONDS": 2.0,
    "mccfr.runs.session.checkpointing.FINAL_WAITS_SECONDS": (0.3, 0.3),
}


def make(path, evaluation=NO_EVALUATION, **settings):
    """Create a run directory of Leduc, by default without evaluations."""
    return sessions.make(path, {"discount": "linear", "seed": 5}, evaluation=evaluation, **settings)


class Resumed:
    """The result of `mccfr resume` in this process, while another thread calls `do` with this object.

    status, out, err  exit status and output of the command
    seconds           time from the last call of `stop` to the end
    """

    def __init__(self, capsys, run, do):
        self.failed, self.running, self.stopped_at = None, True, None
        thread = threading.Thread(target=self._do, args=(do,))
        thread.start()
        try:
            self.status, self.out, self.err = call(capsys, "resume", run.directory)
        finally:
            self.running, ended_at = False, time.monotonic()
            thread.join()
        if self.failed:
            raise self.failed
        self.seconds = ended_at - (self.stopped_at or ended_at)

    def _do(self, do):
        try:
            do(self)
        except BaseException as error:
            self.failed = error
            self.stop(signal.SIGINT, signal.SIGINT)

    def stop(self, *signals):
        """Send this process signals, 1.2 s apart so that each one counts as a separate request."""
        self.stopped_at = time.monotonic()
        for number in signals:
            if self.running:
                os.kill(os.getpid(), number)
                time.sleep(1.2)


@pytest.fixture
def resumed(capsys, monkeypatch):
    """Return a function that makes a `Resumed` with shorter timeouts than those of users."""

    def make_resumed(run, do, **constants):
        for path, value in {**SHORT_TIMES, **constants}.items():
            monkeypatch.setattr(path, value)
        return Resumed(capsys, run, do)

    return make_resumed


def workers_of(run):
    """Return the process IDs of the workers that this process started for a run, in order.

    A process between fork and exec is left out: if it were stopped there, the coordinator would wait for its exec.
    """
    live = (run.directory / "live").readlink() if (run.directory / "live").is_symlink() else None
    workers = []
    for child in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
        with suppress(OSError):  # the process may have ended
            if live and f"{live}/assignment.json" in Path(f"/proc/{child}/cmdline").read_text().split("\0"):
                workers.append(int(child))
    return workers


def wait_for_training(run, workers=2):
    """Wait until all workers run and a checkpoint exists; return the workers' process IDs."""
    wait_for(lambda: run_status(run)["checkpoint"] is not None and len(workers_of(run)) == workers)
    return workers_of(run)


def test_a_stopped_worker_is_reported_and_continues_after_sigcont(tmp_path, resumed):
    run = make(tmp_path / "run", workers=2, checkpoint_seconds=0.5)

    def stop_for_a_while(session):
        worker = wait_for_training(run)[1]
        os.kill(worker, signal.SIGSTOP)
        try:
            wait_for(lambda: run_status(run)["silent_workers"], 15)
            [silent] = run_status(run)["silent_workers"]
            assert silent["worker"] == 1 and "SIGSTOP" in silent["why"] and silent["seconds"] >= 1
            assert command("status", run.directory) == 0
            nodes = run_status(run)["nodes_touched"]
        finally:
            os.kill(worker, signal.SIGCONT)
        wait_for(lambda: not run_status(run)["silent_workers"] and run_status(run)["nodes_touched"] > nodes, 15)
        session.stop(signal.SIGINT)

    ended = resumed(run, stop_for_a_while)
    assert ended.status == 75 and "silent       worker 1 for" in ended.out
    assert "worker 1 has given no sign for" in ended.err and "worker 1 makes progress again" in ended.err
    assert run_status(run)["silent_workers"] == []


def stop_with_a_stopped_worker(run, resumed, *signals, **constants):
    """Send SIGSTOP to worker 1, then stop the session; return (messages, checkpoint before)."""
    worker, live, saved = [], [], []

    def stop_one(session):
        worker.append(wait_for_training(run)[1])
        os.kill(worker[0], signal.SIGSTOP)
        live.append((run.directory / "live").readlink())
        saved.append(run_status(run)["checkpoint"])
        session.stop(*signals)

    ended = resumed(run, stop_one, **constants)
    assert ended.status == 75 and ended.seconds < 20, ended.err
    assert not Path(f"/proc/{worker[0]}").exists()
    assert not live[0].exists() and not (run.directory / "live").is_symlink()
    assert problems_of(run.directory) == []
    return ended.err, saved[0]


def test_one_signal_ends_a_run_with_a_stopped_worker_in_bounded_time(tmp_path, resumed):
    """The session kills the worker; the checkpoint has the published node counts of both workers."""
    run = make(tmp_path / "run", workers=2, checkpoint_seconds=0.5)
    assert "worker 1 did not rest within" in stop_with_a_stopped_worker(run, resumed, signal.SIGTERM)[0]
    state = find_checkpoint(run, None).state
    assert state["nodes_touched"] == sum(w["nodes"] for w in state["workers"]) and state["workers"][1]["nodes"] > 0
    assert go(run, workers=0, nodes=state["nodes_touched"] + 100_000).totals.nodes > state["nodes_touched"]


def test_a_second_signal_ends_at_once(tmp_path, resumed):
    run = make(tmp_path / "run", workers=2, checkpoint_seconds=0.5)
    long = {"mccfr.runs.session.training_session.REST_SECONDS": 60.0}
    errors, saved = stop_with_a_stopped_worker(run, resumed, signal.SIGINT, signal.SIGTERM, **long)
    assert "ended at once" in errors and "are lost" in errors
    assert find_checkpoint(run, None).number >= saved


def test_a_single_worker_that_is_ended_leaves_the_last_checkpoint(tmp_path, resumed):
    """The tables contain a part of a batch, so the run continues from the last checkpoint."""
    run = make(tmp_path / "run", workers=1, checkpoint_nodes=2_000_000, checkpoint_seconds=1000.0)
    numbers = []

    def stop_it(session):
        os.kill(wait_for_training(run, 1)[0], signal.SIGSTOP)
        time.sleep(0.5)  # a checkpoint may be in progress
        numbers.append(run_status(run)["checkpoint"])
        session.stop(signal.SIGINT)

    ended = resumed(run, stop_it)
    assert ended.status == 1 and ended.seconds < 20 and "is dropped" in ended.err
    state = find_checkpoint(run, None).state
    assert [find_checkpoint(run, None).number] == numbers
    whole = trained(make(tmp_path / "whole", workers=0), iterations=state["iterations"])
    assert_same_tables(whole, run)


def test_a_signal_before_the_workers_have_started_ends_at_once(tmp_path, resumed):
    run = make(tmp_path / "run", workers=2)

    def stop_all(session):
        wait_for(lambda: len(workers_of(run)) == 2)
        for worker in workers_of(run):
            os.kill(worker, signal.SIGSTOP)
        session.stop(signal.SIGINT)

    ended = resumed(run, stop_all)
    assert ended.status == 75 and ended.seconds < 20, ended.err
    assert run_status(run)["nodes_touched"] == 0 and run_status(run)["checkpoint"] is None


def test_a_signal_while_a_worker_is_started_leaves_no_process(tmp_path, resumed, monkeypatch):
    """Another thread receives the signal, and the handler runs before the pool stores the new process."""
    run, started, in_start, open_process = make(tmp_path / "run", workers=2), [], threading.Event(), subprocess.Popen

    def slow_start(*command, **how):
        started.append(open_process(*command, **how))
        in_start.set()
        time.sleep(0.5)
        return started[-1]

    def stop_in_start(session):
        in_start.wait(60)
        session.stop(signal.SIGINT)

    monkeypatch.setattr("mccfr.runs.session.worker_pool.subprocess.Popen", slow_start)
    assert resumed(run, stop_in_start).status == 75
    left = [process for process in started if process.returncode is None]
    for process in left:
        process.kill()
        process.wait()
    assert started and not left


def test_a_dead_worker_of_two_leaves_a_checkpoint_of_both(tmp_path, resumed):
    run = make(tmp_path / "run", workers=2, checkpoint_seconds=1000.0, checkpoint_nodes=500_000)
    numbers = []

    def kill_one(session):
        worker = wait_for_training(run)[0]
        numbers.append(find_checkpoint(run, None).number)
        session.stop()
        os.kill(worker, signal.SIGKILL)

    ended = resumed(run, kill_one)
    assert ended.status == 1 and ended.seconds < 20
    assert "worker 0 died (signal 9" in ended.err and "holds what was trained" in ended.err
    found = find_checkpoint(run, None)
    assert found.number > numbers[0] and found.state["nodes_touched"] == sum(w["nodes"] for w in found.state["workers"])
    assert run_status(run)["state"] == "failed" and problems_of(run.directory) == []
    go(run, workers=0, nodes=found.state["nodes_touched"] + 100_000)


@pytest.mark.parametrize(("killed", "available", "words"), [(1, 10**12, "has killed"), (0, 10**6, "1,000,000 bytes")])
def test_a_kill_by_the_out_of_memory_killer_is_named(tmp_path, monkeypatch, killed, available, words):
    counts = iter([0])
    monkeypatch.setattr(pool_module.free_space, "killed_for_memory", lambda: next(counts, killed))
    find = pool_module.ProcessPool._find_dead

    def kill_and_find(pool):
        if pool.totals()[0]:
            monkeypatch.setattr(pool_module.free_space, "available_memory_bytes", lambda: available)
            os.kill(pool._processes[0].pid, signal.SIGKILL)
        return find(pool)

    monkeypatch.setattr(pool_module.ProcessPool, "_find_dead", kill_and_find)
    run = make(tmp_path / "run", workers=1)
    refused(f"signal 9.*for want of memory.*{words}|{words}.*for want of memory", go, run, error=RuntimeError)


# --- full disks ---


@pytest.fixture
def small_disk(tmp_path):
    """Mount a file system of 700 kB, and return its path."""
    path = tmp_path / "disk"
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", path], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("mounting needs root")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def fill(disk):
    """Fill a disk with a file, and return the file's path."""
    with (disk / "ballast").open("wb") as file, suppress(OSError):
        while True:
            os.write(file.fileno(), bytes(4096))
    return disk / "ballast"


@pytest.mark.parametrize("form", ["zarr", "hdf5"])
def test_a_full_disk_is_reported_and_the_run_continues(small_disk, resumed, monkeypatch, form):
    run = make(small_disk / "run", tables={"format": form}, workers=1, checkpoint_seconds=0.5)
    texts, nodes, message = [], [], PlainReporter.message
    monkeypatch.setattr(PlainReporter, "message", lambda self, text: (texts.append(text), message(self, text)))

    def fill_for_a_while(session):
        wait_for_training(run, 1)
        ballast = fill(small_disk)
        wait_for(lambda: any("no checkpoint at" in text for text in texts))
        text = next(text for text in texts if "no checkpoint at" in text)
        assert "No space left on device" in text and "bytes are needed and" in text
        assert "bytes are free; trying again in" in text and str(small_disk) in text
        number = run_status(run)["checkpoint"]
        nodes.append(find_checkpoint(run, None).state["nodes_touched"])
        ballast.unlink()
        wait_for(lambda: run_status(run)["checkpoint"] > number)
        session.stop(signal.SIGINT)

    ended = resumed(run, fill_for_a_while)
    assert ended.status == 75, ended.err
    assert find_checkpoint(run, None).state["nodes_touched"] > nodes[0]
    assert problems_of(run.directory) == []
    assert not list((run.directory / "checkpoints").glob(".tmp-*"))
    lines = ended.err.splitlines()  # on a busy machine there are lines for phases too
    assert not any(re.match(r"Traceback|  File |\w*(Error|Warning):", line) for line in lines), lines


def test_a_disk_that_stays_full_ends_the_session_with_a_message(small_disk, resumed):
    """After three attempts the status is 1; the message names the loss and the next command."""
    run = make(small_disk / "run", workers=1, checkpoint_seconds=0.5)

    def fill_and_stop(session):
        wait_for_training(run, 1)
        fill(small_disk)
        time.sleep(1.0)
        session.stop(signal.SIGINT)

    ended = resumed(run, fill_and_stop)
    saved = find_checkpoint(run, None)
    assert ended.status == 1
    assert ended.err.count("trying again in 0 s") >= 2
    assert f"nodes trained since checkpoint {saved.number} are lost" in ended.err and "mccfr resume" in ended.err
    (small_disk / "ballast").unlink()
    assert problems_of(run.directory) == []
    assert go(run, workers=0, nodes=saved.state["nodes_touched"] + 1).totals.nodes > saved.state["nodes_touched"]
