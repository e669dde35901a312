"""Configs: defaults survive the round trip, and every kind of bad input is one sentence that names file and key."""

import tomllib

import msgspec
import pytest
import tomli_w
from places import RUNS

from mccfr.config.file import config_from, load_config, parse_override, to_document
from mccfr.config.games import GAMES
from mccfr.runs.directory.run import _without_nothing

SHIPPED = sorted(RUNS.glob("*.toml"))

BAD = {
    "game.name = 'kuhnn' is not one of: 'kuhn', 'leduc'": {"game": {"name": "kuhnn"}},
    "unknown key 'x' in game; allowed: name": {"game": {"name": "kuhn", "x": 1}},
    "unknown key 'solvr' in the top level": {"game": {"name": "kuhn"}, "solvr": {}},
    "game.ranks = 'a': expected int, got str": {"game": {"name": "leduc", "ranks": "a"}},
    "game.bets[0][1] = 'a': expected float": {"game": {"name": "leduc", "bets": [[1, "a"], [2]]}},
    "game needs the key 'payoffs'": {"game": {"name": "matrix"}},
    "the top level needs the key 'game'": {},
    "solver.discount = 'lin' is not one of: 'none', 'linear'": {
        "game": {"name": "kuhn"},
        "solver": {"discount": "lin"},
    },
    "run.workers = -1 is not allowed": {"game": {"name": "kuhn"}, "run": {"workers": -1}},
    "solver.epsilon = 0.0 is not allowed": {
        "game": {"name": "kuhn"},
        "solver": {"algorithm": "outcome-sampling", "epsilon": 0},
    },
    "solver.averaging_power = 2.0 is not allowed: it must be left out with solver.discount = 'dcfr'": {
        "game": {"name": "kuhn"},
        "solver": {"discount": "dcfr", "averaging_power": 2},
    },
    "solver.averaging_power = 2.0 is not allowed: it must be left out with solver.floored_regrets": {
        "game": {"name": "leduc"},
        "solver": {"algorithm": "public-chance-sampling", "discount": "none", "averaging_power": 2},
    },
    "solver.averaging_power = -1.0 is not allowed: it must be at least 0": {
        "game": {"name": "kuhn"},
        "solver": {"averaging_power": -1},
    },
    "solver.period_nodes = 0 is not allowed": {"game": {"name": "kuhn"}, "solver": {"period_nodes": 0}},
    "evaluation.at_nodes = [-1] is not allowed": {"game": {"name": "kuhn"}, "evaluation": {"at_nodes": [-1]}},
    "unknown key 'x' in game.menu.flop": {"game": {"name": "holdem-subgame", "file": "a", "menu": {"flop": {"x": 1}}}},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_config_names_file_key_and_what_is_allowed(message):
    with pytest.raises(ValueError, match=r"^run\.toml: ") as caught:
        config_from(BAD[message], "run.toml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", GAMES)
def test_every_game_survives_being_written_out_with_its_defaults(name):
    required = {
        "holdem-subgame": {"file": "x"},
        "openspiel": {"game": "tic_tac_toe"},
        "matrix": {"payoffs": [[1.0, 0.9], [-0.7, 1.0]]},
    }
    config = config_from({"game": {"name": name, **required.get(name, {})}}, "x")
    text = tomli_w.dumps(_without_nothing(to_document(config)))
    again = config_from(tomllib.loads(text), "y")
    # Types as well as values: 2 and 2.0 would give one run two identities.
    assert msgspec.json.encode(again) == msgspec.json.encode(config)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_configs_load(path):
    assert load_config(path).run.workers >= 0


def test_overrides_take_toml_values_and_bare_words(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('[game]\nname = "kuhn"\n')
    config = load_config(path, ["solver.seed=3", "solver.discount=none", "run.nodes=1e3"])
    assert (config.solver.seed, config.solver.discount, config.run.nodes) == (3, "none", 1000)
    with pytest.raises(ValueError, match=r"expected table\.key=value"):
        parse_override("seed=3")


def test_missing_and_malformed_files(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        load_config(tmp_path / "absent.toml")
    (tmp_path / "broken.toml").write_text("[game\n")
    with pytest.raises(ValueError, match="not a TOML file"):
        load_config(tmp_path / "broken.toml")
