"""Reading of runs during training and of policies while an export replaces them.

Shows:

* Readers of a training run get one sound version (test_every_command_reads_a_run_during_training)
* Readers get one sound version of a policy while it is replaced
  (test_every_command_reads_a_policy_while_it_is_replaced)
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


def run_with_frequent_checkpoints(path, layout, workers):
    """Return a run that keeps one checkpoint and writes one every 0.2 s, or at the end of each cycle."""
    return in_form(path, layout, workers=workers, checkpoint_seconds=0.2, keep_checkpoints=1)


@contextmanager
def session_of(run):
    """Train a run in another process inside the block; stop the session by a signal at the end."""
    process = resuming(run)
    try:
        wait_for(lambda: newest(run) >= 2 or process.poll() is not None, 300)
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 75
    finally:
        process.kill()
        process.wait()


def readers_of(capsys, run, out):
    """Return {name: reader} of a run; each reader raises if it fails, and is called repeatedly."""
    directory = run.directory

    def succeeds(*arguments):
        capsys.readouterr()
        ended = call(capsys, *arguments)
        assert ended.status == 0 and "damaged" not in ended.err, ended

    def read_newest():
        found = find_checkpoint(open_run(directory), None)
        read_tables(found)

    def read_view():
        strategies = open_strategies(directory)
        assert strategies.shown(0).spots.source.probabilities(0, 0).sum() == pytest.approx(1)
        number = int(strategies.names[0].rpartition(" ")[2])
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
        "view": read_view,
        "find_checkpoint": read_newest,
        "Run.status": lambda: mccfr.Run(directory).status(),
        "Run.export": lambda: mccfr.Run(directory).export(out / "exported"),
        "mccfr.evaluate": lambda: mccfr.evaluate(directory),
    }


FEW = ("status of a folder", "verify", "query", "export", "view", "find_checkpoint", "Run.status")
"""Readers that the fast suite tries, on blocks of strata: their runs have Zarr checkpoints and block versions."""
SLOW = [pytest.param(layout, 100, marks=pytest.mark.slow) for layout in ("zarr", "hdf5", "blocks")]


@pytest.mark.parametrize(("layout", "tries"), [("blocks", 1), *SLOW])
def test_every_command_reads_a_run_during_training(tmp_path, capsys, layout, tries):
    run = run_with_frequent_checkpoints(tmp_path / "runs" / "run", layout, workers=0 if tries == 1 else 1)
    readers = readers_of(capsys, run, tmp_path)
    readers = {name: read for name, read in readers.items() if tries > 1 or name in FEW}
    with session_of(run) as process:
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
    """Return two runs of one game with different policies."""
    solvers = {name: {**EXTERNAL, "seed": seed} for seed, name in enumerate("ab", 1)}
    return [trained(make(tmp_path / name, solver), iterations=200 * solver["seed"]) for name, solver in solvers.items()]


@contextmanager
def repeated_exports(out, runs, tries):
    """Export two runs in turn to one path, in another process; check that it made `tries` exports."""
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
def test_every_command_reads_a_policy_while_it_is_replaced(tmp_path, capsys, tries):
    runs, out = two_runs(tmp_path), tmp_path / "policy"
    known = []
    for run in runs:
        alone = mccfr.Run(run.directory).export(tmp_path / f"{run.directory.name}-policy")
        known.append((answer(capsys, "query", alone, "c"), answer(capsys, "evaluate", alone)["value_chips"]))
    queries, values = zip(*known, strict=True)
    assert queries[0] != queries[1] and values[0] != values[1]
    with repeated_exports(out, runs, tries):
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
