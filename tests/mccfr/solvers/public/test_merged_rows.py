"""In-place updates of rows with merged suits: equal to collected increments, used only where exact.

Shows:

* In-place updates of rows with merged suits give the tables of collected increments
  (test_in_place_updates_give_the_tables_of_collected_increments, test_isomorphic_boards_are_walked_once; planted:
  test_in_place_updates_of_hands_that_are_not_isomorphic_are_caught)
* If in-place updates would not be exact, increments are collected
  (test_increments_are_collected_where_in_place_updates_are_not_exact)
"""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refusals
from small_games import shared_buckets

import mccfr
from mccfr.games.game import Game
from mccfr.solvers.public import merged_rows, vector_cfr
from mccfr.solvers.public.merged_rows import tree_by_rows
from mccfr.solvers.public.public_tree import public_tree
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import variant


def poker(ranks, suits, board_cards, merge_suits=True) -> Game:
    bets = {"antes": (1, 1), "stack": 3, "max_raises": (1,) * len(board_cards)}
    cards = {"hole_cards": 2, "board_cards": board_cards, "merge_suits": merge_suits}
    return mccfr.game("poker", ranks=ranks, suits=suits, **cards, **bets)


def unequal(game: Game, missing=0.0, seed=2) -> Game:
    """Return the game with different ranges, equal for isomorphic hands; some may be missing."""
    cards, generator = game.cards, np.random.default_rng(seed)
    ranges = 0.1 + generator.random((2, int(cards.buckets[0].max())))
    ranges[1, generator.random(ranges.shape[1]) < missing] = 0
    first = np.array([[numbers[numbers >= 0].min() for numbers in hands.T] for hands in cards.bucket[0]])
    return replace(game, cards=replace(cards, reach=np.take_along_axis(ranges, first, axis=1)))


def leduc(**options) -> Game:
    return unequal(mccfr.game("leduc", merge_suits=True, **options))


GAMES = {
    "leduc": leduc,
    "leduc, five ranks of three suits": lambda: leduc(ranks=5, suits=3),
    "all boards at once": lambda: unequal(poker(3, 3, (0, 3))),
    "three streets": lambda: unequal(poker(2, 4, (0, 2, 1))),
    "four streets": lambda: unequal(poker(2, 4, (0, 1, 1, 1))),
    "without flushes": lambda: unequal(poker(4, 2, (0, 1))),
}


def by_increments(monkeypatch, game: Game, *arguments, **options) -> VectorCfr:
    """Return the solver that collects increments, as for hands that are not isomorphic."""
    with monkeypatch.context() as patched:
        patched.setattr(vector_cfr, "tree_by_rows", lambda *_: None)
        found = VectorCfr(game, *arguments, **options)
    assert not found.in_place
    return found


def difference(one: VectorCfr, other: VectorCfr) -> float:
    """Return the largest difference of cells, as a share of the largest cell of their table."""
    assert one.tables.keys() == other.tables.keys()
    return max(
        float(np.abs(table - other.tables[name]).max() / max(np.abs(table).max(), 1e-300))
        for name, table in one.tables.items()
    )


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("variant_name", ["dcfr", "cfr", "optimistic-lcfr", "pcfr+"])
def test_in_place_updates_give_the_tables_of_collected_increments(name, variant_name, monkeypatch):
    """The scale is also equal, so that a run of either kind can resume from the other's tables."""
    game, chosen = GAMES[name](), variant(variant_name)
    ours, other = VectorCfr(game, chosen, "float64"), by_increments(monkeypatch, game, chosen, "float64")
    assert ours.in_place
    assert ours._field.ranges.merged
    for _ in range(4):
        ours.iterate()
        other.iterate()
        assert difference(ours, other) < 1e-12
    assert ours.nodes_touched == other.nodes_touched


# --- games for which in-place updates are not exact ---


def one_hand_differs(game: Game) -> Game:
    reach = game.cards.reach.copy()
    reach[0, 1] *= 1.5
    return replace(game, cards=replace(game.cards, reach=reach))


def some_hands_share(game: Game) -> Game:
    """Return the game with three buckets a board; a bucket has every third hand, isomorphic or not."""
    cards, bucket = game.cards, []
    for numbers in cards.bucket:
        count = numbers.shape[1]
        shared = np.arange(count)[None, :, None] * 3 + np.arange(numbers.shape[2]) % 3
        bucket.append(np.where(numbers < 0, -1, shared).astype(np.int32))
    counts = np.array([[numbers.max() + 1] * 2 for numbers in bucket])
    return replace(game, cards=replace(cards, bucket=bucket, buckets=counts))


OTHERS = {
    "ranges differ between hands alike": lambda: one_hand_differs(leduc()),
    "ranges differ, three streets": lambda: one_hand_differs(unequal(poker(2, 4, (0, 2, 1)))),
    "ranges differ, no boards": lambda: one_hand_differs(poker(4, 2, (0,))),
    "few buckets": lambda: shared_buckets(poker(4, 2, (0, 1)), 5),
    "unlike hands on one board": lambda: some_hands_share(poker(4, 2, (0, 1), merge_suits=False)),
    "bucket numbers with gaps": lambda: unequal(poker(2, 4, (0, 2, 1)), missing=0.2),
    "a bucket on two walked boards": lambda: unequal(poker(4, 2, (0, 1, 1))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_increments_are_collected_where_in_place_updates_are_not_exact(name):
    game, dcfr = OTHERS[name](), variant("dcfr")
    assert tree_by_rows(game) is None is tree_by_rows(game, public_tree(game))
    cfr = VectorCfr(game, dcfr)
    assert not cfr.in_place


@pytest.mark.parametrize("name", ["ranges differ, no boards", "unlike hands on one board"])
def test_in_place_updates_of_hands_that_are_not_isomorphic_are_caught(name, monkeypatch):
    """The planted error takes all hands of a bucket as isomorphic."""
    game, dcfr = OTHERS[name](), variant("dcfr")
    right = VectorCfr(game, dcfr, "float64")
    with monkeypatch.context() as patched:
        patched.setattr(merged_rows, "_all_alike", lambda *_: True)
        wrong = VectorCfr(game, dcfr, "float64")
    assert wrong.in_place
    for cfr in (right, wrong):
        cfr.iterate(3)
    assert difference(right, wrong) > 1e-3


# --- refusals ---


test_ranges_of_the_caller_need_a_row_for_every_hand = refusals(
    (
        "only where every hand on every board has its row",
        lambda: (cfr := VectorCfr(leduc(), variant("dcfr"))).traverse(0, list(cfr.public.reach)),
    )
)
