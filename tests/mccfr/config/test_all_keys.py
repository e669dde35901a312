"""Every key of a game or an algorithm changes the game or the training, or is refused.

Shows:

* Each key of each game and each algorithm has an effect or is refused (test_a_key_of_a_game_has_an_effect,
  test_a_key_of_an_algorithm_has_an_effect)
* A key without effect is refused in one sentence (test_a_key_without_effect_is_refused)
"""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from places import RUNS
from refusals import refused

import mccfr
from mccfr.config.game_tables import GAMES
from mccfr.config.run_tables import AbstractionConfig
from mccfr.config.solver_tables import OPTIONS
from mccfr.config.toml_files import config_from, load_document
from mccfr.games.registry import build_game
from mccfr.runs.reporter import Silent
from mccfr.runs.session.start import Start, Terms, rehearse

TYPED = {"board": "QsJh2h", "ranges": {"oop": "AA", "ip": "KK,77"}, "pot": 10, "effective_stack": 20}
RAISES = {"first": ["1p"], "later": ["1p"], "max_bets": 2}
BASES = {
    "poker": {"blinds": [1, 2], "stack": 9, "menu": {"first": ["1p"], "max_bets": 2}},
    "poker limit": {"antes": [1, 1], "raise_sizes": [2, 4], "max_raises": [1, 1], "stack": 99},
    "matrix": {"payoffs": [[1, 0], [0, 1]]},
    "holdem-subgame": TYPED,
    "holdem-subgame file": {"file": str(RUNS / "games/river.txt")},
    "holdem": {"stack": 400, "menu": RAISES},
    "holdem three": {"seats": 3, "blinds": [2500, 5000], "menu": RAISES},
}
"""Required keys of games; the other games need none."""
CHANGED = {
    "kuhn": {"players": 3},
    "leduc": {"players": 3, "ranks": 4, "suits": 3, "raises": 1, "bets": [[1], [4]], "merge_suits": True},
    "goofspiel": {"cards": 4, "reveal": "result"},
    "matrix": {"payoffs": [[1, 0], [0, 2]]},
    "poker": {"ranks": 4, "suits": 3, "hole_cards": 2, "board_cards": [0, 2], "blinds": [2, 1], "stack": 8}
    | {"menu": {"first": ["allin"]}, "first_player": [2, 2], "merge_suits": True},
    "poker limit": {"raise_sizes": [2, 3], "max_raises": [2, 1], "antes": [2, 2]},
    "clairvoyance": {"streets": 2, "bet": 0.5, "probability": 0.3},
    "holdem-subgame": {"board": "QsJh2d", "ranges": {"oop": "AA", "ip": "KK"}, "pot": 12, "effective_stack": 10}
    | {"big_blind": 9, "rake": "10%", "rake_cap": None, "stack": None}
    | {"menu": {"first": ["1p"]}, "locks": {"": "c 100%"}},
    "holdem-subgame file": {"file": str(RUNS / "games/turn.txt"), "stack": 9000, "big_blind": 900},
    "holdem": {"seats": 3, "stack": 300, "blinds": [50, 80], "ante": 5, "menu": {"first": ["allin"]}}
    | {"locks": {"": "c 100%"}, "stacks": None, "big_blind_ante": None, "rake": None, "flop_players": None},
    "holdem three": {"seats": 4, "stacks": [9000, 15000, 20000], "ante": 250, "big_blind_ante": 500}
    | {"flop_players": 2, "rake": "5%", "rake_cap": None, "menu": RAISES | {"limp": "small_blind"}},
    "flop-holdem": {"bet": "pot", "limp": False, "max_raises": 1, "board_cards": 5},
}
"""A value of each key that changes the game; None: the other keys exclude this key."""
REFUSED = {"stacks": [300, 300], "rake": "5%"}
"""Values of the excluded keys; 1 for the other keys."""
ELSEWHERE = {"limit-holdem", "openspiel"}
"""Games that need an abstraction or another package."""
TRAINED = {
    "external-sampling": {"period_nodes": 300, "negative_regret_pruning": True, "prune_after_nodes": 10}
    | {"prune_below_bb": 1.0, "floor_bb": 2.0},
    "outcome-sampling": {"period_nodes": 300},
    "public-chance-sampling": {"period_nodes": 300},
    "cfr": {},
    "cfr pruned": {"pruning": "regret-based"},
    "cfr-br": {"period_nodes": 300},
}
VALUES = {
    **{"seed": 1, "period_nodes": 700, "discount": "initial", "discount_until_nodes": 200, "epsilon": 0.3},
    **{"negative_regret_pruning": False, "prune_after_nodes": 900, "prune_below_bb": 0.5, "floor_bb": 300.0},
    **{"variant": "cfr+", "alpha": 1.2, "beta": 0.3, "averaging_power": 3.0, "horizon": 40, "dtype": "float32"},
    **{"updates": "simultaneous", "pruning": "partial", "best_response": "zero-reach", "prune_threshold": 2},
    **{"trunk": "lossless", "warm_start": 500},
}
"""A value of each key of the algorithms in `TRAINED`."""
UNUSED = {
    "cfr": {"seed", "horizon", "prune_threshold"},
    "cfr pruned": {"seed", "horizon", "dtype", "best_response", "alpha", "beta"},
    "external-sampling": {"negative_regret_pruning"},
    "cfr-br": {"trunk"},
}
"""Keys of an algorithm that its other keys exclude."""


def add_to_hash(value, into):
    """Add arrays, numbers and texts of nested objects to a hash."""
    if isinstance(value, np.ndarray):
        into.update(f"{value.dtype} {value.shape}".encode() + value.tobytes())
    elif isinstance(value, list | tuple):
        for each in value:
            add_to_hash(each, into)
    elif isinstance(value, dict) or hasattr(value, "__dict__"):
        items = (value if isinstance(value, dict) else vars(value)).items()
        for name, each in sorted(items, key=lambda item: str(item[0])):
            into.update(str(name).encode())
            add_to_hash(each, into)
    elif isinstance(value, str | int | float | None):
        into.update(repr(value).encode())


def hashed(value):
    add_to_hash(value, digest := hashlib.sha256())
    return digest.hexdigest()


def game(which, **keys):
    table = {"name": which.split()[0], **BASES.get(which, {}), **keys}
    quick = AbstractionConfig(path="none", recipe=str(RUNS / "abstractions/quick.toml"))
    return hashed(build_game(config_from({"game": table}, "run.toml").game, Path(), quick))


def trained(which, **keys):
    solver = mccfr.solver("leduc", which.split()[0], **TRAINED[which] | keys)
    solver.run(**{"iterations": 60} if which.startswith("cfr") and which != "cfr-br" else {"nodes": 1500})
    return hashed([dict(solver.tables), solver.iterations, solver.nodes_touched])


def test_every_key_of_every_game_and_algorithm_is_tried():
    for name, table in GAMES.items():
        tried = {key for which, keys in CHANGED.items() if which.split()[0] == name for key in keys}
        assert name in ELSEWHERE or tried == {*table.__struct_fields__}
    own = {key for which in TRAINED for key in OPTIONS[which.split()[0]].__struct_fields__}
    assert {*VALUES} == own and {*OPTIONS} - {which.split()[0] for which in TRAINED} == {"deep-cfr"}


@pytest.mark.parametrize("which", CHANGED)
def test_a_key_of_a_game_has_an_effect(which):
    plain = game(which)
    assert plain == game(which)
    for key, value in CHANGED[which].items():
        if value is None:
            refused(f"game.{key} = ", game, which, **{key: REFUSED.get(key, 1)})
        else:
            assert game(which, **{key: value}) != plain, key


@pytest.mark.parametrize("which", TRAINED)
def test_a_key_of_an_algorithm_has_an_effect(which):
    """Keys of the algorithm change the tables; keys of other algorithms are refused."""
    plain = trained(which)
    assert plain == trained(which)
    own = {*OPTIONS[which.split()[0]].__struct_fields__}
    for key, value in VALUES.items():
        if key in own - UNUSED.get(which, set()):
            assert trained(which, **{key: value}) != plain, key
        else:
            refused(key, trained, which, **{key: value})


NOT_EVALUATED = {"evaluation.at_end": False, "evaluation.every_checkpoint": False}
RIVER = TYPED | {"board": "QsJh2h7c3d"}
ROWS = {
    "solver.epsilon = 0.3 has no effect on solver.algorithm = 'cfr'": {"solver.epsilon": 0.3},
    "solver.warm_start = 9 has no effect": {"solver.algorithm": "external-sampling", "solver.warm_start": 9},
    "tables.regret_dtype = 'float64'": {"tables.regret_dtype": "float64"},
    "tables.sum_dtype = 'float32'": {"tables.sum_dtype": "float32"},
    "solver.seed = 3": {"solver.seed": 3},
    "run.interval = 8": {"run.interval": 8},
    "run.cycle_iterations = 8": {"run.cycle_iterations": 8},
    "run.exploitability_pot = '10%' .* nothing is evaluated": {"run.exploitability_pot": "10%", **NOT_EVALUATED},
    "run.exploitability_pot has no effect": {"run.exploitability_pot": "10%", "evaluation.method": "lbr"},
    "cluster.network = 'eth0'": {"cluster.network": "eth0"},
    "cluster.machines": {"cluster.machines": [1, 2]},
    "evaluation.keep = True": {"evaluation.keep": True},
    "evaluation.boards has no effect": {"evaluation.boards": 9},
    "evaluation.setting has no effect": {"evaluation.setting": "2"},
    "evaluation.hands has no effect": {"evaluation.hands": 300, "evaluation.method": ["head-to-head"]},
    "solver.card_units = 8": {"solver.algorithm": "deep-cfr", "solver.card_units": 8},
    "solver.strategy_steps = 8": {"solver.algorithm": "deep-cfr", "solver.strategy_steps": 8},
    "solver.steps = 8": {"solver.algorithm": "deep-cfr", "solver.fit": "table", "solver.steps": 8},
    "game.menu.flop is not allowed": {"game": {"name": "holdem-subgame", **RIVER, "menu": {"flop": {"first": ["1p"]}}}},
    "game.menu.donk has no effect": {"game": {"name": "holdem-subgame", **RIVER, "menu": {"donk": ["1p"]}}},
    "game.menu.flop.donk has": {"game": {"name": "holdem-subgame", **TYPED, "menu": {"flop": {"donk": ["1p"]}}}},
}
"""Keys added to a run of `cfr` on Kuhn poker, by their error message."""


def check(tmp_path, keys):
    (path := tmp_path / "run.toml").write_text('[game]\nname = "kuhn"\n[solver]\nalgorithm = "cfr"\n')
    document = load_document(path)
    for key, value in keys.items():
        table, _, name = key.partition(".")
        document |= {table: {**document.get(table, {}), name: value} if name else value}
    rehearse(Start(config_from(document, "run.toml"), tmp_path, tmp_path / "run", Terms(Silent())))


@pytest.mark.parametrize("words", ROWS)
def test_a_key_without_effect_is_refused(tmp_path, words):
    refused(words, check, tmp_path, ROWS[words])


def test_the_same_keys_are_accepted_where_they_have_an_effect(tmp_path):
    check(tmp_path, {})
    check(tmp_path, {"evaluation.method": ["lbr", "head-to-head"], "evaluation.setting": "2", "evaluation.boards": 9})
    check(tmp_path, {"evaluation.keep": True, "evaluation.at_nodes": [9], "run.exploitability_pot": "10%"})
