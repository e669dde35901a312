"""Clean-up that fails: the first error is reported, and finished work stays.

Shows:

* If saving fails, its error sets message and status, whatever fails later
  (test_saving_fails_and_then_removing_the_link_fails, test_a_session_that_fails_before_workers_begin_says_why)
* Exports, built stages and evaluations stay complete if only their clean-up fails
  (test_an_export_is_complete_although_its_scratch_cannot_be_removed,
  test_a_stage_is_complete_although_its_inputs_cannot_be_removed,
  test_an_evaluation_returns_although_its_samples_cannot_be_synced)
"""

import errno
import re
import time
from pathlib import Path

import numpy as np
import pytest
from commands import call
from failing import fails
from refusals import refused
from same import files_of
from sessions import NO_EVALUATION, Listener, go, in_form, make
from small_games import small_recipe

from abstraction.build import Builder
from mccfr.evaluation.samples import Effort, SampledEvaluation, run_samples
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.run_export import ExportOptions, export_run
from mccfr.runs.session import checkpointing
from storage import checkpoint_writer, durable


@pytest.fixture
def link_stays(monkeypatch):
    """Make the removal of the link to live tables fail, as in a directory that became read-only."""
    unlink = Path.unlink

    def failing(path, missing_ok=False):
        if path.name == "live":
            fails(errno.EACCES)(path)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", failing)


def test_saving_fails_and_then_removing_the_link_fails(tmp_path, capsys, monkeypatch, link_stays):
    run = make(tmp_path / "run", evaluation=NO_EVALUATION, iterations=50)
    monkeypatch.setattr(checkpointing, "FINAL_WAITS_SECONDS", ())
    monkeypatch.setattr(checkpoint_writer.durable, "make_dir", fails(errno.EACCES))
    ended = call(capsys, "resume", run.directory)
    assert ended.status == 1 and "/proc/" not in ended.err
    last = ended.err.splitlines()[-1]
    assert last.startswith(f"mccfr: the last checkpoint could not be written: {run.directory}/checkpoints"), last
    assert "Permission denied" in last and f"mccfr resume {run.directory}" in last


def test_a_session_succeeds_although_its_link_cannot_be_removed(tmp_path, caplog, link_stays):
    run = make(tmp_path / "run", evaluation=NO_EVALUATION, iterations=50)
    assert go(run).checkpoint == 1
    (text,) = caplog.messages
    link = run.path("live")
    assert text == f"mccfr: the link {link} to live tables was not removed: {link}: Permission denied"
    assert not link.exists() and not problems_of(run.directory)


def test_a_session_that_fails_before_workers_begin_says_why(tmp_path, monkeypatch):
    """The session closes its worker pool although the pool never started."""
    run = in_form(tmp_path / "run", "blocks")
    monkeypatch.setattr(checkpointing.Saver, "begin", fails(errno.EIO))
    refused("Input/output error", go, run, iterations=400, error=OSError)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    run = make(tmp_path_factory.mktemp("exported") / "run", game="kuhn", evaluation=NO_EVALUATION, iterations=50)
    go(run)
    return run


@pytest.mark.parametrize("form", ["hdf5", "zarr", "csv", "policy", "openspiel"])
@pytest.mark.parametrize("step", ["_remove_empty_dir", "remove_tree", "remove_file"])
def test_an_export_is_complete_although_its_scratch_cannot_be_removed(tmp_path, run, form, step, monkeypatch):
    monkeypatch.setattr(durable, step, fails(errno.EACCES))
    game, out = run.build_game(), tmp_path / "out"
    for _ in range(2):  # the second export replaces the first
        export_run(run, game, out, ExportOptions(form, replace=True))
    monkeypatch.undo()
    export_run(run, game, tmp_path / "expected", ExportOptions(form, replace=True))
    assert content(out) == content(tmp_path / "expected")


def content(path):
    """Return {name: bytes} of a directory, the bytes of a file, or the length of an HDF5 file."""
    if path.is_dir():
        return files_of(path)
    found = path.read_bytes()
    return len(found) if found.startswith(b"\x89HDF") else found


def test_a_stage_is_complete_although_its_inputs_cannot_be_removed(tmp_path, monkeypatch, caplog):
    recipe = small_recipe(tmp_path / "small.toml")
    monkeypatch.setattr(durable, "remove_tree", fails(errno.EACCES))
    monkeypatch.setattr("abstraction.build.drop_older", fails(errno.EACCES))
    built = Builder(recipe, tmp_path / "built", save_seconds=0).build()
    assert built and Builder(recipe, tmp_path / "built").build() == []
    assert not problems_of(tmp_path / "built")
    assert [text for text in caplog.messages if "earlier builds of the preflop were not removed" in text]


class Numbers(SampledEvaluation):
    fields, least, identity_fields = 1, 1, {}

    def play(self, sample):
        return np.array([float(sample)])


def test_an_evaluation_returns_although_its_samples_cannot_be_synced(tmp_path, monkeypatch, caplog):
    keep, synced, fsync = tmp_path / "units", [], durable.fsync_file

    def failing(path, file):
        synced.append(path)
        if len(synced) > 1:
            fails(errno.EIO)(path)
        fsync(path, file)

    monkeypatch.setattr(durable, "fsync_file", failing)
    assert run_samples(Numbers(), 4, Effort(keep=keep)).ravel().tolist() == [0, 1, 2, 3]
    assert caplog.messages == [f"mccfr: not everything is kept: {keep}: Input/output error"]


@pytest.mark.parametrize("form", ["zarr", "hdf5", "blocks"])
def test_the_delay_between_attempts_grows_while_the_disk_is_full(tmp_path, form, monkeypatch):
    """Each attempt fails and doubles the delay, so few attempts fit in the time limit."""
    run = in_form(tmp_path / "run", form)
    monkeypatch.setattr(checkpointing, "FINAL_WAITS_SECONDS", ())
    monkeypatch.setattr(checkpoint_writer, "_write_and_rename", fails(errno.ENOSPC))
    monkeypatch.setattr("mccfr.runs.session.strata.block_pools.ROOM_SECONDS", 60.0)
    report, began = Listener(), time.monotonic()
    error = refused("the last checkpoint", go, run, report, seconds=2.5, checkpoint_seconds=0.01, error=RuntimeError)
    waits = [int(found[1]) for text in report.told if (found := re.search(r"trying again in (\d+) s$", text))]
    attempts = [text for text in report.told if text.startswith("no checkpoint at")]
    assert waits[0] >= 1 and waits == sorted(waits) and (len(waits) == 1 or waits[1] >= 2 * waits[0])
    assert len(attempts) == len(waits) + 1 and len(attempts) <= 2 + time.monotonic() - began
    assert str(run.directory) in error and "/proc/" not in error


def test_delays_grow_to_a_limit_and_begin_again():
    delay = checkpointing.GrowingDelay(2.0, 10.0)
    assert [delay.after_failure() for _ in range(5)] == [2, 4, 8, 10, 10]
    for _ in range(2_000):  # the delay stays finite after any number of failures
        delay.after_failure()
    delay.after_success()
    assert delay.after_failure() == 2
