"""Readers of runs during training and of policies during replacement.

Shows:

* Readers of a run that trains get one sound version and exit status 0 (test_every_verb_reads_a_run_that_is_trained)
* Readers of a policy that is replaced get one sound version and exit status 0
  (test_every_verb_reads_a_policy_that_is_replaced)
"""

import signal
import subprocess
import sys
from contextlib import contextmanager
from functools import partial

import pytest
from commands import answer, call
from sessions import EXTERNAL, in_form, make, newest, resuming, trained, wait_for

import mccfr
from mccfr.policy import Policy
from mccfr.runs.directory.run import open_run
from mccfr.runs.directory.verification import problems_of
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from mccfr.view import open_strategies

EXPORTING = """
import sys
from itertools import count
import mccfr
runs = [mccfr.Run(path) for path in sys.argv[2:]]
for number in count():
    runs[number % len(runs)].export(sys.argv[1], replace=True)
    print(number, flush=True)
"""


def trained_often(path, layout, workers):
    """Return a run that keeps one checkpoint and writes one every 0.2 s, or at the end of each cycle."""
    return in_form(path, layout, workers=workers, checkpoint_seconds=0.2, keep_checkpoints=1)


@contextmanager
def training(run):
    """A session of a run in a process of its own, which is stopped at the end."""
    process = resuming(run)
    try:
        wait_for(lambda: newest(run) >= 2 or process.poll() is not None, 300)
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 75
    finally:
        process.kill()
        process.wait()


def reading(capsys, run, out):
    """Return the readers of a run by name; each is called repeatedly and raises if it fails."""
    directory = run.directory

    def succeeds(*arguments):
        capsys.readouterr()
        ended = call(capsys, *arguments)
        assert ended.status == 0 and "damaged" not in ended.err, ended

    def opened():
        found = find_checkpoint(open_run(directory), None)
        read_tables(found)

    def viewed():
        shelf = open_strategies(directory)
        assert shelf.shown(0).spots.source.probabilities(0, 0).sum() == pytest.approx(1)
        number = int(shelf.names[0].rpartition(" ")[2])
        assert number <= newest(run)

    return {
        "verify": partial(succeeds, "verify", directory),
        "status": partial(succeeds, "status", directory),
        "status of a folder": partial(succeeds, "status", directory.parent),
        "query": partial(succeeds, "query", directory, ""),
        "evaluate": partial(succeeds, "evaluate", directory),
        "export": partial(succeeds, "export", directory, out / "policy"),
        "export of tables": partial(succeeds, "export", directory, out / "tables", "--format", "zarr"),
        "exploit": partial(succeeds, "exploit", directory, out / "answer", "--replace"),
        "tensorboard": partial(succeeds, "tensorboard", directory, out / "curves"),
        "view": viewed,
        "find_checkpoint": opened,
        "Run.status": lambda: mccfr.Run(directory).status(),
        "Run.export": lambda: mccfr.Run(directory).export(out / "exported"),
        "mccfr.evaluate": lambda: mccfr.evaluate(directory),
    }


FEW = ("status of a folder", "verify", "query", "export", "view", "find_checkpoint", "Run.status")
"""What the fast suite tries, on blocks: checkpoints in Zarr beside versions of blocks."""
SLOW = [pytest.param(layout, 100, marks=pytest.mark.slow) for layout in ("zarr", "hdf5", "blocks")]


@pytest.mark.parametrize(("layout", "tries"), [("blocks", 1), *SLOW])
def test_every_verb_reads_a_run_that_is_trained(tmp_path, capsys, layout, tries):
    run = trained_often(tmp_path / "runs" / "run", layout, workers=0 if tries == 1 else 1)
    readers = reading(capsys, run, tmp_path)
    readers = {name: read for name, read in readers.items() if tries > 1 or name in FEW}
    with training(run) as process:
        before, tried = newest(run), 0
        while tried < tries or newest(run) <= before + 1:  # a busy machine writes few checkpoints in a few tries
            assert process.poll() is None, "the session ended before the readers"
            tried += 1
            for name, read in readers.items():
                try:
                    read()
                except Exception as error:
                    error.add_note(f"by {name}, at checkpoint {newest(run)}")
                    raise
    assert not problems_of(run.directory)
    assert len(list((run.directory / "checkpoints").iterdir())) <= 3, "what readers have held is removed later"


def two_runs(tmp_path):
    """Runs of one game that stand elsewhere, whose policies differ."""
    solvers = {name: {**EXTERNAL, "seed": seed} for seed, name in enumerate("ab", 1)}
    return [trained(make(tmp_path / name, solver), iterations=200 * solver["seed"]) for name, solver in solvers.items()]


@contextmanager
def exporting(out, runs, tries):
    """Exports of two runs that replace each other at a path, in a process of its own; at least so many."""
    arguments = [str(path) for path in (out, *(run.directory for run in runs))]
    process = subprocess.Popen([sys.executable, "-c", EXPORTING, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "0\n"
        yield
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert int(process.stdout.read().split()[-1]) >= tries
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("tries", [1, pytest.param(100, marks=pytest.mark.slow)])
def test_every_verb_reads_a_policy_that_is_replaced(tmp_path, capsys, tries):
    runs, out = two_runs(tmp_path), tmp_path / "policy"
    known = []
    for run in runs:
        alone = mccfr.Run(run.directory).export(tmp_path / f"{run.directory.name}-policy")
        known.append((answer(capsys, "query", alone, "c"), answer(capsys, "evaluate", alone)["value_chips"]))
    queries, values = zip(*known, strict=True)
    assert queries[0] != queries[1] and values[0] != values[1]
    with exporting(out, runs, tries):
        for _ in range(tries):
            assert answer(capsys, "query", out, "c") in queries
            assert answer(capsys, "evaluate", out)["value_chips"] in values
            for verb in (["verify", out], ["exploit", out, tmp_path / "answer", "--replace"]):
                assert call(capsys, *verb).status == 0, verb
            assert call(capsys, "export", out, tmp_path / "list.csv", "--format", "csv", "--replace").status == 0
            policy = Policy.open(out, check=False)
            assert policy.strategy() is not None
            assert mccfr.evaluate(out, "head-to-head", against=str(out)).value_chips is not None
            assert open_strategies(out).shown(0).spots.source.probabilities(0, 0).sum() == pytest.approx(1)
    mccfr.Run(runs[0].directory).export(out, replace=True)
    assert not list(tmp_path.glob(".tmp-policy-*.old")), "versions that were read have been removed"
