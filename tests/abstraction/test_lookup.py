"""Bucket look-up in kernels: equal to `Abstraction.bucket` on random deals."""

import random

import numpy as np
import phevaluator
import pytest
from numpy.lib.stride_tricks import as_strided
from refusals import refused

from abstraction.boards import BOARD_COUNTS, STREET_CARDS, board_classes, used_slots
from abstraction.buckets import Abstraction
from abstraction.cards import CARD_COUNT, COMBO_COUNT, card_text, combo_cards
from abstraction.hand_evaluator import evaluator_tables
from abstraction.lookup import HOLDEM, BucketLayout, board_row, board_rows, bucket_tables, fill_buckets, fill_results

STREETS = tuple(STREET_CARDS)


class FakeAbstraction(Abstraction):
    """An abstraction in memory: bucket tables by street."""

    def __init__(self, tables):
        self._buckets, self.listing = tables, None

    def percentiles(self, street):
        """Return None: there are no perfect-recall buckets."""


def random_table(cards, dtype, seed):
    """Return random buckets [boards, 1326]; to save memory, each row is the one before shifted by seven."""
    boards, itemsize = BOARD_COUNTS.get(cards, 1), np.dtype(dtype).itemsize
    values = np.random.default_rng(seed).integers(0, np.iinfo(dtype).max // 2, 7 * boards + COMBO_COUNT, dtype)
    return as_strided(values, (boards, COMBO_COUNT), (7 * itemsize, itemsize), writeable=False)


def marked(cards, table):
    """Return a copy of a table with unused slots marked, as in a built abstraction."""
    return np.where(used_slots(board_classes(cards).boards), table, np.iinfo(table.dtype).max).astype(table.dtype)


@pytest.fixture(scope="module")
def fake():
    """Return an abstraction with uint16 tables, and uint32 on the flop as if it were lossless."""
    dtypes = dict(zip(STREETS, (np.uint16, np.uint32, np.uint16, np.uint16), strict=True))
    tables = {street: random_table(cards, dtypes[street], cards) for street, cards in STREET_CARDS.items()}
    tables |= {street: marked(STREET_CARDS[street], tables[street]) for street in ("flop", "turn")}
    return FakeAbstraction(tables)


@pytest.fixture(scope="module")
def tables(fake):
    return bucket_tables([fake.table(street) for street in STREETS], HOLDEM)


def random_deals(count, seed=0):
    generator = random.Random(seed)
    return np.array([generator.sample(range(CARD_COUNT), 9) for _ in range(count)], np.int8)


def expected_buckets(fake, deals, board_cards):
    """Return the buckets [K, 2·S] of deals by `Abstraction.bucket`."""
    rows = []
    for deal in deals.tolist():
        hands, board = (deal[:2], deal[2:4]), deal[4:]
        rows.append([fake.bucket(hand, board[:cards])[1] for cards in board_cards for hand in hands])
    return np.array(rows)


def look_up(tables, deals):
    out = np.full((len(deals), 2 * len(tables.board_cards)), -7, np.int32)
    fill_buckets(tables, deals, len(deals), out)
    return out


@pytest.mark.parametrize("board_cards", [HOLDEM, (0, 3), (0, 5), (0, 4, 5)])
def test_buckets_equal_those_of_the_abstraction(fake, board_cards):
    deals = random_deals(300, seed=1)
    streets = [street for street, cards in STREET_CARDS.items() if cards in board_cards]
    tables = bucket_tables([fake.table(street) for street in streets], board_cards)
    assert np.array_equal(look_up(tables, deals), expected_buckets(fake, deals, board_cards))


def test_rows_of_boards_hold_every_hand(fake, tables):
    deals = random_deals(5, seed=3)
    for cards in (0, 3, 4, 5):
        rows = board_rows(tables, deals[:, 4 : 4 + cards])
        assert rows.shape == (5, COMBO_COUNT) and rows.dtype == np.int32
        for deal, row in zip(deals.tolist(), rows, strict=True):
            board = deal[4 : 4 + cards]
            assert np.array_equal(board_row(tables, board), row)
            for combo, bucket in enumerate(row.tolist()):
                hand = combo_cards(combo)
                blocked = set(hand) & set(board)
                if not blocked or cards < 5:  # the river's random table has no mark of blocked hands
                    assert bucket == (-1 if blocked else fake.bucket(hand, board)[1])


@pytest.mark.parametrize("board_cards", [3, 4, 5])
def test_results_equal_those_of_an_independent_evaluator(board_cards):
    deals, results = random_deals(1_000, seed=5), np.full(1_000, 7.0)
    fill_results(evaluator_tables(), deals, 990, board_cards, results)
    for deal, result in zip(deals[:990].tolist(), results, strict=False):
        board = deal[4 : 4 + board_cards]
        first, second = (phevaluator.evaluate_cards(*map(card_text, hand + board)) for hand in (deal[:2], deal[2:4]))
        assert result == (first < second) - (first > second)  # phevaluator's lower ranks are better
    assert set(results[:990]) == {-1.0, 0.0, 1.0}
    assert (results[990:] == 7.0).all()


def test_the_layout_finds_the_tables_in_shared_memory(fake):
    layout = BucketLayout((0, 3), ("uint16", "uint32"))
    memory = np.zeros(layout.length_bytes, np.uint8)
    bucket_tables([fake.table("preflop"), fake.table("flop")], (0, 3), memory)
    deals = random_deals(40, seed=6)
    assert np.array_equal(look_up(layout.tables(memory), deals), expected_buckets(fake, deals, (0, 3)))
    assert np.array_equal(layout.street(memory, 1), fake.table("flop"))


def test_tables_that_do_not_fit_are_refused(fake, tables):
    preflop, flop = fake.table("preflop"), fake.table("flop")
    refused(r"board cards \(3, 0\) are not supported", bucket_tables, [flop, preflop], (3, 0))
    refused("at least 3 on the last", bucket_tables, [preflop], (0,))
    refused(r"dtypes \('uint16', 'int64'\): uint16 or uint32", bucket_tables, [preflop, flop.astype(np.int64)], (0, 3))
    refused("for each of 2 streets", bucket_tables, [preflop], (0, 3))
    refused(r"shape \(100, 1326\): \(1755, 1326\) is needed", bucket_tables, [preflop, flop[:100]], (0, 3))
    refused("the memory of the bucket tables has shape", bucket_tables, [preflop, flop], (0, 3), np.zeros(64, np.uint8))
    refused("rows of 0, 3, 4, 5 cards are needed", board_row, tables, (1, 2))
    refused("holds a card twice", board_rows, tables, [[1, 2, 3], [4, 4, 5]])
