"""Rows of merged suits updated in place: equal to increments, and taken only where they are exact.

Shows:

* Rows of merged suits are updated in place where that is exact, and come to what increments come to
  (test_tables_are_those_of_increments, test_elsewhere_increments_are_collected,
  test_boards_alike_but_for_suits_are_walked_once; planted: test_hands_that_are_not_alike_would_be_played_wrongly)
"""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from places import RUNS
from refusals import refusals
from same import assert_same_arrays
from small_games import shared_buckets

from abstraction.cards import card_mask, parse_cards
from mccfr.cards.endgame_cards import endgame_cards
from mccfr.cards.suit_symmetry import alike_hands, lossless
from mccfr.config.game_tables import HoldemSubgame, LeducGame, Menu, PokerGame
from mccfr.games.game import Game
from mccfr.games.registry import build_game
from mccfr.solvers.public import merged_rows, vector_cfr
from mccfr.solvers.public.merged_rows import tree_by_rows
from mccfr.solvers.public.public_tree import public_tree
from mccfr.solvers.public.vector_cfr import VectorCfr, memory
from mccfr.solvers.variants import variant


def poker(ranks, suits, board_cards, merge_suits=True) -> Game:
    bets = {"antes": (1, 1), "stack": 3, "max_raises": (1,) * len(board_cards)}
    cards = {"hole_cards": 2, "board_cards": board_cards, "merge_suits": merge_suits}
    return build_game(PokerGame(ranks=ranks, suits=suits, **cards, **bets), RUNS)


def unequal(game: Game, missing=0.0, seed=2) -> Game:
    """The game with ranges that differ, but not between hands alike before the first board; some may be missing."""
    cards, generator = game.cards, np.random.default_rng(seed)
    ranges = 0.1 + generator.random((2, int(cards.buckets[0].max())))
    ranges[1, generator.random(ranges.shape[1]) < missing] = 0
    first = np.array([[numbers[numbers >= 0].min() for numbers in hands.T] for hands in cards.bucket[0]])
    return replace(game, cards=replace(cards, reach=np.take_along_axis(ranges, first, axis=1)))


def leduc(**options) -> Game:
    return unequal(build_game(LeducGame(merge_suits=True, **options), RUNS))


def symmetric_turn() -> Game:
    """An endgame on a turn of two suits, even ranges; clubs and diamonds are alike, and every infoset is apart else."""
    tree = build_game(HoldemSubgame(file="games/turn.txt", menu=Menu(first=("allin",), later=("allin",))), RUNS)
    named = tree.cards.listed()
    turn, rank = parse_cards("AsKs7h2h"), np.sort(named.hand_cards // 4, axis=1)
    live = (named.hand_masks() & np.uint64(card_mask(turn))) == 0
    weight = np.random.default_rng(5).random((13, 13))  # by ranks alone, so that no renaming changes it
    reach = np.where(live & (rank.sum(axis=1) % 3 == 0), weight[rank[:, 0], rank[:, 1]], 0.0)
    cards = endgame_cards(turn, np.stack([reach, reach]), 2)
    blind = [np.minimum(numbers, 0) for numbers in cards.bucket]
    merged = lossless(replace(cards, bucket=blind))
    return replace(tree, cards=merged)


GAMES = {
    "leduc": leduc,
    "leduc, five ranks of three suits": lambda: leduc(ranks=5, suits=3),
    "all boards at once": lambda: unequal(poker(3, 3, (0, 3))),
    "three streets": lambda: unequal(poker(2, 4, (0, 2, 1))),
    "four streets": lambda: unequal(poker(2, 4, (0, 1, 1, 1))),
    "without flushes": lambda: unequal(poker(4, 2, (0, 1))),
}


def by_increments(monkeypatch, game: Game, *arguments, **options) -> VectorCfr:
    """The same solver, as where it finds that hands are not alike."""
    with monkeypatch.context() as patched:
        patched.setattr(vector_cfr, "tree_by_rows", lambda *_: None)
        found = VectorCfr(game, *arguments, **options)
    assert not found.in_place
    return found


def difference(one: VectorCfr, other: VectorCfr) -> float:
    """The largest of tables' cells, as a share of the largest cell of their table."""
    assert one.tables.keys() == other.tables.keys()
    return max(
        float(np.abs(table - other.tables[name]).max() / max(np.abs(table).max(), 1e-300))
        for name, table in one.tables.items()
    )


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("made", ["dcfr", "cfr", "optimistic-lcfr", "pcfr+"])
def test_tables_are_those_of_increments(name, made, monkeypatch):
    """Scale included, so that runs of either kind go on with the other's tables."""
    game = GAMES[name]()
    ours, other = VectorCfr(game, variant(made), "float64"), by_increments(monkeypatch, game, variant(made), "float64")
    assert ours.in_place
    assert ours._field.ranges.merged
    for _ in range(4):
        ours.iterate()
        other.iterate()
        assert difference(ours, other) < 1e-12
    assert ours.nodes_touched == other.nodes_touched


def test_an_endgame_with_suits_alike_goes_by_rows_too(monkeypatch):
    game = symmetric_turn()
    ours, other = (
        VectorCfr(game, variant("dcfr"), "float64"),
        by_increments(monkeypatch, game, variant("dcfr"), "float64"),
    )
    assert ours.in_place
    hands, columns = (np.diff(cfr._field.ranges.first).sum() for cfr in (other, ours))
    assert 0.5 * hands < columns < 0.95 * hands
    for cfr in (ours, other):
        cfr.iterate(3)
    assert difference(ours, other) < 1e-12


@pytest.mark.parametrize("name", GAMES)
def test_float32_and_simultaneous_updates(name, monkeypatch):
    game = GAMES[name]()
    assert not VectorCfr(game, variant("dcfr", updates="simultaneous")).in_place
    ours, other = VectorCfr(game, variant("cfr+")), by_increments(monkeypatch, game, variant("cfr+"))
    for cfr in (ours, other):
        cfr.iterate(3)
    assert difference(ours, other) < 1e-4


# --- where it is not exact ---


def one_hand_differs(game: Game) -> Game:
    reach = game.cards.reach.copy()
    reach[0, 1] *= 1.5
    return replace(game, cards=replace(game.cards, reach=reach))


def some_hands_share(game: Game) -> Game:
    """Every third hand of a board in one bucket, no bucket on two boards: side by side, but hands are unlike."""
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
def test_elsewhere_increments_are_collected(name):
    game, made = OTHERS[name](), variant("dcfr")
    assert tree_by_rows(game) is None is tree_by_rows(game, public_tree(game))
    cfr = VectorCfr(game, made)
    assert not cfr.in_place
    assert memory(game, made).working_table_bytes == 3 * sum(
        table.nbytes for kind, table in cfr.tables.items() if kind.startswith("regret/")
    )


@pytest.mark.parametrize("name", ["ranges differ, no boards", "unlike hands on one board"])
def test_hands_that_are_not_alike_would_be_played_wrongly(name, monkeypatch):
    """Planted error: buckets are taken as they are, whatever hands they hold."""
    game, made = OTHERS[name](), variant("dcfr")
    right = VectorCfr(game, made, "float64")
    with monkeypatch.context() as patched:
        patched.setattr(merged_rows, "_all_alike", lambda *_: True)
        wrong = VectorCfr(game, made, "float64")
    assert wrong.in_place
    for cfr in (right, wrong):
        cfr.iterate(3)
    assert difference(right, wrong) > 1e-3


def test_where_every_hand_has_its_row_nothing_changes():
    game = poker(4, 2, (0, 1), merge_suits=False)
    public = public_tree(game)
    assert tree_by_rows(game, public) is public
    assert public.ranges.every.card is public.ranges.card
    assert public.row_weight.shape == (2, 0)


@pytest.mark.parametrize(
    ("ranks", "suits", "board_cards", "swaps"),
    [
        (4, 2, (0, 1), True),
        (2, 4, (0, 2), False),
        (2, 4, (0, 2), True),
        (3, 3, (0, 3), False),
        (3, 3, (0, 3), True),  # five cards, so that there are flushes, and no swap changes nothing
    ],
)
def test_hands_alike_are_those_that_some_order_of_renamings_leads_to(ranks, suits, board_cards, swaps):
    """Against renamings one by one, by the cards of hands and boards."""
    model = poker(ranks, suits, board_cards).cards
    orders = [np.array(order) for order in permutations(range(suits))]
    number = np.arange(ranks * suits)
    renamings = [number // suits * suits + order[number % suits] for order in orders]
    if swaps and 2 + sum(board_cards) < 5:
        pairs = [(one, other) for one in number for other in range(one) if one // suits == other // suits]
        renamings += [np.where(number == one, other, np.where(number == other, one, number)) for one, other in pairs]
    boards = [np.arange(len(dealt)) for dealt in model.board_cards]
    found = alike_hands(model, boards, swaps=swaps)
    sets = [frozenset(hand) for hand in model.hand_cards.tolist()]
    for dealt, rows in zip(model.board_cards, found, strict=True):
        for cards_there, row in zip(dealt.tolist(), rows.tolist(), strict=True):
            fixing = [card for card in renamings if {int(card[c]) for c in cards_there} == set(cards_there)]
            for hand, first in zip(sets, row, strict=True):
                reached, todo = {hand}, [hand]
                for one in todo:
                    more = {frozenset(int(card[c]) for c in one) for card in fixing} - reached
                    reached |= more
                    todo += more
                assert sets.index(min(reached, key=sets.index)) == first


# --- threads, resuming, memory ---


def test_results_do_not_depend_on_the_number_of_workers():
    game, made = GAMES["three streets"](), variant("dcfr")
    alone = VectorCfr(game, made)
    alone.iterate(3)
    for workers in (2, 3):
        several = VectorCfr(game, made, workers=workers)
        several.iterate(3)
        assert several.in_place
        assert_same_arrays(alone.tables, several.tables)


@pytest.mark.parametrize("made", ["dcfr", "optimistic-lcfr"])
def test_tables_and_the_iteration_are_the_whole_state(made):
    game = GAMES["three streets"]()
    whole, first = VectorCfr(game, variant(made)), VectorCfr(game, variant(made))
    whole.iterate(5)
    first.iterate(2)
    copies = {key: table.copy() for key, table in first.tables.items()}
    second = VectorCfr(game, variant(made), tables=copies, iteration=2)
    second.iterate(3)
    assert_same_arrays(whole.tables, copies)


def test_a_run_of_increments_goes_on_by_rows(monkeypatch):
    """As runs of versions before do."""
    game, made = GAMES["three streets"](), variant("dcfr")
    first = by_increments(monkeypatch, game, made, "float64")
    first.iterate(2)
    second = VectorCfr(game, made, "float64", tables=first.tables, iteration=2)
    whole = VectorCfr(game, made, "float64")
    whole.iterate(4)
    second.iterate(2)
    assert difference(whole, second) < 1e-12


def test_no_working_tables_are_needed(monkeypatch):
    game, made = GAMES["four streets"](), variant("dcfr")
    needed = memory(game, made)
    with monkeypatch.context() as patched:
        patched.setattr(vector_cfr, "tree_by_rows", lambda *_: None)
        before = memory(game, made)
    assert needed.working_table_bytes == 0
    regrets = sum(int(b) * int(s) * 4 for b, s in zip(game.buckets, game.tree.row_slots, strict=True))
    assert before.working_table_bytes == 3 * regrets
    assert needed.table_bytes == before.table_bytes == 2 * regrets


test_ranges_of_the_callers = refusals(
    (
        "only where every hand on every board has its row",
        lambda: (cfr := VectorCfr(leduc(), variant("dcfr"))).traverse(0, list(cfr.public.reach)),
    )
)
