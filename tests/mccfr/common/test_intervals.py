"""95 % intervals of head-to-head: coverage with few boards, planted errors."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from mutants import mutant
from refusals import refused
from small_games import TOY
from strategies import play, random_strategy, tabulate

from mccfr.common import intervals
from mccfr.common.intervals import ratio95, student95
from mccfr.evaluation import head_to_head as module
from mccfr.games.registry import build_game
from mccfr.tables.strategy import Strategy, pure_strategy

REPLICATIONS = 4000
PLAIN_MEAN = ("residual = value - ratio * weight", "residual = value - value.mean()")
"""A planted error: the standard error of a mean in place of a ratio's."""
NORMAL = ("factor = student95(freedom)", "factor = _Z95")
OF_ONE_BOARD = ("/ freedom / count * undrawn", "/ freedom * undrawn")
"""Planted errors: too narrow intervals for few boards, and intervals as wide as for one board."""


@cache
def lopsided():
    """A listed game whose boards weigh 0.2 to 1.3 times the mean: both ranges hold mostly one rank."""
    game = build_game(TOY, None)
    rank = game.cards.hand_cards // TOY.suits
    reach = np.tile(np.where((rank == 0).any(axis=1), 1.0, 0.1), (2, 1))
    return replace(game, cards=replace(game.cards, reach=reach))


@cache
def every_board():
    """Return chips won and weight on every board of the lopsided game; one side folds most of the time."""
    game, kept = lopsided(), []
    folds, plays = pure_strategy(game, "f"), random_strategy(game, 1)
    mixed = [0.7 * often + 0.3 * rarely for often, rarely in zip(folds.probability, plays.probability, strict=True)]

    def keep(won, weight, listed):
        kept.append((won, weight))
        return ratio95(won, weight, listed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ratio95", keep)
        play(game, Strategy(tuple(mixed), plays.weight), random_strategy(game, 2))
    return kept[0]


def coverage(make, won, weight, boards, replications=REPLICATIONS):
    """Return the share of intervals from `boards` drawn boards that contain the ratio over all boards."""
    rng, truth = np.random.default_rng(boards), won.sum() / weight.sum()
    drawn = rng.integers(0, len(won), (replications, boards))
    found = [make(won[rows], weight[rows])[1] for rows in drawn]
    return np.mean([low <= truth <= high for low, high in found])


def test_student_factors_agree_with_scipy_and_need_two_samples():
    from scipy import stats

    for freedom in (1, 2, 10, 11, 15, 40, 99, 999):
        assert student95(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=3e-4)
    refused("at least two samples", student95, 0)
    refused("at least two samples", ratio95, np.ones(1), np.ones(1), 2)


def test_the_ratio_over_all_samples_is_exact():
    value, weight = np.array([1.0, 5.0, 3.0]), np.array([1.0, 2.0, 3.0])
    assert ratio95(value, weight, 3) == (1.5, (1.5, 1.5))
    assert ratio95(value[:1], weight[:1], 1) == (1.0, (1.0, 1.0))
    widths = [np.ptp(ratio95(value, weight, population)[1]) for population in (None, 4)]
    assert widths[1] == pytest.approx(widths[0] / 2)  # a quarter is left to be drawn


@pytest.mark.parametrize("boards", [2, 5, 10, 20])
def test_intervals_from_few_boards_have_the_stated_coverage(boards):
    won, weight = every_board()
    assert 0.92 <= coverage(ratio95, won, weight, boards) <= 0.98
    if boards == 2:
        planted = mutant(intervals, NORMAL).ratio95
        assert coverage(planted, won, weight, boards) < 0.8
    if boards == 10:
        planted = mutant(intervals, OF_ONE_BOARD).ratio95
        assert coverage(planted, won, weight, boards) > 0.99


def test_the_error_of_a_plain_mean_is_caught():
    won, weight = every_board()
    assert weight.std() > 0.3 * weight.mean()
    planted = mutant(intervals, PLAIN_MEAN).ratio95
    assert not 0.92 <= coverage(planted, won, weight, 20) <= 0.98


def test_equal_results_on_every_board_give_an_interval_of_width_zero(monkeypatch):
    """One side bets, the other folds: one chip for each hand on every board, whatever the board's weight."""
    game = lopsided()
    labels, children = game.tree.label, game.tree.children
    bets = tabulate(game, lambda node, _: np.eye(len(children(node)))[-1])
    folds = pure_strategy(game, "f")
    assert any(label.startswith("r") for label in labels)
    found = play(game, folds, bets, boards=10, seed=1)
    assert found.mean_chips == pytest.approx(-1, rel=1e-12)
    assert found.ci95_chips == pytest.approx((-1, -1), rel=1e-9)
    monkeypatch.setattr(module, "ratio95", mutant(intervals, PLAIN_MEAN).ratio95)
    assert np.ptp(play(game, folds, bets, boards=10, seed=1).ci95_chips) > 0.1
