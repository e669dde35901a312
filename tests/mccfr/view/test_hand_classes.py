"""Made hands and draws, named as players name them.

Shows:

* The page's filters give made hands and draws the names that players use
  (test_hands_have_the_names_that_players_use)
"""

import numpy as np
import pytest

from abstraction.cards import combo_index, combo_table, parse_cards
from mccfr.cards.grid import make_grid
from mccfr.view.hand_classes import hand_kinds


@pytest.mark.parametrize(
    ("board", "hand", "made_hand", "draws"),
    [
        ("Kc7d2s", "KhQh", "top pair", ""),
        ("Kc7d2s", "AhAd", "overpair", ""),
        ("Kc7d2s", "QhQd", "underpair", ""),
        ("Kc7d2s", "7h6h", "second pair", ""),
        ("KcTd7s3h2c", "Ah7h", "low pair", ""),
        ("KcKd7s", "Ah7h", "two pair", ""),
        ("Kc7d2s", "7h7s", "set", ""),
        ("Kc7c2s", "AcQc", "high card", "flush draw"),
        ("JhTh2c", "AhKh", "high card", "flush draw, gutshot"),
        ("JhTh2c", "9s8s", "high card", "open-ended"),
        ("QsJh8h", "AcTc", "high card", "open-ended"),  # a nine or a king
        ("2c3c4h", "AsKd", "high card", "gutshot"),
        ("KcKd5h", "AsQh", "high card", ""),  # the pair is on the board
        ("KcKd5h", "KsQh", "trips", ""),
        ("KcKd5h", "QsQh", "two pair", ""),
        ("KcKd7h7s2c", "AsAh", "two pair", ""),
        ("KcKd7h7s2c", "AsQh", "high card", ""),
        ("5d6c7c8c", "AsQh", "high card", ""),  # a nine or a four gives every hand a straight
        ("5d6c7c8c", "AsKc", "high card", "flush draw"),
        ("5d6c7c8c", "9sKd", "straight", ""),
        ("5d6c7c8c", "9cTc", "straight flush", ""),
        ("JhTh2c5h3s", "AhKh", "flush", ""),
        ("JhTh2c5d3s", "AhKh", "high card", ""),  # no cards to come
    ],
)
def test_hands_have_the_names_that_players_use(board, hand, made_hand, draws):
    kinds, coming = hand_kinds(parse_cards(board))
    number = combo_index(*parse_cards(hand))
    assert (kinds[number], coming[number]) == (made_hand, draws)


def test_grid_is_the_usual_square():
    table = combo_table()
    grid = make_grid(table, [""] * len(table))
    assert (grid.rows, grid.columns, grid.label[0], grid.label[1], grid.label[13]) == (13, 13, "AA", "AKs", "AKo")
    sizes = np.bincount(grid.cell, minlength=169)
    kinds = {(label[2:], int(size)) for label, size in zip(grid.label, sizes, strict=True)}
    assert kinds == {("", 6), ("s", 4), ("o", 12)}
    assert grid.label[grid.cell[0]] == "22" and grid.place[168] == (12, 12)
