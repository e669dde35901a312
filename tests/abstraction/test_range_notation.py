import numpy as np
import pytest

from abstraction.cards import COMBO_COUNT, combo_cards, combo_index, parse_cards
from abstraction.range_notation import parse_range


def combo(text):
    return combo_index(*parse_cards(text))


def by_definition(accepts):
    """Return weight 1 for combinations that a predicate of (high rank, low rank, suited) accepts; ranks 2..14."""
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
