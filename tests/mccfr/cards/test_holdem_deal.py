"""Deals of full hold'em: uniform, without repeated cards, reproducible by seed.

Shows:

* Six players get distinct cards, with their buckets and showdown strengths (test_deals_of_six_players)
"""

import hashlib

import numpy as np
import pytest
from refusals import refused

from abstraction.boards import STREET_CARDS, board_classes, preflop_classes
from abstraction.cards import CARD_COUNT, COMBO_COUNT, combo_cards
from abstraction.hand_evaluator import strengths
from abstraction.lookup import board_rows, bucket_tables, fill_buckets
from mccfr.cards.deals import new_deals
from mccfr.cards.full_deck import WholeDeck
from mccfr.cards.full_deck_deals import DeckDealer, draw_cards
from mccfr.common.rng import DEALS

COUNT = 200_000


@pytest.fixture(scope="module")
def tables():
    """Flop hold'em on random buckets."""
    flop = np.random.default_rng(0).integers(0, 60_000, (len(board_classes(3).boards), COMBO_COUNT), np.uint16)
    return bucket_tables([preflop_classes().astype(np.uint16)[None], flop], (0, 3))


def cards_of(count, *, seed=0, worker=0, first=0, players=2):
    cards = np.full((count, 2 * players + 5), -1, np.int8)
    draw_cards(np.uint64(seed), np.uint64(worker), DEALS, first, count, np.zeros(4, np.uint64), cards)
    return cards


def deals_of(tables, count, *, seed=0, worker=0, first=0, players=2):
    deals = new_deals(count, 2, players)
    DeckDealer(tables, seed, worker).draw(first, count, deals)
    return deals


@pytest.fixture(scope="module")
def cards():
    return cards_of(COUNT, seed=5).astype(np.int64)


def chi_square(observed, cells):
    """Return by how many standard deviations the counts of equally likely cells are off."""
    expected = observed.sum() / cells
    return (((observed - expected) ** 2).sum() / expected - (cells - 1)) / np.sqrt(2 * (cells - 1))


def test_no_card_comes_twice(cards):
    assert cards.min() == 0 and cards.max() == CARD_COUNT - 1
    assert (np.bitwise_count(np.bitwise_or.reduce(1 << cards, axis=1)) == 9).all()


def test_ordered_pairs_of_places_are_uniform(cards):
    """Each of the 36 pairs of places has all 52·51 ordered pairs of cards equally often."""
    different = ~np.eye(CARD_COUNT, dtype=bool).reshape(-1)
    off = []
    for first in range(9):
        for second in range(first):
            pairs = np.bincount(CARD_COUNT * cards[:, first] + cards[:, second], minlength=CARD_COUNT**2)
            off.append(chi_square(pairs[different], CARD_COUNT * (CARD_COUNT - 1)))
    assert np.abs(off).max() < 4.5
    assert abs(np.mean(off)) < 1


def test_a_deal_depends_on_seed_worker_and_iteration_alone(tables):
    whole_cards, whole = cards_of(1_000, seed=3, worker=1), deals_of(tables, 1_000, seed=3, worker=1)
    for first, count in ((0, 1), (1, 6), (500, 500), (999, 1)):
        part = deals_of(tables, count, seed=3, worker=1, first=first)
        assert np.array_equal(cards_of(count, seed=3, worker=1, first=first), whole_cards[first : first + count])
        assert np.array_equal(part.bucket, whole.bucket[first : first + count])
        assert np.array_equal(part.result, whole.result[first : first + count])
    for seed, worker in ((4, 1), (3, 2)):
        assert not np.array_equal(cards_of(1_000, seed=seed, worker=worker), whole_cards)


def test_deals_are_buckets_and_results_of_their_cards(tables):
    cards, deals = cards_of(2_000, seed=9), deals_of(tables, 2_000, seed=9)
    expected = np.zeros((2_000, 4), np.int32)
    fill_buckets(tables, cards, len(cards), expected)
    assert np.array_equal(deals.bucket, expected)
    flop = cards[:, 4 : 4 + STREET_CARDS["flop"]]
    first, second = (strengths(np.hstack([cards[:, hand : hand + 2], flop])) for hand in (0, 2))
    assert np.array_equal(deals.result, np.sign(first - second))
    assert 0 < (deals.result == 0).mean() < 0.1


def test_the_deals_of_two_players_have_a_fixed_hash():
    assert hashlib.sha256(cards_of(1_000, seed=3, worker=1).tobytes()).hexdigest()[:16] == "80abf58a1fa5bc91"


def test_deals_of_six_players(tables):
    cards, deals = cards_of(20_000, seed=9, players=6).astype(np.int64), deals_of(tables, 20_000, seed=9, players=6)
    assert (np.bitwise_count(np.bitwise_or.reduce(1 << cards, axis=1)) == 17).all()
    for place in range(17):
        assert abs(chi_square(np.bincount(cards[:, place], minlength=CARD_COUNT), CARD_COUNT)) < 4.5
    some, flop = cards[:300], cards[:300, 12:15]
    streets = [board_rows(tables, flop[:, :0]), board_rows(tables, flop)]
    for player in range(6):
        low, high = np.sort(some[:, 2 * player : 2 * player + 2], axis=1).T
        hand = high * (high - 1) // 2 + low
        for street, rows in enumerate(streets):
            assert np.array_equal(deals.bucket[:300, 6 * street + player], rows[np.arange(300), hand])
        own = strengths(np.hstack([some[:, 2 * player : 2 * player + 2], flop]))
        assert np.array_equal(deals.strength[:300, player], own)
    assert deals_of(tables, 9).strength.size == 0


def test_a_deck_deals_hands_to_three_and_lists_none():
    deck = WholeDeck((0, 3), np.full((2, 3), 5), lambda: [])
    deal = deck.deal(4, 7)
    cards = [*(card for hand in deal.hands for card in combo_cards(hand)), *deal.boards[1]]
    assert len(deal.hands) == 3 and len(set(cards)) == 9 and deck.reach.shape == (3, COMBO_COUNT)
    for call in (deck.listed, lambda: deck.after(1, (0, 1, 2)), lambda: deck.board_hands((0, 1, 2))):
        refused("hands are listed for two players only, and the game has 3", call)
    assert not deck.can_list
