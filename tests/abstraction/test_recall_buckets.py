"""Perfect-recall buckets: history tables, deals, look-ups, builds and exports.

Shows:

* Nested buckets of hold'em determine the bucket of the street before and have equal shares of hands
  (test_nested_buckets_have_perfect_recall_and_equal_shares)
* The test detects a history table of another street (test_a_history_of_another_street_is_caught)
"""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from commands import answer, command
from places import RUNS
from refusals import refusals, refused
from small_games import deck_on, forgotten_street, refuse_recipe

from abstraction import recall_buckets
from abstraction.boards import BOARD_COUNTS, canonical_boards, preflop_classes, used_slots
from abstraction.buckets import Abstraction
from abstraction.build import Builder
from abstraction.cards import COMBO_COUNT, combo_cards, combo_index
from abstraction.lookup import DEAL_CARDS
from abstraction.recipe import PERCENTILES, STREETS, Recipe, StreetRecipe, bucket_count, load_recipe
from mccfr.cards.board_strata import in_strata
from mccfr.cards.deals import new_deals
from mccfr.cards.full_deck import WholeDeck
from mccfr.cards.full_deck_deals import draw_cards
from mccfr.common.rng import DEALS
from mccfr.config.game_tables import FlopHoldemGame
from mccfr.config.run_tables import AbstractionConfig
from mccfr.games.holdem import flop_holdem
from mccfr.policy.checks import check_history
from mccfr.policy.reader import Policy
from storage.checkpoint import newest_valid
from storage.checkpoint_writer import commit
from storage.checksums import cells_checksum
from storage.schema import ArraySpec

CARDS, COUNTS = (0, 3, 4), (2, 4, 12)
SHARE = {0: 2, 1: 2, 2: 3}


def strength(cards):
    """Return artificial percentiles [canonical boards, 1326] of hands, with ties; they differ by board."""
    value = np.array([sum(combo_cards(combo)) for combo in range(COMBO_COUNT)])
    moved = value + 37 * np.arange(BOARD_COUNTS[cards])[:, None] % 11 * cards
    found = moved * PERCENTILES // (moved.max() + 1)
    return np.where(used_slots(canonical_boards(cards)), found, 0xFFFF).astype(np.uint16)


@pytest.fixture(scope="module")
def tables():
    return [(preflop_classes()[None] % 2).astype(np.uint16), strength(3), strength(4)]


@pytest.fixture(scope="module")
def histories(tables):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recall_buckets, "DEALS", 200_000)
        flop = recall_buckets.history_of([(tables[0], None)], tables[1], CARDS[:2], COUNTS[1], seed=0)
        turn = recall_buckets.history_of([(tables[0], None), (tables[1], flop)], tables[2], CARDS, COUNTS[2], seed=0)
    return [None, flop, turn]


@pytest.fixture(scope="module")
def deck(tables, histories):
    loader = recall_buckets.Histories((2, PERCENTILES, PERCENTILES), lambda: histories)
    return WholeDeck((0, 3, 1), np.repeat([[count] for count in COUNTS], 2, axis=1), lambda: tables, histories=loader)


def draw(cards, count):
    deals, dealer = new_deals(count, cards.streets), cards.dealer(5, 3)
    dealer.draw(0, count, deals)
    return deals.bucket, dealer


def test_nested_buckets_have_perfect_recall_and_equal_shares(deck):
    bucket, _ = draw(deck, 100_000)
    for street in (1, 2):
        now, before = bucket[:, 2 * street :][:, :2].ravel(), bucket[:, 2 * street - 2 :][:, :2].ravel()
        assert np.array_equal(now // SHARE[street], before)
        shares = np.bincount(now, minlength=COUNTS[street]) / len(now)
        assert np.abs(shares * COUNTS[street] - 1).max() < 0.1
        for found, above in deck.bucket_pairs(street, 0):
            assert np.array_equal(found // SHARE[street], above)


def by_hand(tables, histories, hand, board):
    """Return a hand's buckets on each street of a board of four cards, looked up one by one."""
    plain = WholeDeck((0, 3, 1), np.ones((3, 2), np.int64), lambda: tables)
    bucket, found = 0, []
    for street, cards in enumerate(CARDS):
        number = int(plain.board_row(street, board[:cards])[hand])
        bucket = number if histories[street] is None else int(histories[street][bucket, number])
        found.append(bucket)
    return found


def forty_deals(deck):
    """Return 40 deals: buckets [40, 6] from the dealer, both players' hands, and boards of four cards."""
    cards = np.zeros((40, DEAL_CARDS), np.int8)
    draw_cards(np.uint64(5), np.uint64(3), DEALS, 0, len(cards), np.zeros(4, np.uint64), cards)
    hands = [(combo_index(*deal[:2]), combo_index(*deal[2:4])) for deal in cards.tolist()]
    return draw(deck, len(cards))[0], hands, [deal[4:8] for deal in cards.tolist()]


def test_all_ways_of_looking_up_give_the_same_buckets(deck, tables, histories):
    bucket, hands, boards = forty_deals(deck)
    for row, both, board in zip(bucket, hands, boards, strict=True):
        wanted = np.array([by_hand(tables, histories, hand, board) for hand in both]).T
        assert np.array_equal(row.reshape(3, 2), wanted)
        assert np.array_equal(deck.board_hands(board).bucket[:, 0, list(both)], wanted)
        assert [int(deck.bucket_row(2, 0, board)[hand]) for hand in both] == wanted[2].tolist()
        after = deck.after(1, board[:3])
        (place,) = [n for n, known in enumerate(after.board_cards[2].tolist()) if known == board]
        assert np.array_equal(after.bucket[2][0, place, list(both)], wanted[2])
    assert (deck.bucket_row(2, 0, board) < 0).sum() == COMBO_COUNT - 48 * 47 // 2


def test_a_history_of_another_street_is_caught(deck, tables, histories):
    swapped = [None, histories[1], np.repeat(histories[1], 2, axis=0) % COUNTS[2]]
    planted = replace(deck, histories=replace(deck.histories, load=lambda: swapped))
    with pytest.raises(AssertionError):
        test_nested_buckets_have_perfect_recall_and_equal_shares(planted)
    with pytest.raises(AssertionError):
        test_all_ways_of_looking_up_give_the_same_buckets(planted, tables, histories)


def nested(**others):
    return StreetRecipe(nested=True, **others)


def test_a_build_derives_history_tables_from_the_streets_before(tmp_path, shared_descriptions, monkeypatch):
    monkeypatch.setattr(recall_buckets, "DEALS", 200_000)
    parts = {"flop": nested(features="ehs2", buckets=6), "turn": nested(features="ehs", buckets=6)}

    def build(preflop):
        recipe = Recipe(
            preflop=StreetRecipe(features="ehs", buckets=preflop), river=nested(features="ehs", buckets=6), **parts
        )
        return Builder(recipe, tmp_path).build(["flop"], replace=True)

    assert build(3) == ["preflop", "flop"] and build(3) == [] and build(2) == ["preflop", "flop"]
    stage = newest_valid(tmp_path / "flop")[0]
    found = stage.read("history")
    assert stage.state["buckets"] == 6 and found.shape == (2, PERCENTILES)
    assert found.min(axis=1).tolist() == [0, 3] and found.max(axis=1).tolist() == [2, 5]
    assert (np.diff(found) >= 0).all()


@pytest.fixture(scope="module")
def recall_abstraction(tmp_path_factory, slot_abstractions, tables, histories):
    """Write an abstraction whose flop buckets are nested in two preflop buckets; return its path."""
    path = tmp_path_factory.mktemp("recall_abstraction") / "buckets"
    shutil.copytree(slot_abstractions[1], path, copy_function=os.link)
    arrays = {"bucket": tables[1], "history": histories[1]}
    specs = [ArraySpec(name, array.shape, array.dtype.name, ("a", "b")) for name, array in arrays.items()]
    cells = {name: cells_checksum(array) for name, array in arrays.items()}
    identity = {"stage": "h", "recipe": {"features": "ehs"}}
    commit(path / "flop", 1, specs, arrays, {"buckets": 4, "cells": cells}, identity, format="zarr", keep=1)
    return path


def test_policies_contain_the_history_tables(recall_abstraction, tmp_path, capsys):
    config = tmp_path / "run.toml"
    config.write_text(
        f'[game]\nname = "flop-holdem"\n[abstraction]\npath = "{recall_abstraction}"\n'
        f"[run]\nworkers = 0\nnodes = 20_000\n[evaluation]\nat_end = false\nevery_checkpoint = false\n"
        f'[export]\nout = "{tmp_path / "policy"}"\n'
    )
    assert command("solve", config, "--run", tmp_path / "run") == 0
    assert command("verify", tmp_path / "policy") == command("verify", tmp_path / "run") == 0
    built, policy, board = Abstraction(recall_abstraction), Policy.open(tmp_path / "policy"), [3, 50, 22]
    assert built.bucket_counts()["flop"] == 4 and policy.game.buckets.tolist() == [2, 2, 4, 4]
    wanted = deck_on((0, 3), recall_abstraction).bucket_row(1, 0, board)
    assert len(np.unique(wanted)) == 5 and np.array_equal(built.row(board), wanted)
    assert np.array_equal(policy.game.cards.bucket_row(1, 0, board), wanted)
    assert built.bucket((51, 0), board) == ("flop", wanted[combo_index(51, 0)])
    assert np.array_equal(draw(policy.game.cards, 100)[0], draw(deck_on((0, 3), recall_abstraction), 100)[0])
    assert forgotten_street(policy.game) is None
    refused("no tables by canonical board", policy.game.cards.canonical_tables)
    refused("depend on the flop", in_strata, policy.game.cards, 2)
    refused("has a number outside of 0 to 3", check_history, "history_street1.npy", histories_of(policy) + 1, 2, 4)


def histories_of(policy):
    return policy.game.cards.histories.tables[1]


SIX = "[flop]\nfeatures = 'ehs'\nbuckets = 6\nnested = true\n"
OTHERS = SIX + SIX.replace("flop", "turn") + SIX.replace("flop", "river")


def read(old, new, tmp_path):
    refuse_recipe("preflop = {features = 'ehs', buckets = 2}\n" + OTHERS.replace(old, new, 1), tmp_path)


test_refusals = refusals(
    ("the preflop's 2: it must be a multiple of them", read, "6", "5"),
    ("flop.nested = true needs flop.features = 'ehs' or 'ehs2', not 'histogram'", read, "ehs", "histogram"),
    (
        "flop.nested = true needs turn.nested = true",
        read,
        "[turn]\nfeatures = 'ehs'\nbuckets = 6\nnested = true",
        "[turn]\nfeatures = 'ehs'\nbuckets = 6",
    ),
    (
        "they at most 10,000",
        read,
        "6\nnested = true\n[turn]\nfeatures = 'ehs'\nbuckets = 6",
        "10_002\n[turn]\nfeatures = 'ehs'\nbuckets = 10_002",
    ),
)


@pytest.mark.parametrize(("buckets", "infosets"), [(2, 96_056), (3, 476_934)])
def test_plans_of_the_small_limit_abstractions_have_the_published_infosets(buckets, infosets, tmp_path, capsys):
    """Compare with Johanson, Bard, Burch & Bowling 2012."""
    recipe, config = RUNS / f"abstractions/limit-{buckets}.toml", tmp_path / "limit.toml"
    counts = [bucket_count(load_recipe(recipe), street) for street in STREETS]
    assert counts == [buckets**street for street in range(1, 5)]
    config.write_text(f'[game]\nname = "limit-holdem"\n[abstraction]\npath = "no"\nrecipe = "{recipe}"\n')
    assert answer(capsys, "plan", config, "--speed", 3e7)["infosets"] == infosets
    five, tables = FlopHoldemGame(board_cards=5), AbstractionConfig("no", str(recipe))
    refused("must have every street up to the", flop_holdem, five, tables, tmp_path)
