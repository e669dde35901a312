"""Numbered samples of an evaluation: same results for any workers, saved, resumed, refused.

Shows:

* A signal while workers start leaves no worker behind (test_a_signal_while_workers_start_leaves_no_worker_behind)
* A signal to all processes of an evaluation loses no sample
  (test_workers_ignore_signals)
* After a kill, another process can continue from the saved samples
  (test_a_file_is_free_after_its_process_was_killed_while_workers_still_run)
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
def test_results_do_not_depend_on_the_number_of_workers(workers):
    seen, toy = [], Toy()
    with steps_reported(lambda *step: seen.append(step)):
        found = run_samples(toy, 40, Effort(workers))
    assert np.array_equal(found, EXPECTED)
    assert seen == [("board", done, 40) for done in range(1, 41)]
    assert toy.played == ([0] if workers > 1 else list(range(40))), "other processes play all but the first"


def test_saved_samples_are_not_played_again(tmp_path):
    run_samples(Toy(), 15, Effort(keep=tmp_path / "samples"))
    assert resumed(tmp_path / "samples") == list(range(15, 40))


def test_too_few_samples_are_refused_unless_they_are_all():
    refused("boards = 4: at least 5 are needed, for an interval", run_samples, Toy(least=5), 4)
    refused("at least 5 are needed", run_samples, Toy(least=5, most=6), 4)
    refused("boards = 1000000000000: their results take .* of memory .*; take fewer", run_samples, Toy(), 10**12)
    assert len(run_samples(Toy(least=5, most=3), 40)) == 3


def test_a_full_disk_is_reported_and_complete_samples_are_kept(tmp_path):
    """The file has room for the header, two samples and a part of the third one."""
    path = tmp_path / "samples"
    run_samples(Toy(), 2, Effort(keep=path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 5, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: .*samples") as caught:
            run_samples(Toy(), 9, Effort(keep=path))
        assert caught.value.filename == str(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert resumed(path, 9) == list(range(2, 9))


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_stops_the_evaluation_and_finished_samples_are_kept(tmp_path, number, workers):
    effort = Effort(workers, keep=tmp_path / "samples")
    before = signal.getsignal(number)
    threading.Timer(0.4, os.kill, (os.getpid(), number)).start()
    with pytest.raises(StoppedError, match=rf"stopped by signal {int(number)} after \d+ of 1,000 samples") as caught:
        run_samples(Toy(0.01), 1000, effort)
    assert caught.value.exit_status == 128 + number
    assert signal.getsignal(number) is before
    assert 0 not in resumed(tmp_path / "samples")


@pytest.mark.parametrize("number", SIGNALS)
def test_workers_ignore_signals(tmp_path, number):
    """A worker that died of a signal while it takes work from the queue would leave the queue locked."""
    toy = Toy(ends_at=7, act=lambda: os.kill(os.getpid(), number))
    assert np.array_equal(run_samples(toy, 40, Effort(2)), EXPECTED)


@pytest.mark.parametrize("late", [1, 2])
def test_a_signal_while_workers_start_leaves_no_worker_behind(tmp_path, monkeypatch, late):
    """A worker that the main process does not know would wait for work forever.

    The second worker starts late, after the first one was killed while it waited for work.
    """
    fork, signalled = os.fork, []

    def fork_and_be_stopped():
        child = fork()
        if not child and signalled:
            time.sleep(0.3)
        elif child:
            signalled.append(child)
            if len(signalled) == late:
                os.kill(os.getpid(), signal.SIGTERM)
        return child

    monkeypatch.setattr(os, "fork", fork_and_be_stopped)
    try:
        with pytest.raises(StoppedError, match="stopped by signal 15 after 1 of 40 samples"):
            run_samples(Toy(), 40, Effort(2, keep=tmp_path / "samples"))
        for worker in signalled:
            with pytest.raises(ChildProcessError):  # the worker has ended, and the main process has waited for it
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


def test_after_a_kill_only_an_incomplete_record_is_lost(tmp_path):
    path = tmp_path / "samples"
    killed(path, "", "os.kill(os.getpid(), signal.SIGKILL)", "")
    for cut in range(1, 28, 7):
        held = path.read_bytes()
        path.write_bytes(held[:-cut])
        assert resumed(path)[0] == (6 if cut == 1 else 39)


def test_a_file_is_free_after_its_process_was_killed_while_workers_still_run(tmp_path):
    path = tmp_path / "samples"
    still = "(os.kill(os.getppid(), signal.SIGKILL), time.sleep(5))"
    killed(path, "samples._WATCH_SECONDS = 5.0", still, "2, ")
    played = resumed(path)
    assert 7 in played and 0 not in played


@pytest.mark.parametrize("at", range(0, 200, 11))
def test_a_flipped_bit_loses_only_its_sample(tmp_path, at, caplog):
    """A file with a damaged header is refused and left unchanged."""
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


def test_samples_and_the_directory_of_their_file_are_synced(tmp_path, monkeypatch):
    assert synced_samples(tmp_path / "samples") == ["fsync_file", "fsync_dir", "fsync_file"]
    monkeypatch.setattr(durable, "fsync_file", lambda *_: None)  # planted: samples are not synced
    assert synced_samples(tmp_path / "others") == ["fsync_dir"]


def test_a_new_file_without_samples_is_removed(tmp_path):
    made, given = tmp_path / "made", tmp_path / "given"
    given.touch()
    for path in (made, given):
        refused("a row is damaged", run_samples, Toy(ends_at=0, act=fail), 5, Effort(keep=path))
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("given", 0)]
    run_samples(Toy(), 5, Effort(keep=made))
    refused("a row is damaged", run_samples, Toy(ends_at=6, act=fail), 9, Effort(keep=made))
    resumed(made, 9)


def test_a_file_removed_while_it_is_locked_is_created_again(tmp_path, monkeypatch):
    path, lock = tmp_path / "samples", fcntl.flock

    def removed_meanwhile(*arguments):
        lock(*arguments)
        monkeypatch.setattr(fcntl, "flock", lock)
        path.unlink()

    monkeypatch.setattr(fcntl, "flock", removed_meanwhile)
    run_samples(Toy(), 5, Effort(keep=path))
    assert not resumed(path, 5)


def test_samples_of_another_evaluation_are_refused(tmp_path):
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
def test_an_error_in_a_sample_ends_the_evaluation(workers):
    refused("a row is damaged", run_samples, Toy(ends_at=5, act=fail), 20, Effort(workers))


def test_a_dead_worker_is_reported():
    toy = Toy(ends_at=5, act=lambda: os.kill(os.getpid(), signal.SIGKILL))
    refused("a worker process died", run_samples, toy, 20, Effort(2), error=RuntimeError)


def test_a_time_budget_determines_the_number_of_samples(monkeypatch):
    """Use a fake clock on which each sample takes 1/128 s."""
    clock = [0.0]
    monkeypatch.setattr(samples, "working_seconds", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.append(clock.pop() + seconds))
    assert samples_in(Toy(1 / 128), 0.5, 1) == 64
    assert samples_in(Toy(1 / 128), 0.5, 2) == 128
    assert samples_in(Toy(1 / 128, most=7), 0.5, 1) == 7
    assert samples_in(Toy(1 / 128, least=2), 0.0, 1) == 2
    assert len(run_samples(Toy(1 / 128, least=2), 40, Effort(seconds=1e-9))) == 2


@pytest.mark.parametrize(("bounds", "tried"), [({"most": 3}, {0, 1, 2}), ({"ready": 2}, {0, 1}), ({"most": 1}, {0})])
def test_no_more_samples_are_timed_than_exist(bounds, tried, monkeypatch):
    toy, played = Toy(**bounds), set()
    monkeypatch.setattr(toy, "play", played.add)
    samples_in(toy, 100.0, 1)
    assert played == tried
