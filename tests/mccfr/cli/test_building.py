"""How the building of an abstraction is shown."""

import sys
from pathlib import Path

import pytest

from abstraction.build import Builder
from abstraction.kernels import compiling
from abstraction.recipe import load_recipe
from mccfr.cli import building, progress
from mccfr.cli.building import PlainStages, StageTime, stage_reporter
from mccfr.runs.reporter import COMPILING


class Clock:
    """Seconds that pass, and seconds of them in which kernels were compiled."""

    def __init__(self, patch):
        self.now = self.compiled = 0.0
        patch.setattr(building.time, "monotonic", lambda: self.now)
        patch.setattr(building, "working_seconds", lambda: self.now - self.compiled)

    def passes(self, seconds, compiling=False):
        self.now += seconds
        self.compiled += seconds if compiling else 0.0


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_compiling_does_not_count_towards_the_time_left(clock):
    """20 s of compiling, then 1 % a second: by all that has passed, 22 s at 2 % would leave a quarter of an hour."""
    stage = StageTime()
    assert stage.note("flop, features", 0.0) == (0.0, None)
    clock.passes(20, compiling=True)
    clock.passes(1)
    assert stage.note("flop, features", 0.01) == (21.0, None)  # nothing is known of how fast it goes
    clock.passes(1)
    assert stage.note("flop, features", 0.02) == (22.0, None)  # a second is no measure
    clock.passes(9)
    spent, left = stage.note("flop, features", 0.11)
    assert spent == 31.0 and left == pytest.approx(89)
    clock.passes(30, compiling=True)  # another kernel, in the midst of it
    clock.passes(1)
    assert stage.note("flop, features", 0.12)[1] == pytest.approx(88)


def test_a_stage_that_goes_on_where_it_stood_is_not_taken_for_fast(clock):
    stage = StageTime()
    stage.note("flop, clustering", 0.0)
    clock.passes(1)
    stage.note("flop, clustering", 0.8)  # kept by a build that was killed
    clock.passes(10)
    assert stage.note("flop, clustering", 0.9)[1] == pytest.approx(10)


def test_time_left_starts_afresh_with_each_stage(clock):
    stage = StageTime()
    for name in ("flop, features", "flop, clustering"):
        for share in (0.0, 0.1):
            clock.passes(10)
            assert stage.note(name, share)[1] is None
        clock.passes(10)
        assert stage.note(name, 0.2)[1] == pytest.approx(80)


def test_plain_lines_name_stages_and_say_no_more_than_is_known(clock, capsys):
    tell = PlainStages()
    tell("flop", 0.0)
    tell("flop, features", 0.0)
    clock.passes(20, compiling=True)
    for share in (0.1, 0.2, 0.3):
        tell("flop, features", share)
        clock.passes(4)
    tell("flop, features", 1.0)
    tell("flop, files", 0.0)
    tell("flop, files", 1.0)
    tell("flop", 1.0)
    assert capsys.readouterr().err.splitlines() == [
        "building flop: begun",
        "building flop, features: begun",
        "building flop, features: 10% after 20 s",
        "building flop, features: 30% after 28 s, about 28 s left",
        "building flop, features: done after 32 s",
        "building flop, files: begun",
        "building flop: done after 32 s",
    ]


def test_compiling_that_takes_long_is_said(capsys, monkeypatch):
    monkeypatch.setattr(progress, "_LATE_SECONDS", 0.0)
    with stage_reporter():
        compiling._watch.on_start(None)
        compiling._watch.on_start(None)  # one kernel inside another is one compilation
        deadline = 200
        while not (err := capsys.readouterr().err) and deadline:
            compiling.time.sleep(0.01)
            deadline -= 1
        compiling._watch.on_end(None)
        assert compiling.compiling()
        compiling._watch.on_end(None)
    assert err == f"{COMPILING}\n" and not compiling.compiling()


def test_on_a_terminal_there_is_a_bar(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with stage_reporter() as tell:
        tell("flop, features", 0.4)
        task = tell._bar.tasks[0]
        assert (task.completed, task.total) == (0.4, 1.0)
        assert task.fields["text"].startswith("building flop, features: 40% after")
        tell.compilation(True)
        assert task.fields["text"].endswith(COMPILING)
        tell.compilation(False)
        assert COMPILING not in task.fields["text"]


def test_a_build_names_its_parts_in_order(tmp_path):
    recipe = tmp_path / "recipe.toml"
    streets = "".join(f'[{street}]\nfeatures = "ehs"\nbuckets = 9\n' for street in ("flop", "turn", "river"))
    recipe.write_text(f'[preflop]\nfeatures = "lossless"\n{streets}')
    told = []
    Builder(load_recipe(recipe), tmp_path / "out", 2, lambda *stage: told.append(stage)).build(("preflop",))
    assert Path(tmp_path / "out/preflop").is_dir()
    assert told == [
        ("preflop (1 of 1)", 0.0),
        *((f"preflop (1 of 1), {part}", share) for part in ("assignment", "quality", "files") for share in (0.0, 1.0)),
        ("preflop (1 of 1)", 1.0),
    ]
