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

from mccfr.evaluation import samples
from mccfr.evaluation.evaluation_progress import steps_reported
from mccfr.evaluation.samples import Effort, SampledEvaluation, StoppedError, run_samples, samples_in
from storage import durable
from storage.deferred_signals import SIGNALS


class Toy(SampledEvaluation):
    """Two numbers per sample; `played` lists the samples that this process has played."""

    fields, least = 2, 1

    def __init__(self, seconds=0.0, ends_at=None, act=None, **bounds):
        self.played, self.seconds, self.ends_at, self.act = [], seconds, ends_at, act
        self.identity_fields = {"method": "toy", "seed": 3}
        vars(self).update(bounds)

    def play(self, sample):
        if sample == self.ends_at:
            self.act()
        self.played.append(sample)
        time.sleep(self.seconds)
        return np.array([np.sin(sample), sample**2])


EXPECTED = np.array([[np.sin(sample), sample**2] for sample in range(40)])


def resumed(path, count=40):
    """Return the samples that a run with this journal still has to play; its results must be right."""
    toy = Toy()
    assert np.array_equal(run_samples(toy, count, Effort(keep=path)), EXPECTED[:count])
    return toy.played


def fail():
    raise ValueError("a row is damaged")


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_do_not_depend_on_who_plays(workers):
    seen, toy = [], Toy()
    with steps_reported(lambda *step: seen.append(step)):
        found = run_samples(toy, 40, Effort(workers))
    assert np.array_equal(found, EXPECTED)
    assert seen == [("board", done, 40) for done in range(1, 41)]
    assert toy.played == ([0] if workers > 1 else list(range(40))), "other processes play all but the first"


def test_kept_samples_are_not_played_again(tmp_path):
    run_samples(Toy(), 15, Effort(keep=tmp_path / "samples"))
    assert resumed(tmp_path / "samples") == list(range(15, 40))


def test_too_few_samples_are_refused_unless_there_are_no_more():
    refused("boards = 4: at least 5 are needed, for an interval", run_samples, Toy(least=5), 4)
    refused("at least 5 are needed", run_samples, Toy(least=5, most=6), 4)
    refused("boards = 1000000000000: their results take .* of memory .*; take fewer", run_samples, Toy(), 10**12)
    assert len(run_samples(Toy(least=5, most=3), 40)) == 3


def test_a_full_disk_names_the_file_and_what_was_kept_is_sound(tmp_path):
    """The file takes the header, two samples and a part of the third one."""
    path = tmp_path / "samples"
    run_samples(Toy(), 2, Effort(keep=path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 5, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: .*samples") as told:
            run_samples(Toy(), 9, Effort(keep=path))
        assert told.value.filename == str(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert resumed(path, 9) == list(range(2, 9))


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_stops_it_and_what_was_finished_stays(tmp_path, number, workers):
    effort = Effort(workers, keep=tmp_path / "samples")
    before = signal.getsignal(number)
    threading.Timer(0.4, os.kill, (os.getpid(), number)).start()
    with pytest.raises(StoppedError, match=rf"stopped by signal {int(number)} after \d+ of 1,000 samples") as caught:
        run_samples(Toy(0.01), 1000, effort)
    assert caught.value.exit_status == 128 + number
    assert signal.getsignal(number) is before
    assert 0 not in resumed(tmp_path / "samples")


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_for_all_processes_is_for_the_first_one_to_heed(tmp_path, number):
    """A worker that dies of it while it takes work from the queue leaves the queue locked for the others."""
    toy = Toy(ends_at=7, act=lambda: os.kill(os.getpid(), number))
    assert np.array_equal(run_samples(toy, 40, Effort(2)), EXPECTED)


@pytest.mark.parametrize("late", [1, 2])
def test_a_signal_while_workers_are_started_leaves_none_behind(tmp_path, monkeypatch, late):
    """Leave no unknown worker: the program would wait for it, and it for work.

    The second worker starts late, when the first one has been killed while it waits for work.
    """
    fork, signalled = os.fork, []

    def fork_and_be_stopped():
        made = fork()
        if not made and signalled:
            time.sleep(0.3)
        elif made:
            signalled.append(made)
            if len(signalled) == late:
                os.kill(os.getpid(), signal.SIGTERM)
        return made

    monkeypatch.setattr(os, "fork", fork_and_be_stopped)
    try:
        with pytest.raises(StoppedError, match="stopped by signal 15 after 1 of 40 samples"):
            run_samples(Toy(), 40, Effort(2, keep=tmp_path / "samples"))
        for worker in signalled:
            with pytest.raises(ChildProcessError):  # it has ended, and been waited for
                os.waitpid(worker, os.WNOHANG)
        resumed(tmp_path / "samples")
    finally:
        for worker in signalled:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)


def killed(path, setup, act, effort):
    """Run a process that plays 40 samples and is killed after six of them."""
    script = (
        "import sys, os, signal, time; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path; from mccfr.evaluation import samples\n"
        f"from test_samples import Effort, Toy, run_samples\n{setup}\n"
        f"toy = Toy(ends_at=7, act=lambda: {act})\n"
        f"run_samples(toy, 40, Effort({effort}keep=Path(sys.argv[1])))\n"
    )
    here = [str(Path(__file__).parent), str(ROOT / "tests")]
    done = subprocess.run([sys.executable, "-c", script, str(path), *here], timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL


def test_after_a_kill_only_a_record_cut_off_is_lost(tmp_path):
    path = tmp_path / "samples"
    killed(path, "", "os.kill(os.getpid(), signal.SIGKILL)", "")
    for cut in range(1, 28, 7):
        held = path.read_bytes()
        path.write_bytes(held[:-cut])
        assert resumed(path)[0] == (6 if cut == 1 else 39)


def test_a_file_is_free_when_its_process_is_gone_though_workers_still_play(tmp_path):
    path = tmp_path / "samples"
    still = "(os.kill(os.getppid(), signal.SIGKILL), time.sleep(5))"
    killed(path, "samples._WATCH_SECONDS = 5.0", still, "2, ")
    played = resumed(path)
    assert 7 in played and 0 not in played


@pytest.mark.parametrize("at", range(0, 200, 11))
def test_a_flipped_bit_costs_its_sample_and_no_other(tmp_path, at, caplog):
    """In the head it is another file, which is refused and left alone."""
    path, toy = tmp_path / "samples", Toy()
    run_samples(Toy(), 5, Effort(keep=path))
    held = bytearray(path.read_bytes())
    held[at % len(held)] ^= 16
    path.write_bytes(held)
    if at % len(held) <= held.index(b"\n", len(b"mccfr units 1\n")):
        with pytest.raises((ValueError, OSError)):
            run_samples(toy, 5, Effort(keep=path))
        assert path.read_bytes() == bytes(held) and not toy.played
        return
    assert len(resumed(path, 5)) == 1 and "1 of its samples are damaged" in caplog.text
    assert not resumed(path, 5)


def synced_samples(path):
    with durable.recording() as operations:
        run_samples(Toy(), 3, Effort(keep=path))
    kinds = [operation.kind for operation in operations if operation.path in (path, path.parent)]
    assert kinds.count("append") == 4  # the header, and three samples
    return [kind for kind in kinds if "fsync" in kind]


def test_samples_and_the_name_of_their_file_are_synced(tmp_path, monkeypatch):
    assert synced_samples(tmp_path / "samples") == ["fsync_file", "fsync_dir", "fsync_file"]
    monkeypatch.setattr(durable, "fsync_file", lambda *_: None)  # planted: --keep that is not synced
    assert synced_samples(tmp_path / "others") == ["fsync_dir"]


def test_a_file_that_nothing_has_come_into_is_removed(tmp_path):
    made, given = tmp_path / "made", tmp_path / "given"
    given.touch()
    for path in (made, given):
        refused("a row is damaged", run_samples, Toy(ends_at=0, act=fail), 5, Effort(keep=path))
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("given", 0)]
    run_samples(Toy(), 5, Effort(keep=made))
    refused("a row is damaged", run_samples, Toy(ends_at=6, act=fail), 9, Effort(keep=made))
    resumed(made, 9)


def test_a_file_that_its_maker_removes_is_made_again(tmp_path, monkeypatch):
    path, lock = tmp_path / "samples", fcntl.flock

    def removed_meanwhile(*arguments):
        lock(*arguments)
        monkeypatch.setattr(fcntl, "flock", lock)
        path.unlink()

    monkeypatch.setattr(fcntl, "flock", removed_meanwhile)
    run_samples(Toy(), 5, Effort(keep=path))
    assert not resumed(path, 5)


def test_samples_of_something_else_are_refused(tmp_path):
    path = tmp_path / "samples"
    run_samples(Toy(), 5, Effort(keep=path))
    with pytest.raises(ValueError, match="holds samples of another evaluation: give another file to --keep"):
        run_samples(Toy(identity_fields={"method": "toy", "seed": 4}), 5, Effort(keep=path))
    path.write_text("my notes")
    with pytest.raises(FileExistsError, match="not an earlier output of the same kind"):
        run_samples(Toy(), 5, Effort(keep=path))
    assert path.read_text() == "my notes"


def test_two_evaluations_do_not_share_a_file(tmp_path):
    path = tmp_path / "samples"

    def again():
        refused("in use by another evaluation", run_samples, Toy(), 5, Effort(keep=path))

    run_samples(Toy(ends_at=2, act=again), 5, Effort(keep=path))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_sample_is_the_evaluations(workers):
    refused("a row is damaged", run_samples, Toy(ends_at=5, act=fail), 20, Effort(workers))


def test_a_dead_worker_is_reported():
    toy = Toy(ends_at=5, act=lambda: os.kill(os.getpid(), signal.SIGKILL))
    refused("a worker process died", run_samples, toy, 20, Effort(2), error=RuntimeError)


def test_a_time_budget_gives_a_number_of_samples(monkeypatch):
    """By a clock on which each sample takes 1/128 s."""
    clock = [0.0]
    monkeypatch.setattr(samples, "working_seconds", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.append(clock.pop() + seconds))
    assert samples_in(Toy(1 / 128), 0.5, 1) == 64
    assert samples_in(Toy(1 / 128), 0.5, 2) == 128
    assert samples_in(Toy(1 / 128, most=7), 0.5, 1) == 7
    assert samples_in(Toy(1 / 128, least=2), 0.0, 1) == 2
    assert len(run_samples(Toy(1 / 128, least=2), 40, Effort(seconds=1e-9))) == 2


@pytest.mark.parametrize(("bounds", "tried"), [({"most": 3}, {0, 1, 2}), ({"ready": 2}, {0, 1}), ({"most": 1}, {0})])
def test_no_more_samples_are_timed_than_there_are(bounds, tried, monkeypatch):
    toy, played = Toy(**bounds), set()
    monkeypatch.setattr(toy, "play", played.add)
    samples_in(toy, 100.0, 1)
    assert played == tried
