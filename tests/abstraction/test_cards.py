from itertools import combinations

import numpy as np

from abstraction import cards


def test_numbering_is_rank_major_with_suits_c_d_h_s():
    assert [cards.parse_card(text) for text in ("2c", "2d", "2h", "2s", "3c", "Ac", "As")] == [0, 1, 2, 3, 4, 48, 51]
    names = [rank + suit for rank in "23456789TJQKA" for suit in "cdhs"]
    assert [cards.card_text(card) for card in range(52)] == names


def test_parse_cards_keeps_order_and_inverts_cards_text():
    assert cards.parse_cards("Qs7h2d") == (43, 22, 1)
    assert cards.cards_text((43, 22, 1)) == "Qs7h2d"
    assert cards.parse_cards("") == ()
    assert cards.parse_cards("10h 9h, 2d") == cards.parse_cards("tH9h2D") == cards.parse_cards("Th9h2d")
    assert cards.plain_text(" A 10s") == "ATs"
    deck = tuple(reversed(range(52)))
    assert cards.parse_cards(cards.cards_text(deck)) == deck


def test_combinations_are_numbered_by_higher_then_lower_card():
    in_order = sorted(combinations(range(52), 2), key=lambda pair: (pair[1], pair[0]))
    assert [cards.combo_cards(index) for index in range(cards.COMBO_COUNT)] == in_order
    assert [cards.combo_index(a, b) for a, b in in_order] == list(range(cards.COMBO_COUNT))
    assert all(cards.combo_index(b, a) == index for index, (a, b) in enumerate(in_order))
    assert cards.combo_table().tolist() == [list(pair) for pair in in_order]
    assert cards.combo_masks().tolist() == [cards.card_mask(pair) for pair in in_order]
    assert cards.combo_text(1325) == "AsAh"
    assert cards.card_mask((0, 51)) == 1 + 2**51


def test_hands_of_small_decks_are_numbered_like_combinations():
    assert cards.hand_cards(3, 1).tolist() == [[0, -1], [1, -1], [2, -1]]
    assert cards.hand_cards(4, 2).tolist() == [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]]
    assert np.array_equal(cards.hand_cards(52, 2), cards.combo_table())
