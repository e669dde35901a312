"""Self-consistency against its definition: loops over every deal and decision of small games.

Shows:

* Self-consistency equals its definition, deal by deal (test_it_equals_the_definition,
  test_it_equals_the_definition_on_buckets)
* An equilibrium loses nothing, and a planted bad action is found (test_an_equilibrium_loses_nothing; planted:
  test_who_always_checks_and_folds_loses_a_chip_by_training)
* The loss by buckets shows a planted bucket that joins different hands (planted: test_a_planted_bucket_is_found)
"""

import numpy as np
import pytest
from naive import all_deals, dealt_hands, value
from refusals import refused
from small_games import by_twos, deck_game, game_of
from strategies import random_strategy

import mccfr
from mccfr.config.game_tables import PokerGame
from mccfr.evaluation.evaluation_progress import steps_reported
from mccfr.evaluation.self_consistency import _DecisionSample, _result, self_consistency
from mccfr.games.registry import build_game
from mccfr.policy.strategy_profile import Profile
from mccfr.tables.strategy import Strategy, tabulate
from mccfr.trees.compiled import DECISION

PAIRS = PokerGame(ranks=3, suits=2, hole_cards=2, board_cards=[0, 1], antes=[1, 1], stack=3)
MERGED = PokerGame(ranks=3, suits=2, board_cards=[0, 1, 1], antes=[1, 1], stack=3, merge_suits=True)


def game(name):
    made = {"pairs": PAIRS, "merged": MERGED}
    return build_game(made[name], None) if name in made else game_of(name)


def defined(game, strategy):
    """Return [2, S] by street the loss, and the gain of a bucket's best action: means over seats."""
    deals, (_, hands, chains, *_) = all_deals(game), dealt_hands(game)
    arrays, losses = game.tree.arrays, np.zeros((2, game.tree.streets))

    def visit(node, reach):
        if arrays.kind[node] != DECISION:
            return
        block, slot, player = int(arrays.block[node]), int(arrays.slot[node]), int(arrays.player[node])
        street, bucket, children = block // 2, deals[1][:, block], list(game.tree.children(node))
        sign = 1 if player == 0 else -1
        won = np.array([sign * reach * value(game, strategy, child, deals) for child in children])
        share = np.array([strategy.probability[block][bucket, slot + a] for a in range(len(children))])
        mix = (share * won).sum()
        for part, known in enumerate((np.column_stack([hands[:, player], chains[:, : street + 1]]), bucket)):
            _, group = np.unique(known, axis=0, return_inverse=True)
            sums = np.array([np.bincount(group.reshape(-1), row) for row in won])
            losses[part, street] += (sums.max(axis=0).sum() - mix) / 2
        for child, played in zip(children, share, strict=True):
            visit(child, reach * played)

    visit(0, deals[0].copy())
    return losses


def figures(found):
    return np.array([[mean for mean, _ in found.streets], [mean for mean, _ in found.training]])


@pytest.mark.parametrize("name", ["kuhn", "leduc", "leduc, suits merged", "pairs", "merged"])
def test_it_equals_the_definition(name):
    for seed in range(2):
        strategy = random_strategy(game(name), seed)
        found = self_consistency(Profile(game(name), strategy))
        assert figures(found) == pytest.approx(defined(game(name), strategy), abs=1e-12)
        assert found.streets == found.training or np.diff(figures(found), axis=0) == pytest.approx(0, abs=1e-12)
        assert found.lost[0] == pytest.approx(figures(found)[0].sum()) and found.lost[1] == (found.lost[0],) * 2


@pytest.mark.parametrize("name", ["kuhn", "leduc", "pairs"])
def test_it_equals_the_definition_on_buckets(name):
    coarse = by_twos(game(name))
    strategy = random_strategy(coarse, 1)
    expected = defined(coarse, strategy)
    assert figures(self_consistency(Profile(coarse, strategy))) == pytest.approx(expected, abs=1e-12)
    lost = expected[0] - expected[1]
    assert (lost > -1e-12).all() and lost.sum() > 0.01  # by buckets


def solved(game):
    solver = mccfr.solver(game, "cfr", variant="dcfr")
    solver.run(iterations=3000)
    return solver.strategy()


def test_who_always_checks_and_folds_loses_a_chip_by_training():
    """Compare a bet, which wins the pot, with a check: a jack gains 2 chips, a queen 1, a king 0."""
    for made in (game_of("kuhn"), by_twos(game_of("kuhn"))):
        found = self_consistency(Profile(made, tabulate(made, lambda node, bucket: [1, 0])))
        assert found.lost[0] == pytest.approx(1) and found.training == found.streets


def test_an_equilibrium_loses_nothing():
    game = game_of("kuhn")
    strategy = solved(game)
    assert self_consistency(Profile(game, strategy)).lost[0] < 2e-4
    worse = [rows.copy() for rows in strategy.probability]
    slot = int(game.tree.arrays.slot[game.tree.label.index("b")])
    worse[1][2, slot : slot + 2] = [1, 0]  # a planted error: player 1 folds the king to a bet
    found = self_consistency(Profile(game, Strategy(tuple(worse), strategy.weight)))
    assert found.lost[0] > 0.1 and found.streets == found.training


def test_a_planted_bucket_is_found():
    """With jacks and queens in one bucket a solved policy loses by buckets, and hardly by training."""
    game = by_twos(game_of("kuhn"))
    found = self_consistency(Profile(game, solved(game)))
    (lost, training) = figures(found)
    assert training.sum() < 1e-3
    assert (lost - training).sum() > 0.05


def test_flops_that_choose_and_score_themselves_come_to_what_is_exact():
    for made in (game_of("leduc"), by_twos(game("pairs"))):
        side = Profile(made, random_strategy(made, 3))
        sample, boards = _DecisionSample(side, 1), range(len(made.cards.board_cards[1]))
        for board in boards:
            sample.add(sample.walk(board))
        scored = [sample.score(board) for board in boards]
        losses = np.array([sum(loss for loss, _ in scored)])
        weight = np.array([sum(weight for _, weight in scored)])
        assert figures(_result(losses, weight, None, 1)) == pytest.approx(figures(self_consistency(side)), abs=1e-12)
        some = _DecisionSample(side, 1)  # a planted error: boards that choose are not those that score
        some.add(some.walk(0))
        less = np.array([sum(some.score(board)[0] for board in boards)])
        assert figures(_result(less, weight, None, 1)).sum() < figures(self_consistency(side)).sum() - 1e-3


def test_sampled_flops_cover_and_do_not_depend_on_workers():
    made = deck_game(board_cards=(0, 3), buckets=(5, 7))
    side = Profile(made, random_strategy(made, 0))
    many = self_consistency(side, boards=64, seed=1)
    few = [self_consistency(side, boards=12, seed=seed, workers=1 + seed % 2) for seed in range(2, 6)]
    covered = [low <= many.lost[0] <= high for _, (low, high) in (found.lost for found in few)]
    assert sum(covered) >= 3
    widths, lost = (
        [part(found.lost) for found in few] for part in (lambda each: np.ptp(each[1]), lambda each: each[0])
    )
    assert np.mean(widths) / 2 < 3 * np.std(lost, ddof=1), "too wide"
    told = []
    with steps_reported(lambda *step: told.append(step)):
        assert self_consistency(side, boards=12, seed=2, workers=2) == few[0]
    assert told == [("board", done, 12) for done in range(1, 13)]
    refused("at least 8", self_consistency, side, boards=7)
