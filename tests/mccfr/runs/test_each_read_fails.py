"""Whatever reads, each of its reading steps fails: the command ends with status 1, or has the right answer.

The twin of `test_each_step_fails`.  A preloaded library (`failing_reads.c`) counts every open for reading, read, stat,
listing and mapping below a run or a policy, those of zarr and HDF5 too, and lets them fail: the call of each number,
once, three times and for ever, with ESTALE, EIO, EACCES and EMFILE.  After each trial every file of a checkpoint, a
policy and a configuration is there byte for byte, no traceback was written, an answer of status 0 is the answer of the
undisturbed command, and a run that was trained on has the tables of the undisturbed one: it never began at 0.

The fast suite takes some trials of each command, evenly spread over calls, times and errors; the slow one takes all.
"""

import errno
import os
import re

import pytest
from failing_reads import Case, Swept, Trial, compiled, described, sweep
from policies import write_random
from sessions import NO_EVALUATION, go, make

from mccfr.config.games import KuhnGame

SOLVER = {"algorithm": "cfr", "variant": "cfr+"}
CASES = [
    Case("verify", ["verify", "{}/run"], "run"),
    Case("status", ["status", "{}/run", "--json"], "run", exact=False),
    Case("query", ["query", "{}/run", ""], "run"),
    Case("tensorboard", ["tensorboard", "{}/run", "{}/curves"], "run", exact=False),
    Case("evaluate", ["evaluate", "{}/run", "--json"], "run"),
    Case("export", ["export", "{}/run", "{}/exported"], "run", exact=False),
    Case("resume", ["resume", "{}/run", "--iterations", "40"], "run", exact=False, run="run"),
    Case("verify a policy", ["verify", "{}/policy"], "policy"),
    Case("query a policy", ["query", "{}/policy", ""], "policy"),
]
ONE = "run/checkpoints/000003/"
FILES = {
    "manifest": f"{ONE}manifest.json",
    "chunk": f"{ONE}tables.zarr/regret/street0/player0/c",
    "all checkpoints": "run/checkpoints",
    "journal": "run/journal.jsonl",
}
MOST = 8
"""Trials of a case in the fast suite."""


def fixture_tree(folder, layout):
    """A run with checkpoints at 10, 20 and 30 iterations, and a policy."""
    run = make(folder / "run", SOLVER, "kuhn", {"format": layout}, NO_EVALUATION, keep_checkpoints=9)
    for iterations in (10, 20, 30):
        go(run, iterations=iterations)
    write_random(folder / "policy", KuhnGame(), None, 1)
    return folder


def answer(trial: Trial) -> str:
    """What a command has written, without the time that it took."""
    return re.sub(r'"\w*seconds": [0-9.e-]+', "", trial.out)


def assert_right(case: Case, swept: Swept) -> None:
    """What must hold of the trials of a case."""
    assert swept.sound.status == 0 and not swept.sound.lost and swept.calls > 3, described(swept.sound)
    for trial in swept.trials:
        assert not trial.lost and "Traceback" not in trial.err, described(trial)
        if trial.status == 0:
            assert trial.digest == swept.sound.digest, described(trial)
            assert not case.exact or answer(trial) == answer(swept.sound), described(trial)
        else:
            assert trial.status == 1, described(trial)
            assert_told(trial, case)


def assert_told(trial: Trial, case: Case) -> None:
    """The last line names a file, the error, and what to do; after training no more can be said than what failed."""
    last = trial.err.strip().split("\n")[-1]
    assert last.startswith("mccfr: ") and " /" in last and os.strerror(trial.number) in last, described(trial)
    trained = case.run is not None and ("/live: " in last or "could not be written" in last)
    assert trained or "nothing was changed; run the command again" in last, described(trial)


def assert_all_right(tmp_path, layout, cases, most):
    (tmp_path / "before").mkdir()
    found = sweep(compiled(tmp_path), fixture_tree(tmp_path / "before", layout), cases, most)
    for case in cases:
        assert_right(case, found[case.name])
    return sum(len(swept.trials) for swept in found.values())


@pytest.mark.parametrize("layout", ["zarr", "hdf5"])
def test_each_read_fails(tmp_path, layout):
    assert assert_all_right(tmp_path, layout, CASES, MOST) >= len(CASES) * 4


def test_reads_of_one_file_fail(tmp_path):
    """... of a manifest, a chunk, all checkpoints, the journal: in each way, where a session begins."""
    training = ["resume", "{}/run", "--iterations", "40"]
    cases = [Case(name, training, watched, False, "run") for name, watched in FILES.items()]
    assert assert_all_right(tmp_path, "zarr", cases, MOST) >= len(cases) * 4


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["zarr", "hdf5"])
def test_each_read_fails_and_none_is_left_out(tmp_path, layout):
    assert assert_all_right(tmp_path, layout, CASES, None) >= 1000


def test_a_failure_that_is_taken_for_absence_is_caught():
    """The planted errors: a wrong answer, a lost file, and a sentence that names nothing."""
    sound = Trial("verify", 0, 0, 0, 0, "sound", "", "", [])
    told = f"mccfr: /run/x: {os.strerror(errno.EIO)}: nothing was changed; run the command again"
    failed = Trial("verify", 1, 1, errno.EIO, 1, "", told, "", [])
    assert_right(CASES[0], Swept(sound, 9, [failed]))
    wrong = {"status": (0, 2, 75), "out": (), "err": ("mccfr: no such run", "Traceback"), "lost": (["a"],)}
    for name, values in wrong.items():
        for value in values:
            bad = Trial(**{each: getattr(failed, each) for each in Trial.__struct_fields__} | {name: value})
            with pytest.raises(AssertionError):
                assert_right(CASES[0], Swept(sound, 9, [bad]))
