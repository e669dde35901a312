"""Progress messages of abstraction builds."""

from pathlib import Path

import pytest
from sessions import PhaseListener

from abstraction.build import Builder
from abstraction.kernels import compiling
from abstraction.recipe import load_recipe
from mccfr.runs import phases
from mccfr.runs.phases import naming_stages
from mccfr.runs.reporter import compiling_text


class Clock:
    """Seconds that pass, and seconds of them in which kernels were compiled."""

    def __init__(self, patch):
        self.now = self.compiled = 0.0
        patch.setattr(phases.time, "monotonic", lambda: self.now)
        patch.setattr(phases, "working_seconds", lambda: self.now - self.compiled)

    def passes(self, seconds, compiling=False):
        self.now += seconds
        self.compiled += seconds if compiling else 0.0


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def told_of(clock, *steps):
    """Return the last phase of a stage, after steps (seconds of compiling, of work, share)."""
    listener = PhaseListener()
    with naming_stages(listener) as tell:
        for compiled, worked, share in steps:
            clock.passes(compiled, compiling=True)
            clock.passes(worked)
            tell("flop, features", share)
    return listener.told[-1]


@pytest.mark.parametrize(
    ("steps", "last"),
    [
        ([(0, 0, 0.0), (20, 1, 0.01)], "building flop, features"),  # nothing is known of how fast it goes
        ([(0, 0, 0.0), (20, 1, 0.01), (0, 1, 0.02)], "building flop, features, 2%"),  # a second is no measure
        ([(20, 1, 0.01), (0, 1, 0.02), (0, 9, 0.11)], "building flop, features, 11%, about 1 min 29 s left"),
        ([(20, 1, 0.01), (0, 10, 0.11), (30, 1, 0.12)], "building flop, features, 12%, about 1 min 28 s left"),
        # kept by a build that was killed
        ([(0, 0, 0.0), (0, 1, 0.8), (0, 10, 0.9)], "building flop, features, 90%, about 10 s left"),
    ],
)
def test_time_left_excludes_compilation_and_earlier_work(clock, steps, last):
    """After 20 s of compilation, 1 % takes a second; compilation does not count."""
    assert told_of(clock, *steps) == last


def test_time_left_starts_afresh_with_each_part_and_stages_end_with_a_message(clock):
    listener = PhaseListener()
    with naming_stages(listener) as tell:
        tell("flop (1 of 2)", 0.0)
        for part in ("features", "clustering"):
            for share in (0.0, 0.1, 0.2):
                tell(f"flop (1 of 2), {part}", share)
                clock.passes(10)
        tell("flop (1 of 2)", 1.0)
    parts = [
        f"building flop (1 of 2), {part}{text}"
        for part in ("features", "clustering")
        for text in ("", ", 20%, about 1 min 20 s left")
    ]
    assert listener.told == ["building flop (1 of 2)", *parts, "built flop (1 of 2) in 1 min"]


def test_compiling_is_named():
    listener = PhaseListener()
    with naming_stages(listener) as tell:
        tell("flop, features", 0.0)
        compiling._watch.on_start(None)
        compiling._watch.on_start(None)  # one kernel inside another is one compilation
        compiling._watch.on_end(None)
        assert compiling._watch.depth
        compiling._watch.on_end(None)
    assert listener.told == ["building flop, features", compiling_text(1), "building flop, features"]
    assert not compiling._watch.depth


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
