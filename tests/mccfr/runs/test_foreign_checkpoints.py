"""Checkpoints of another run in a run's directory: `verify` names them, and readers refuse them.

Shows:

* `verify` and all readers refuse another run's checkpoint in one sentence, in each format
  (test_a_checkpoint_of_another_run_is_named_and_refused)
* `verify` names a block of another run inside of a checkpoint (test_a_block_of_another_run_is_named_and_refused)
* Checkpoints of another run are refused for evaluation and for training
  (test_older_foreign_checkpoints_are_refused_too)
"""

import shutil

import pytest
from commands import call
from machines import stratified_run, train_alone_until, with_copies_in
from manifests import forge
from refusals import refused
from sessions import go, in_form

from mccfr.experiments.experiment_runs import trained_seconds
from mccfr.runs.directory.run import open_run
from mccfr.runs.directory.run_status import run_list
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.checkpoint_evaluator import Evaluator
from mccfr.runs.results.checkpoints import find_checkpoint
from storage.checkpoint import newest_valid, open_checkpoint

FORMS = ("zarr", "hdf5", "blocks")
WORDS = "it belongs to another run: run_identity is "


def trained_run(path, form, seed, checkpoints):
    cycles = {"cycle_iterations": 100} if form == "blocks" else {}
    run = in_form(path, form, seed, keep_checkpoints=9, **cycles)
    for number in range(1, checkpoints + 1):
        assert go(run, iterations=100 * number).checkpoint == number
    return run


@pytest.fixture(scope="module", params=FORMS)
def runs(request, tmp_path_factory):
    """Return a run with checkpoints 1 and 2, and another run with checkpoints 1 to 3."""
    folder = tmp_path_factory.mktemp(request.param)
    return trained_run(folder / "run", request.param, 5, 2), trained_run(folder / "other", request.param, 6, 3)


def with_foreign_checkpoint(path, runs, number):
    """Return a copy of the first run with a checkpoint of the second run and the blocks that it names."""
    run, other = runs
    shutil.copytree(run.directory, path)
    foreign = path / "checkpoints" / f"{number:06d}"
    shutil.rmtree(foreign, ignore_errors=True)
    shutil.copytree(other.path(f"checkpoints/{number:06d}"), foreign)
    for name in find_checkpoint(other, number).parents:
        shutil.rmtree(path / name, ignore_errors=True)
        shutil.copytree(other.path(name), path / name)
    return open_run(path)


def test_a_checkpoint_of_another_run_is_named_and_refused(runs, tmp_path, capsys):
    run = with_foreign_checkpoint(tmp_path / "run", runs, 3)
    foreign = run.path("checkpoints/000003")
    (problem,) = problems_of(run.directory)
    assert problem.startswith(f"000003: {WORDS}") and problems_of(foreign) == [problem]
    assert not problems_of(run.path("checkpoints/000002"))
    more = {"export": [tmp_path / "policy"], "query": ["", "--hand", "K0"]}
    for verb in ("status", "evaluate", "resume", "export", "query"):
        options = more.get(verb, [])
        ended = call(capsys, verb, run.directory, *options)
        assert (ended.status, ended.out) == (2, "") and f"{foreign}: {WORDS}" in ended.err, (verb, ended)
    assert call(capsys, "verify", run.directory).status == 1
    assert [WORDS in row["problem"] for row in run_list(tmp_path)] == [True]
    refused(WORDS, newest_valid, run.path("checkpoints"), run.identity)
    refused(WORDS, trained_seconds, run)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
    assert len(list(run.path("checkpoints").iterdir())) == 3


def test_older_foreign_checkpoints_are_refused_too(runs, tmp_path):
    run = with_foreign_checkpoint(tmp_path / "run", runs, 1)
    assert problems_of(run.directory)[0].startswith(f"000001: {WORDS}")
    refused(WORDS, Evaluator(run, run.build_game()).find_permanent_checkpoints)
    refused(WORDS, go, run, iterations=1_000)
    assert len(list(run.path("checkpoints").iterdir())) == 2


@pytest.mark.parametrize("runs", ["blocks"], indirect=True)
def test_a_block_of_another_run_is_named_and_refused(runs, tmp_path):
    run, other = runs
    shutil.copytree(run.directory, tmp_path / "run")
    name, theirs = next(iter(find_checkpoint(run, 2).parents)), find_checkpoint(other, 3).parents
    place = tmp_path / "run" / name
    shutil.rmtree(place)
    shutil.copytree(other.path(next(each for each in theirs if each.startswith(name[:-6]))), place)
    forge(place, lambda manifest: manifest.update(number=int(place.name)))
    hashes = {name: open_checkpoint(place).content_hash}
    forge(tmp_path / "run/checkpoints/000002", lambda manifest: manifest["parents"].update(hashes))
    (tmp_path / "run/journal.jsonl").unlink()
    changed = open_run(tmp_path / "run")
    problems = [problem for problem in problems_of(changed.directory) if problem.startswith("000002")]
    assert len(problems) == 1 and "it belongs to another run: blocks_of is" in problems[0]
    found = find_checkpoint(changed, 2)
    refused("it belongs to another run", lambda: [found.read(spec.name) for spec in found.specs], error=OSError)


def test_second_copies_of_two_equal_runs_are_stored_separately(tmp_path):
    for name in ("one", "two"):
        train_alone_until(with_copies_in(stratified_run(tmp_path / name), tmp_path), 20)
    assert [len(list((tmp_path / f"disk{machine}").iterdir())) for machine in (0, 1)] == [2, 2]
