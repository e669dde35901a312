"""What hands make with a board, and their draws, in the words of players.

Shows:

* The page's filters name made hands and draws as players do (test_hands_are_called_what_players_call_them)
"""

import pytest

from abstraction.cards import combo_index, parse_cards
from mccfr.view.hand_classes import hand_kinds


@pytest.mark.parametrize(
    ("board", "hand", "made", "draws"),
    [
        ("Kc7d2s", "KhQh", "pair", ""),
        ("Kc7d2s", "7h7s", "set", ""),
        ("Kc7c2s", "AcQc", "high card", "flush draw"),
        ("JhTh2c", "AhKh", "high card", "flush draw, gutshot"),
        ("JhTh2c", "9s8s", "high card", "open-ended"),
        ("QsJh8h", "AcTc", "high card", "open-ended"),  # a nine or a king
        ("2c3c4h", "AsKd", "high card", "gutshot"),
        ("KcKd5h", "AsQh", "high card", ""),  # the pair is everybody's
        ("KcKd5h", "KsQh", "trips", ""),
        ("KcKd5h", "QsQh", "two pair", ""),
        ("KcKd7h7s2c", "AsAh", "two pair", ""),
        ("KcKd7h7s2c", "AsQh", "high card", ""),
        ("5d6c7c8c", "AsQh", "high card", ""),  # a nine or a four is everybody's straight
        ("5d6c7c8c", "AsKc", "high card", "flush draw"),
        ("5d6c7c8c", "9sKd", "straight", ""),
        ("5d6c7c8c", "9cTc", "straight flush", ""),
        ("JhTh2c5h3s", "AhKh", "flush", ""),
        ("JhTh2c5d3s", "AhKh", "high card", ""),  # nothing comes any more
    ],
)
def test_hands_are_called_what_players_call_them(board, hand, made, draws):
    kinds, coming = hand_kinds(parse_cards(board))
    number = combo_index(*parse_cards(hand))
    assert (kinds[number], coming[number]) == (made, draws)
