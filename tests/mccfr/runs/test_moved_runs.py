"""Run directories that are moved, replaced or removed during training.

Shows:

* A run moved during training and a new one under its name are both complete
  (test_a_moved_run_and_a_new_run_under_its_name_are_both_complete)
* A session follows its moved directory in all storage formats and on cluster ranks
  (test_a_session_follows_its_directory, test_ranks_follow_the_run_directory)
* A session whose directory or lock is replaced stops with an error, without writing
  (test_a_session_whose_directory_was_removed_stops, test_a_session_whose_lock_was_replaced_stops)
"""

import json
import shutil
import subprocess
from functools import partial

import pytest
from commands import call
from machines import on_machines, stratified_run
from refusals import refused
from same import files_of
from sessions import NO_EVALUATION, Listener, go, in_form, make, new_run, resuming, wait_for

from mccfr.policy import Policy
from mccfr.runs.directory import run as rundir
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.session.train_and_export import train_and_export
from storage import open_directory
from storage.checkpoint import list_checkpoints


class Hook(Listener):
    """Calls a function once, when a phase begins whose text starts with `phase`."""

    def __init__(self, phase, do):
        super().__init__()
        self._phase, self._do = phase, do

    def phase(self, text, share=None):
        if text.startswith(self._phase) and self._do is not None:
            do, self._do = self._do, None
            do()


def new_process(folder, seed):
    """Make a run in `folder/run`; return a process that trains it and has written a checkpoint."""
    settings = {"workers": 1, "checkpoint_seconds": 0.3, "keep_checkpoints": 2}
    run = make(folder / "run", {"period_nodes": 50_000, "seed": seed}, evaluation=NO_EVALUATION, **settings)
    process = resuming(run, stderr=subprocess.PIPE)
    wait_for_checkpoint(run.directory, process, 1)
    return process


def wait_for_checkpoint(directory, process, number):
    def is_there():
        assert process.poll() is None, process.communicate()
        return max(list_checkpoints(directory / "checkpoints"), default=0) >= number

    wait_for(is_there, 300)


def test_a_moved_run_and_a_new_run_under_its_name_are_both_complete(tmp_path):
    directory, moved = tmp_path / "run", tmp_path / "moved"
    solver = {"seed": 5, "period_nodes": 10_000}
    run, often = make(directory, solver, evaluation=NO_EVALUATION), {"checkpoint_nodes": 20_000, "keep_checkpoints": 2}

    def move_and_train_another():
        directory.rename(moved)
        go(make(directory, {**solver, "seed": 6}, evaluation=NO_EVALUATION), iterations=800, **often)

    outcome = go(run, Hook("writing checkpoint 2", move_and_train_another), iterations=1_600, **often)
    assert outcome.directory == moved and outcome.checkpoint > 3
    for path in (moved, directory):
        opened = rundir.open_run(path)
        assert not problems_of(path) and len(list_checkpoints(path / "checkpoints")) == 2
        assert [line["event"] for line in opened.read(rundir.JOURNAL) if "event" in line] == ["started", "finished"]
        assert go(opened, iterations=2_400).checkpoint > max(1, outcome.checkpoint if path == moved else 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["moved", "run"]


@pytest.mark.slow
def test_two_processes_keep_their_runs_apart_when_one_is_moved(tmp_path, capsys):
    run, moved = tmp_path / "run", tmp_path / "moved"
    first = new_process(tmp_path, 1)
    run.rename(moved)
    wait_for_checkpoint(moved, first, max(list_checkpoints(moved / "checkpoints")) + 2)
    assert not run.exists()
    second = new_process(tmp_path, 2)
    wait_for_checkpoint(moved, first, max(list_checkpoints(moved / "checkpoints")) + 2)
    assert call(capsys, "stop", moved).status == 0
    assert call(capsys, "stop", run).status == 0
    errors = [process.communicate()[1] for process in (first, second)]
    assert [process.returncode for process in (first, second)] == [75, 75]
    for directory, text in zip((moved, run), errors, strict=True):
        assert text.endswith(f"continue with: mccfr resume {directory}\n") and "/proc/" not in text
        assert not problems_of(directory)
        opened = rundir.open_run(directory)
        journal = opened.read(rundir.JOURNAL)
        assert [line["event"] for line in journal if "event" in line] == ["started", "stopped"]
        saved = [line["checkpoint"] for line in journal if "manifest" in line]
        assert saved == list(range(1, len(saved) + 1)) and saved[-2:] == list_checkpoints(directory / "checkpoints")
        go(opened, workers=0, nodes=10**9, seconds=0.5)
        assert not problems_of(directory)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["moved", "run"]


@pytest.mark.parametrize("form", ["zarr", "hdf5", "blocks"])
def test_a_session_follows_its_directory(tmp_path, form):
    directory, moved = tmp_path / "run", tmp_path / "elsewhere" / "moved"
    run = in_form(directory, form)
    moved.parent.mkdir()
    report = Hook("writing checkpoint 2", lambda: directory.rename(moved))
    outcome = go(run, report, iterations=1_600, checkpoint_nodes=20_000)
    assert outcome.directory == moved and not directory.exists()
    assert outcome.checkpoint > 2 and not problems_of(moved)
    opened = rundir.open_run(moved)
    assert next(opened.backwards(rundir.JOURNAL))["event"] == "finished"
    assert not (moved / "live").is_symlink() and not open_directory._held
    assert go(opened, iterations=2_400).checkpoint > outcome.checkpoint


def test_ranks_follow_the_run_directory(tmp_path):
    """Move a run whose ranks are simulated in this process; each rank has its own path of the run."""
    directory, moved = tmp_path / "run", tmp_path / "moved"
    run = stratified_run(directory, checkpoint_nodes=30_000)
    with open_directory.OpenDirectory(directory) as held:
        run = rundir.replace(run, directory=held.path)
        report = Hook("writing checkpoint 2", lambda: directory.rename(moved))
        on_machines(run, 2, report, iterations=3_000)
    assert not directory.exists() and max(list_checkpoints(moved / "checkpoints")) > 2
    assert not problems_of(moved)


def test_a_moved_run_is_exported_beside_its_new_path(tmp_path):
    directory, moved = tmp_path / "run", tmp_path / "moved"
    limits = {"workers": 0, "iterations": 2_000, "checkpoint_nodes": 20_000}
    document = {"game": {"name": "leduc"}, "run": limits, "evaluation": NO_EVALUATION, "export": {}}
    run = new_run(directory, document)
    report = Hook("writing checkpoint 2", lambda: directory.rename(moved))
    outcome, exported = train_and_export(run, run.build_game(), report)
    assert exported == tmp_path / "moved-policy" and outcome.directory == moved and not directory.exists()
    assert Policy.open(exported).meta["provenance"]["checkpoint"] == outcome.checkpoint


def test_a_session_whose_directory_was_removed_stops(tmp_path):
    for form in ("zarr", "blocks"):
        directory = tmp_path / form
        run = in_form(directory, form)
        report = Hook("writing checkpoint 2", partial(shutil.rmtree, directory))
        words = rf"^{directory} was removed, or moved to another file system, .* since checkpoint 1 are lost$"
        refused(words, go, run, report, iterations=1_600, checkpoint_nodes=20_000, error=RuntimeError)
        assert not directory.exists() and not open_directory._held


def test_a_session_whose_lock_was_replaced_stops(tmp_path):
    """A lock is replaced, for example, if a backup is restored over a running session's files."""
    directory = tmp_path / "run"
    run = make(directory, evaluation=NO_EVALUATION)
    states = []

    def replace_lock():
        (directory / "run.lock").unlink()
        (directory / "run.lock").touch()
        states.append(files_of(directory))

    words = rf"^{directory}/run.lock was removed or replaced .* since checkpoint 1 are lost$"
    report = Hook("writing checkpoint 2", replace_lock)
    refused(words, go, run, report, iterations=2_000, checkpoint_nodes=20_000, error=RuntimeError)
    states[0].pop("live", None)
    assert files_of(directory) == states[0]


def test_a_run_that_took_the_place_of_the_opened_one_is_not_trained(tmp_path):
    run, other = make(tmp_path / "run"), make(tmp_path / "other", {"seed": 6})
    run.directory.rename(tmp_path / "moved")
    other.directory.rename(tmp_path / "run")
    message = refused("now holds another run: run the command again", go, run, nodes=1_000)
    assert message.startswith(str(tmp_path / "run")) and json.loads((tmp_path / "run/manifest.json").read_text())
