"""An algorithm answers for itself: a toy one, added from outside, goes through every command."""

import json
from typing import ClassVar

import pytest
from commands import command

from mccfr.config.tables import OPTIONS, SolverConfig
from mccfr.solvers import registry
from mccfr.solvers.registry import algorithm_named, register
from mccfr.solvers.solver import Algorithm, Share
from mccfr.tables.layout import make_layout


class FirstActionConfig(SolverConfig, frozen=True, tag="first-action"):
    """A toy: every row plays its first action with the same share."""

    share: float = 0.75

    def checks(self):
        return [*super().checks(), ("share", 0 < self.share < 1, "above 0 and below 1")]


class FirstAction(Algorithm):
    """Adds `share` to the first cell of each bucket's sums and the rest to the second, an iteration at a time."""

    options: ClassVar = FirstActionConfig

    def layout(self, game, wide=None):
        return make_layout(game, lazy=False, wide=wide)

    def solver(self, game, tables, share=None):
        return FirstActionSolver(self.config.solver.share, tables, share or Share())


class FirstActionSolver:
    def __init__(self, first, tables, share):
        self.state, self.busy_seconds = share.state, 0.0
        self.state.rng = [0, 0, 0, 0]
        self._first, self._tables = first, tables

    def warm_up(self):
        pass

    def run(self, total_nodes, node_limit, iteration_limit):
        for name, table in self._tables.items():
            if name.startswith("strategy_sum"):
                table[:, 0:4:2] += self._first
                table[:, 1:4:2] += 1 - self._first
        self.state.iterations += 1
        self.state.nodes += 10
        return 1, 10


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(registry, "_ALGORITHMS", dict(registry._ALGORITHMS))
    monkeypatch.setitem(OPTIONS, "first-action", FirstActionConfig)
    register(FirstAction)


def test_an_algorithm_from_outside_goes_through_every_command(tmp_path, toy, capsys):
    config = tmp_path / "toy.toml"
    config.write_text(
        '[game]\nname = "kuhn"\n[solver]\nalgorithm = "first-action"\nshare = 0.6\n[run]\nworkers = 0\niterations = 5\n'
    )
    directory = tmp_path / "run"
    assert command("plan", config) == 0
    assert command("solve", config, "--run", directory) == 0
    assert command("resume", directory, "--iterations", 9) == 0
    assert command("status", directory) == 0
    assert command("verify", directory) == 0
    assert command("export", directory, tmp_path / "policy") == 0
    assert command("export", directory, tmp_path / "raw", "--format", "zarr") == 0
    assert command("report", directory, tmp_path / "page.html") == 0
    capsys.readouterr()
    assert command("query", tmp_path / "policy", "", "--hand", "K", "--json") == 0
    shares = [action["probability"] for action in json.loads(capsys.readouterr().out)["actions"]]
    assert shares == pytest.approx([0.6, 0.4], abs=1e-4)
    experiment = tmp_path / "experiment.toml"
    experiment.write_text(
        'base = ""\n[compare]\nbase = "toy.toml"\nlast = 4\nat = []\npoints = 2\n'
        '[[compare.variant]]\nname = "even"\nset = ["solver.share=0.5"]\n'
        '[[compare.variant]]\nname = "cfr"\nset = ["solver.algorithm=cfr"]\n'.replace('base = ""\n', "")
    )
    assert command("compare", experiment, tmp_path / "compared") == 0


def test_its_options_are_checked_as_others_are(tmp_path, toy, capsys):
    config = tmp_path / "toy.toml"
    for line, told in (("share = 1.5", "solver.share = 1.5"), ("wrong = 1", "unknown key 'wrong' in solver")):
        config.write_text(f'[game]\nname = "kuhn"\n[solver]\nalgorithm = "first-action"\n{line}\n')
        assert command("plan", config) == 2
        assert told in capsys.readouterr().err


def test_a_name_belongs_to_one_algorithm(toy):
    class Other(FirstAction):
        pass

    with pytest.raises(ValueError, match="there is an algorithm 'first-action' already"):
        register(Other)
    with pytest.raises(ValueError, match="'cfr'"):
        algorithm_named("no-such")


def test_every_listed_algorithm_has_the_options_of_its_name():
    for name, options in OPTIONS.items():
        assert algorithm_named(name).options is options
        assert options.__struct_config__.tag == name
