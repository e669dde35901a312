"""Every command with every algorithm on every kind of game.

Shows:

* Each algorithm and kind of game works in each run command, or fails with one sentence (test_every_verb)
"""

import json

import pytest
import tomli_w
from commands import call
from places import ROOT

from mccfr.config.solver_tables import OPTIONS
from mccfr.config.toml_files import config_from
from mccfr.experiments import plot
from mccfr.games.registry import build_game
from mccfr.runs.directory.verification import problems_of
from mccfr.trees.compiled import can_pack

GAMES = {
    "listed cards": {"name": "kuhn"},
    "boards": {"name": "leduc", "merge_suits": True},
    "many actions": {"name": "poker", "suits": 1, "antes": [1, 1], "stack": 10, "max_raises": [1, 0]},
    "histories": {"name": "goofspiel", "cards": 3},
    "three players": {"name": "kuhn", "players": 3},
    "whole deck": {"name": "holdem", "stack": 300, "menu": {"first": ["1p"], "later": [], "max_bets": 1}},
}
CARDLESS = ("histories", "three players")
PACKED = ("listed cards", "boards")
EXPORTS = ("zarr", "hdf5", "csv", "parquet", "openspiel")
"""Export formats: each pair of algorithm and game tests one of them and the policy."""
METHODS = ("exact", "head-to-head")
BOUNDS = {  # options for the whole deck; small games need none
    "sampled-br": ["--boards", 5],
    "lbr": ["--hands", 100],
}
SOLVERS = {"deep-cfr": {"fit": "table", "traversals": 5}}


@pytest.fixture
def command(capsys):
    """Run a command; return its status and output. Status 2 needs one sentence on standard error."""

    def run(*arguments):
        capsys.readouterr()
        status, out, err = call(capsys, *arguments)
        assert status in (0, 2), (arguments, status, err)
        assert status == 0 or (err.count("\n") == 1 and "Traceback" not in err), (arguments, err)
        return status, out

    return run


def allowed(algorithm, game):
    """Return True if the algorithm suits the game.

    Public chance sampling and CFR-BR need cards beside the tree; full width and deep CFR need listed boards.
    """
    listed = ("whole deck",)
    others = ("whole deck", "three players")
    refused = {"public-chance-sampling": CARDLESS, "cfr": listed, "deep-cfr": others, "cfr-br": CARDLESS}
    return game not in refused.get(algorithm, ())


def few_boards(method):
    return ["--boards", 2] if method == "head-to-head" else []


def slow(algorithm, game):
    """Return True for a whole deck with large bucket tables; games/test_holdem.py has fast tests."""
    return game == "whole deck" and allowed(algorithm, game)


PAIRS = [(algorithm, game) for algorithm in OPTIONS for game in GAMES]


@pytest.mark.parametrize("game", [game for game in GAMES if game != "whole deck"])
def test_the_games_have_packed_and_unpacked_trees(game):
    assert can_pack(build_game(config_from({"game": GAMES[game]}, "test").game, ROOT).tree) == (game in PACKED)


@pytest.mark.parametrize(
    ("algorithm", "game"), [pytest.param(*pair, marks=[pytest.mark.slow] if slow(*pair) else ()) for pair in PAIRS]
)
def test_every_command_works_or_is_refused(algorithm, game, tmp_path, command, slot_abstractions, tables_read_once):
    config, directory = tmp_path / "run.toml", tmp_path / "run"
    document = {
        "game": GAMES[game],
        "solver": {"algorithm": algorithm, **SOLVERS.get(algorithm, {})},
        "run": {"workers": 0, "iterations": 20},
        "evaluation": {"at_iterations": [10]},
    }
    if game == "whole deck":
        document["abstraction"] = {"path": str(slot_abstractions[1])}
        document["evaluation"] = {"at_end": False}
    config.write_text(tomli_w.dumps(document))
    started = command("solve", config, "--run", directory)[0]
    assert started == command("plan", config)[0] == (0 if allowed(algorithm, game) else 2)
    if started == 2:
        assert not directory.exists()
        return
    assert command("resume", directory, "--iterations", 30)[0] == 0
    trained = json.loads(command("status", directory, "--json")[1])["iterations"]
    assert trained == 30 or (algorithm == "outcome-sampling" and trained == 32)  # it plays whole groups of deals
    assert command("verify", directory)[0] == 0
    measured = {}
    for method in METHODS:
        if (method, game) == ("exact", "whole deck"):
            continue  # it takes an hour: evaluation/test_first_street.py
        status, text = command("evaluate", directory, "--method", method, *few_boards(method), "--json")
        assert status == (2 if method == "head-to-head" and game in CARDLESS else 0)
        if status == 0:
            measured[method] = json.loads(text)
            assert measured[method]["iterations"] == trained
    for method, options in BOUNDS.items():
        more = options if game == "whole deck" else []
        status, text = command("evaluate", directory, "--method", method, *more, "--json")
        assert status == (2 if game in CARDLESS else 0)
        if status == 0 and game != "whole deck":
            assert json.loads(text)["exploitability_chips"] <= measured["exact"]["exploitability_chips"] + 1e-9
    for form in ("policy", EXPORTS[PAIRS.index((algorithm, game)) % len(EXPORTS)]):
        out = tmp_path / f"out.{form}"
        status = command("export", directory, out, "--format", form)[0]
        assert status == 0 or form == "openspiel"
        assert out.exists() == (status == 0)
    assert problems_of(tmp_path / "out.policy") == []
    own = METHODS[game == "whole deck"]
    again = json.loads(command("evaluate", tmp_path / "out.policy", "--method", own, *few_boards(own), "--json")[1])
    found = measured[own]
    for key in ("value_chips", "exploitability_chips"):
        assert again[key] == pytest.approx(found[key], abs=2e-3)


@pytest.mark.parametrize("algorithm", OPTIONS)
def test_every_algorithm_is_compared(algorithm, tmp_path, command, monkeypatch):
    """Leave out the plot, which is slow and which test_compare.py tests."""
    monkeypatch.setattr(plot, "can_plot", lambda: False)
    document = {
        "game": {"name": "kuhn"},
        "solver": {"algorithm": algorithm, **SOLVERS.get(algorithm, {})},
        "run": {"workers": 0},
        "compare": {"last": 8, "points": 2, "variant": [{"name": "one"}]},
    }
    (tmp_path / "experiment.toml").write_text(tomli_w.dumps(document))
    assert command("compare", tmp_path / "experiment.toml", tmp_path / "out")[0] == 0
    assert (tmp_path / "out" / "table.csv").read_text().count("\n") == 3
