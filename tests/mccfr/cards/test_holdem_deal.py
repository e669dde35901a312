"""Deals of full hold'em: uniform, without repeated cards, reproducible by seed."""

import numpy as np
import pytest

from abstraction.boards import STREET_CARDS, board_classes, preflop_classes
from abstraction.cards import CARD_COUNT, COMBO_COUNT
from abstraction.hand_evaluator import strengths
from abstraction.lookup import bucket_tables, fill_buckets
from mccfr.cards.deals import new_deals
from mccfr.cards.full_deck_deals import draw_cards, draw_holdem_deals, holdem_deal_arrays
from mccfr.common.rng import DEALS

COUNT = 200_000


@pytest.fixture(scope="module")
def arrays():
    """Flop hold'em on random buckets."""
    flop = np.random.default_rng(0).integers(0, 60_000, (len(board_classes(3).boards), COMBO_COUNT), np.uint16)
    return holdem_deal_arrays(bucket_tables([preflop_classes().astype(np.uint16)[None], flop], (0, 3)))


def keys(seed, worker, first, count):
    return np.uint64(seed), np.uint64(worker), np.int64(first), np.int64(count), np.zeros(4, np.uint64)


def cards_of(count, *, seed=0, worker=0, first=0):
    cards = np.full((count, 9), -1, np.int8)
    seed_key, worker_key, *rest = keys(seed, worker, first, count)
    draw_cards(seed_key, worker_key, DEALS, *rest, cards)
    return cards


def deals_of(arrays, count, *, seed=0, worker=0, first=0):
    deals = new_deals(count, 2)
    assert draw_holdem_deals(arrays, *keys(seed, worker, first, count), deals)
    return deals


@pytest.fixture(scope="module")
def cards():
    return cards_of(COUNT, seed=5).astype(np.int64)


def chi_square(observed, cells):
    """Standard deviations by which the counts of equally likely cells are off."""
    expected = observed.sum() / cells
    return (((observed - expected) ** 2).sum() / expected - (cells - 1)) / np.sqrt(2 * (cells - 1))


def test_no_card_comes_twice(cards):
    assert cards.min() == 0 and cards.max() == CARD_COUNT - 1
    assert (np.bitwise_count(np.bitwise_or.reduce(1 << cards, axis=1)) == 9).all()


def test_every_place_holds_every_card_equally_often(cards):
    for place in range(9):
        assert abs(chi_square(np.bincount(cards[:, place], minlength=CARD_COUNT), CARD_COUNT)) < 4.5


def test_ordered_pairs_of_places_are_uniform(cards):
    """All 36 pairs of places: 52·51 ordered pairs of cards each, equally often."""
    different = ~np.eye(CARD_COUNT, dtype=bool).reshape(-1)
    off = []
    for first in range(9):
        for second in range(first):
            pairs = np.bincount(CARD_COUNT * cards[:, first] + cards[:, second], minlength=CARD_COUNT**2)
            off.append(chi_square(pairs[different], CARD_COUNT * (CARD_COUNT - 1)))
    assert np.abs(off).max() < 4.5
    assert abs(np.mean(off)) < 1


def test_a_deal_depends_on_seed_worker_and_iteration_alone(arrays):
    whole_cards, whole = cards_of(1_000, seed=3, worker=1), deals_of(arrays, 1_000, seed=3, worker=1)
    for first, count in ((0, 1), (1, 6), (500, 500), (999, 1)):
        part = deals_of(arrays, count, seed=3, worker=1, first=first)
        assert np.array_equal(cards_of(count, seed=3, worker=1, first=first), whole_cards[first : first + count])
        assert np.array_equal(part.bucket, whole.bucket[first : first + count])
        assert np.array_equal(part.result, whole.result[first : first + count])
    for seed, worker in ((4, 1), (3, 2)):
        assert not np.array_equal(cards_of(1_000, seed=seed, worker=worker), whole_cards)


def test_deals_are_buckets_and_results_of_their_cards(arrays):
    cards, deals = cards_of(2_000, seed=9), deals_of(arrays, 2_000, seed=9)
    expected = np.zeros((2_000, 4), np.int32)
    fill_buckets(arrays.buckets, cards, len(cards), expected)
    assert np.array_equal(deals.bucket, expected)
    flop = cards[:, 4 : 4 + STREET_CARDS["flop"]]
    first, second = (strengths(np.hstack([cards[:, hand : hand + 2], flop])) for hand in (0, 2))
    assert np.array_equal(deals.result, np.sign(first - second))
    assert 0 < (deals.result == 0).mean() < 0.1
