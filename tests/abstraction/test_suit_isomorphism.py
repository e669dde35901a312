"""Indices of hands up to suit isomorphism.

Shows:

* Two hands have the same index exactly if they are isomorphic (test_same_index_exactly_if_isomorphic_on_all_hands)
"""

from itertools import combinations, permutations
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abstraction.suit_isomorphism import indexer

HANDS = {  # printed by Waugh 2013 for (2, 3, 1, 1) and its prefixes; the others counted by an independent program
    (2,): 169,
    (2, 3): 1_286_792,
    (2, 4): 13_960_050,
    (2, 5): 123_156_254,
    (2, 3, 1): 55_190_538,
    (2, 3, 1, 1): 2_428_287_420,
}
BOARDS = {(3,): 1755, (4,): 16_432, (5,): 134_459, (3, 1): 63_193, (3, 1, 1): 2_554_656}
RELABELLINGS = np.array([[4 * (card // 4) + order[card % 4] for card in range(52)] for order in permutations(range(4))])


def concrete_hands(shape):
    """Return the number of hands of a shape, with isomorphic hands counted separately."""
    starts = np.cumsum([0, *shape])
    return prod(comb(52 - int(before), cards) for before, cards in zip(starts, shape, strict=False))


def canonical(shape, hands):
    """Return [H] int64: the least of the 24 relabellings of each hand [H, N], as a number in base 52."""
    columns, least = np.ascontiguousarray(hands.T), np.full(len(hands), np.iinfo(np.int64).max)
    ends = np.cumsum(shape).tolist()
    exchanges = [  # exchanges of a bubble sort of each round, for all hands at once
        (place, place + 1)
        for first, end in zip([0, *ends], ends, strict=False)
        for last in range(end - 1, first, -1)
        for place in range(first, last)
    ]
    for relabelling in RELABELLINGS.astype(np.int8):
        cards, number = relabelling[columns], np.zeros(len(hands), np.int64)
        for low, high in exchanges:
            cards[low], cards[high] = np.minimum(cards[low], cards[high]), np.maximum(cards[low], cards[high])
        for column in cards[::-1]:
            number *= 52
            number += column
        np.minimum(least, number, out=least)
    return least


def random_hands(shape, count, seed):
    keys = np.random.default_rng(seed).random((count, 52), dtype=np.float32)
    return np.argpartition(keys, sum(shape), axis=1)[:, : sum(shape)].astype(np.int8)


def all_hands(shape):
    """Return all hands [H, N] of a shape."""
    hands = np.zeros((1, 0), np.int64)
    for cards in shape:
        left = np.array([np.setdiff1d(np.arange(52), hand) for hand in hands])
        chosen = np.array(list(combinations(range(left.shape[1]), cards)))
        hands = np.hstack([np.repeat(hands, len(chosen), axis=0), left[:, chosen].reshape(-1, cards)])
    return hands


OTHERS = {  # counted by Burnside's lemma, by cycles of each permutation of suits
    **{(1,): 13, (6,): 962_988, (7,): 6_009_159, (1, 1): 325, (2, 2): 93_769, (2, 1, 4): 610_616_292},
    **{(3, 3): 18_544_604, (4, 3): 204_461_673, (1, 6): 41_411_266},
    **{(1, 1, 1, 1, 3): 4_846_806_640, (1,) * 7: 28_926_468_480},
}


@pytest.mark.parametrize(("shape", "count"), [*HANDS.items(), *BOARDS.items(), *OTHERS.items()])
def test_class_counts_are_the_published_ones(shape, count):
    assert indexer(shape).size == count


@pytest.mark.parametrize("shape", [(1,), (2,), (1, 1), (2, 1), (1, 2), (1, 1, 1), (3,), (4,), (3, 1)])
def test_same_index_exactly_if_isomorphic_on_all_hands(shape):
    hands = all_hands(shape)
    assert len(hands) == concrete_hands(shape)
    found, forms = indexer(shape).index_batch(hands), canonical(shape, hands)
    first = np.unique(found, return_index=True)[1]
    assert np.array_equal(forms, forms[first][found])  # hands of one index have one form
    assert len(np.unique(forms)) == len(first) == indexer(shape).size  # and other indices have other forms


@pytest.mark.parametrize("shape", [*HANDS, *BOARDS, (1, 2, 3), (1, 1, 1, 1, 1, 1, 1)])
def test_random_hands_have_an_index_for_each_form(shape):
    """Indices cover their range: the smallest and largest of 20,000 are near its ends."""
    ours, hands = indexer(shape), random_hands(shape, 20_000, seed=sum(shape))
    indices, forms = ours.index_batch(hands), canonical(shape, hands)
    _, first, which = np.unique(forms, return_index=True, return_inverse=True)
    assert np.array_equal(indices, indices[first][which])  # hands of one form have one index
    assert len(np.unique(indices)) == len(first) > len(hands) // 400  # and other forms have other indices
    assert 0 <= indices.min() < 0.01 * ours.size + 1 and 0.99 * ours.size - 1 < indices.max() < ours.size


@st.composite
def relabelled_hands(draw):
    """Draw a shape, a hand, and the same hand with suits renamed and each round shuffled."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=5).filter(lambda rounds: sum(rounds) <= 7)))
    hand = draw(st.lists(st.integers(0, 51), min_size=sum(shape), max_size=sum(shape), unique=True))
    suits = draw(st.permutations(range(4)))
    renamed = [4 * (card // 4) + suits[card % 4] for card in hand]
    shuffled, start = [], 0
    for cards in shape:
        shuffled += draw(st.permutations(renamed[start : start + cards]))
        start += cards
    return shape, hand, shuffled


@settings(max_examples=200, deadline=None)
@given(relabelled_hands())
def test_index_ignores_suit_names_and_order_within_a_round(case):
    shape, hand, shuffled = case
    first, second = indexer(shape).index_batch([hand, shuffled])
    assert 0 <= first == second < indexer(shape).size
