"""User-defined algorithms: they work in every command, and their options are checked.

Shows:

* Users can add an algorithm, a game and an evaluation method without changing the package (test_registry,
  test_catalogue, test_methods)
"""

import json

import pytest
from commands import command, refusal

from mccfr.config.solver_tables import OPTIONS
from mccfr.solvers.registry import find_algorithm


def test_a_user_defined_algorithm_works_in_every_command(tmp_path, capsys):
    config = tmp_path / "toy.toml"
    config.write_text(
        '[game]\nname = "kuhn"\n[solver]\nalgorithm = "toys:FirstAction"\nshare = 0.6\n'
        "[run]\nworkers = 0\niterations = 5\n"
    )
    directory = tmp_path / "run"
    assert command("plan", config) == 0
    assert command("solve", config, "--run", directory) == 0
    assert command("resume", directory, "--iterations", 9) == 0
    assert command("status", directory) == 0
    assert command("verify", directory) == 0
    assert command("export", directory, tmp_path / "policy") == 0
    assert command("export", directory, tmp_path / "raw", "--format", "zarr") == 0
    capsys.readouterr()
    assert command("query", tmp_path / "policy", "", "--hand", "K", "--json") == 0
    shares = [action["probability"] for action in json.loads(capsys.readouterr().out)["actions"]]
    assert shares == pytest.approx([0.6, 0.4], abs=1e-4)
    experiment = tmp_path / "experiment.toml"
    experiment.write_text(
        '[compare]\nbase = "toy.toml"\nlast = 4\nat = []\npoints = 2\n'
        '[[compare.variant]]\nname = "even"\nset = ["solver.share=0.5"]\n'
        '[[compare.variant]]\nname = "cfr"\nset = ["solver.algorithm=cfr"]\n'
    )
    assert command("compare", experiment, tmp_path / "compared") == 0


def test_options_of_a_user_defined_algorithm_are_checked(tmp_path, capsys):
    config = tmp_path / "toy.toml"
    for line, message in (("share = 1.5", "solver.share = 1.5"), ("wrong = 1", "unknown key 'wrong' in solver")):
        config.write_text(f'[game]\nname = "kuhn"\n[solver]\nalgorithm = "toys:FirstAction"\n{line}\n')
        assert message in refusal(capsys, "plan", config)


def test_every_listed_algorithm_has_the_options_of_its_name():
    for name, options in OPTIONS.items():
        assert find_algorithm(name).options is options
        assert options.__struct_config__.tag == name
