"""Removal of the live tables of killed processes.

Shows:

* Killed processes leave nothing permanent in shared memory
  (test_live_tables_of_a_process_killed_at_any_step_are_removed,
  test_the_shared_memory_file_of_mpi_is_unlinked_during_the_job)
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from sessions import wait_for

from storage import live_tables, stale_live_tables
from storage.run_lock import RunLock

STEPS = Path(__file__).with_name("killed_steps.py")

HOLDER = """
import os, sys, time
from pathlib import Path
from storage import live_tables as live
from storage.schema import ArraySpec
place, link = map(Path, sys.argv[1:])
tables = live.create_live([ArraySpec("a", (9,), "int32", ("x",))], format="hdf5", live_dir=place, link=link)
print(tables.directory, flush=True)
sys.stdin.read()
"""

STARTER = """
import sys, tempfile
from pathlib import Path
from storage import live_tables as live
from storage.schema import ArraySpec
place, link, rounds = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
live._SHARED_MEMORY = place  # the machine's own may hold tables of other tests' killed processes
tempfile.tempdir = str(place)
for _ in range(rounds):
    removed = live.sweep_live(place)
    assert removed == [], removed
    with live.create_live([ArraySpec("a", (9,), "int32", ("x",))], format="hdf5", live_dir=place, link=link) as tables:
        assert live.sweep_live(place) == []
        assert tables.tables.exists() and link.exists()
"""


def hold(place, link):
    """Start a process that creates live tables; return (process, directory of the tables)."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(place), str(link)], text=True, **pipes)
    return process, Path(process.stdout.readline().strip())


def end(process, how):
    process.send_signal(how)
    process.communicate()


def killed(place):
    """Return the directory of live tables whose process has been killed."""
    process, directory = hold(place, place / "live")
    end(process, signal.SIGKILL)
    return directory


def make_old(directory):
    """Set the times of a directory back by an hour."""
    os.utime(directory, (time.time() - 3600,) * 2)


@pytest.fixture(autouse=True)
def own_sweep_folders(tmp_path_factory, monkeypatch):
    """Give each test its own folders to sweep, without tables of other tests."""
    monkeypatch.setattr(live_tables, "_SHARED_MEMORY", tmp_path_factory.mktemp("memory"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


@pytest.mark.parametrize("layout", ["zarr", "hdf5"])
def test_live_tables_of_a_process_killed_at_any_step_are_removed(tmp_path, layout):
    """The next start removes all large files, and small ones once they are old enough."""
    steps = int(subprocess.check_output([sys.executable, STEPS, layout, tmp_path]))
    assert steps > 12
    kinds = set()
    for step in range(1, steps + 1):
        place, link = tmp_path / str(step) / "place", tmp_path / str(step) / "run/live"
        left = [entry for entry in place.rglob("*") if entry.is_file()]
        kinds.add((len(left) > 0, os.path.lexists(link)))
        copied = tmp_path / str(step) / "copied"
        shutil.copytree(place, copied, symlinks=True, copy_function=os.link)
        live_tables.remove_stale_live(link)  # the run is resumed
        live_tables.sweep_live(place)
        assert not os.path.lexists(link)
        live_tables.sweep_live(copied)  # the run's folder was deleted instead
        for parent in (place, copied):
            for directory in parent.iterdir():
                assert sum(entry.stat().st_size for entry in directory.iterdir()) < 100, (step, directory)
                assert stat.S_IMODE(directory.stat().st_mode) == 0o700
                make_old(directory)
            live_tables.sweep_live(parent)
            assert list(parent.iterdir()) == [], step
    assert kinds == {(False, False), (True, False), (True, True), (False, True)}


def test_tables_of_a_killed_run_whose_folder_is_gone_are_swept_from_shared_memory(tmp_path, monkeypatch):
    """A run of another test may sweep them first; then the test tries again."""
    monkeypatch.setattr(live_tables, "_SHARED_MEMORY", Path("/dev/shm"))
    for _ in range(5):
        run = tmp_path / "run"
        run.mkdir()
        process, directory = hold("/dev/shm", run / "live")
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert directory not in live_tables.sweep_live()
        assert (directory / "tables.h5").exists()
        end(process, signal.SIGKILL)
        shutil.rmtree(run)
        swept = live_tables.sweep_live()
        assert not directory.exists()
        if directory in swept:
            return
    pytest.fail("other processes swept all directories")


def test_tables_of_a_living_process_are_never_swept(tmp_path):
    process, directory = hold(tmp_path, tmp_path / "live")
    make_old(directory)
    assert live_tables.sweep_live(tmp_path) == []
    marker = json.loads((directory / ".mccfr-live").read_text())
    # In another container the process has another id, or its id is another process's. The lock decides.
    for pid, ticks in ((2**22, 5), (os.getpid(), 5), (os.getpid(), marker["start_ticks"])):
        (directory / ".mccfr-live").write_text(json.dumps({**marker, "pid": pid, "start_ticks": ticks}))
        make_old(directory)
        assert live_tables.sweep_live(tmp_path) == []
        assert live_tables.remove_stale_live(tmp_path / "live") is None
    process.send_signal(signal.SIGSTOP)
    assert live_tables.sweep_live(tmp_path) == []
    end(process, signal.SIGKILL)
    assert live_tables.sweep_live(tmp_path) == [directory]


def test_a_reused_process_id_does_not_keep_tables(tmp_path):
    directory = killed(tmp_path)
    marker = json.loads((directory / ".mccfr-live").read_text())
    (directory / ".mccfr-live").write_text(json.dumps({**marker, "pid": os.getpid()}))  # started at another time
    assert live_tables.sweep_live(tmp_path) == [directory]


def test_the_start_time_of_a_process_is_constant_and_none_after_its_end():
    """Read the start time of a process while it works, as a zombie, and after its end."""
    began, held = stale_live_tables._start_ticks(os.getpid()), bytearray(64 << 20)
    assert began == stale_live_tables._start_ticks(os.getpid()) and held
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        assert stale_live_tables._start_ticks(process.pid) > began
        process.kill()
        wait_for(lambda: stale_live_tables._start_ticks(process.pid) is None)
    assert stale_live_tables._start_ticks(process.pid) is None


def test_a_directory_without_a_lock_is_judged_by_its_process(tmp_path):
    """Earlier versions created such directories."""
    process, directory = hold(tmp_path, tmp_path / "live")
    lock = directory / ".lock"
    lock.unlink()
    assert live_tables.sweep_live(tmp_path) == [] and not lock.exists()
    end(process, signal.SIGKILL)
    assert live_tables.sweep_live(tmp_path) == [directory]


def test_an_incomplete_directory_is_not_swept_until_it_is_old(tmp_path):
    directory = stale_live_tables.new_directory(tmp_path)
    directory.mkdir()
    for marker in (None, "", '{"pid": 12'):
        if marker is not None:
            (directory / ".mccfr-live").write_text(marker)
        assert live_tables.sweep_live(tmp_path) == []
    make_old(directory)
    with RunLock(directory / ".lock"):
        make_old(directory)
        assert live_tables.sweep_live(tmp_path) == []
    make_old(directory)
    assert live_tables.sweep_live(tmp_path) == [directory]


def test_only_live_tables_of_this_user_are_swept(tmp_path, monkeypatch):
    directory = killed(tmp_path)
    for name in ("mccfr-foreign", "mccfr-12-0123456", "other-12-01234567"):
        shutil.copytree(directory, tmp_path / name)
    unmarked = tmp_path / "mccfr-12-01234567"
    unmarked.mkdir()
    (unmarked / "file").write_text("kept")
    (tmp_path / "mccfr-13-01234567").write_text("a file")
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(directory, elsewhere / directory.name)
    (tmp_path / "mccfr-14-01234567").symlink_to(elsewhere / directory.name)
    before = sorted(tmp_path.rglob("*"))
    for entry in tmp_path.iterdir():
        if not entry.is_symlink():
            make_old(entry)
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)  # as if all files belonged to another user
        assert live_tables.sweep_live(tmp_path) == []
    assert sorted(tmp_path.rglob("*")) == before
    assert live_tables.sweep_live(tmp_path) == [directory]
    assert set(before) - set(tmp_path.rglob("*")) == {p for p in before if p == directory or directory in p.parents}


def test_runs_that_start_at_once_do_not_sweep_each_other(tmp_path):
    """No run takes another run's directory for abandoned, at any step of its creation or removal."""
    place = tmp_path / "place"
    place.mkdir()
    command = [sys.executable, "-c", STARTER, str(place)]
    links = [str(tmp_path / f"live{n}") for n in range(3)]
    starters = [subprocess.Popen([*command, link, "60"], stderr=subprocess.PIPE) for link in links]
    errors = [starter.communicate(timeout=120)[1].decode() for starter in starters]
    assert [starter.returncode for starter in starters] == [0, 0, 0], errors
    assert list(place.iterdir()) == []


def test_concurrent_sweeps_remove_all_abandoned_directories(tmp_path):
    directory = killed(tmp_path)
    abandoned = [directory, *(tmp_path / f"mccfr-{number}-01234567" for number in (1, 2))]
    for copy in abandoned[1:]:
        shutil.copytree(directory, copy)
    program = "import sys; from storage import live_tables as live; print(len(live.sweep_live(sys.argv[1])))"
    command = [sys.executable, "-c", program, str(tmp_path)]
    sweepers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    removed = [int(sweeper.communicate()[0]) for sweeper in sweepers]
    assert [sweeper.returncode for sweeper in sweepers] == [0, 0, 0]
    assert sum(removed) >= 1 and not any(directory.exists() for directory in abandoned)
