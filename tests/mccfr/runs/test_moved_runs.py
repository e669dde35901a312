"""Run directories that are moved, replaced or removed during training.

Shows:

* A run that is moved during training, and a new run under its old name, are both complete
  (test_two_runs_are_whole_after_one_was_moved_and_another_took_its_name)
* A session follows its moved directory in all storage formats and on cluster ranks
  (test_a_session_follows_its_directory, test_ranks_follow_the_run_directory)
* A session whose directory or lock was removed or replaced stops with an error and writes nothing
  (test_a_session_whose_directory_was_removed_stops, test_a_session_whose_lock_was_replaced_stops)
"""

import json
import shutil
import subprocess
import sys
from functools import partial

import pytest
from commands import call
from machines import on_machines, stratified_run
from places import ROOT
from refusals import refused
from sessions import NO_EVALUATION, Listener, go, in_form, make, wait_for

from mccfr.policy import Policy
from mccfr.runs.directory import run as rundir
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.session.train_and_export import train_and_export
from storage import open_directory
from storage.checkpoint import list_checkpoints

CONFIG = """
[game]
name = "leduc"
[solver]
period_nodes = 50_000
seed = {seed}
[run]
workers = 1
checkpoint_seconds = 0.3
keep_checkpoints = 2
[evaluation]
every_checkpoint = false
at_end = false
"""


class Hook(Listener):
    """Does something once, when a phase of some text begins."""

    def __init__(self, phase, do):
        super().__init__()
        self._phase, self._do = phase, do

    def phase(self, text, share=None):
        if text.startswith(self._phase) and self._do is not None:
            do, self._do = self._do, None
            do()


def solving(folder, seed, *options):
    """A process that solves in `folder/run`, whose configuration has a seed."""
    config = folder / f"{seed}.toml"
    config.write_text(CONFIG.format(seed=seed))
    command = [sys.executable, "-m", "mccfr", "solve", config, "--run", folder / "run", *options]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(list(map(str, command)), text=True, cwd=ROOT, **pipes)


def has_checkpoint(run, process, number=1):
    assert process.poll() is None, process.communicate()
    return max(list_checkpoints(run / "checkpoints"), default=0) >= number


def test_two_runs_are_whole_after_one_was_moved_and_another_took_its_name(tmp_path):
    directory, moved = tmp_path / "run", tmp_path / "moved"
    solver = {"seed": 5, "period_nodes": 10_000}
    run, often = make(directory, solver, evaluation=NO_EVALUATION), {"checkpoint_nodes": 20_000, "keep_checkpoints": 2}

    def another():
        directory.rename(moved)
        go(make(directory, {**solver, "seed": 6}, evaluation=NO_EVALUATION), iterations=800, **often)

    outcome = go(run, Hook("writing checkpoint 2", another), iterations=1_600, **often)
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
    first = solving(tmp_path, 1)
    wait_for(partial(has_checkpoint, run, first), 300)
    run.rename(moved)
    before = max(list_checkpoints(moved / "checkpoints"))
    wait_for(partial(has_checkpoint, moved, first, before + 2), 60)
    assert not run.exists()
    second = solving(tmp_path, 2)
    wait_for(partial(has_checkpoint, run, second), 300)
    before = max(list_checkpoints(moved / "checkpoints"))
    wait_for(partial(has_checkpoint, moved, first, before + 2), 60)
    assert call(capsys, "stop", moved).status == 0
    assert call(capsys, "stop", run).status == 0
    told = [process.communicate()[1] for process in (first, second)]
    assert [process.returncode for process in (first, second)] == [75, 75]
    for directory, text in zip((moved, run), told, strict=True):
        assert text.endswith(f"continue with: mccfr resume {directory}\n") and "/proc/" not in text
        assert not problems_of(directory)
        opened = rundir.open_run(directory)
        journal = opened.read(rundir.JOURNAL)
        assert [line["event"] for line in journal if "event" in line] == ["started", "stopped"]
        noted = [line["checkpoint"] for line in journal if "manifest" in line]
        assert noted == list(range(1, len(noted) + 1)) and noted[-2:] == list_checkpoints(directory / "checkpoints")
        go(opened, workers=0, nodes=10**9, seconds=0.5)
        assert not problems_of(directory)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.toml", "2.toml", "moved", "run"]


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
    """Move a run whose ranks are objects of the coordinator's process, with paths of their own."""
    directory, moved = tmp_path / "run", tmp_path / "moved"
    run = stratified_run(directory, checkpoint_nodes=30_000)
    with open_directory.OpenDirectory(directory) as held:
        run = rundir.replace(run, directory=held.path)
        report = Hook("writing checkpoint 2", lambda: directory.rename(moved))
        on_machines(run, 2, report, iterations=3_000)
    assert not directory.exists() and max(list_checkpoints(moved / "checkpoints")) > 2
    assert not problems_of(moved)


def test_an_export_is_of_the_moved_run(tmp_path):
    directory, moved = tmp_path / "run", tmp_path / "moved"
    run = make(directory, evaluation=NO_EVALUATION, iterations=2_000, checkpoint_nodes=20_000)
    run = rundir.with_settings(run, export=rundir.config_from({**DOCUMENT, "export": {}}, "test").export)
    report = Hook("writing checkpoint 2", lambda: directory.rename(moved))
    outcome, exported = train_and_export(run, run.build_game(), report)
    assert exported == tmp_path / "moved-policy" and outcome.directory == moved and not directory.exists()
    assert Policy.open(exported).meta["provenance"]["checkpoint"] == outcome.checkpoint


DOCUMENT = {"game": {"name": "leduc"}, "solver": {}}


def test_a_session_whose_directory_was_removed_stops(tmp_path):
    for form in ("zarr", "blocks"):
        directory = tmp_path / form
        run = in_form(directory, form)
        report = Hook("writing checkpoint 2", partial(shutil.rmtree, directory))
        words = rf"^{directory} was removed, or moved to another file system, .* since checkpoint 1 are lost$"
        refused(words, go, run, report, iterations=1_600, checkpoint_nodes=20_000, error=RuntimeError)
        assert not directory.exists() and not open_directory._held


@pytest.mark.slow
def test_a_removed_directory_ends_a_process_with_status_1(tmp_path):
    process = solving(tmp_path, 1)
    wait_for(partial(has_checkpoint, tmp_path / "run", process), 300)
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    shutil.rmtree(tmp_path / "run", ignore_errors=True)  # a checkpoint may have been written meanwhile
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 1 and f"mccfr: {tmp_path / 'run'} was removed, or moved" in said, said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.toml"]


def test_a_session_whose_lock_was_replaced_stops(tmp_path):
    """As when a backup is put in the place of a running session's files."""
    directory = tmp_path / "run"
    run = make(directory, evaluation=NO_EVALUATION)
    states = []

    def replaced():
        (directory / "run.lock").unlink()
        (directory / "run.lock").touch()
        states.append(files(directory))

    words = rf"^{directory}/run.lock was removed or replaced .* since checkpoint 1 are lost$"
    report = Hook("writing checkpoint 2", replaced)
    refused(words, go, run, report, iterations=2_000, checkpoint_nodes=20_000, error=RuntimeError)
    states[0].pop("live", None)
    assert files(directory) == states[0]


def files(directory):
    """{name: content} of every file, links by what they lead to."""
    found = {path: path for path in directory.rglob("*") if path.is_file()}
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


def test_a_run_that_took_the_place_of_the_opened_one_is_not_trained(tmp_path):
    run, other = make(tmp_path / "run"), make(tmp_path / "other", {"seed": 6})
    run.directory.rename(tmp_path / "moved")
    other.directory.rename(tmp_path / "run")
    said = refused("now holds another run: run the command again", go, run, nodes=1_000)
    assert said.startswith(str(tmp_path / "run")) and json.loads((tmp_path / "run/manifest.json").read_text())
