"""Recipe options: potential-aware, lossless and nested buckets, restarts, memory, reports."""

import random
from itertools import pairwise

import numpy as np
import pytest
from commands import refusal
from naive import equity_spread, potential_points
from refusals import refused

from abstraction import build, stages, street_features
from abstraction.boards import (
    BOARD_COUNTS,
    STREET_CARDS,
    board_classes,
    board_tables,
    canonical_boards,
    locate_board,
    preflop_classes,
    used_slots,
)
from abstraction.bucket_report import variance_explained
from abstraction.buckets import unused
from abstraction.build import Builder
from abstraction.build_estimates import recipe_bytes
from abstraction.cards import COMBO_COUNT, combo_index, combo_table
from abstraction.clustering.kmeans import StateSaver, kmeans
from abstraction.clustering.points import PointSet, distinct_points
from abstraction.deck_models import StageInputs, StandardDeck, board_features, lossless_table
from abstraction.potential_aware import NextStreet, bucket_positions, potential_features
from abstraction.recipe import STREETS, Recipe, StreetRecipe, build_order, stage_document
from abstraction.stages import Phases, StageMaker
from storage.free_space import bytes_text

pytestmark = pytest.mark.usefixtures("shared_descriptions")
PERCENTILES = StreetRecipe(features="ehs", buckets=10)


def recipe(flop, turn=PERCENTILES):
    return Recipe(flop=flop, turn=turn, river=PERCENTILES)


def first_flops(monkeypatch, count):
    """Restrict the flops to the first `count` canonical ones; return `count`."""
    monkeypatch.setattr(street_features, "BOARD_COUNTS", {**BOARD_COUNTS, 3: count})
    return count


@pytest.fixture
def few_boards(monkeypatch):
    """Restrict the flops to the first 200, which take an eighth of the time of all; return 200."""
    return first_flops(monkeypatch, 200)


def build_flop(**flop):
    """Return the flop stage of a recipe, built without files."""
    document = stage_document(recipe(StreetRecipe(**flop)), "flop")
    return StageMaker(2, StandardDeck(2)).make(document, StageInputs(), StateSaver(), Phases(lambda _, __: None))


def pairs_of(first, second):
    """Return [2, P] the distinct pairs of numbers, in ascending order."""
    return np.stack(np.divmod(np.unique(first.astype(np.int64) << 16 | second), 1 << 16))


# -- points ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_points_that_arrive_in_parts_are_numbered_as_all_at_once(dtype):
    generator = np.random.default_rng(1)
    rows = generator.integers(0, 3, (90_000, 9)).astype(dtype)
    weights = generator.integers(1, 9, len(rows))
    expected = distinct_points(rows, weights)
    found = PointSet(len(expected.points), 9, np.dtype(dtype))
    cuts = [0, 10, 40_000, 40_000, 70_000, 90_000]
    numbers = [found.add(rows[a:b], weights[a:b]) for a, b in pairwise(cuts)]
    points, totals = found.finish()
    assert np.array_equal(np.concatenate(numbers), expected.inverse)
    assert np.array_equal(points, expected.points) and np.array_equal(totals, expected.weights)


def test_collected_points_are_those_of_every_slot(few_boards):
    described = StandardDeck(1).histogram("flop", 50)
    hands = stages.collect(described, 1)
    assert hands.weights.sum() == board_classes(3).multiplicity[:few_boards].sum() * 1176
    for board in random.Random(4).sample(range(few_boards), 20):
        used = used_slots(board_classes(3).boards[board : board + 1])[0]
        points = described.points(described.rows(board, board + 1)[0][used])
        assert np.array_equal(hands.points[hands.numbers[board][used]], points)
        assert (hands.numbers[board][~used] == -1).all()


# -- potential-aware features ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("street", "following", "count"), [("flop", "turn", 47), ("turn", "river", 46)])
def test_potential_features_equal_their_definition(street, following, count):
    generator = np.random.default_rng(2)
    boards = BOARD_COUNTS[STREET_CARDS[following]]
    table = generator.integers(0, 30, (boards, COMBO_COUNT), dtype=np.uint16)
    centres = generator.random((30, 5), dtype=np.float32)
    hands, equity = np.arange(1, 31), np.linspace(0, 1, 30)
    described = potential_features(street, NextStreet(table, equity, hands, centres, "l2"))
    first = BOARD_COUNTS[STREET_CARDS[street]] // 2
    rows = described.rows(first, first + 2)
    cards, holes = canonical_boards(STREET_CARDS[street]), combo_table()
    for board in (first, first + 1):
        for combo in generator.permutation(COMBO_COUNT)[:40]:
            known = [*cards[board].tolist(), *holes[combo].tolist()]
            if len(set(known)) < len(known):
                assert not rows[board - first, combo].any()
                continue
            found = []
            for card in sorted(set(range(52)) - set(known)):
                index, permutation = locate_board([*cards[board].tolist(), card])
                found.append(table[index, board_tables().hole_permutation[permutation, combo]])
            assert len(found) == count
            expected = potential_points(np.array([found]), bucket_positions(centres, hands, "l2"))
            np.testing.assert_allclose(rows[board - first, combo], expected[0], rtol=1e-5, atol=1e-6)


def test_streets_are_built_after_those_they_need(slot_abstractions):
    potential = StreetRecipe(features="potential", buckets=10)
    chain = recipe(potential, potential)
    assert build_order(chain) == ["preflop", "river", "turn", "flop"]
    assert build_order(recipe(potential)) == ["preflop", "turn", "river", "flop"]
    assert build_order(recipe(PERCENTILES)) == list(STREETS)
    nested = {name: StreetRecipe(features="ehs", buckets=50, nested=True) for name in ("turn", "river")}
    refused("each would have to be built first", build_order, Recipe(flop=potential, **nested))
    before, again, after = (Builder(chain, slot_abstractions[k])._identity("flop")[0] for k in (0, 0, 1))
    assert again == before
    assert after["recipe"] == before["recipe"] and after != before  # other turn buckets change the flop's identity


# -- lossless and nested -----------------------------------------------------------------------------------------------


def test_a_lossless_flop_keeps_all_classes_of_hands_apart():
    rows = lossless_table(3)
    used = used_slots(canonical_boards(3))
    assert rows.dtype == np.uint32 and (rows[~used] == unused(rows.dtype)).all()
    assert np.array_equal(np.unique(rows[used]), np.arange(1_286_792))
    hand, board = (51, 46), (3, 17, 22)

    def bucket(suits):
        renamed = [[card // 4 * 4 + suits[card % 4] for card in cards] for cards in (hand, board)]
        index, permutation = locate_board(renamed[1])
        return rows[index, board_tables().hole_permutation[permutation, combo_index(*renamed[0])]]

    assert bucket((0, 1, 2, 3)) == bucket((2, 0, 3, 1)) == bucket((3, 2, 1, 0))


def test_nested_flop_buckets_determine_the_preflop_bucket(few_boards):
    stage = build_flop(features="histogram", buckets=400, nested=True, sample=20_000, iterations=2)
    bucket = stage.arrays["bucket"]
    used = bucket != unused(bucket.dtype)
    classes = np.broadcast_to(preflop_classes(), bucket.shape)[used]
    pairs = pairs_of(bucket[used], classes)
    assert pairs.shape[1] == 400 and np.array_equal(pairs[0], np.arange(400))
    assert stage.facts["empty_buckets"] == 0
    assert len(np.unique(pairs[1])) == 169


@pytest.mark.parametrize("described", ["histogram", "ehs"])
def test_private_buckets_lie_inside_clusters_of_boards(monkeypatch, described):
    few_boards = 1755 if described == "ehs" else first_flops(monkeypatch, 400)  # 400 flops are in more than one cluster
    stage = build_flop(features=described, buckets=40, public=3, iterations=2)
    bucket = stage.arrays["bucket"]
    assert stage.facts["empty_buckets"] == 0 and np.array_equal(np.unique(bucket)[:-1], np.arange(40))
    deck = StandardDeck(1)
    weights = board_classes(3).multiplicity[:few_boards].astype(np.int64)
    cluster = kmeans(board_features(deck, "flop"), weights, 3).labels
    used = bucket != unused(bucket.dtype)
    pairs = pairs_of(bucket[used], np.broadcast_to(cluster[:, None], bucket.shape)[used])
    assert len(np.unique(pairs[1])) > 1 and np.array_equal(pairs[0], np.arange(40))  # one cluster for each bucket
    assert (np.diff(pairs[1]) >= 0).all()
    if described == "ehs":  # percentiles of each cluster: its buckets do not overlap and have similar weights
        sums = deck.sums("flop")[used]
        low, high = (np.array([end(sums[bucket[used] == k]) for k in range(40)]) for end in (np.min, np.max))
        inside = np.diff(pairs[1]) == 0
        assert (high[:-1] < low[1:])[inside].all()
        for number in np.unique(pairs[1]):
            hands = stage.arrays["hands"][pairs[1] == number]
            assert hands.max() < 1.1 * hands.min()


def test_boards_are_described_by_the_mean_strength_of_each_class():
    deck, classes = StandardDeck(1), preflop_classes()
    sums, points, boards = deck.sums("flop"), board_features(deck, "flop"), canonical_boards(3)
    for board in (0, 700, 1754):
        used = used_slots(boards[board : board + 1])[0]
        for hand in (0, 57, 168):
            mine = used & (classes == hand)
            expected = sums[board][mine].mean() / (1980 * 1081) if mine.any() else 0.5
            assert points[board, hand] == pytest.approx(expected, rel=1e-6)


# -- memory and reports ------------------------------------------------------------------------------------------------


def test_too_little_memory_is_refused_with_both_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "available_memory_bytes", lambda: 123_456_789)
    small = recipe(PERCENTILES)
    message = refused("123 MB are available", Builder(small, tmp_path / "out").build, error=MemoryError)
    assert bytes_text(recipe_bytes(small, 1)["preflop"]) in message
    assert not (tmp_path / "out" / "preflop").exists()


def test_stage_figures_equal_their_definitions(few_boards):
    stage = build_flop(features="histogram", buckets=30, sample=3_000, iterations=3)
    bucket, facts = stage.arrays["bucket"], stage.facts
    used = bucket != unused(bucket.dtype)
    weights = np.broadcast_to(board_classes(3).multiplicity[:few_boards, None], used.shape)[used]
    deck = StandardDeck(1)
    equity = deck.sums("flop")[:few_boards][used] / (1980 * 1081)
    assert facts["equity_spread"] == pytest.approx(equity_spread(equity, bucket[used], weights), rel=1e-9)
    assert facts["equity_explained"] == pytest.approx(
        variance_explained(equity[:, None], bucket[used], weights, 30), rel=1e-9
    )
    described = deck.histogram("flop", 50)
    rows = described.rows(0, few_boards)[used]
    assert facts["explained"] == pytest.approx(
        variance_explained(described.points(rows), bucket[used], weights, 30), rel=1e-6
    )
    assert np.array_equal(stage.arrays["hands"], np.bincount(bucket[used], weights))
    assert facts["hands"] == weights.sum() and facts["empty_buckets"] == 0
    assert (np.diff(stage.arrays["centres"].sum(axis=1, dtype=np.float64)) <= 0).all()  # weakest first


# -- the command line --------------------------------------------------------------------------------------------------


def test_bad_input_exits_2_with_a_sentence(capsys, tmp_path, slot_abstractions):
    tables = slot_abstractions[1]
    others = "turn = {features = 'ehs', buckets = 9}\nriver = {features = 'ehs', buckets = 9}\n"
    path = tmp_path / "recipe.toml"
    path.write_text("flop = {features = 'lossless', public = 2}\n" + others)
    assert "flop.public = 2 means nothing" in refusal(capsys, "abstraction", "build", path)
    for message, *arguments in (
        ("holds the card 7h twice", "strength", "--hand", "AsKd", "--board", "Qs7h7h"),
        ("2 cards", "bucket", tables, "--hand", "AsKd", "--board", "Qs7h"),
        ("2 cards", "strength", "--hand", "AsKd", "--board", "Qs7h"),
        ("card twice", "bucket", tables, "--hand", "AsKd", "--board", "Qs7hAs"),
        ("card", "bucket", tables, "--hand", "AsKdQd", "--board", "Qs7h2c"),
        ("has no buckets", "info", tmp_path),
    ):
        assert message in refusal(capsys, "abstraction", *arguments)
