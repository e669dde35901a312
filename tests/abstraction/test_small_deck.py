"""Abstractions of small decks: features, bucket sharing, perfect recall, invalid input.

Shows:

* Features of small decks (strength, histogram, OCHS) equal their definitions for hold'em
  (test_strengths_and_histograms_equal_their_definitions, test_ochs_is_the_equity_against_each_cluster)
* Nested buckets have perfect recall (test_nested_buckets_have_perfect_recall)
"""

from itertools import combinations, product

import numpy as np
import pytest
from refusals import refusals, refused
from small_games import forgotten_street, refuse_recipe

from abstraction.buckets import Abstraction, unused, verify_abstraction
from abstraction.build import Builder
from abstraction.deck_models import SmallDeck
from abstraction.recipe import DeckRecipe, Recipe, StreetRecipe
from abstraction.small_deck_hands import DeckListing, few_cards_strength
from mccfr.cards.small_deck_cards import small_deck
from mccfr.config.game_tables import KuhnGame, PokerGame
from mccfr.games.bucketed import bucketed
from mccfr.games.registry import build_game

DECK = DeckRecipe(ranks=4, suits=2, hole_cards=2, board_cards=[0, 1, 1])
GAME = PokerGame(ranks=4, suits=2, hole_cards=2, board_cards=(0, 1, 1), stack=4, blinds=(2, 1), first_player=(2, 1, 1))
LISTING = DECK.listing()


def strength(hand, board):
    """Return 2·wins + ties of a hand on a full board, from the definition."""
    left = [card for card in range(8) if card not in (*hand, *board)]
    mine, *others = (
        few_cards_strength([card // 2 for card in (*cards, *board)], 4) for cards in (hand, *combinations(left, 2))
    )
    return sum(2 * (mine > other) + (mine == other) for other in others)


def runouts(street, board, hand):
    """Return the full boards that may follow a board for a hand, in all orders of dealing."""
    left = [card for card in range(8) if card not in (*hand, *board)]
    return [(*board, *rest) for rest in product(left, repeat=2 - len(board)) if len(set(rest)) == len(rest)]


def cells(street):
    """Return (row, slot, board, hand) of about 40 hands of a street."""
    boards, hands = LISTING.boards[street].tolist(), [tuple(hand) for hand in LISTING.hands.tolist()]
    every = [
        (row, slot, tuple(board), hand)
        for row, board in enumerate(boards)
        for slot, hand in enumerate(hands)
        if not {*board} & {*hand}
    ]
    return every[:: max(1, len(every) // 40)]


@pytest.mark.parametrize("street", [0, 1, 2])
def test_strengths_and_histograms_equal_their_definitions(street):
    deck, name = SmallDeck(LISTING), ("preflop", "flop", "turn")[street]
    sums, squares = deck.sums(name), deck.squares(name)
    rows = deck.histogram(name, 5).rows(0, len(sums)) if street < 2 else None
    for row, slot, board, hand in cells(street):
        found = [strength(hand, full) for full in runouts(street, board, hand)]
        assert sums[row, slot] == sum(found) and squares[row, slot] == sum(value**2 for value in found)
        assert len(found) == LISTING.run_outs(street) and max(found) <= LISTING.most_strength
        if rows is not None:
            bins = [value * 5 // (LISTING.most_strength + 1) for value in found]
            assert rows[row, slot].tolist() == np.bincount(bins, minlength=5).tolist()


def test_ochs_is_the_equity_against_each_cluster():
    deck = SmallDeck(LISTING)
    rows = deck.ochs("turn", 3, 0).rows(0, len(LISTING.boards[2]))
    classes = {
        (*sorted(card // 2 for card in hand), len({card % 2 for card in hand})) for hand in LISTING.hands.tolist()
    }
    assert len(classes) == int(deck.hole_classes.max()) + 1
    for row, slot, board, hand in cells(2):
        wins = strength(hand, board) / LISTING.most_strength
        # The equity against all hands is the mean over clusters, so it is between the smallest and largest equity.
        assert rows[row, slot].min() >= 0 and rows[row, slot].max() <= 1
        assert rows[row, slot].min() - 1e-6 <= wins <= rows[row, slot].max() + 1e-6
    one = deck.ochs("turn", 1, 0).rows(0, len(LISTING.boards[2]))[:, :, 0]
    free = LISTING.free(2)
    assert np.allclose(one[free], deck.sums("turn")[free] / LISTING.most_strength, atol=1e-6)
    assert (one[~free] == -1).all()


def parts(features, nested=False):
    return {
        "preflop": StreetRecipe(features="ehs", buckets=4),
        "flop": StreetRecipe(features=features, buckets=12 if nested else 5, nested=nested),
        "turn": StreetRecipe(features="ehs", buckets=25 if nested else 8, nested=nested),
    }


@pytest.mark.parametrize("features", ["ehs", "ehs2", "histogram", "lossless"])
def test_hands_that_differ_by_suits_share_a_bucket(tmp_path, features):
    flop = StreetRecipe(features=features, buckets=None if features == "lossless" else 8)
    recipe = Recipe(deck=DECK, flop=flop, turn=StreetRecipe(features="ochs", buckets=9, clusters=3))
    assert set(Builder(recipe, tmp_path).build()) == {"preflop", "flop", "turn"}
    assert Builder(recipe, tmp_path).build() == [] and verify_abstraction(tmp_path) == []
    built = Abstraction(tmp_path)
    game = bucketed(build_game(GAME, tmp_path), built)
    assert built.streets == ("preflop", "flop", "turn")
    assert forgotten_street(game) == (2 if features == "lossless" else 1)
    swap = np.arange(8) ^ 1  # exchanges the two suits
    for row, slot, board, hand in cells(1):
        renamed = built.bucket([int(swap[card]) for card in hand], [int(swap[card]) for card in board])
        assert renamed == built.bucket(hand, board) == ("flop", int(built.table("flop")[row, slot]))
    assert built.bucket_of_text("AcKd", "Qd")["features"] == features
    for row, slot, board, hand in cells(2):  # the order of the board's cards does not matter
        assert built.bucket(hand, board[::-1])[1] == built.table("turn")[row, slot]


@pytest.mark.parametrize("features", ["ehs", "histogram"])
def test_nested_buckets_have_perfect_recall(tmp_path, features):
    Builder(Recipe(deck=DECK, **parts(features, nested=True)), tmp_path).build()
    built = Abstraction(tmp_path)
    game = bucketed(build_game(GAME, tmp_path), built)
    assert forgotten_street(game) is None
    assert built.bucket_counts()["turn"] == 25 == int(game.cards.buckets[2, 0])
    for street in built.streets:
        table = built.table(street)
        free = LISTING.free(built.streets.index(street))
        assert (table[~free] == unused(table.dtype)).all() and built.sizes(street)[0].sum() == free.sum()


def test_the_deck_listing_equals_that_of_the_game():
    cards = small_deck(4, 2, 2, [0, 1, 1])
    assert np.array_equal(cards.strength, LISTING.strength) and np.array_equal(cards.hand_cards, LISTING.hands)
    assert LISTING.parse("Ad Jc") == (7, 0)
    refused("'Td' is not a card of the deck", LISTING.parse, "AdTd")


def read(text, tmp_path):
    refuse_recipe(f"deck = {{ranks = 4, suits = 2, hole_cards = 2, board_cards = [0, 1, 1]}}\n{text}", tmp_path)


EHS, NESTED = "{features = 'ehs', buckets = 5}", "{features = 'ehs', buckets = 5, nested = true}"
test_bad_recipes = refusals(
    ("[turn] is missing", f"flop = {EHS}"),
    ("flop.features = 'ochs'", f"flop = {{features = 'ochs', buckets = 5}}\nturn = {EHS}"),
    ("leave it out", f"flop = {{features = 'lossless', buckets = 5}}\nturn = {EHS}"),
    ("flop.features = 'potential'", f"flop = {{features = 'potential', buckets = 5}}\nturn = {EHS}"),
    ("no street before it", f"preflop = {NESTED}\nflop = {EHS}\nturn = {EHS}"),
    ("[river] is not allowed", f"flop = {EHS}\nturn = {EHS}\nriver = {EHS}"),
    call=read,
)


def test_invalid_decks_and_decks_of_another_game_are_refused(tmp_path):
    refused("a deck of 2 ranks", DeckListing, 2, 2, 2, (0, 1))
    Builder(Recipe(deck=DECK, **parts("ehs")), tmp_path).build(["preflop", "flop", "turn"])
    refused("is for a deck of 4 ranks and 2 suits", bucketed, build_game(KuhnGame(), tmp_path), Abstraction(tmp_path))
    refused("hands have 2 cards, and boards 0, 1, 2", Abstraction(tmp_path).bucket, [1], [])
    refused("each once", Abstraction(tmp_path).bucket, [1, 2], [2])
