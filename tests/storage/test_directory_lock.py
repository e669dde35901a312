"""Directory locks: readers keep the version that they opened, or read its replacement."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time

import pytest
from failing import fails
from refusals import refused
from small_checkpoints import commit

from storage import directory_lock, durable
from storage.atomic_outputs import output
from storage.checkpoint import list_checkpoints
from storage.directory_lock import ReadLock, drop_unread, read_directory, read_unchanged, unread
from storage.locked_checkpoints import lock_each, open_locked

READER = """
import os, sys, time
from pathlib import Path
from storage.locked_checkpoints import open_locked
found = open_locked(Path(sys.argv[1]))
child = os.fork()  # an orphan that outlives the reader
if child:
    print(child, flush=True)
time.sleep(60)
"""


def write(path, text):
    """Write a directory of two files with the same text, in place of the directory before."""
    with output(path, lambda _: True) as temporary:
        durable.make_dir(temporary)
        for name in ("one", "other"):
            durable.write_file(temporary / name, text.encode())


@pytest.fixture
def no_locks(monkeypatch):
    """Make `flock` fail, as on file systems without locks."""
    monkeypatch.setattr(fcntl, "flock", fails(errno.ENOLCK))


def test_retention_leaves_a_checkpoint_that_is_read_and_removes_it_later(tmp_path):
    commit(tmp_path, 1, keep=1)
    found, again = open_locked(tmp_path), open_locked(tmp_path, 1)
    for number in (2, 3):
        commit(tmp_path, number, keep=1)
    assert list_checkpoints(tmp_path) == [1, 3]
    assert found.read("cells").tolist() == [1] * 6
    del found
    commit(tmp_path, 4, keep=1)
    assert list_checkpoints(tmp_path) == [1, 4]
    again.lock.release()
    commit(tmp_path, 5, keep=1)
    assert list_checkpoints(tmp_path) == [5]
    assert open_locked(tmp_path, 4) is None
    assert open_locked(tmp_path / "none") is None


def test_a_killed_reader_and_its_children_hold_no_lock(tmp_path):
    commit(tmp_path, 1, keep=1)
    reader = subprocess.Popen([sys.executable, "-c", READER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    child = int(reader.stdout.readline())
    try:
        drop_unread([tmp_path / "000001"])
        assert list_checkpoints(tmp_path) == [1]
        reader.kill()
        reader.wait()
        with unread(tmp_path / "000001", 10) as free:
            assert free
        drop_unread([tmp_path / "000001"])
        assert list(tmp_path.iterdir()) == []
    finally:
        os.kill(child, signal.SIGKILL)
        reader.stdout.close()


def test_a_read_lock_detects_that_its_directory_was_moved(tmp_path, monkeypatch):
    write(tmp_path / "all", "one")
    with unread(tmp_path / "all"):
        monkeypatch.setattr(directory_lock, "_WAIT_SECONDS", 0.05)
        began = time.monotonic()
        with ReadLock(tmp_path / "all") as lock:
            assert not lock.is_held and lock.is_in_place()
        assert time.monotonic() - began < 2
    with ReadLock(tmp_path / "all") as lock:
        assert lock.is_held
        (tmp_path / "all").rename(tmp_path / "moved")
        assert not lock.is_in_place()
        assert (lock.inside / "one").read_text() == "one"
    refused("all", ReadLock, tmp_path / "all", error=FileNotFoundError)


def test_all_files_are_of_the_version_that_was_opened(tmp_path):
    path, versions = tmp_path / "all", iter("abcdefg")
    write(path, "start")

    def read(inside):
        first = (inside / "one").read_text()
        write(path, next(versions))
        return first, (inside / "other").read_text()

    assert read_directory(path, read) == ("start", "start")
    left = [entry.name for entry in tmp_path.iterdir() if entry != path]
    assert len(left) == 1 and left[0].endswith(".old"), "the version that was read stays"
    assert read_directory(path, read) == ("a", "a")
    assert len(list(tmp_path.iterdir())) == 2, "each output removes versions without a reader"
    write(path, "last")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", [OSError, ValueError])
def test_errors_inside_a_locked_directory_name_its_path(tmp_path, kind):
    write(tmp_path / "all", "one")

    def read(inside):
        raise kind(f"{inside}/one is damaged")

    refused(f"{tmp_path}/all/one is damaged", read_directory, tmp_path / "all", read, error=kind)
    for where, name in (("all", "none"), ("nowhere", "one")):
        with pytest.raises(FileNotFoundError) as caught:
            read_directory(tmp_path / where, lambda inside, name=name: (inside / name).read_text())
        assert caught.value.filename == f"{tmp_path}/{where}/{name}"


def reader_with_replacements(path):
    """Write a directory; return a function that reads it in two steps.

    The first two calls replace the directory between the steps.
    """
    versions = iter("ab")
    write(path, "start")

    def read(inside=path):
        first = (inside / "one").read_text()
        for text in versions:
            write(path, text)
            break
        return first, (inside / "other").read_text()

    return read


def test_a_directory_replaced_during_a_read_in_steps_is_read_again(tmp_path):
    path = tmp_path / "all"
    assert read_unchanged(path, reader_with_replacements(path)) == ("b", "b")
    assert read_unchanged(tmp_path / "none", lambda: 3) == 3


def test_without_locks_the_replacing_version_is_read(tmp_path, no_locks):
    path = tmp_path / "all"
    assert read_directory(path, reader_with_replacements(path)) == ("b", "b")
    assert list(tmp_path.iterdir()) == [path]


def test_without_locks_the_checkpoint_committed_meanwhile_is_opened(tmp_path, no_locks, monkeypatch):
    commit(tmp_path, 1, keep=1)
    opened = directory_lock.ReadLock._lock

    def then_commit(lock):
        found = opened(lock)
        if list_checkpoints(tmp_path) == [1]:
            commit(tmp_path, 2, keep=1)
        return found

    monkeypatch.setattr(ReadLock, "_lock", then_commit)
    found = open_locked(tmp_path)
    assert found.number == 2 and not found.lock.is_held
    assert list_checkpoints(tmp_path) == [2]


def test_checkpoints_are_locked_one_after_another_and_listed_again_if_all_are_gone(tmp_path, monkeypatch):
    for number in (1, 2, 3):
        commit(tmp_path, number, keep=3)
    seen = []
    for lock in lock_each(tmp_path):
        seen.append(int(lock.path.name))
        if seen == [1]:
            commit(tmp_path, 4, keep=2)
            assert list_checkpoints(tmp_path) == [1, 3, 4]
    assert seen == [1, 3]
    listed = list_checkpoints
    monkeypatch.setattr("storage.locked_checkpoints.list_checkpoints", lambda root: calls.pop() or listed(root))
    calls = [[], [2]]  # the first list has only checkpoint 2, which has been removed
    assert [int(lock.path.name) for lock in lock_each(tmp_path)] == [1, 3, 4]
