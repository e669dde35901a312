"""Hand evaluator: strengths, categories, boards, small decks.

Shows:

* The evaluator ranks hands as phevaluator and PokerKit do (test_random_hands_equal_phevaluator,
  test_order_and_ties_equal_pokerkit)
"""

import random
from collections import Counter
from itertools import chain, combinations, pairwise, permutations

import numpy as np
import phevaluator
import pytest
from openspiel import universal_poker
from pokerkit import StandardHighHand

from abstraction import hand_evaluator
from abstraction.cards import cards_text, combo_table, parse_cards
from abstraction.hand_evaluator import CATEGORIES, CATEGORY_SIZES
from abstraction.small_deck_hands import few_cards_strength


def random_hands(count, size, seed):
    """Random rows of distinct cards, [count, size] int8."""
    random_state = np.random.default_rng(seed)
    keys = random_state.random((count, 52), dtype=np.float32)
    return np.argpartition(keys, size, axis=1)[:, :size].astype(np.int8)


def phevaluator_strengths(hands):
    """Return phevaluator's ranks, 1 (best) to 7,462, turned into strengths that grow with the hand."""
    evaluate = phevaluator.evaluate_cards
    return 7463 - np.fromiter((evaluate(*hand) for hand in hands.tolist()), np.int32, len(hands))


@pytest.mark.parametrize("size", [5, 6, 7])
def test_random_hands_equal_phevaluator(size):
    hands = random_hands(100_000, size, seed=0)
    assert np.array_equal(hand_evaluator.strengths(hands), phevaluator_strengths(hands))


@pytest.mark.parametrize("size", [5, 6, 7])
def test_order_and_ties_equal_pokerkit(size):
    hands = random_hands(600, size, seed=10 + size)
    # Hands of one suit and of high cards have the rare categories.
    suited = 4 * np.argsort(np.random.default_rng(1).random((200, 13)), axis=1)[:, :size] + 2
    few_ranks = np.argsort(np.random.default_rng(2).random((200, 12)), axis=1)[:, :size] + 8
    hands = np.concatenate([hands, suited, few_ranks])
    strengths = hand_evaluator.strengths(hands)
    oracle = [StandardHighHand.from_game(cards_text(hand)) for hand in hands]
    order = np.argsort(strengths, kind="stable")
    for first, second in pairwise(order):
        assert (strengths[first] < strengths[second]) == (oracle[first] < oracle[second])
        assert (strengths[first] == strengths[second]) == (oracle[first] == oracle[second])


def test_all_five_card_hands_fall_into_the_known_classes():
    count = 2_598_960
    hands = np.fromiter(chain.from_iterable(combinations(range(52), 5)), np.int8, 5 * count).reshape(count, 5)
    of_strength = np.bincount(hand_evaluator.strengths(hands), minlength=7463)
    assert np.flatnonzero(of_strength).tolist() == list(range(1, 7463))
    assert sum(CATEGORY_SIZES) == 7462
    by_category = Counter()
    for value in range(1, 7463):
        by_category[CATEGORIES[hand_evaluator.category(value)]] += int(of_strength[value])
    assert by_category == {
        "straight flush": 40,
        "four of a kind": 624,
        "full house": 3744,
        "flush": 5108,
        "straight": 10200,
        "three of a kind": 54912,
        "two pair": 123552,
        "pair": 1098240,
        "high card": 1302540,
    }


@pytest.mark.parametrize("cards", [3, 4, 5])
def test_strengths_on_boards_equal_those_of_each_board(cards):
    """Compare all combinations and a part of them, with a flush on the board and blocked combinations."""
    boards = np.concatenate([random_hands(200, cards, 9), 4 * np.arange(cards)[None] + 1])
    expected = np.array([hand_evaluator.board_strengths(board) for board in boards.tolist()])
    some = np.arange(5, 1326, 31)
    assert np.array_equal(hand_evaluator.strengths_on_boards(boards, np.arange(1326)), expected)
    assert np.array_equal(hand_evaluator.strengths_on_boards(boards, some), expected[:, some])


def test_board_strengths_equal_evaluations_of_single_hands():
    special = "AcKcQcJcTc AcAdAhAs2c 2c2d2h3c3d 9h8h7h6h2s 9h8h7h2c2s 2c3d4h5sAc KcKdKhQsQc 7c7d8h9sTc"
    boards = np.concatenate([[parse_cards(text) for text in special.split()], random_hands(150, 5, seed=3)])
    table = combo_table()
    for board in (board[:cards] for board in boards for cards in (3, 4, 5)):
        strengths = hand_evaluator.board_strengths(board.tolist())
        free = ~np.isin(table, board).any(axis=1)
        assert strengths.dtype == np.int16
        assert free.sum() == {3: 1176, 4: 1128, 5: 1081}[len(board)]
        assert (strengths[~free] == -1).all()
        hands = np.hstack([table[free], np.tile(board.astype(np.int8), (free.sum(), 1))])
        assert np.array_equal(strengths[free], hand_evaluator.strengths(hands))


def family_strength(cards, ranks, suits):
    """Return the strength of a hand of a small deck, as `DeckListing` computes it."""
    if len(cards) < 5:
        return few_cards_strength([card // suits for card in cards], ranks)
    return hand_evaluator.strength([card // suits * 4 + card % suits for card in cards])


def deals(deck_size, hole_cards, board_cards, count):
    """Return `count` random deals; for decks of at most 6 cards, all deals with sorted hands and board."""
    total = 2 * hole_cards + board_cards
    cuts = (0, hole_cards, 2 * hole_cards, total)
    everything = [
        deal
        for deal in (permutations(range(deck_size), total) if deck_size <= 6 else [])
        if all(list(deal[a:b]) == sorted(deal[a:b]) for a, b in pairwise(cuts))
    ]
    shuffled = random.Random(7)
    return everything or [tuple(shuffled.sample(range(deck_size), total)) for _ in range(count)]


@pytest.mark.parametrize(
    ("ranks", "suits", "hole_cards", "board_cards"),
    [
        (3, 2, 1, 1),
        (2, 3, 2, 1),
        (3, 2, 2, 1),
        (2, 4, 2, 2),
        (3, 4, 2, 2),
        (4, 3, 1, 3),
        (13, 4, 2, 2),
        (6, 3, 2, 3),
        (7, 4, 2, 5),
    ],
)
def test_poker_family_ranks_hands_as_universal_poker(ranks, suits, hole_cards, board_cards):
    checks = {"betting": "limit", "raiseSize": "2 2", "maxRaises": "0 0"}  # so that every deal goes to a showdown
    betting = {**checks, "blind": "1 1", "stack": "5 5", "firstPlayer": "1 1"}
    game = universal_poker(ranks, suits, hole_cards, (0, board_cards), **betting)
    outcomes = Counter()
    for deal in deals(ranks * suits, hole_cards, board_cards, 1500):
        state, cards = game.new_initial_state(), iter(deal)
        while not state.is_terminal():
            state.apply_action(next(cards) if state.is_chance_node() else 1)
        first = family_strength(deal[:hole_cards] + deal[2 * hole_cards :], ranks, suits)
        second = family_strength(deal[hole_cards:], ranks, suits)
        assert state.returns()[0] == (first > second) - (first < second), deal
        outcomes[(first > second) - (first < second)] += 1
    assert min(outcomes[-1], outcomes[0], outcomes[1]) > 0
