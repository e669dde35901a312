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
    """An ended command; `does` is its effect on the run."""

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
    """Return the violations of a session in which `does` happens."""
    subject = Subject("leduc", LEDUC, (trouble or Trouble("nothing", (DONE,)),))
    soak_test = Soak(disturbed.place, [subject], 0)
    monkeypatch.setattr(soak_test, "_command", lambda *_: Done(does, **ended))
    soak_test._session(subject, disturbed)
    return soak_test.tally.violations


def test_a_sound_session_has_no_violations(disturbed, monkeypatch):
    assert session(disturbed, monkeypatch, lambda: None) == []
    assert session(disturbed, monkeypatch, lambda: None, Trouble("killed", (KILLED,)), status=KILLED) == []
    assert session(disturbed, monkeypatch, lambda: None, Trouble("it moves", (DONE,), before=moves)) == []
    assert disturbed.directory.name == "run+"


@pytest.mark.parametrize("damage", [flips, swaps])
def test_deliberate_damage_must_be_reported(damage, disturbed, trained, monkeypatch):
    assert session(disturbed, monkeypatch, lambda: None, Trouble("damage", (DONE,), before=damage)) == []
    assert disturbed.damaged
    monkeypatch.setattr(soak, "run_command", lambda place, *words: (0, f"{words[1]}: sound\n"))
    (violation,) = session(disturbed, monkeypatch, lambda: None)
    assert "is damaged, and verify says" in violation


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
    (violation,) = session(disturbed, monkeypatch, lambda: does(disturbed), **ended)
    assert words in violation


def test_different_results_and_growing_file_use_are_detected(place, disturbed, trained, tmp_path):
    go(make(tmp_path / "other", evaluation=NO_EVALUATION, solver={"seed": 6}), iterations=80)
    assert same_bits(disturbed.directory, trained) and not same_bits(tmp_path / "other", trained)
    subject = Subject("leduc", LEDUC, ())
    soak_test = Soak(place, [subject], 0)
    shutil.copytree(tmp_path / "other", place.folder / "leduc-undisturbed")
    soak_test._end_of_life(subject, disturbed, finished=True)
    assert soak_test.tally.violations == ["leduc: other bits than undisturbed"] and not disturbed.directory.exists()
    levels = [soak_world.HeldAtOnce(10**8, files, 3) for files in (10, 10, 20, 11, 15, 11, 10, 20, 20)]
    soak_test.tally.levels["leduc"] = levels
    soak_test.left_over()
    soak_test._undisturbed["leduc"] = soak_world.HeldAtOnce(10**8, 18, 3)  # 20 is no rise over 18 files
    soak_test.left_over()
    assert soak_test.tally.violations[1:] == ["leduc: files rose from 10 to 20"]
    assert "| leduc | 1 | 100 to 100 | 10 to 20 | 3 to 3 |" in soak_test.tally.table()


def test_disjoint_bounds_are_detected():
    near, far = {"ci95_mbb": [500.0, 600.0]}, {"ci95_mbb": [700.0, 800.0]}
    assert soak._apart(near, {"ci95_mbb": [590.0, 690.0]}) is None
    assert "500 to 600 mbb/g" in soak._apart(near, far) and soak._apart(far, near)


@pytest.mark.slow
def test_a_killed_moved_and_damaged_run_ends_with_identical_bits(tmp_path):
    subject = Subject("leduc", LEDUC, COMMON)
    soak_test = Soak(SoakPlace.make(tmp_path / "soak", 0, 0), [subject], 3)
    soak_test.references()
    for _ in range(3):
        soak_test.life(subject, time.monotonic() + 120)
    assert soak_test.tally.violations == [] and soak_test.tally.lives["leduc"] == 3
    assert sum(soak_test.tally.struck.values()) >= 3
    assert nodes_of(tmp_path / "soak" / "leduc-undisturbed") >= 4e6
