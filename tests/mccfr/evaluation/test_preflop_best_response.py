"""Best responses from the first street on: exact over all boards, estimated from sampled boards.

Shows:

* A best response from the first street on is exact if all boards are walked
  (test_all_boards_give_the_exact_exploitability)
* From sampled boards, the estimate's bias is reduced and its interval covers the value
  (test_correction_reduces_the_bias_and_the_interval_covers_the_truth)
* Full hold'em is evaluated with one flop for each class of suit-isomorphic flops
  (test_a_flop_counts_for_its_suit_isomorphic_class)
"""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from small_games import deck_game
from strategies import random_strategy
from test_sampled_br import game

from abstraction.boards import canonical_boards
from abstraction.cards import hand_cards
from mccfr.cards.full_deck import WholeDeck
from mccfr.common.intervals import student95
from mccfr.evaluation import preflop_best_response
from mccfr.evaluation.board_game import card_game
from mccfr.evaluation.evaluation_progress import steps_reported
from mccfr.evaluation.exact import evaluate_exact
from mccfr.evaluation.methods.exact_method import ExactMethod, ExactOptions
from mccfr.evaluation.preflop_best_response import FirstStreet, SecondStreetBoards
from mccfr.evaluation.stratified_boards import BoardStrata
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.street_arrays import RESPOND


def play_all_boards(name, seed):
    side = Profile(game(name), random_strategy(game(name), seed))
    boards = len(game(name).cards.listed().board_cards[1])
    units = SecondStreetBoards(side, 0, boards)
    units.draw(boards)
    return units, np.array([units.play(unit) for unit in range(boards)])


@pytest.mark.parametrize("name", ["leduc", "pairs"])
def test_all_boards_give_the_exact_exploitability(name):
    units, found = play_all_boards(name, 3)
    won = units.first.result_of(found, np.ones(len(found), np.int64))
    exact = evaluate_exact(game(name), random_strategy(game(name), 3))
    assert sum(won.best) / 2 == pytest.approx(exact.exploitability_chips, abs=1e-9)
    assert won.value == pytest.approx(exact.value_chips - game(name).offset_chips, abs=1e-9)
    twice = units.first.result_of(np.concatenate([found[:1], found]), np.r_[0, np.ones(len(found), np.int64)])
    assert np.array(twice.best) == pytest.approx(np.array(won.best)), "boards count as often as `times` states"


@pytest.mark.parametrize("respond_from", [0, 1])
def test_a_walk_without_strategy_values_finds_the_same_response(respond_from):
    own = game("pairs")
    public, tables = card_game(own, random_strategy(own, 3), own.cards.listed())
    for player in range(2):
        both, alone = Walk(public, tables), Walk(public, tables, follow=False)
        found, expected = (walk.values(player, respond_from) for walk in (alone, both))
        assert found == pytest.approx(expected[RESPOND:], rel=1e-12)
        assert np.array_equal(alone.root.value[0], both.root.value[RESPOND])


def test_each_sample_is_scored_by_a_choice_from_the_other_samples():
    units, found = play_all_boards("leduc", 5)
    strata = BoardStrata(np.array([0, 0, 0, 1, 1, 1]), np.array([3.0, 3.0]), listed=False)
    changed = found.copy()
    changed[2, :-2] += 1000 * np.random.default_rng(0).normal(size=found.shape[1] - 2)
    first, shape = units.first, (len(found), *units.first._shape)
    for player in range(2):
        for some in (found, changed):
            values = some[:, :-2].reshape(shape)[:, player]
            others = preflop_best_response._without_each(values, strata)
            assert others[2] == pytest.approx(values[[0, 1]].sum(axis=0) * 1.5 + values[3:].sum(axis=0))
            choices = first._walk(player, others, None)[1]
            mine = first._walk(player, others[2], None)[1]
            assert all(np.array_equal(choices[member][2], best) for member, best in mine.items())
        seen = [
            preflop_best_response._without_each(each[:, :-2].reshape(shape)[:, player], strata)
            for each in (found, changed)
        ]
        assert seen[0][2] == pytest.approx(seen[1][2], abs=1e-9), "a board's values do not affect the others' choice"


def population(first, boards, spread):
    """Return boards whose alternatives differ by `spread` on average, sorted by similarity.

    Single boards differ by 1.
    """
    random = np.random.default_rng(1)
    shape = (boards, *first._shape)
    slope = np.linspace(-1, 1, boards)[:, None, None, None]
    values = spread * random.normal(size=shape[1:]) + random.normal(size=shape) + slope * random.normal(size=shape[1:])
    rest = np.column_stack([random.uniform(0.8, 1.2, boards), random.normal(size=boards)])
    return np.column_stack([values.reshape(boards, -1), rest])


def sample(every, units, seed):
    strata = BoardStrata.of(units, 2 if units >= 40 else 4, len(every))
    cuts, random = np.append(0, np.cumsum(strata.size)).astype(int), np.random.default_rng(seed)
    counts = np.bincount(strata.stratum)
    drawn = [random.permutation(np.arange(*cuts[h : h + 2]))[:count] for h, count in enumerate(counts.tolist())]
    return every[np.concatenate(drawn)], strata


@pytest.mark.parametrize("units", [16, 60])
@pytest.mark.parametrize(("spread", "left"), [(0.25, 0.3), (0.0, 0.7)], ids=["spread", "ties"])
def test_correction_reduces_the_bias_and_the_interval_covers_the_truth(units, spread, left):
    first = FirstStreet(game("leduc"))
    every = population(first, 2000, spread)
    truth = sum(first.result_of(every, np.ones(len(every), np.int64)).best) / 2
    lower, estimate, flattered, inside, below, ends = [], [], [], 0, 0, []
    for seed in range(200):
        some, strata = sample(every, units, seed)
        found = first.sampled(some, strata)
        lower.append(found.lower[0])
        estimate.append(found.estimate[0])
        flattered.append(sum(first.result_of(some, np.ones(len(some), np.int64)).best) / 2)
        inside += found.estimate[1][0] <= truth <= found.estimate[1][1]
        below += found.lower[1][0] <= truth
        ends.append((found.lower[0] - found.lower[1][0], found.estimate[1][1] - flattered[-1]))
    error = np.std(estimate) / np.sqrt(len(estimate))
    assert np.mean(lower) < truth + 2 * error
    assert below >= 0.93 * 200
    assert inside >= 0.93 * 200
    assert (np.mean(ends, axis=0) < 3 * np.std([lower, flattered], axis=1)).all(), "too wide"
    bias, planted = np.mean(estimate) - truth, np.mean(flattered) - truth
    assert planted > 4 * error, "planted: the maximum over the sampled boards"
    assert abs(bias) < left * planted
    assert np.mean(lower) < np.mean(estimate) < np.mean(flattered)


def test_interval_width_comes_from_differences_within_strata():
    """Draw two of ten boards from each of two strata: differences between strata add no width."""
    strata = BoardStrata(np.array([0, 0, 1, 1]), np.array([10.0, 10.0]), listed=True)
    assert preflop_best_response._jackknife(0.0, np.array([1.0, 1.0, 5.0, 5.0]), strata)[1] == 0
    width = preflop_best_response._jackknife(0.0, np.array([0.0, 2.0, 5.0, 5.0]), strata)[1]
    assert width == pytest.approx(student95(2) * np.sqrt((1 - 2 / 10) * (1 / 2) * (1 + 1)))


# --- full hold'em ---


def by_ranks(counts):
    """Return preflop and flop buckets that do not depend on the names of suits."""
    cards, boards = hand_cards(52, 2).astype(np.int64), canonical_boards(3).astype(np.int64)
    ranks = (cards // 4).sum(axis=1) * 3 + (cards // 4).prod(axis=1)
    suited = (cards[None, :, :, None] % 4 == boards[:, None, None] % 4).sum(axis=(2, 3))
    return [(ranks % counts[0])[None].astype(np.uint16), ((ranks + suited) % counts[1]).astype(np.uint16)]


def flop_game():
    """Return a game of two streets, the second with a flop, and one pot-sized bet on each."""
    deck = WholeDeck((0, 3), np.array([[7, 7], [5, 5]]), lambda: by_ranks((7, 5)))
    return replace(deck_game((0, 3)), cards=deck)


def test_a_flop_counts_for_its_suit_isomorphic_class():
    own = flop_game()
    units = SecondStreetBoards(Profile(own, random_strategy(own, 1)), every=True)
    assert units.draw(8) == 1755 and units.times.sum() == 22_100
    flop = next(number for number, times in enumerate(units.times.tolist()) if times == 12)
    found, cards = units.play(flop), np.array(units.boards[flop])
    alike = {tuple(sorted((cards // 4 * 4 + np.array(suits)[cards % 4]).tolist())) for suits in permutations(range(4))}
    assert len(alike) == 12
    for other in sorted(alike)[3:9:5]:
        units.boards = [list(other)]
        assert units.play(0) == pytest.approx(found, rel=1e-5, abs=1e-3)


def test_the_estimated_time_for_all_flops_is_reported_first(monkeypatch):
    class BegunError(Exception):
        pass

    def begin(*_):
        raise BegunError

    monkeypatch.setattr(preflop_best_response, "evaluate_flops", begin)
    own, steps = flop_game(), []
    own = replace(own, cards=WholeDeck((0, 3, 4), np.full((3, 2), 7), lambda: by_ranks((7, 5))))
    for options in (ExactOptions(), ExactOptions(flops=8)):
        with steps_reported(lambda *step: steps.append(step)), pytest.raises(BegunError):
            ExactMethod().find(Profile(own, random_strategy(flop_game(), 1)), None, options)
    text = (
        f"all flops, some {1755 * 11 / 3362 * own.tree.nodes / 3600:.2g} hours of a core (--flops N estimates it): flop"
    )
    assert steps == [(text, 0, 1755)]
