"""Orderings of variants that the discounting paper claims and exact arithmetic bears out (Brown & Sandholm 2019).

On river subgames 3 and 4 of the LibratusEndgames files, and on Goofspiel.
"""

from functools import cache

import numpy as np
import pytest
from places import ENDGAMES, ROOT

from mccfr.config.games import GoofspielGame, HoldemSubgame
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.catalogue import build_game
from mccfr.games.game import Game
from mccfr.solvers.histories.history_cfr import HistoryCfr
from mccfr.solvers.public.best_response import best_response_value
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import variant

MEAN_OVER = (256, 512, 1024, 2048)

pytestmark = pytest.mark.slow


@cache
def subgame(number: int) -> Game:
    path = ENDGAMES / f"subgame{number}.txt"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    return build_game(HoldemSubgame(file=str(path)), ROOT)


@cache
def curve(number: int, name: str) -> dict[int, float]:
    """Exploitability in chips after each of the iterations."""
    cfr, found = VectorCfr(subgame(number), variant(name), "float64"), {}
    for iteration in MEAN_OVER:
        cfr.iterate(iteration - cfr.iteration)
        strategy = cfr.average_strategy()
        found[iteration] = sum(best_response_value(cfr.game, strategy, p, cfr.public) for p in range(2)) / 2
    return found


def mean(number: int, name: str) -> float:
    """Geometric mean over the iterations."""
    return float(np.exp(np.log(list(curve(number, name).values())).mean()))


@pytest.mark.parametrize("number", [3, 4])
def test_dcfr_is_better_than_cfr_plus(number):
    assert mean(number, "dcfr") < mean(number, "cfr+")


@pytest.mark.parametrize("number", [3, 4])
def test_flooring_makes_linear_cfr_worse_than_either_parent(number):
    """LCFR+ is 11 times worse than LCFR, and 2.2 and 14 times worse than CFR+; averages by t² do not help."""
    assert mean(number, "lcfr+") > max(mean(number, "lcfr"), mean(number, "cfr+"))
    assert mean(number, "lcfr+quadratic") > mean(number, "lcfr")


@pytest.mark.parametrize("number", [3, 4])
def test_discounting_that_allows_pruning_costs_little(number):
    assert mean(number, "dcfr-pruning") < 1.5 * mean(number, "dcfr")


@pytest.mark.parametrize(("number", "better"), [(3, True), (4, False)])
def test_optimism_helps_linear_cfr_on_3_and_not_on_4(number, better):
    assert (curve(number, "optimistic-lcfr")[1024] < curve(number, "lcfr")[1024]) == better


@pytest.mark.parametrize(("number", "better"), [(3, True), (4, False)])
def test_normal_hedge_helps_dcfr_on_3_and_not_on_4(number, better):
    assert (curve(number, "nh-dcfr")[512] < curve(number, "dcfr")[512]) == better


def test_goofspiel_after_1000_iterations():
    game, found = build_game(GoofspielGame(), ROOT), {}
    for name in ("cfr", "cfr+", "lcfr", "dcfr"):
        cfr = HistoryCfr(game, variant(name))
        cfr.iterate(1000)
        result = evaluate_exact(game, cfr.average_strategy())
        found[name] = result.exploitability_chips
        assert result.value_chips == pytest.approx(0, abs=2 * found[name])  # the game is symmetric
    assert found["lcfr"] > found["cfr"]
    assert found["dcfr"] < 1.3 * found["cfr+"]
    assert max(found.values()) < 0.1  # 4 for uniform play
