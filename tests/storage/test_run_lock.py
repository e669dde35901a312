"""Run lock: exclusive, freed by the holder's death, with a note of the present work."""

import errno
import os
import signal
import socket
import subprocess
import sys

import pytest
from failing import fails
from refusals import refused

from storage import run_lock
from storage.run_lock import RunLock, holder_of, lock_is_held, noted

HOLDER = """
import os, sys, time
from pathlib import Path
from storage.run_lock import RunLock, lock_is_held
with RunLock(Path(sys.argv[1])):
    child = os.fork()  # an orphan that outlives the holder
    if child:
        print(child, flush=True)
    time.sleep(60)
"""


def test_a_second_holder_is_refused_with_the_process_id_of_the_first(tmp_path):
    path = tmp_path / "run.lock"
    with RunLock(path), pytest.raises(BlockingIOError, match=f"locked by process {os.getpid()}"):
        RunLock(path).acquire()
    with RunLock(path) as again, pytest.raises(BlockingIOError, match="already"):
        again.acquire()
    assert path.read_text() == ""


def test_a_file_system_without_locks_is_refused_with_advice(tmp_path, monkeypatch):
    monkeypatch.setattr(run_lock.fcntl, "flock", fails(errno.ENOLCK))
    message = refused("without file locks (flock)", RunLock(tmp_path / "run.lock").acquire, error=OSError)
    assert "choose a directory on another disk" in message
    assert not lock_is_held(tmp_path / "run.lock")


def test_a_lock_detects_that_its_file_was_moved_or_replaced(tmp_path):
    (tmp_path / "one").mkdir()
    lock = RunLock(tmp_path / "one" / "run.lock")
    assert not lock.is_in_place()
    with lock:
        assert lock.is_in_place()
        (tmp_path / "one").rename(tmp_path / "other")
        assert not lock.is_in_place()
        (tmp_path / "one").mkdir()
        (tmp_path / "one" / "run.lock").touch()
        assert not lock.is_in_place()


def test_the_lock_file_holds_a_note_of_the_present_work_until_release(tmp_path):
    path = tmp_path / "run.lock"
    assert noted(path) is None
    with RunLock(path) as held:
        assert noted(path) is None
        held.note("evaluating board 120 of 1,000")
        held.note("writing\ncheckpoint 3")  # shorter, and in two lines
        assert noted(path) == "writing checkpoint 3"
        refused(f"locked by process {os.getpid()}: wait", RunLock(path).acquire, error=BlockingIOError)
        held.note("x" * 10_000)
        assert path.stat().st_size == 4096
    assert noted(path) is None
    held.note("too late")
    assert path.read_text() == ""


def test_the_lock_is_free_after_kill_9_even_with_a_forked_child_left(tmp_path):
    path = tmp_path / "run.lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    child = int(holder.stdout.readline())
    try:
        refused(f"locked by process {holder.pid}", RunLock(path).acquire, error=BlockingIOError)
        holder.kill()
        holder.wait()
        assert path.read_text().split()[0] == str(holder.pid)
        os.kill(child, 0)  # the child is still there
        with RunLock(path):
            assert holder_of(path) == (os.getpid(), socket.gethostname())
    finally:
        os.kill(child, signal.SIGKILL)
        holder.kill()
        holder.stdout.close()
        holder.wait()


def test_lock_is_held_does_not_change_the_lock_file(tmp_path):
    path = tmp_path / "run.lock"
    assert not lock_is_held(path) and not path.exists()
    with RunLock(path):
        assert lock_is_held(path)
        before = path.read_bytes()
        assert lock_is_held(path)
        assert path.read_bytes() == before
    assert not lock_is_held(path)
