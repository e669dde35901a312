"""Deals: alias tables, frequencies against the exact joint distribution, independence of batching.

Shows:

* Deals follow the exact joint distribution (test_frequencies_follow_the_exact_joint_distribution, test_holdem_deal)
"""

from collections import Counter
from dataclasses import replace

import naive
import numpy as np
import pytest
from harness import KUHN, LEDUC
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

import mccfr
from mccfr.cards.card_lists import deal_arrays, joint_weight
from mccfr.cards.deals import alias_table, draw_deals, new_deals
from mccfr.cards.no_cards import NO_CARDS

TWO_BOARDS = mccfr.game("poker", ranks=3, suits=2, board_cards=(0, 1, 1), antes=(1, 1), stack=2)


def draw(arrays, count, *, seed=0, worker=0, first=0):
    """Return the buckets [count, B] and results [count] of a batch of deals."""
    deals = new_deals(count, len(arrays.children))
    keys = np.uint64(seed), np.uint64(worker), np.int64(first), np.int64(count)
    assert draw_deals(arrays, *keys, np.zeros(4, np.uint64), deals)
    return deals


def with_ranges(game, first, second):
    return replace(game, cards=replace(game.cards, reach=np.array([first, second], np.float64)))


UNEQUAL = with_ranges(LEDUC, [3, 0, 1, 0.25, 0, 2], [0, 0.5, 4, 0, 1, 1])
GAMES = {"Kuhn": KUHN, "Leduc": LEDUC, "Leduc with unequal ranges": UNEQUAL, "two boards": TWO_BOARDS}


@pytest.mark.parametrize("name", GAMES)
def test_frequencies_follow_the_exact_joint_distribution(name):
    """Compare the frequency of every deal and result with its probability by chi-square.

    Deals of weight 0 never occur.
    """
    game, count = GAMES[name], 400_000
    probability, bucket, result = naive.all_deals(game)
    expected = Counter()
    for p, b, r in zip(probability, bucket, result, strict=True):
        expected[*b.tolist(), int(r)] += p
    deals = draw(deal_arrays(game.cards), count, seed=8)
    keys, counts = np.unique(np.column_stack([deals.bucket, deals.result.astype(int)]), axis=0, return_counts=True)
    found = {tuple(key.tolist()): int(n) for key, n in zip(keys, counts, strict=True)}
    assert found.keys() <= expected.keys()
    chi_square = sum((found.get(key, 0) - count * p) ** 2 / (count * p) for key, p in expected.items())
    freedom = len(expected) - 1
    assert abs(chi_square - freedom) < 5 * np.sqrt(2 * freedom)


def test_a_deal_depends_on_seed_worker_and_iteration_alone():
    arrays = deal_arrays(UNEQUAL.cards)
    whole = draw(arrays, 1_000, seed=3, worker=1)
    for first, count in ((0, 1), (1, 6), (500, 500), (999, 1)):
        part = draw(arrays, count, seed=3, worker=1, first=first)
        assert np.array_equal(part.bucket, whole.bucket[first : first + count])
        assert np.array_equal(part.result, whole.result[first : first + count])
    for other in (draw(arrays, 1_000, seed=4, worker=1), draw(arrays, 1_000, seed=3, worker=2)):
        assert not np.array_equal(other.bucket, whole.bucket)


def test_ranges_without_a_disjoint_pair_are_refused():
    game = with_ranges(LEDUC, [1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0])
    arrays, deals = deal_arrays(game.cards), new_deals(1, 2)
    assert not draw_deals(arrays, np.uint64(0), np.uint64(0), np.int64(0), np.int64(1), np.zeros(4, np.uint64), deals)
    assert joint_weight(game.cards) == 0


def test_games_without_cards_deal_one_bucket_and_ties():
    deals = new_deals(10, 1)
    deals.bucket[:], deals.result[:] = 7, 7
    NO_CARDS.dealer(0, 0).draw(0, 10, deals)
    assert not deals.bucket.any()
    assert not deals.result.any()


def test_joint_weight_sums_disjoint_pairs():
    first, second = UNEQUAL.cards.reach
    assert joint_weight(UNEQUAL.cards) == pytest.approx(first.sum() * second.sum() - first @ second)


@pytest.mark.parametrize("parents", [[0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 0, 1]], ids=["uneven", "out of order"])
def test_uneven_or_unordered_boards_are_refused(parents):
    cards = replace(LEDUC.cards, board_cards=[np.zeros((2, 0), np.int16), LEDUC.cards.board_cards[1]])
    parents = [LEDUC.cards.board_parent[0], np.array(parents, np.int32)]
    refused("street 1", deal_arrays, replace(cards, board_parent=parents))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-9, 1e9)), min_size=1, max_size=40).filter(any))
def test_alias_tables_draw_in_exact_proportion(weights):
    weights = np.array(weights)
    accept, alias = alias_table(weights)
    probability = accept.copy()
    np.add.at(probability, alias, 1 - accept)
    probability /= len(weights)
    assert np.all((accept >= 0) & (accept <= 1))
    assert probability == pytest.approx(weights / weights.sum(), rel=1e-9, abs=1e-13)
    assert not probability[weights == 0].any()
