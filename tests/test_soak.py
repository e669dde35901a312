"""tools/soak: a disturbed run ends as an undisturbed one; its checks detect planted faults."""

import random
import shutil
import subprocess
import sys
import time

import pytest
from commands import call
from places import ROOT
from sessions import NO_EVALUATION, go, make

sys.path.insert(0, str(ROOT / "tools"))

import soak
import soak_world
from soak import Soak, Subject
from soak_troubles import COMMON, DONE, KILLED, SoakRun, Trouble, flips, moves, swaps
from soak_world import SoakPlace, nodes_of, same_bits

LEDUC = """[game]
name = "leduc"
[run]
nodes = 4e6
checkpoint_nodes = 2e5
workers = 1
[evaluation]
at_end = false
every_checkpoint = false
"""


class Done:
    """A command that has ended, after what it has done to the run."""

    def __init__(self, does, status=DONE, output=""):
        self._does, self._found = does, (status, output)

    def end(self):
        self._does()
        return self._found


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run with two checkpoints."""
    run = make(tmp_path_factory.mktemp("soak") / "run", evaluation=NO_EVALUATION)
    for iterations in (40, 80):
        go(run, iterations=iterations)
    return run.directory


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    def run_command(place, *words):
        capsys.readouterr()
        found = call(capsys, *words)
        return found.status, found.out + found.err

    monkeypatch.setattr(soak, "run_command", run_command)
    return SoakPlace.make(tmp_path / "soak", 0, 0)


@pytest.fixture
def disturbed(place, trained):
    shutil.copytree(trained, place.disk / "run")
    return SoakRun(place, place.disk / "run", random.Random(1))


def session(disturbed, monkeypatch, does, trouble=None, **ended):
    """The violations of a session in which `does` happens."""
    subject = Subject("leduc", LEDUC, (trouble or Trouble("nothing", (DONE,)),))
    made = Soak(disturbed.place, [subject], 0)
    monkeypatch.setattr(made, "_command", lambda *_: Done(does, **ended))
    made._session(subject, disturbed)
    return made.tally.violations


def test_a_sound_session_has_no_violations(disturbed, monkeypatch):
    assert session(disturbed, monkeypatch, lambda: None) == []
    assert session(disturbed, monkeypatch, lambda: None, Trouble("killed", (KILLED,)), status=KILLED) == []
    assert session(disturbed, monkeypatch, lambda: None, Trouble("it moves", (DONE,), before=moves)) == []
    assert disturbed.directory.name == "run+"


@pytest.mark.parametrize("damage", [flips, swaps])
def test_what_was_damaged_on_purpose_may_be_named_and_must_be(damage, disturbed, trained, monkeypatch):
    assert session(disturbed, monkeypatch, lambda: None, Trouble("damage", (DONE,), before=damage)) == []
    assert disturbed.damaged
    monkeypatch.setattr(soak, "run_command", lambda place, *words: (0, f"{words[1]}: sound\n"))
    (said,) = session(disturbed, monkeypatch, lambda: None)
    assert "is damaged, and verify says" in said


def lose(directory):
    shutil.rmtree(max((directory / "checkpoints").iterdir()))


def damage(run):
    flips(run)
    run.damaged.clear()


PLANTED = {
    "a checkpoint is lost": (lambda run: lose(run.directory), {}, "nodes became"),
    "a bit flips that nobody flipped": (damage, {}, "is not sound"),
    "it fails": (lambda run: None, {"status": 1}, "ended with 1"),
    "a traceback": (lambda run: None, {"output": "Traceback"}, "ended with 0"),
    "a process is left": (
        lambda run: subprocess.run(["sh", "-c", "sleep 60 &"], env=run.place.environment(), check=True),
        {},
        "processes are left",
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_each_planted_violation_is_found(what, disturbed, monkeypatch):
    monkeypatch.setattr(soak_world, "_ENDS_SECONDS", 0.3)
    does, ended, words = PLANTED[what]
    (said,) = session(disturbed, monkeypatch, lambda: does(disturbed), **ended)
    assert words in said


def test_other_bits_and_rising_use_of_files_are_found(place, disturbed, trained, tmp_path):
    go(make(tmp_path / "other", evaluation=NO_EVALUATION, solver={"seed": 6}), iterations=80)
    assert same_bits(disturbed.directory, trained) and not same_bits(tmp_path / "other", trained)
    subject = Subject("leduc", LEDUC, ())
    made = Soak(place, [subject], 0)
    shutil.copytree(tmp_path / "other", place.folder / "leduc-undisturbed")
    made._end_of_life(subject, disturbed, finished=True)
    assert made.tally.violations == ["leduc: other bits than undisturbed"] and not disturbed.directory.exists()
    levels = [soak_world.HeldAtOnce(10**8, files, 3) for files in (10, 10, 20, 11, 15, 11, 10, 20, 20)]
    made.tally.levels["leduc"] = levels
    made.left_over()
    made._undisturbed["leduc"] = soak_world.HeldAtOnce(10**8, 18, 3)  # which first lives were not seen to hold
    made.left_over()
    assert made.tally.violations[1:] == ["leduc: files rose from 10 to 20"]
    assert "| leduc | 1 | 100 to 100 | 10 to 20 | 3 to 3 |" in made.tally.table()


def test_bounds_that_are_apart_are_noticed():
    near, far = {"ci95_mbb": [500.0, 600.0]}, {"ci95_mbb": [700.0, 800.0]}
    assert soak._apart(near, {"ci95_mbb": [590.0, 690.0]}) is None
    assert "500 to 600 mbb/g" in soak._apart(near, far) and soak._apart(far, near)


@pytest.mark.slow
def test_a_run_that_is_killed_moved_and_damaged_ends_with_the_bits_of_one_that_was_not(tmp_path):
    subject = Subject("leduc", LEDUC, COMMON)
    made = Soak(SoakPlace.make(tmp_path / "soak", 0, 0), [subject], 3)
    made.references()
    for _ in range(3):
        made.life(subject, time.monotonic() + 120)
    assert made.tally.violations == [] and made.tally.lives["leduc"] == 3
    assert sum(made.tally.struck.values()) >= 3
    assert nodes_of(tmp_path / "soak" / "leduc-undisturbed") >= 4e6
