"""The main commands work with a user-defined game.

Shows:

* The main commands work with user-defined games, algorithms, variants and evaluations (test_catalogue,
  test_registry, test_methods, test_plugins)
"""

import json
import re

import pytest
from commands import answer, command, refusal
from linear_program import solve_linear_program

import mccfr
from mccfr.config.game_tables import GAMES
from mccfr.games import registry
from mccfr.games.history_tree import expand
from mccfr.games.registry import game_files


@pytest.fixture
def toy(tmp_path):
    """Write a configuration of the user-defined game `toys:long_kuhn` with its ante file."""
    (tmp_path / "ante.txt").write_text("1")
    config = tmp_path / "toy.toml"
    config.write_text(
        '[game]\nname = "toys:long_kuhn"\nante_file = "ante.txt"\nranks = 5\n[solver]\nalgorithm = "cfr"\n'
        'variant = "dcfr"\n[run]\nworkers = 0\niterations = 200\n'
    )
    return config


def test_the_main_commands_work_with_a_user_defined_game(tmp_path, toy, capsys):
    directory, policy = tmp_path / "run", tmp_path / "policy"
    assert command("plan", toy) == 0
    assert command("solve", toy, "--run", directory) == 0
    (tmp_path / "ante.txt").unlink()  # the run has its own copy
    assert command("resume", directory, "--iterations", 400) == 0
    for verb in ("status", "verify"):
        assert command(verb, directory) == 0
    found = answer(capsys, "evaluate", directory, "--method", "exact")
    copied = next(directory.rglob("ante.txt"))
    game = mccfr.game("toys:long_kuhn", ante_file=copied, ranks=5)
    assert found["exploitability_chips"] < 1e-3
    assert found["value_chips"] == pytest.approx(solve_linear_program(expand(game).game).value_chips, abs=1e-3)
    for kind in ("policy", "zarr", "csv"):
        assert command("export", directory, policy if kind == "policy" else tmp_path / kind, "--format", kind) == 0
    capsys.readouterr()
    assert command("query", policy, "b", "--hand", "A", "--json") == 0
    shares = {action["action"]: action["probability"] for action in json.loads(capsys.readouterr().out)["actions"]}
    assert shares["c"] > 0.99
    assert command("solve", toy, "--run", tmp_path / "other", "--set", "solver.algorithm=external-sampling") == 2


@pytest.mark.parametrize("algorithm", ["external-sampling", "outcome-sampling", "public-chance-sampling", "cfr"])
def test_algorithms_train_a_user_defined_game(tmp_path, toy, algorithm):
    toy.write_text(re.sub(r'algorithm = "cfr"\nvariant = "dcfr"', f'algorithm = "{algorithm}"', toy.read_text()))
    assert command("solve", toy, "--run", tmp_path / "run", "--iterations", 20) == 0


def test_keys_of_a_user_defined_game_are_checked(toy, capsys):
    for line, message in (("bet = -1", "game.bet = -1"), ("wrong = 1", "unknown key 'wrong' in game")):
        toy.write_text(f'[game]\nname = "toys:long_kuhn"\nante_file = "ante.txt"\n{line}\n')
        assert message in refusal(capsys, "plan", toy)


def test_every_registered_game_has_a_configuration_table_and_a_builder():
    assert set(GAMES) == set(registry._CATALOGUE)
    for name, options in GAMES.items():
        assert options.__struct_config__.tag == name
        assert set(options.file_keys) <= set(options.__struct_fields__)
    assert game_files(GAMES["kuhn"](), None) == {}
