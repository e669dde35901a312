"""Exploitability in the abstract game: equal to the real one if buckets are lossless.

Shows:

* No strategy that plays by buckets wins more than the best response in the abstract game
  (test_no_plan_by_buckets_wins_more)
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from naive_value import naive_value
from small_games import deck_game, game_of
from strategies import random_strategy

from mccfr.evaluation.abstract_game import abstract_problem, evaluate_abstract
from mccfr.evaluation.exact import evaluate_exact
from mccfr.evaluation.methods.registry import measure
from mccfr.games.perfect_recall import forgotten_street
from mccfr.policy.strategy_profile import Profile
from mccfr.tables.strategy import Strategy


def merged(game, groups):
    """Both players confuse hands: `groups` maps the buckets of each street, [streets][buckets], to fewer."""
    cards = game.cards
    bucket = []
    for street, held in enumerate(cards.bucket):
        numbers = np.full_like(held, -1)
        numbers[held >= 0] = np.asarray(groups[street])[held[held >= 0]]
        bucket.append(numbers)
    counts = np.array([[max(group) + 1] * 2 for group in groups])
    return replace(game, cards=replace(cards, bucket=bucket, buckets=counts))


@pytest.mark.parametrize("name", ["kuhn", "leduc"])
def test_where_buckets_lose_nothing_it_is_the_exact_one(name):
    game = game_of(name)
    for seed in range(3):
        strategy = random_strategy(game, seed)
        found, exact = evaluate_abstract(game, strategy), evaluate_exact(game, strategy)
        assert found.value_chips == pytest.approx(exact.value_chips, abs=1e-10)
        assert found.best_response_chips == pytest.approx(exact.best_response_chips, abs=1e-10)
        assert found.exploitability_chips == pytest.approx(exact.exploitability_chips, abs=1e-10)


def test_no_plan_by_buckets_wins_more():
    """Kuhn with queen and king confused: all plans of the responder, each valued from the definition."""
    game = merged(game_of("kuhn"), [[0, 1, 1]])
    arrays = game.tree.arrays
    for seed in range(3):
        strategy = random_strategy(game, seed)
        found = evaluate_abstract(game, strategy).best_response_chips
        for player in range(2):
            rows = [node for node in game.tree.decisions.tolist() if arrays.player[node] == player]
            values = []
            for plan in product(range(2), repeat=2 * len(rows)):
                tables = [table.copy() for table in strategy.probability]
                for place, (node, bucket) in enumerate(product(rows, range(2))):
                    slot = int(arrays.slot[node])
                    tables[player][bucket, slot : slot + 2] = np.arange(2) == plan[place]
                values.append(naive_value(game, Strategy(tuple(tables), strategy.weight), player, None))
            assert found[player] == pytest.approx(max(values), abs=1e-12)


def test_it_is_below_the_real_game_where_buckets_confuse_hands():
    real = game_of("leduc")
    numbers = real.cards.buckets[:, 0].tolist()
    rank = [np.arange(numbers[0]) // 2, np.arange(numbers[1]) // 4]
    game = merged(real, [rank[0], _after(real, rank[0])])
    assert forgotten_street(game) is None
    strategy = random_strategy(game, 1)
    assert evaluate_abstract(game, strategy).exploitability_chips < evaluate_exact(game, strategy).exploitability_chips


def _after(game, first):
    """Buckets of Leduc's second street by the group that the hand had, and nothing else."""
    found = np.zeros(int(game.cards.buckets[1, 0]), int)
    for player in range(2):
        held, before = game.cards.bucket[1][player], game.cards.bucket[0][player, 0]
        live = held >= 0
        found[held[live]] = np.asarray(first)[np.broadcast_to(before, held.shape)[live]]
    return found


def test_imperfect_recall_is_refused_and_named():
    real = game_of("leduc")
    game = merged(real, [np.arange(int(real.cards.buckets[0, 0])), np.zeros(int(real.cards.buckets[1, 0]), int)])
    assert forgotten_street(game) == 1
    with pytest.raises(ValueError, match=r"imperfect recall: buckets on street 1 do not say .* use the method exact"):
        measure("abstract", Profile(game, random_strategy(game, 0)))
    assert "too many boards" in abstract_problem(deck_game())
