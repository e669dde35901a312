"""Public chance sampling: increments against exact regrets, convergence, weights, resuming.

Shows:

* Regrets sampled by public chance sampling are unbiased (test_the_mean_over_all_rivers_is_exact_up_to_one_constant,
  test_boards_depend_only_on_seed_worker_and_iteration; planted:
  test_turn_hands_that_contain_the_river_card_are_caught)
"""

from functools import cache

import mutants
import naive
import numpy as np
import pytest
from places import RUNS
from refusals import refused
from small_games import deck_game, few_hands, shared_buckets

from abstraction.cards import hand_cards
from abstraction.hand_evaluator import board_strengths
from mccfr.cards import card_lists as listed_cards
from mccfr.config.game_tables import HoldemSubgame, KuhnGame, LeducGame, Menu
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.poker import kuhn, leduc
from mccfr.games.registry import build_game
from mccfr.solvers.public.public_chance import traversal
from mccfr.solvers.public.public_chance.public_chance_sampling import (
    PublicChanceOptions,
    PublicChanceSampling,
    new_tables,
    table_specs,
)
from mccfr.solvers.public.sampled_board import BoardSource, from_cards, of_hands
from mccfr.solvers.variants import variant
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.table_layout import table_name
from mccfr.trees.street_trees import street_trees

RIVER, TURN = RUNS / "games/river.txt", RUNS / "games/turn.txt"
KUHN, LEDUC = kuhn(KuhnGame()), leduc(LeducGame())
PLAIN = PublicChanceOptions(Schedule(), plus=False)


@cache
def endgame(path, buckets=0, hands=20):
    """Return an endgame with few hands, lossless or with random buckets; a turn has few bet sizes."""
    menu = Menu(first=("1p",), later=("allin",), max_bets=1) if path == TURN else Menu()
    game = few_hands(build_game(HoldemSubgame(file=str(path), menu=menu), RUNS), hands)
    return shared_buckets(game, buckets) if buckets else game


# --- increments under a fixed strategy ---


def profile(game):
    """Return tables with random regrets, a fifth of which are negative; sums are 0."""
    rng = np.random.default_rng(7)
    tables = new_tables(table_specs(game, "float64", "float64"))
    for name, table in tables.items():
        if name.startswith("regret"):
            table[:] = rng.choice([-1, 0.5, 1, 2, 5], table.shape)
    return tables


def by_block(game, tables, kind):
    """Return eight tables [slot, bucket] of one kind, as in production; unused ones have one cell."""
    found = [tables.get(table_name(kind, block), np.zeros((1, 1))) for block in range(2 * game.tree.streets)]
    return tuple(found + [np.zeros((1, 1))] * (8 - len(found)))


def traverse(game, board, tables, traverser, weight=1.0):
    """Return the changes of one traversal to copies of the tables, by name, and its nodes touched."""
    start = {name: table.copy() for name, table in tables.items()}
    work = traversal.VectorTables(by_block(game, start, "regret"), by_block(game, start, "strategy_sum"))
    trees = street_trees(game.tree)
    most = game.cards.most_hands
    scratch = traversal.new_scratch(trees, most, game.cards.deck_size, np.float64)
    task = traversal.Task(traverser, weight, weight, 0, np.uint64(0), traversal.new_response())
    nodes = traversal.sampled_traversals(trees, work, board, task, traverser + 1, scratch)
    return {name: start[name] - tables[name] for name in start}, nodes


def increments(game, board, tables, edit=None):
    """Return the sum of both players' increments from the same tables; `edit` changes a traverser's board."""
    total = {name: np.zeros_like(table) for name, table in tables.items()}
    for traverser in range(2):
        mine = board if edit is None else edit(board, traverser)
        for name, added in traverse(game, mine, tables, traverser)[0].items():
            total[name] += added
    return total


@cache
def exact(path, buckets=0):
    """Return an endgame, tables of a fixed strategy, and increments over all deals by `naive.Cfr`."""
    game = endgame(path, buckets)
    tables, twin = profile(game), naive.Cfr(game, variant("cfr", updates="simultaneous"))
    for block, table in enumerate(twin.regret):
        table[:] = tables[table_name("regret", block)].T
    twin.iterate()
    found = {}
    for block, (regret, sums) in enumerate(zip(twin.regret, twin.sums, strict=True)):
        name = table_name("regret", block)
        found[name], found[table_name("strategy_sum", block)] = regret.T - tables[name], sums.T
    return game, tables, found


def worst(found, expected):
    """Return the largest difference by kind of table, relative to the largest exact entry of that kind."""
    return {
        kind: max(np.abs(found[name] - expected[name]).max() for name in expected if name.startswith(kind))
        / max(np.abs(expected[name]).max() for name in expected if name.startswith(kind))
        for kind in ("regret", "strategy_sum")
    }


@pytest.mark.parametrize("buckets", [0, 5])
def test_increments_on_a_river_equal_exact_regrets(buckets):
    game, tables, expected = exact(RIVER, buckets)
    found = worst(increments(game, from_cards(game.cards, 0), tables), expected)
    assert max(found.values()) < 1e-9, found


def without_weights(board, traverser):
    """Plant an error: regrets lack the weight of the player's own hand."""
    weight = board.weight.copy()
    weight[traverser] = 1
    return board._replace(weight=weight)


@pytest.mark.parametrize("buckets", [0, 5])
def test_regrets_without_the_own_deal_weight_are_caught(buckets):
    game, tables, expected = exact(RIVER, buckets)
    found = worst(increments(game, from_cards(game.cards, 0), tables, without_weights), expected)
    assert found["regret"] > 0.01
    assert found["strategy_sum"] < 1e-9


# --- mean over sampled boards ---


def over_all_rivers(game, boards, tables):
    """Return the increments summed over all rivers; strategy sums of the turn are divided by 46.

    Each hand sees 46 of the 48 rivers.
    """
    each = [increments(game, board, tables) for board in boards]
    parts = {name: 46 if name.startswith("strategy_sum/street0") else 1 for name in tables}
    return {name: sum(one[name] for one in each) / part for name, part in parts.items()}


@pytest.mark.parametrize("buckets", [0, 5])
def test_the_mean_over_all_rivers_is_exact_up_to_one_constant(buckets):
    game, tables, expected = exact(TURN, buckets)
    boards = [from_cards(game.cards, board) for board in range(48)]
    assert max(worst(over_all_rivers(game, boards, tables), expected).values()) < 1e-9


def test_turn_hands_that_contain_the_river_card_are_caught():
    """The planted error keeps turn hands that contain the river card."""
    game, tables, expected = exact(TURN)
    wrong = mutants.mutant(
        listed_cards,
        ("self.live(last, board)", "self.live(0, self.path(last, int(board))[0])"),
        (
            "        for player, hands in enumerate(live):\n            missing",
            "        bucket *= bucket > 0\n        for player, hands in enumerate(live):\n            missing",
        ),
    )
    hands = [wrong.ListedCards.board_hands(game.cards, board) for board in range(48)]
    boards = [of_hands(here, game.cards.deck_size, np.float64) for here in hands]
    assert min(worst(over_all_rivers(game, boards, tables), expected).values()) > 0.1


# --- boards ---


def test_a_board_of_the_full_deck_contains_every_possible_hand():
    game, cards = deck_game(buckets=(7, 7)), [0, 13, 26, 39, 51]
    board = from_cards(game.cards, cards)
    hands, held = board.hand[0], hand_cards(52, 2)
    assert board.count.tolist() == [1081, 1081] and not np.isin(held[hands], cards).any()
    assert np.array_equal(board.hand[0], board.hand[1]) and (board.weight == 1).all()
    strength = board_strengths(cards)
    ranked = board.showdown
    assert np.array_equal(strength[hands[ranked.order[0]]], ranked.strength[0])
    assert (np.diff(ranked.strength[0]) >= 0).all()
    assert np.array_equal(held[hands[ranked.order[1]]], ranked.card[1])
    assert np.array_equal(ranked.same[0], np.arange(1081))  # both players have the same hands
    for street in range(2):
        rows = board.bucket[street, 0, : board.rows[street, 0]]
        assert rows.tolist() == list(range(7)) and not board.direct.any()
        assert np.array_equal(rows[board.local[street, 0]], (held[hands] ** 2).sum(1) * (street + 1) % 7)


def test_boards_depend_only_on_seed_worker_and_iteration():
    listed, deck = endgame(TURN), deck_game(buckets=(7, 7))
    first = [BoardSource(listed, np.float64, 5).number(i) for i in range(96)]
    assert sorted(first[:48]) == sorted(first[48:]) == list(range(48)) and first[:48] != first[48:]
    again = BoardSource(listed, np.float64, 5)
    assert [again.number(i) for i in reversed(range(96))] == first[::-1]
    for seed, worker in ((6, 0), (5, 1)):
        assert [BoardSource(listed, np.float64, seed, worker).number(i) for i in range(48)] != first[:48]
    dealt = [BoardSource(deck, np.float64, 5).board(i).hand for i in (3, 3, 4)]
    assert np.array_equal(dealt[0], dealt[1]) and not np.array_equal(dealt[0], dealt[2])


# --- runs ---


def solver(game, options=PLAIN, dtype="float64", **more):
    return PublicChanceSampling(game, options, new_tables(table_specs(game, dtype, dtype)), **more)


def floored(game, boards=1):
    """Return the options of CFR+ with periods of about `boards` boards."""
    return PublicChanceOptions(Schedule(period_nodes=2 * boards * game.tree.nodes))


@pytest.mark.parametrize("options", [PLAIN, floored(KUHN)], ids=["plain", "floored"])
def test_kuhn_is_solved(options):
    run = solver(KUHN, options)
    run.run(3000)
    found = evaluate_exact(KUHN, run.average_strategy())
    assert found.value_chips == pytest.approx(-1 / 18, abs=1e-3)
    assert found.exploitability_chips < 1e-3  # 0.46 for uniform play


@pytest.mark.parametrize("game", [LEDUC, leduc(LeducGame(merge_suits=True))], ids=["lossless", "suits merged"])
def test_leduc_is_solved(game):
    run = solver(game, PublicChanceOptions(Schedule("linear", period_nodes=2 * game.tree.nodes), plus=False))
    run.run(6000)
    found = evaluate_exact(game, run.average_strategy())
    assert found.value_chips == pytest.approx(-0.0856064, abs=4e-3)
    assert found.exploitability_chips < 0.03  # 2.37 for uniform play


def test_nodes_touched_include_terminals_and_chance_nodes():
    board, tables = from_cards(LEDUC.cards, 0), new_tables(table_specs(LEDUC, "float64", "float64"))
    # Terminals count, and so does the chance node between the rounds.
    assert traverse(LEDUC, board, tables, 0)[1] == int(LEDUC.tree.arrays.touched.sum()) == LEDUC.tree.nodes + 5


def test_invalid_tables_and_options_are_refused():
    tables = new_tables(table_specs(LEDUC))
    with pytest.raises(ValueError, match="floored runs weight their sums by period"):
        PublicChanceSampling(LEDUC, PublicChanceOptions(Schedule("linear")))
    for change, problem in (
        (lambda table: None, "is missing"),
        (lambda table: table[:, :-1].copy(), r"float32 \(\d+, \d+\) is needed"),
        (lambda table: table.T.copy().T, "not contiguous"),
    ):
        name = "regret/street1/player0"
        refused(problem, PublicChanceSampling, LEDUC, tables=tables | {name: change(tables[name])})
    refused("float32 or float64", PublicChanceSampling, LEDUC, tables={})
