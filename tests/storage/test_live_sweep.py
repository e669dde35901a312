"""Live tables of killed processes, and their removal.

Shows:

* Killed processes leave nothing permanent in shared memory (test_killed_at_any_step_nothing_is_left_for_good,
  test_a_job_has_no_names_in_shared_memory_that_a_kill_could_leave)
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
live._SHARED_MEMORY = place  # a sweep of the machine's finds what other tests have killed
tempfile.tempdir = str(place)
for _ in range(rounds):
    removed = live.sweep_live(place)
    assert removed == [], removed
    with live.create_live([ArraySpec("a", (9,), "int32", ("x",))], format="hdf5", live_dir=place, link=link) as tables:
        assert live.sweep_live(place) == []
        assert tables.tables.exists() and link.exists()
"""


def hold(place, link):
    """(process that has live tables, their directory)."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(place), str(link)], text=True, **pipes)
    return process, Path(process.stdout.readline().strip())


def end(process, how):
    process.send_signal(how)
    process.communicate()


def killed(place):
    """The directory of live tables whose process has been killed."""
    process, directory = hold(place, place / "live")
    end(process, signal.SIGKILL)
    return directory


def make_old(directory):
    """Set the times of a directory back by an hour."""
    os.utime(directory, (time.time() - 3600,) * 2)


@pytest.fixture(autouse=True)
def places_of_our_own(tmp_path_factory, monkeypatch):
    """Provide places for sweeps in which no other test's runs end."""
    monkeypatch.setattr(live_tables, "_SHARED_MEMORY", tmp_path_factory.mktemp("memory"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


@pytest.mark.parametrize("layout", ["zarr", "hdf5"])
def test_killed_at_any_step_nothing_is_left_for_good(tmp_path, layout):
    """Remove all large files at the next start, and the others once they are old enough."""
    steps = int(subprocess.check_output([sys.executable, STEPS, layout, tmp_path]))
    assert steps > 12
    kinds = set()
    for step in range(1, steps + 1):
        place, link = tmp_path / str(step) / "place", tmp_path / str(step) / "run/live"
        left = [entry for entry in place.rglob("*") if entry.is_file()]
        kinds.add((len(left) > 0, os.path.lexists(link)))
        copied = tmp_path / str(step) / "copied"
        shutil.copytree(place, copied, symlinks=True, copy_function=os.link)
        live_tables.remove_stale_live(link)  # the run goes on
        live_tables.sweep_live(place)
        assert not os.path.lexists(link)
        live_tables.sweep_live(copied)  # or its folder was deleted
        for parent in (place, copied):
            for directory in parent.iterdir():
                assert sum(entry.stat().st_size for entry in directory.iterdir()) < 100, (step, directory)
                assert stat.S_IMODE(directory.stat().st_mode) == 0o700
                make_old(directory)
            live_tables.sweep_live(parent)
            assert list(parent.iterdir()) == [], step
    assert kinds == {(False, False), (True, False), (True, True), (False, True)}


def test_tables_of_a_killed_run_whose_folder_is_gone_are_swept_from_shared_memory(tmp_path, monkeypatch):
    """A run that another test has begun may be the one that sweeps them: then once more."""
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
    pytest.fail("nothing was swept here")


def test_tables_of_a_living_process_are_never_swept(tmp_path):
    process, directory = hold(tmp_path, tmp_path / "live")
    make_old(directory)
    assert live_tables.sweep_live(tmp_path) == []
    marker = json.loads((directory / ".mccfr-live").read_text())
    # In another container the same process has another id, or its id is another process's: the lock counts.
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


def test_when_a_process_began_does_not_change_and_one_that_has_ended_never_did():
    """Read a process's start time while it works, and after its end as a zombie."""
    began, held = stale_live_tables._start_ticks(os.getpid()), bytearray(64 << 20)
    assert began == stale_live_tables._start_ticks(os.getpid()) and held
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        assert stale_live_tables._start_ticks(process.pid) > began
        process.kill()
        wait_for(lambda: stale_live_tables._start_ticks(process.pid) is None)
    assert stale_live_tables._start_ticks(process.pid) is None


def test_a_directory_without_a_lock_goes_by_its_process(tmp_path):
    """As versions made them that did not lock."""
    process, directory = hold(tmp_path, tmp_path / "live")
    lock = directory / ".lock"
    lock.unlink()
    assert live_tables.sweep_live(tmp_path) == [] and not lock.exists()
    end(process, signal.SIGKILL)
    assert live_tables.sweep_live(tmp_path) == [directory]


def test_a_directory_that_is_being_made_is_left_alone_until_it_is_old(tmp_path):
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
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)  # all this is another user's
        assert live_tables.sweep_live(tmp_path) == []
    assert sorted(tmp_path.rglob("*")) == before
    assert live_tables.sweep_live(tmp_path) == [directory]
    assert set(before) - set(tmp_path.rglob("*")) == {p for p in before if p == directory or directory in p.parents}


def test_runs_that_start_at_once_do_not_sweep_each_other(tmp_path):
    """Nor does one see another's directory as left behind, at whatever step it is."""
    place = tmp_path / "place"
    place.mkdir()
    command = [sys.executable, "-c", STARTER, str(place)]
    links = [str(tmp_path / f"live{n}") for n in range(3)]
    starters = [subprocess.Popen([*command, link, "60"], stderr=subprocess.PIPE) for link in links]
    errors = [starter.communicate(timeout=120)[1].decode() for starter in starters]
    assert [starter.returncode for starter in starters] == [0, 0, 0], errors
    assert list(place.iterdir()) == []


def test_two_sweeps_at_once_remove_everything_once(tmp_path):
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
