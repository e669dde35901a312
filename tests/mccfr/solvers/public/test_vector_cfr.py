"""Full-width CFR over public trees, against a naive implementation (curves: test_vector_curves.py).

Shows:

* Every full-width variant equals a naive implementation and the gallery's algorithm
  (test_every_variant_equals_the_twin, test_every_variant_equals_the_gallery)
* Threads lose no additions to rows that several boards share
  (test_threads_lose_no_additions_to_rows_shared_by_boards)
"""

import threading
from collections import deque
from dataclasses import replace
from functools import cache

import naive
import numpy as np
import pytest
from places import RUNS
from refusals import refused
from same import assert_same_arrays
from small_games import few_hands, shared_buckets
from strategies import lock_distance, some_locks

from mccfr.cards.card_lists import ListedCards
from mccfr.cards.endgame_cards import endgame_cards
from mccfr.cards.suit_symmetry import board_copies
from mccfr.config.game_tables import HoldemSubgame, KuhnGame, Menu, PokerGame
from mccfr.games.game import Game, Rake
from mccfr.games.registry import build_game
from mccfr.solvers.public.public_tree import public_tree
from mccfr.solvers.public.public_walk import Scope, train, value
from mccfr.solvers.public.street_arrays import Views, new_scratch, no_tables, street_tables
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.public.walk_threads import shares_by_cost, walk_together
from mccfr.solvers.variants import PRESETS, variant
from mccfr.tables.table_layout import table_name
from mccfr.trees.compiled import DECISION


def build(config) -> Game:
    return build_game(config, RUNS)


@cache
def toy(board_cards=(0, 1), seed=3, missing=0.0, buckets=None) -> Game:
    """Return a game with eight cards of two suits, two hole cards, and unequal ranges.

    Hands may be missing, and hands may share buckets. On a smaller deck some hand has a single opponent hand, which
    always folds; rounding then decides between actions of equal value.
    """
    bets = (1,) * len(board_cards)
    game = build(PokerGame(ranks=4, hole_cards=2, board_cards=board_cards, antes=(1, 1), stack=3, max_raises=bets))
    cards, generator = game.cards, np.random.default_rng(seed)
    reach = 0.1 + generator.random(cards.reach.shape)
    reach[generator.random(reach.shape) < missing] = 0
    game = replace(game, cards=replace(cards, reach=reach))
    return game if buckets is None else shared_buckets(game, buckets)


# --- against the naive twin over all deals ---


def scaled_rows(game: Game, tables) -> list[np.ndarray]:
    """Return [buckets, slots] tables by block, each row divided by its largest absolute regret."""
    found = [np.array(table, np.float64) for table in tables]
    for node in game.tree.decisions:
        block, slot = int(game.tree.arrays.block[node]), int(game.tree.arrays.slot[node])
        row = found[block][:, slot : slot + int(game.tree.arrays.count[node])]
        row /= np.maximum(np.abs(row).max(axis=1, keepdims=True), 1e-300)
    return found


def seen_buckets(game: Game, block: int) -> np.ndarray:
    """Return the buckets that the block's player may have."""
    cards: ListedCards = game.cards
    numbers = cards.bucket[block // 2][block % 2]
    live = (numbers >= 0) & (cards.reach[block % 2] > 0)
    return np.unique(numbers[live])


def differences(cfr: VectorCfr, twin: naive.Cfr) -> float:
    """Return the largest difference of average and next strategies and of regrets, scaled by row."""
    game = cfr.game
    average, following = cfr.average_strategy().probability, cfr.current_strategy().probability
    regrets = [cfr.tables[table_name("regret", block)].T for block in range(len(twin.regret))]
    pairs = [
        (average, twin.average()),
        (average if game.tree.locks else following, average if game.tree.locks else twin.strategy()),
        (scaled_rows(game, regrets), scaled_rows(game, twin.regret)),
    ]
    return max(
        float(np.abs(mine[block] - theirs[block])[seen_buckets(game, block)].max())
        for mine, theirs in pairs
        for block in range(len(regrets))
    )


def run_both(game: Game, cfr_variant, iterations: int = 3, **options) -> tuple[VectorCfr, naive.Cfr, float]:
    cfr, twin, worst = VectorCfr(game, cfr_variant, "float64"), naive.Cfr(game, cfr_variant, **options), 0.0
    for _ in range(iterations):
        cfr.iterate()
        twin.iterate()
        worst = max(worst, differences(cfr, twin))
    return cfr, twin, worst


@pytest.mark.parametrize(("buckets", "updates"), [(None, "alternating"), (5, "simultaneous")])
@pytest.mark.parametrize("name", PRESETS)
def test_every_variant_equals_the_twin(name, buckets, updates):
    cfr_variant = variant(name, updates=updates)
    if cfr_variant.scheduled:
        cfr_variant = replace(cfr_variant, horizon=2)  # the third iteration is beyond it
    cfr, _, worst = run_both(toy(buckets=buckets), cfr_variant)
    assert worst < 1e-10
    assert cfr.in_place == (buckets is None and updates == "alternating")


@pytest.mark.parametrize("name", ["dcfr", "cfr+"])
@pytest.mark.parametrize(
    "options",
    [
        {"board_cards": (0,)},
        {"board_cards": (1,)},  # several boards from the start
        {"board_cards": (1, 1)},
        {"board_cards": (0, 1, 1)},  # run-outs over two streets
        {"missing": 0.4},  # bucket numbers with gaps
        {"missing": 0.4, "board_cards": (1, 1), "buckets": 3},
    ],
)
def test_other_boards_and_ranges_equal_the_twin(name, options):
    assert run_both(toy(**options), variant(name))[2] < 1e-10


def test_training_with_rake_equals_the_twin():
    game = replace(toy((0, 1, 1)), rake=Rake(0.1, 0.5))
    assert run_both(game, variant("dcfr"))[2] < 1e-10


@pytest.mark.parametrize("buckets", [None, 5])
def test_training_with_locks_equals_the_twin(buckets):
    game = some_locks(toy((0, 1, 1), buckets=buckets))
    cfr, _, worst = run_both(game, variant("dcfr"))
    assert worst < 1e-10 and lock_distance(game, cfr.average_strategy()) < 1e-12


def test_own_deal_weights_matter_only_with_shared_buckets():
    """Omit the own hand's deal weight; it is a constant factor if each hand has its own row."""
    dcfr = variant("dcfr")
    assert run_both(toy(), dcfr, weigh=False)[2] < 1e-10
    assert run_both(toy(buckets=5), dcfr, weigh=False)[2] > 1e-3


# --- isomorphic boards ---


def two_suits(board_cards, hole_cards=2, ranks=4, **options) -> Game:
    """Return a game with a small deck and merged suits: half of the boards are isomorphic to another."""
    config = PokerGame(
        **{"ranks": ranks, "hole_cards": hole_cards, "board_cards": board_cards, "merge_suits": True},
        **{"antes": (1, 1), "stack": 3, "max_raises": (1,) * len(board_cards)} | options,
    )
    return build(config)


def walked_boards(game: Game) -> list[int]:
    """Return the number of walked boards for each street."""
    streets = np.repeat(np.arange(game.tree.streets), [len(boards) for boards in game.cards.board_cards])
    return np.bincount(streets[board_copies(game.cards).times > 0]).tolist()


@pytest.mark.parametrize(("buckets", "updates"), [(None, "alternating"), (None, "simultaneous"), (5, "alternating")])
@pytest.mark.parametrize(
    ("options", "walked", "in_place"),
    [
        ({"board_cards": (0, 1)}, [1, 4], True),
        ({"board_cards": (1, 1)}, [4, 20], False),  # several boards from the start
        ({"board_cards": (2,)}, [12], False),
        ({"board_cards": (0, 1, 1)}, [1, 4, 20], False),  # run-outs over two streets
        ({"board_cards": (0, 1, 1), "hole_cards": 1, "ranks": 2, "suits": 3}, [1, 2, 6], False),
        ({"board_cards": (0, 2, 1), "ranks": 2, "suits": 4}, [1, 4, 12], True),  # the same with flushes
        ({"board_cards": (0, 3), "ranks": 3, "suits": 3}, [1, 20], True),
    ],
)
def test_isomorphic_boards_are_walked_once(options, walked, in_place, buckets, updates):
    game = two_suits(**options)
    generator, model = np.random.default_rng(2), game.cards
    ranges = generator.random((2, int(model.buckets.max())))  # unequal, but equal for isomorphic hands
    first = np.array([[numbers[numbers >= 0].min() for numbers in hands.T] for hands in model.bucket[0]])
    game = replace(game, cards=replace(model, reach=np.take_along_axis(ranges, first, axis=1)))
    assert walked_boards(game) == walked
    if buckets is not None:  # boards that share a row stand for different numbers of boards
        game = shared_buckets(game, buckets)
        assert walked_boards(game) == walked
    cfr, _, worst = run_both(game, variant("dcfr", updates=updates))
    assert worst < 1e-10
    assert cfr.in_place == (in_place and buckets is None and updates == "alternating")


# --- threads, node counts ---


def small_turn() -> Game:
    """Return the checked-in turn with few bets and forty hands a player, with hands renumbered."""
    menu = Menu(first=("1p", "allin"), later=("allin",))
    game = few_hands(build(HoldemSubgame(file="games/turn.txt", menu=menu)), 40)
    return replace(game, cards=endgame_cards(game.cards.board_cards[0][0].tolist(), game.cards.reach, 2))


@pytest.mark.parametrize("updates", ["alternating", "simultaneous"])
def test_results_do_not_depend_on_the_number_of_workers(updates):
    game, dcfr = small_turn(), variant("dcfr", updates=updates)
    alone = VectorCfr(game, dcfr, "float64")
    alone.iterate(3)
    compiled = len(getattr(train, "signatures", ()))  # compilation may be switched off
    assert alone.in_place == (updates == "alternating")
    for workers in (2, 3):
        several = VectorCfr(game, dcfr, "float64", workers=workers)
        several.iterate(3)
        assert_same_arrays(alone.tables, several.tables)
    assert len(getattr(train, "signatures", ())) == compiled


def test_threads_lose_no_additions_to_rows_shared_by_boards():
    """Tasks add to the same cells; additions at the same time would lose some of them."""
    game, dcfr = shared_buckets(small_turn(), 1), variant("dcfr")
    alone = VectorCfr(game, dcfr, "float64")
    assert not alone.in_place
    alone.iterate(20)
    for _ in range(5):
        several = VectorCfr(game, dcfr, "float64", workers=2)
        several.iterate(20)
        assert_same_arrays(alone.tables, several.tables)


def count_nodes(game: Game) -> int:
    """Count the public nodes of one traversal one by one, with every board."""
    arrays, boards = game.tree.arrays, [len(street) for street in game.cards.board_cards]
    count, todo = 0, deque([(0, 0)])
    while todo:
        node, street = todo.popleft()
        if arrays.kind[node] == DECISION:
            below = int(arrays.block[node]) // 2
            count += boards[below] + (boards[street] if below > street else 0)  # the chance node before it
            todo.extend((child, below) for child in game.tree.children(node))
        else:
            run_out = arrays.showdown[node] != 0 and street + 1 < game.tree.streets
            count += boards[street] * (2 if run_out else 1)
    return count


@pytest.mark.parametrize("options", [{}, {"board_cards": (1, 1)}, {"board_cards": (0, 1, 1)}])
def test_nodes_touched_are_public_nodes(options):
    cfr = VectorCfr(toy(**options), variant("cfr"), "float64")
    cfr.iterate(3)
    assert cfr.nodes_touched == 6 * count_nodes(cfr.game)
    kuhn = VectorCfr(build(KuhnGame()), variant("cfr"), "float64")
    kuhn.iterate()
    assert kuhn.nodes_touched == 2 * 9


# --- failures of threads that share the walk of a public tree ---


GAME = build_game(HoldemSubgame(file="games/turn.txt", menu=Menu(first=("1p", "allin"), later=("allin",))), RUNS)


class Together:
    """Evaluates a uniform strategy with three threads; `came` records which threads finished."""

    def __init__(self) -> None:
        self.public = public = public_tree(GAME)
        tables = [
            np.full((max(1, int(GAME.tree.row_slots[block])), int(GAME.buckets[block])), 0.5) for block in range(4)
        ]
        nothing = no_tables(np.float64)
        self.views = tuple(Views(nothing, street_tables(tables, player), nothing) for player in range(2))
        self.root = new_scratch(public, range(1), np.float64, 2)
        self.scratches = [new_scratch(public, range(1, 2), np.float64, 2) for _ in range(3)]
        self.came: list[bool] = []

    def walk(self, crew, scratch) -> None:
        scope = Scope(0, 1, *self.public.boards.root.tolist())
        value(self.public, self.views, scope, self.root, scratch, crew)
        self.came.append(crew.leads)


@pytest.mark.parametrize("leads", [True, False])
def test_threads_do_not_wait_for_a_thread_that_fails_at_its_start(leads):
    """If the leader fails, the waiting threads end; if another thread fails, the rest do its work."""
    together = Together()
    waiting = threading.Event()

    def work(crew, scratch) -> None:
        if crew.leads == leads:
            if leads:
                assert waiting.wait(60)
            raise RuntimeError("no room")
        if leads and not waiting.is_set():
            waiting.set()
        together.walk(crew, scratch)

    refused("no room", walk_together, work, shares_by_cost(together.public), together.scratches, error=RuntimeError)
    assert together.came == ([False] * 2 if leads else [True])
    found = together.root.by_hand.value[0] @ together.public.reach[0]
    assert np.any(found) == (not leads)
