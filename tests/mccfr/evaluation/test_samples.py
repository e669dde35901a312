"""Numbered samples of an evaluation: same results for any workers, saved, resumed, refused.

Shows:

* A signal while workers start leaves no worker behind (test_a_signal_while_workers_are_started_leaves_none_behind)
* A signal to all processes of an evaluation loses no sample
  (test_a_signal_for_all_processes_is_for_the_first_one_to_heed)
* After a kill, another process can continue from the saved samples
  (test_a_file_is_free_when_its_process_is_gone_though_workers_still_play)
"""

import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from places import ROOT
from refusals import refused

from mccfr.common.signals import SIGNALS
from mccfr.evaluation.samples import Effort, SampledWork, StoppedError, play_units, units_in
from storage import durable

WHAT = {"method": "toy", "seed": 3}


class Toy(SampledWork):
    """Two numbers a unit, and a note of who has been played."""

    fields = 2

    def __init__(self, seconds=0.0, ends_at=None, act=None):
        self.played, self.seconds, self.ends_at, self.act = [], seconds, ends_at, act

    def play(self, unit):
        if unit == self.ends_at:
            self.act()
        self.played.append(unit)
        time.sleep(self.seconds)
        return np.array([np.sin(unit), os.getpid() * 0 + unit**2])


EXPECTED = np.array([[np.sin(unit), unit**2] for unit in range(40)])


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_do_not_depend_on_who_plays(workers):
    seen = []
    found = play_units(Toy(), 40, Effort(workers), what=WHAT, progress=lambda done, total: seen.append((done, total)))
    assert np.array_equal(found, EXPECTED)
    assert seen == [(done, 40) for done in range(1, 41)]


def test_others_play_where_there_are_workers():
    toy = Toy()
    play_units(toy, 10, Effort(2), what=WHAT)
    assert toy.played == [0], "all but the first are played in other processes"


def test_kept_units_are_not_played_again(tmp_path):
    effort = Effort(keep=tmp_path / "units")
    play_units(Toy(), 15, effort, what=WHAT)
    toy = Toy()
    assert np.array_equal(play_units(toy, 40, effort, what=WHAT), EXPECTED)
    assert toy.played == list(range(15, 40))


def test_a_full_disk_names_the_file_and_what_was_kept_is_sound(tmp_path):
    """The file takes the head, two units and a part of the third one."""
    path = tmp_path / "units"
    play_units(Toy(), 2, Effort(keep=path), what=WHAT)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 5, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: .*units") as told:
            play_units(Toy(), 9, Effort(keep=path), what=WHAT)
        assert told.value.filename == str(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    toy = Toy()
    assert np.array_equal(play_units(toy, 9, Effort(keep=path), what=WHAT), EXPECTED[:9])
    assert toy.played == list(range(2, 9))


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_stops_it_and_what_was_finished_stays(tmp_path, number, workers):
    effort = Effort(workers, keep=tmp_path / "units")
    before = signal.getsignal(number)
    threading.Timer(0.4, os.kill, (os.getpid(), number)).start()
    with pytest.raises(StoppedError, match=rf"stopped by signal {int(number)} after \d+ of 1,000 units") as caught:
        play_units(Toy(0.01), 1000, effort, what=WHAT)
    assert caught.value.exit_status == 128 + number
    assert signal.getsignal(number) is before
    toy = Toy()
    assert np.array_equal(play_units(toy, 40, effort, what=WHAT), EXPECTED)
    assert 0 not in toy.played


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_for_all_processes_is_for_the_first_one_to_heed(tmp_path, number):
    """A worker that dies of it while it takes work from the queue leaves the queue locked for the others."""
    toy = Toy(ends_at=7, act=lambda: os.kill(os.getpid(), number))
    assert np.array_equal(play_units(toy, 40, Effort(2), what=WHAT), EXPECTED)


def test_a_signal_while_workers_are_started_leaves_none_behind(tmp_path, monkeypatch):
    """A worker that nobody knows of keeps the program from ending, for it waits for work and the program for it."""
    fork, signalled = os.fork, []

    def fork_and_be_stopped():
        made = fork()
        if made and not signalled:
            signalled.append(made)
            os.kill(os.getpid(), signal.SIGTERM)
        return made

    monkeypatch.setattr(os, "fork", fork_and_be_stopped)
    try:
        with pytest.raises(StoppedError, match="stopped by signal 15 after 1 of 40 units"):
            play_units(Toy(), 40, Effort(2, keep=tmp_path / "units"), what=WHAT)
        with pytest.raises(ChildProcessError):  # it has ended, and been waited for
            os.waitpid(signalled[0], os.WNOHANG)
        assert np.array_equal(play_units(Toy(), 40, Effort(2, keep=tmp_path / "units"), what=WHAT), EXPECTED)
    finally:
        with suppress(ProcessLookupError):
            os.kill(signalled[0], signal.SIGKILL)


def killed(path, setup, act, effort):
    """A process that plays 40 units, of which the one after six ends with a signal that nobody survives."""
    script = (
        "import sys, os, signal, time; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path; from mccfr.evaluation import samples as units\n"
        f"from test_samples import Effort, Toy, WHAT, play_units\n{setup}\n"
        f"toy = Toy(ends_at=7, act=lambda: {act})\n"
        f"play_units(toy, 40, Effort({effort}keep=Path(sys.argv[1])), what=WHAT)\n"
    )
    here = [str(Path(__file__).parent), str(ROOT / "tests")]
    done = subprocess.run([sys.executable, "-c", script, str(path), *here], timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL


def test_after_a_kill_only_a_record_cut_off_is_lost(tmp_path):
    path = tmp_path / "units"
    killed(path, "", "os.kill(os.getpid(), signal.SIGKILL)", "")
    for cut in range(1, 28, 7):
        held = path.read_bytes()
        path.write_bytes(held[:-cut])
        toy = Toy()
        assert np.array_equal(play_units(toy, 40, Effort(keep=path), what=WHAT), EXPECTED)
        assert toy.played[0] == (6 if cut == 1 else 39)


def test_a_file_is_free_when_its_process_is_gone_though_workers_still_play(tmp_path):
    path = tmp_path / "units"
    still = "(os.kill(os.getppid(), signal.SIGKILL), time.sleep(5))"
    killed(path, "units._WATCH_SECONDS = 5.0", still, "2, ")
    toy = Toy()
    assert np.array_equal(play_units(toy, 40, Effort(keep=path), what=WHAT), EXPECTED)
    assert 7 in toy.played and 0 not in toy.played


@pytest.mark.parametrize("at", range(0, 200, 11))
def test_a_flipped_bit_costs_its_unit_and_no_other(tmp_path, at, caplog):
    """In the head it is another file, which is refused and left alone."""
    path, toy = tmp_path / "units", Toy()
    play_units(Toy(), 5, Effort(keep=path), what=WHAT)
    held = bytearray(path.read_bytes())
    held[at % len(held)] ^= 16
    path.write_bytes(held)
    if at % len(held) <= held.index(b"\n", len(b"mccfr units 1\n")):
        with pytest.raises((ValueError, OSError)):
            play_units(toy, 5, Effort(keep=path), what=WHAT)
        assert path.read_bytes() == bytes(held) and not toy.played
        return
    assert np.array_equal(play_units(toy, 5, Effort(keep=path), what=WHAT), EXPECTED[:5])
    assert len(toy.played) == 1 and "1 of its units are damaged" in caplog.text
    again = Toy()
    assert np.array_equal(play_units(again, 5, Effort(keep=path), what=WHAT), EXPECTED[:5]) and not again.played


def synced_units(path):
    with durable.recording() as operations:
        play_units(Toy(), 3, Effort(keep=path), what=WHAT)
    kinds = [operation.kind for operation in operations if operation.path in (path, path.parent)]
    assert kinds.count("append") == 4  # the head, and three units
    return [kind for kind in kinds if "fsync" in kind]


def test_units_and_the_name_of_their_file_are_synced(tmp_path, monkeypatch):
    assert synced_units(tmp_path / "units") == ["fsync_file", "fsync_dir", "fsync_file"]
    monkeypatch.setattr(durable, "fsync_file", lambda *_: None)  # planted: --keep that is not synced
    assert synced_units(tmp_path / "others") == ["fsync_dir"]


def test_a_file_that_nothing_has_come_into_is_removed(tmp_path):
    made, given = tmp_path / "made", tmp_path / "given"
    given.touch()

    def fail():
        raise ValueError("a row is damaged")

    for path in (made, given):
        refused("a row is damaged", play_units, Toy(ends_at=0, act=fail), 5, Effort(keep=path), what=WHAT)
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("given", 0)]
    play_units(Toy(), 5, Effort(keep=made), what=WHAT)
    refused("a row is damaged", play_units, Toy(ends_at=6, act=fail), 9, Effort(keep=made), what=WHAT)
    assert np.array_equal(play_units(Toy(), 9, Effort(keep=made), what=WHAT), EXPECTED[:9])


def test_a_file_that_its_maker_removes_is_made_again(tmp_path, monkeypatch):
    path, lock = tmp_path / "units", fcntl.flock

    def removed_meanwhile(*arguments):
        lock(*arguments)
        monkeypatch.setattr(fcntl, "flock", lock)
        path.unlink()

    monkeypatch.setattr(fcntl, "flock", removed_meanwhile)
    play_units(Toy(), 5, Effort(keep=path), what=WHAT)
    toy = Toy()
    play_units(toy, 5, Effort(keep=path), what=WHAT)
    assert not toy.played


def test_units_of_something_else_are_refused(tmp_path):
    path = tmp_path / "units"
    play_units(Toy(), 5, Effort(keep=path), what=WHAT)
    with pytest.raises(ValueError, match="holds units of another evaluation: give another file to --keep"):
        play_units(Toy(), 5, Effort(keep=path), what=WHAT | {"seed": 4})
    path.write_text("my notes")
    with pytest.raises(FileExistsError, match="not an earlier output of the same kind"):
        play_units(Toy(), 5, Effort(keep=path), what=WHAT)
    assert path.read_text() == "my notes"


def test_two_evaluations_do_not_share_a_file(tmp_path):
    path = tmp_path / "units"

    def again():
        refused("in use by another evaluation", play_units, Toy(), 5, Effort(keep=path), what=WHAT)

    play_units(Toy(ends_at=2, act=again), 5, Effort(keep=path), what=WHAT)


def fail():
    raise ValueError("a row is damaged")


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_unit_is_the_evaluations(workers):
    refused("a row is damaged", play_units, Toy(ends_at=5, act=fail), 20, Effort(workers), what=WHAT)


def test_a_dead_worker_is_said():
    toy = Toy(ends_at=5, act=lambda: os.kill(os.getpid(), signal.SIGKILL))
    refused("a worker process died", play_units, toy, 20, Effort(2), what=WHAT, error=RuntimeError)


def test_time_makes_a_number_of_units():
    assert 30 <= units_in(Toy(0.01), 0.5, 1, least=2) <= 50
    assert 60 <= units_in(Toy(0.01), 0.5, 2, least=2) <= 100
    assert units_in(Toy(0.01), 0.5, 1, least=2, most=7) == 7
    assert units_in(Toy(0.01), 0.0, 1, least=2) == 2


@pytest.mark.parametrize(("bounds", "tried"), [({"most": 3}, {0, 1, 2}), ({"ready": 2}, {0, 1}), ({"most": 1}, {0})])
def test_no_more_units_are_tried_than_there_are(bounds, tried, monkeypatch):
    toy, played = Toy(0.0), set()
    monkeypatch.setattr(toy, "play", played.add)
    units_in(toy, 100.0, 1, least=1, **bounds)
    assert played == tried
