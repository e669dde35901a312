"""Two players with different card abstractions: a deal holds each player's own buckets.

Shows:

* A deal holds each player's buckets under that player's abstraction
  (test_each_player_has_the_buckets_of_his_own_abstraction)
* The test detects one bucket map used for both players (test_a_planted_bucket_map_for_both_is_caught)
"""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from small_games import game_of

from abstraction.boards import board_classes, preflop_classes
from abstraction.cards import COMBO_COUNT
from abstraction.hand_evaluator import strengths
from mccfr.cards import per_player
from mccfr.cards.deals import new_deals
from mccfr.cards.full_deck import WholeDeck
from mccfr.cards.suit_symmetry import lossless

COUNT = 60
HOLES = [(0, 1), (2, 3)]


def deck(seed, buckets):
    """Flop hold'em on random buckets."""
    rng = np.random.default_rng(seed)
    tables = [preflop_classes()[None], rng.integers(0, buckets, (len(board_classes(3).boards), COMBO_COUNT))]
    counts = np.array([[169, 169], [buckets, buckets]])
    return WholeDeck((0, 3), counts, lambda: [table.astype(np.uint16) for table in tables])


@pytest.fixture(scope="module")
def decks():
    return deck(0, 50), deck(1, 60_000)


def naive_buckets(decks, cards):
    """[K, 4] what each player's deck says of the hands and boards of deals [K, 9]."""
    found = np.zeros((len(cards), 4), np.int64)
    for k, dealt in enumerate(cards.tolist()):
        for player, places in enumerate(HOLES):
            low, high = sorted(dealt[place] for place in places)
            for street, board in enumerate(([], dealt[4:7])):
                row = decks[player].bucket_row(street, 0, board)
                found[k, 2 * street + player] = row[high * (high - 1) // 2 + low]
    return found


def dealt(cards, worker=3):
    deals, dealer = new_deals(COUNT, 2), cards.dealer(5, worker)
    dealer.draw(100, COUNT, deals)
    return dealer, deals


def test_each_player_has_the_buckets_of_his_own_abstraction(decks):
    dealer, deals = dealt(decks[0].with_opponent(decks[1]))
    expected = naive_buckets(decks, dealer.cards)
    assert np.array_equal(deals.bucket, expected)
    shown = [strengths(dealer.cards[:, [*HOLES[p], 4, 5, 6]].astype(np.int64)) for p in range(2)]
    assert np.array_equal(deals.result, np.sign(shown[0].astype(np.int64) - shown[1]))


def test_a_planted_bucket_map_for_both_is_caught(decks, monkeypatch):
    def first_for_both(buckets, *where):
        return dealer((buckets[0], buckets[0]), *where)

    dealer = per_player.PerPlayerDealer
    monkeypatch.setattr(per_player, "PerPlayerDealer", first_for_both)
    wrong, deals = dealt(decks[0].with_opponent(decks[1]))
    expected = naive_buckets(decks, wrong.cards)
    assert np.array_equal(deals.bucket[:, ::2], expected[:, ::2])
    assert (deals.bucket[:, 3] != expected[:, 3]).mean() > 0.9


def test_a_deck_of_two_asks_each_players_own(decks):
    both, board = decks[0].with_opponent(decks[1]), (51, 30, 9)
    hands = both.board_hands(board)
    for player in range(2):
        assert np.array_equal(hands.bucket[1, player], decks[player].bucket_row(1, 0, board))
        assert both.hand_bucket(1, player, "2c3d", "AsKhQd") == decks[player].hand_bucket(1, 0, "2c3d", "AsKhQd")
    assert both.buckets.tolist() == [[169, 169], [50, 60_000]]
    refused("cannot be dealt in one game", decks[0].with_opponent, game_of("leduc").cards)
    refused("cannot be dealt in one game", game_of("leduc").cards.with_opponent, decks[0])


def test_listed_players_have_the_buckets_of_their_own():
    cards = game_of("leduc").cards
    blind = replace(cards, bucket=[np.minimum(b, 1) for b in cards.bucket], buckets=np.minimum(cards.buckets, 2))
    (_, both), (_, first), (_, second) = (dealt(each) for each in (blind.with_opponent(cards), blind, cards))
    assert np.array_equal(both.bucket[:, ::2], first.bucket[:, ::2])
    assert np.array_equal(both.bucket[:, 1::2], second.bucket[:, 1::2])
    assert np.array_equal(both.result, second.result) and both.bucket[:, ::2].max() == 1


def test_lossless_cards_tell_all_hands_apart_but_for_suits():
    """Count infosets of Leduc by hand: 6 hands, and 6·5 pairs of hand and board.

    Up to suits these are 3 hands and 15 pairs: 3 with a pair, 6 suited, 6 unsuited.
    """
    merged, apart = game_of("leduc, suits merged").cards, game_of("leduc").cards
    assert lossless(apart).buckets.tolist() == [[6, 6], [30, 30]]
    blind = replace(merged, bucket=[np.minimum(b, 0) for b in merged.bucket], buckets=np.ones((2, 2), np.int64))
    for cards in (merged, blind):
        found = lossless(cards)
        assert found.buckets.tolist() == [[3, 3], [15, 15]]
        for one, other in zip(found.bucket, merged.bucket, strict=True):
            pairs = np.stack([one[0][one[0] >= 0], other[0][other[0] >= 0]], axis=1)
            assert len(np.unique(pairs, axis=0)) == len(np.unique(pairs[:, 0]))  # no two that differ are together
