"""Strata of the full deck: flops weighted by their suit isomorphisms, buckets by stratum."""

from dataclasses import replace

import numpy as np
import pytest
from small_games import deck_on

from abstraction.boards import board_classes, canonical_boards
from mccfr.cards.board_strata import in_strata, stratum_dealers
from mccfr.cards.deals import new_deals
from mccfr.cards.strata_deals import draw_stratum_cards

STRATA, SEED, DEALS = 4, 7, 6000


@pytest.fixture(scope="module", params=[2, 5])
def deck(slot_abstractions, request):
    """Hold'em that ends on the turn, ten buckets a street, in strata, for two and five players."""
    plain = deck_on((0, 3, 1), slot_abstractions[0])
    return in_strata(replace(plain, buckets=np.repeat(plain.buckets[:, :1], request.param, axis=1)), STRATA)


def drawn_cards(cards, dealer, stratum, count=DEALS):
    """Return the cards [K, 2·P + 5] of the first deals of a dealer."""
    cards = np.empty((count, 2 * cards.players + 5), np.int8)
    words = np.uint64(SEED), np.uint64(stratum)
    draw_stratum_cards(dealer._drawn, dealer._flops, *words, 0, count, np.zeros(4, np.uint64), cards)
    return cards


def test_buckets_of_a_stratum_are_those_of_its_flops(deck):
    cards, strata = deck
    players, held = cards.players, 2 * cards.players
    assert cards.buckets[:, players - 1].tolist() == [10, 40, 40]
    dealers = stratum_dealers(cards, strata, SEED)
    for stratum in (0, 3):
        deals, drawn = new_deals(40, 3, players), drawn_cards(cards, dealers[stratum], stratum, 40)
        dealers[stratum].draw(0, 40, deals)
        assert (cards.strata_of(drawn[:, held : held + 3]) == stratum).all()
        for bucket, every in zip(deals.bucket, drawn.tolist(), strict=True):
            for street, known in enumerate((0, 3, 4)):
                row = cards.bucket_row(street, 0, every[held : held + known])
                pairs = (every[first : first + 2] for first in range(0, held, 2))
                hands = [max(two) * (max(two) - 1) // 2 + min(two) for two in pairs]
                assert row[hands].tolist() == bucket[players * street :][:players].tolist()
    now, before = next(cards.bucket_pairs(2, 0))
    board = canonical_boards(4)[0].tolist()
    held = cards.bucket_row(2, 0, board) >= 0
    np.testing.assert_array_equal(now[: held.sum()], cards.bucket_row(2, 0, board)[held])
    np.testing.assert_array_equal(before[: held.sum()], cards.bucket_row(1, 0, board[:3])[held])


def check_cards(cards, strata):
    """Check that deals of all strata, in proportion to their shares, have the frequencies of the deck."""
    quotas = np.rint(DEALS * strata.shares / strata.shares.sum()).astype(int)
    dealers = stratum_dealers(cards, strata, SEED)
    drawn = np.concatenate([drawn_cards(cards, dealers[s], s, quotas[s]) for s in range(STRATA)])
    held = 2 * cards.players
    assert all(len(set(every)) == held + 5 for every in drawn[::50].tolist())
    for places in ([0], [1], [2], [held - 1], [held, held + 1, held + 2], [held + 3], [held + 4]):
        found = np.bincount(drawn[:, places].reshape(-1), minlength=52) / drawn[:, places].size
        assert np.abs(found - 1 / 52).max() < 5 * np.sqrt(1 / 52 / drawn[:, places].size)
    one_suit = (np.ptp(drawn[:, held : held + 3] % 4, axis=1) == 0).mean()
    assert abs(one_suit - 12 / 51 * 11 / 50) < 5 * np.sqrt(0.05 / len(drawn))


def test_deals_of_all_strata_have_the_frequencies_of_the_deck(deck):
    cards, strata = deck
    np.testing.assert_array_equal(np.concatenate(strata.weights), board_classes(3).multiplicity)
    check_cards(cards, strata)


def test_planted_isomorphic_flops_weighted_alike(deck):
    cards, strata = deck
    alike = replace(strata, weights=[np.ones(len(weights)) for weights in strata.weights])
    with pytest.raises(AssertionError):
        check_cards(cards, alike)
