"""A game touches its own file and the list: a toy one, added from outside, goes through every command."""

import json
import re

import pytest
from commands import command
from linear_program import solve_linear_program

from mccfr.cards.small_deck import small_deck
from mccfr.config.file import config_from
from mccfr.config.tables import GAMES, GameConfig
from mccfr.games import catalogue
from mccfr.games.betting import BettingRules, build_tree
from mccfr.games.catalogue import build_game, game_files, register
from mccfr.games.expanded import expand
from mccfr.games.game import Game


class LongKuhn(GameConfig, frozen=True, tag="long-kuhn"):
    """Kuhn poker with a longer deck and a larger bet, its ante in a file."""

    file_keys = ("ante_file",)

    ante_file: str
    ranks: int = 4
    bet: float = 2.0


def long_kuhn(config, base):
    """The game of a table; `ValueError` for a bet that is none."""
    if config.bet <= 0:
        raise ValueError(f"game.bet = {config.bet} is not allowed: it must be above 0")
    ante = float((base / config.ante_file).read_text())
    rules = BettingRules(
        (ante, ante), (0,), lambda state: [state.to_call + config.bet] if state.bets == 0 else [], raise_text="b"
    )
    return Game("long-kuhn", build_tree(rules), small_deck(config.ranks, 1, 1, [0]), pot_chips=2 * ante)


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """The game registered, and a configuration of it."""
    monkeypatch.setattr(catalogue, "_CATALOGUE", dict(catalogue._CATALOGUE))
    monkeypatch.setitem(GAMES, "long-kuhn", LongKuhn)
    register(LongKuhn, long_kuhn, takes=("base",))
    (tmp_path / "ante.txt").write_text("1")
    config = tmp_path / "toy.toml"
    config.write_text(
        '[game]\nname = "long-kuhn"\nante_file = "ante.txt"\nranks = 5\n[solver]\nalgorithm = "cfr"\nvariant = "dcfr"\n'
        "[run]\nworkers = 0\niterations = 200\n"
    )
    return config


def test_a_game_from_outside_goes_through_every_command(tmp_path, toy, capsys):
    directory, policy = tmp_path / "run", tmp_path / "policy"
    assert command("games") == 0
    assert "Kuhn poker with a longer deck" in capsys.readouterr().out
    assert command("plan", toy) == 0
    assert command("solve", toy, "--run", directory) == 0
    (tmp_path / "ante.txt").unlink()  # a run has a copy of its own
    assert command("resume", directory, "--iterations", 400) == 0
    for verb in ("status", "verify"):
        assert command(verb, directory) == 0
    capsys.readouterr()
    assert command("evaluate", directory, "--method", "exact", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    config = config_from({"game": {"name": "long-kuhn", "ante_file": "run/game/ante.txt", "ranks": 5}}, "x").game
    copied = next(directory.rglob("ante.txt")).relative_to(tmp_path)
    game = build_game(LongKuhn(ante_file=str(copied), ranks=config.ranks), tmp_path)
    assert found["exploitability_chips"] < 1e-3
    assert found["value_chips"] == pytest.approx(solve_linear_program(expand(game).game).value_chips, abs=1e-3)
    for kind in ("policy", "zarr", "csv"):
        assert command("export", directory, policy if kind == "policy" else tmp_path / kind, "--format", kind) == 0
    assert command("report", directory, tmp_path / "page.html") == 0
    capsys.readouterr()
    assert command("query", policy, "b", "--hand", "A", "--json") == 0
    shares = {action["action"]: action["probability"] for action in json.loads(capsys.readouterr().out)["actions"]}
    assert shares["c"] > 0.99
    assert command("solve", toy, "--run", tmp_path / "other", "--set", "solver.algorithm=external-sampling") == 2


@pytest.mark.parametrize("algorithm", ["external-sampling", "outcome-sampling", "public-chance-sampling", "cfr"])
def test_every_algorithm_takes_it(tmp_path, toy, algorithm):
    toy.write_text(re.sub(r'algorithm = "cfr"\nvariant = "dcfr"', f'algorithm = "{algorithm}"', toy.read_text()))
    assert command("solve", toy, "--run", tmp_path / "run", "--iterations", 20) == 0


def test_its_keys_are_checked_as_others_are(toy, capsys):
    for line, told in (("bet = -1", "game.bet = -1"), ("wrong = 1", "unknown key 'wrong' in game")):
        toy.write_text(f'[game]\nname = "long-kuhn"\nante_file = "ante.txt"\n{line}\n')
        assert command("plan", toy) == 2
        assert told in capsys.readouterr().err


def test_a_name_belongs_to_one_game(toy):
    class Other(GameConfig, frozen=True, tag="long-kuhn"):
        pass

    with pytest.raises(ValueError, match="there is a game 'long-kuhn' already"):
        register(Other, long_kuhn)


def test_every_listed_game_has_a_table_and_a_maker():
    assert set(GAMES) == set(catalogue._CATALOGUE)
    for name, options in GAMES.items():
        assert options.__struct_config__.tag == name
        assert set(options.file_keys) <= set(options.__struct_fields__)
    assert game_files(GAMES["kuhn"](), None) == {}
