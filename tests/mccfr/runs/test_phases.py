"""Progress messages of abstraction builds: parts, time left, compilation."""

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
    """A fake clock: seconds in all, and seconds of compilation among them."""

    def __init__(self, patch):
        self.now = self.compiled = 0.0
        patch.setattr(phases.time, "monotonic", lambda: self.now)
        patch.setattr(phases, "working_seconds", lambda: self.now - self.compiled)

    def advance(self, seconds, compiling=False):
        self.now += seconds
        self.compiled += seconds if compiling else 0.0


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def last_message(clock, *steps):
    """Return the last message of a stage, after steps (compilation in s, work in s, share done)."""
    listener = PhaseListener()
    with naming_stages(listener) as tell:
        for compiled, worked, share in steps:
            clock.advance(compiled, compiling=True)
            clock.advance(worked)
            tell("flop, features", share)
    return listener.told[-1]


@pytest.mark.parametrize(
    ("steps", "last"),
    [
        ([(0, 0, 0.0), (20, 1, 0.01)], "building flop, features"),  # the speed is not known yet
        ([(0, 0, 0.0), (20, 1, 0.01), (0, 1, 0.02)], "building flop, features, 2%"),  # one second is too short
        ([(20, 1, 0.01), (0, 1, 0.02), (0, 9, 0.11)], "building flop, features, 11%, about 1 min 29 s left"),
        ([(20, 1, 0.01), (0, 10, 0.11), (30, 1, 0.12)], "building flop, features, 12%, about 1 min 28 s left"),
        # 80 % were kept from a build that was killed
        ([(0, 0, 0.0), (0, 1, 0.8), (0, 10, 0.9)], "building flop, features, 90%, about 10 s left"),
    ],
)
def test_time_left_excludes_compilation_and_earlier_work(clock, steps, last):
    """One percent takes a second, after 20 s of compilation that do not count."""
    assert last_message(clock, *steps) == last


def test_time_left_starts_afresh_with_each_part_and_stages_end_with_a_message(clock):
    listener = PhaseListener()
    with naming_stages(listener) as tell:
        tell("flop (1 of 2)", 0.0)
        for part in ("features", "clustering"):
            for share in (0.0, 0.1, 0.2):
                tell(f"flop (1 of 2), {part}", share)
                clock.advance(10)
        tell("flop (1 of 2)", 1.0)
        for share in (0.0, 1.0):  # a second abstraction
            tell("flop (1 of 2)", share)
            clock.advance(5)
    parts = [
        f"building flop (1 of 2), {part}{text}"
        for part in ("features", "clustering")
        for text in ("", ", 20%, about 1 min 20 s left")
    ]
    again = ["building flop (1 of 2)", "built flop (1 of 2) in 5 s"]
    assert listener.told == ["building flop (1 of 2)", *parts, "built flop (1 of 2) in 1 min", *again]


def test_compilation_is_reported_as_a_phase():
    listener = PhaseListener()
    with naming_stages(listener) as tell:
        tell("flop, features", 0.0)
        compiling._watch.on_start(None)
        compiling._watch.on_start(None)  # nested compilations count as one
        compiling._watch.on_end(None)
        assert compiling._watch.depth
        compiling._watch.on_end(None)
    assert listener.told == ["building flop, features", compiling_text(1), "building flop, features"]
    assert not compiling._watch.depth


def test_a_build_names_its_parts_in_order(tmp_path):
    recipe = tmp_path / "recipe.toml"
    streets = "".join(f'[{street}]\nfeatures = "ehs"\nbuckets = 9\n' for street in ("flop", "turn", "river"))
    recipe.write_text(f'[preflop]\nfeatures = "lossless"\n{streets}')
    steps, stage = [], "preflop of out (1 of 1)"
    Builder(load_recipe(recipe), tmp_path / "out", 2, lambda *step: steps.append(step)).build(("preflop",))
    assert Path(tmp_path / "out/preflop").is_dir()
    assert steps == [
        (stage, 0.0),
        *((f"{stage}, {part}", share) for part in ("assignment", "quality", "files") for share in (0.0, 1.0)),
        (stage, 1.0),
    ]
