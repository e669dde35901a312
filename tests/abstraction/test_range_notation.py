import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from range_text import range_text

from abstraction.cards import COMBO_COUNT, combo_cards, combo_index, parse_cards
from abstraction.range_notation import parse_range


def combo(text):
    return combo_index(*parse_cards(text))


def by_definition(accepts):
    """Weights 1 for the combinations that a predicate of (higher rank, lower rank, suited) accepts, ranks 2..14."""
    weights = np.zeros(COMBO_COUNT)
    for index in range(COMBO_COUNT):
        low, high = combo_cards(index)
        weights[index] = accepts(high // 4 + 2, low // 4 + 2, high % 4 == low % 4)
    return weights


@pytest.mark.parametrize(
    ("text", "count", "accepts"),
    [
        ("AA", 6, lambda high, low, suited: low == 14),
        ("AK", 16, lambda high, low, suited: (high, low) == (14, 13)),
        ("AKs", 4, lambda high, low, suited: (high, low) == (14, 13) and suited),
        ("KAo", 12, lambda high, low, suited: (high, low) == (14, 13) and not suited),
        ("QQ+", 18, lambda high, low, suited: low == high >= 12),
        ("22+", 78, lambda high, low, suited: low == high),
        ("A2s+", 48, lambda high, low, suited: high == 14 and suited),
        ("KTo+", 36, lambda high, low, suited: high == 13 and 10 <= low < 13 and not suited),
        ("QJ+", 16, lambda high, low, suited: (high, low) == (12, 11)),
        ("TT-77", 24, lambda high, low, suited: 7 <= low == high <= 10),
        ("A5s-A2s", 16, lambda high, low, suited: high == 14 and low <= 5 and suited),
        ("A2s-A5s", 16, lambda high, low, suited: high == 14 and low <= 5 and suited),
        ("76s-54s", 12, lambda high, low, suited: 4 <= low == high - 1 <= 6 and suited),
        ("J9-86", 64, lambda high, low, suited: 6 <= low == high - 2 <= 9),
        ("AA,KK", 12, lambda high, low, suited: low == high >= 13),
        (" AA , QQ+ ", 18, lambda high, low, suited: low == high >= 12),
        ("", 0, lambda high, low, suited: False),
        ("  ", 0, lambda high, low, suited: False),
    ],
)
def test_items_name_the_hands_they_should(text, count, accepts):
    weights = parse_range(text)
    assert weights.shape == (1326,)
    assert weights.dtype == np.float64
    assert np.array_equal(weights, by_definition(accepts))
    assert weights.sum() == count


def test_weights_and_single_combinations():
    weights = parse_range("AA,AKs:0.5,QQ+,A5s-A2s:.25,KsQh,QdKc:1e-3,72o:0")
    assert weights[combo("AsAh")] == weights[combo("QcQd")] == weights[combo("KsQh")] == 1
    assert weights[combo("AdKd")] == 0.5
    assert weights[combo("Ah3h")] == 0.25
    assert weights[combo("KcQd")] == 0.001
    assert weights.sum() == pytest.approx(18 + 4 * 0.5 + 16 * 0.25 + 1 + 0.001, rel=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AA",
        "QQ+,AKs:0.5,A5s-A2s",
        "TT-77,AK,AQs,KTo+,7s6s",
        "22+,A2+,K2+,Q2+,J2+,T2+,92+,82+,72+,62+,52+,42+,32",
        "AK:0.3,AQ-AT,A9:0.3",
    ],
)
def test_compact_texts_are_kept(text):
    assert range_text(parse_range(text)) == text


levels = st.lists(st.floats(0, 1), min_size=1, max_size=4).map(lambda values: [0.0, 1.0, *values])


@settings(max_examples=60, deadline=None)
@given(levels=levels, seed=st.integers(0, 2**32 - 1), by_class=st.booleans(), share=st.floats(0, 1))
def test_text_reads_back_to_the_same_weights(levels, seed, by_class, share):
    random_state = np.random.default_rng(seed)
    weights = random_state.choice(levels, COMBO_COUNT)
    if by_class:  # one weight a class, so that runs occur; some hands then break the classes
        cells = random_state.choice(levels[:3], (13, 13, 2))
        for index in np.flatnonzero(random_state.random(COMBO_COUNT) < share):
            low, high = combo_cards(int(index))
            weights[index] = cells[high // 4, low // 4, int(high % 4 == low % 4)]
    assert np.array_equal(parse_range(range_text(weights)), weights)


def test_continuous_weights_read_back_exactly():
    weights = np.random.default_rng(1).random(COMBO_COUNT)
    weights[7] = 5e-324
    assert np.array_equal(parse_range(range_text(weights)), weights)
