"""Boards and cards: canonical boards, suit permutations, preflop classes, numbering."""

from itertools import combinations, permutations
from math import comb

import numpy as np
import pytest

from abstraction import boards, cards
from abstraction.boards import board_classes, canonical_boards, locate_board
from abstraction.cards import combo_cards, combo_index, combo_table


def rank(cards):
    return sum(comb(card, place) for place, card in enumerate(sorted(cards), 1))


def images(cards):
    """Return (board, permutation) for each of the 24 suit permutations; the board's cards are sorted."""
    return [(sorted(4 * (c // 4) + p[c % 4] for c in cards), p) for p in permutations(range(4))]


def random_boards(size, count, seed):
    random_state = np.random.default_rng(seed)
    return np.array([random_state.permutation(52)[:size] for _ in range(count)])


@pytest.mark.parametrize(("size", "count"), [(3, 1755), (4, 16432), (5, 134459)])
def test_canonical_boards_are_the_least_of_their_classes(size, count):
    classes = board_classes(size)
    assert classes.boards.shape == (count, size) and classes.multiplicity.sum() == comb(52, size)
    assert (np.diff(classes.boards, axis=1) > 0).all()
    ranks = [rank(board) for board in classes.boards.tolist()]
    assert ranks == sorted(set(ranks))
    for index in np.random.default_rng(size).integers(count, size=200):
        board = classes.boards[index].tolist()
        variants = {tuple(image) for image, _ in images(board)}
        assert rank(board) == min(map(rank, variants))
        assert classes.multiplicity[index] == len(variants)


@pytest.mark.parametrize("size", [3, 4, 5])
def test_locations_give_the_canonical_board(size):
    location = board_classes(size).location
    cards = np.array(list(combinations(range(52), size)) if size < 5 else random_boards(5, 200_000, seed=1))
    cards.sort(axis=1)
    ranks = sum(np.array([comb(c, place) for c in range(52)])[cards[:, place - 1]] for place in range(1, size + 1))
    index, permutation = location[ranks] >> 5, location[ranks] & 31
    image = np.sort(cards & ~3 | boards.suit_permutations()[permutation[:, None], cards & 3], axis=1)
    assert np.array_equal(image, canonical_boards(size)[index])
    if size < 5:
        assert np.array_equal(np.bincount(index), board_classes(size).multiplicity)


@pytest.mark.parametrize("size", [3, 4, 5])
def test_location_does_not_depend_on_the_order_or_names_of_suits(size):
    for board in random_boards(size, 300, seed=2).tolist():
        location = locate_board(board)
        assert locate_board(board[::-1]) == location
        assert {locate_board(image)[0] for image, _ in images(board)} == {location[0]}


def test_hole_permutations_move_both_cards():
    moved = boards.hole_permutations()
    assert moved.shape == (24, 1326) and np.array_equal(moved[0], np.arange(1326))
    suits = boards.suit_permutations().tolist()
    for p in range(24):
        assert sorted(moved[p].tolist()) == list(range(1326))
        for combo in range(p, 1326, 31):
            a, b = combo_cards(combo)
            assert moved[p, combo] == combo_index(4 * (a // 4) + suits[p][a % 4], 4 * (b // 4) + suits[p][b % 4])


def test_preflop_classes_are_the_169_known_ones():
    classes = boards.preflop_classes()
    names = {}
    for combo in range(1326):
        a, b = combo_cards(combo)
        names.setdefault((b // 4, a // 4, a % 4 == b % 4), set()).add(int(classes[combo]))
    assert len(names) == 169
    assert sorted(label for labels in names.values() for label in labels) == list(range(169))


def test_used_slots_share_no_card_with_the_board():
    cards = canonical_boards(4)[::1500]
    expected = [~np.isin(combo_table(), board).any(axis=1) for board in cards]
    assert np.array_equal(boards.used_slots(cards), expected)


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
