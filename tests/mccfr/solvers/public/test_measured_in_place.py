"""Exploitability of large strategy sums, evaluated without copies, against float64.

Shows:

* Exploitability from float32 or int16 sums, without copies, equals float64 to 1e-5 of the pot
  (test_exploitability_of_sums_in_place_equals_float64; planted:
  test_planted_error_sums_read_as_probabilities_are_caught)
"""

from pathlib import Path

import mutants
import numpy as np
import pytest
from msgspec import structs

from mccfr.config.spot_table import spot_document
from mccfr.config.toml_files import config_from
from mccfr.evaluation import exact
from mccfr.evaluation.exact import evaluate_exact, prepared_tree
from mccfr.games.registry import build_game
from mccfr.runs.results import average_strategies
from mccfr.runs.results.average_strategies import sums_average
from mccfr.runs.session.run_plan import evaluation_bytes, planned_layout, planned_memory
from mccfr.solvers.public import best_response
from mccfr.solvers.public.public_walk import train
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import variant
from mccfr.tables.table_layout import TableSet

POT = 60


def config(board, oop, ip, **more):
    """Return the configuration of a small turn or river spot."""
    sizes = {"first": ["75%"], "later": ["allin"]}
    spot = {"board": board, "ranges": {"oop": oop, "ip": ip}, "pot": POT, "effective_stack": 120, "menu": sizes}
    return config_from(spot_document(spot | more, 0.01, 0), "test")


def spot(*given, **more):
    return build_game(config(*given, **more).game, Path())


SPOTS = {
    "two-tone turn": ("Kc7d2c5h", "AA,KQs,76s:0.3,54s", "QQ,AKs:0.7,87s,A5s,22"),
    "monotone turn": ("Kc7c2c5h", "AA,KQs,76s:0.3,54s", "QQ,AKs:0.7,87s,A5s,22"),
    "paired river": ("Kc7d7s5hTc", "AA,KQ,76s:0.001,JJ", "QQ,AK:0.7,87s,A5s,22"),
}
RAKED = {"rake": "5%", "rake_cap": 4, "locks": {"c": "c 22:0.5,A5s"}}


def take_as_large(module, monkeypatch):
    """Have the module evaluate every game by kernels, and read sums of any size directly."""
    monkeypatch.setattr(module, "IN_PLACE_CELLS", 0)
    monkeypatch.setattr(module, "is_small", lambda game: False)


@pytest.fixture
def every_sum_large(monkeypatch):
    take_as_large(best_response, monkeypatch)


def average(cfr):
    return sums_average(cfr.game, TableSet(cfr.tables, cfr._specs))


@pytest.mark.parametrize("iterations", [0, 1, 30])
@pytest.mark.parametrize(
    ("name", "more", "dtype"),
    [*((name, {}, dtype) for name in SPOTS for dtype in ("float32", "int16")), ("two-tone turn", RAKED, "float32")],
)
def test_exploitability_of_sums_in_place_equals_float64(name, more, iterations, dtype, monkeypatch):
    game = spot(*SPOTS[name], **more)
    cfr = VectorCfr(game, variant("dcfr"), dtype)
    if iterations:
        cfr.iterate(iterations)
    strategy = average(cfr)
    of_arrays, hands = evaluate_exact(game, strategy), best_response.hand_values(game, strategy)
    strategy = average(cfr)
    monkeypatch.setattr(average_strategies, "_sums_outside", None)  # no conversion of 16-bit cells
    take_as_large(best_response, monkeypatch)
    monkeypatch.setattr(exact, "is_small", lambda game: False)
    monkeypatch.setattr(best_response, "full_rows", None)  # no table is allocated
    monkeypatch.setattr(best_response, "value", None)  # the training kernel evaluates, with the same types
    compiled = len(getattr(train, "signatures", ()))  # compilation may be switched off
    for prepared in (None, prepared_tree(game)):
        found = evaluate_exact(game, strategy, prepared)
        assert found.exploitability_chips == pytest.approx(of_arrays.exploitability_chips, abs=1e-5 * POT)
        assert found.value_chips == pytest.approx(of_arrays.value_chips, abs=1e-5 * POT)
        assert found.exploitability_chips != of_arrays.exploitability_chips  # the kernel used float32
        assert not iterations or len(getattr(train, "signatures", ())) == compiled
    for ours, theirs in zip(best_response.hand_values(game, strategy), hands, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6 * np.abs(hands[0]).max())


def test_evaluation_in_place_needs_no_copy_of_the_tables(monkeypatch):
    chosen = config(*SPOTS["paired river"])
    game = build_game(chosen.game, Path())
    layout = planned_layout(chosen, game)
    assert evaluation_bytes(chosen, game, layout) > layout.nbytes
    trained = structs.replace(chosen, run=structs.replace(chosen.run, workers=1))
    assert planned_memory(trained, game, layout)["copy_bytes"] == layout.nbytes
    take_as_large(best_response, monkeypatch)
    assert evaluation_bytes(chosen, game, layout) == 0
    assert planned_memory(trained, game, layout)["copy_bytes"] == 0  # no worker trains during a save


def test_planted_error_sums_read_as_probabilities_are_caught(every_sum_large, monkeypatch):
    """The planted error does not normalise the sums."""
    game = spot(*SPOTS["paired river"])
    cfr = VectorCfr(game, variant("dcfr"))
    cfr.iterate(3)
    wrong = mutants.mutant(best_response, ("sums, threads, sums=True)", "sums, threads)"))
    take_as_large(wrong, monkeypatch)
    right = best_response.values(game, average(cfr))
    assert np.abs(wrong.values(game, average(cfr)) - right).max() > 1e-2 * POT
