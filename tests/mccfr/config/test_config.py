"""Configurations: defaults after a round trip, errors that name file and key."""

import tomllib

import msgspec
import pytest
import tomli_w
from places import RUNS
from refusals import refusals, refused

from mccfr.config.game_tables import GAMES
from mccfr.config.toml_files import config_from, load_config, parse_override, to_document
from mccfr.runs.directory.run import _without_nothing

SHIPPED = sorted(RUNS.glob("*.toml"))

KUHN, SUBGAME = {"name": "kuhn"}, {"name": "holdem-subgame", "file": "x"}
OUTCOME, PUBLIC = {"algorithm": "outcome-sampling"}, {"algorithm": "public-chance-sampling"}


def read(document):
    raise ValueError(refused(r"^run\.toml: ", config_from, document, "run.toml").removeprefix("run.toml: "))


test_errors_name_the_file_the_key_and_the_allowed_values = refusals(
    ("game.name = 'kuhnn' is not one of: 'kuhn', 'leduc'", {"game": {"name": "kuhnn"}}),
    ("unknown key 'x' in game; allowed: name", {"game": {"name": "kuhn", "x": 1}}),
    ("unknown key 'solvr' in the top level", {"game": KUHN, "solvr": {}}),
    ("game.ranks = 'a': expected int | null, got str", {"game": {"name": "leduc", "ranks": "a"}}),
    ("game.bets[0][1] = 'a': expected float", {"game": {"name": "leduc", "bets": [[1, "a"], [2]]}}),
    ("game needs the key 'payoffs'", {"game": {"name": "matrix"}}),
    ("the top level needs the key 'game'", {}),
    ("unknown key 'x' in game.menu.flop", {"game": SUBGAME | {"menu": {"flop": {"x": 1}}}}),
    ("^solver.discount = 'lin' is not one of: 'none', 'linear'", {"game": KUHN, "solver": {"discount": "lin"}}),
    ("^solver.epsilon = 0 .* above 0", {"game": KUHN, "solver": OUTCOME | {"epsilon": 0}}),
    ("^solver.warm_start = 0", {"game": KUHN, "solver": {"algorithm": "cfr-br", "warm_start": 0}}),
    ("^solver.period_nodes = 0 .* at least 1", {"game": KUHN, "solver": {"period_nodes": 0}}),
    ("^run.workers = -1 .* at least 0", {"game": KUHN, "run": {"workers": -1}}),
    ("^run.strata = 0 .* at least 1", {"game": KUHN, "run": {"strata": 0}}),
    ("^run.blocks = 5 .* from 2 to 4, the strata", {"game": KUHN, "run": {"strata": 4, "blocks": 5}}),
    ("^run.cycle_iterations = 0 .* at least 1", {"game": KUHN, "run": {"cycle_iterations": 0}}),
    ("^run.interval = 0 .* above 0", {"game": KUHN, "run": {"interval": 0}}),
    ("^run.nodes = -1 .* at least 0", {"game": KUHN, "run": {"nodes": -1}}),
    ("^run.seconds = -1 .* at least 0", {"game": KUHN, "run": {"seconds": -1}}),
    ("^run.checkpoint_seconds = 0 .* above 0", {"game": KUHN, "run": {"checkpoint_seconds": 0}}),
    ("^run.keep_checkpoints = 0 .* at least 1", {"game": KUHN, "run": {"keep_checkpoints": 0}}),
    ("^tables.live_dir = '' .* of length at least 1", {"game": KUHN, "tables": {"live_dir": ""}}),
    ("^tables.memory_budget = '9 x' .* TiB, such as '16GB'", {"game": KUHN, "tables": {"memory_budget": "9 x"}}),
    ("^evaluation.at_nodes.0. = -1 .* at least 0", {"game": KUHN, "evaluation": {"at_nodes": [-1]}}),
    ("^evaluation.boards = 1 .* at least 2", {"game": KUHN, "evaluation": {"boards": 1}}),
    ("evaluation.method = .* some of .'auto', 'exact'", {"game": KUHN, "evaluation": {"method": ["exact", "magic"]}}),
    ("evaluation.method = .* must be some of .'auto', 'exact'", {"game": KUHN, "evaluation": {"method": []}}),
    ("^evaluation.hands = 99 .* at least 100", {"game": KUHN, "evaluation": {"hands": 99}}),
    ("^cluster.machines = .2, 1. .* from 1 to 1024", {"game": KUHN, "cluster": {"machines": [2, 1]}}),
    ("^cluster.network = 'a,b' .* the name of an interface", {"game": KUHN, "cluster": {"network": "a,b"}}),
    call=read,
)
test_unreadable_files_and_overrides_are_refused = refusals(
    ("no such file", lambda tmp_path: load_config(tmp_path / "absent.toml")),
    ("not a TOML file", lambda tmp_path: (tmp_path / "x").write_text("[game\n") and load_config(tmp_path / "x")),
    (r"expected table\.key=value", parse_override, "seed=3"),
)


@pytest.mark.parametrize("name", GAMES)
def test_every_game_is_the_same_after_a_round_trip_with_defaults(name):
    required = {"matrix": {"payoffs": [[1.0, 0.9], [-0.7, 1.0]]}, "openspiel": {"game": "tic_tac_toe"}}
    required["holdem-subgame"] = {"file": "x"}
    config = config_from({"game": {"name": name, **required.get(name, {})}}, "x")
    text = tomli_w.dumps(_without_nothing(to_document(config)))
    again = config_from(tomllib.loads(text), "y")
    # Types as well as values: 2 and 2.0 would give one run two identities.
    assert msgspec.json.encode(again) == msgspec.json.encode(config)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_configs_load(path):
    load_config(path)


def test_overrides_take_toml_values_and_bare_words(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('[game]\nname = "kuhn"\n')
    config = load_config(path, ["solver.seed=3", "solver.discount=none", "run.nodes=1e3"])
    assert (config.solver.seed, config.solver.discount, config.run.nodes) == (3, "none", 1000)
