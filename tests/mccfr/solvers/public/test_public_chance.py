"""Public chance sampling: increments against exact regrets, convergence, weights, resuming.

Shows:

* Regrets sampled by public chance sampling are unbiased (test_the_mean_over_all_rivers_is_exact_up_to_one_constant,
  test_boards_follow_from_seed_worker_and_iteration; planted:
  test_hands_that_only_the_street_s_own_board_allows_make_the_streets_unequal)
"""

import dataclasses
from functools import cache

import mutants
import numpy as np
import pytest
from places import ENDGAMES, RUNS
from refusals import refused
from small_games import DeckOfClasses

from abstraction.cards import hand_cards
from abstraction.hand_evaluator import board_strengths
from mccfr.cards import card_lists as listed_cards
from mccfr.cards.deals import card_masks
from mccfr.config.game_tables import HoldemSubgame, KuhnGame, LeducGame, Menu
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.game import Game
from mccfr.games.poker import kuhn, leduc
from mccfr.games.registry import build_game
from mccfr.solvers.public.public_chance.public_chance_sampling import (
    PublicChanceOptions,
    PublicChanceSampling,
    new_tables,
    table_specs,
)
from mccfr.solvers.public.public_chance.traversal import (
    Task,
    VectorTables,
    new_response,
    new_scratch,
    sampled_traversals,
)
from mccfr.solvers.public.sampled_board import BoardSource, from_cards, of_hands
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.strategy import average_strategy
from mccfr.tables.table_layout import TableSet, table_name
from mccfr.trees.compiled import DECISION
from mccfr.trees.street_trees import street_trees

SUBGAME_3 = ENDGAMES / "subgame3.txt"
RIVER, TURN = RUNS / "games/river.txt", RUNS / "games/turn.txt"
KUHN, LEDUC = kuhn(KuhnGame()), leduc(LeducGame())
PLAIN = PublicChanceOptions(Schedule(), plus=False)


@cache
def endgame(path):
    """An endgame with the usual sizes on the river; with few on the turn, where there are 48 boards."""
    if not path.exists():
        pytest.skip("the Libratus endgames are not on this machine")
    menu = Menu(first=("1p",), later=("allin",), max_bets=1) if path == TURN else Menu()
    return build_game(HoldemSubgame(file=str(path), menu=menu), RUNS)


def with_buckets(game, count):
    """The game with hands of each street and player thrown into `count` buckets at random."""
    rng, cards = np.random.default_rng(3), game.cards
    bucket = [np.where(numbers < 0, -1, rng.integers(count, size=numbers.shape)) for numbers in cards.bucket]
    numbers = [b.astype(np.int32) for b in bucket]
    model = dataclasses.replace(cards, bucket=numbers, buckets=np.full_like(cards.buckets, count))
    return Game(game.name, game.tree, model, big_blind_chips=game.big_blind_chips, pot_chips=game.pot_chips)


# --- increments under a fixed strategy ---


def profile(game):
    """Regrets of a strategy far from uniform: a fifth of the actions are never played; some rows are uniform."""
    rng = np.random.default_rng(7)
    tables = new_tables(table_specs(game, "float64", "float64"))
    for name, table in tables.items():
        if name.startswith("regret"):
            table[:] = rng.choice([-1, 0.5, 1, 2, 5], table.shape)
    return tables


def by_block(game, tables, kind):
    """Tables of one kind, [slot, bucket], with a cell for blocks without rows, as many as production hands over."""
    found = [tables.get(table_name(kind, block), np.zeros((1, 1))) for block in range(2 * game.tree.streets)]
    return tuple(found + [np.zeros((1, 1))] * (8 - len(found)))


def traverse(game, board, tables, traverser, weight=1.0):
    """Return the changes of one traversal to copies of the tables, by name."""
    start = {name: table.copy() for name, table in tables.items()}
    work = VectorTables(by_block(game, start, "regret"), by_block(game, start, "strategy_sum"))
    trees = street_trees(game.tree)
    most = game.cards.most_hands
    scratch = new_scratch(trees, most, game.cards.deck_size, np.float64)
    task = Task(traverser, weight, weight, 0, np.uint64(0), new_response())
    nodes = sampled_traversals(trees, work, board, task, traverser + 1, scratch)
    return {name: start[name] - tables[name] for name in start}, nodes


def increments(game, board, tables, edit=None):
    """Return the sum of both players' increments from the same tables; `edit` changes a traverser's board."""
    total = {name: np.zeros_like(table) for name, table in tables.items()}
    for traverser in range(2):
        mine = board if edit is None else edit(board, traverser)
        for name, added in traverse(game, mine, tables, traverser)[0].items():
            total[name] += added
    return total


class Exact:
    """Counterfactual regrets and own reach times strategy by pairs of hands, for one first board and its last boards.

    No vectors of ranges: a value is a matrix over pairs, a run-out or a street change a mean over the boards that the
    pair allows.
    """

    def __init__(self, game, tables):
        self.game, cards = game, game.cards
        sums = {
            name.replace("regret", "strategy_sum"): np.maximum(t, 0).T for name, t in tables.items() if "reg" in name
        }
        self.sigma = average_strategy(game, TableSet(sums)).probability
        self.hands = [np.flatnonzero(cards.reach[p] > 0) for p in range(2)]
        self.weight = [cards.reach[p][hands] for p, hands in enumerate(self.hands)]
        masks, boards = cards.hand_masks(), card_masks(cards.board_cards[-1])
        mine = [masks[hands] for hands in self.hands]
        self.pairs = (mine[0][:, None] & mine[1][None, :]) == 0
        self.free = [(m[None, :] & boards[:, None]) == 0 for m in mine]
        meets = self.free[0][:, :, None] & self.free[1][:, None, :] & self.pairs
        self.allowed = meets / np.maximum(meets.sum(0), 1)  # the chance of each board for a pair
        order = cards.strength
        self.result = np.sign(order[:, self.hands[0]][:, :, None] - order[:, self.hands[1]][:, None, :])
        self.found = {name: np.zeros_like(table) for name, table in tables.items()}
        self.constant = len(boards) / meets.sum(0).max()  # boards there are to boards a pair allows
        self.walk(0, 0 if game.tree.streets == 1 else None, [np.ones(len(hands)) for hands in self.hands])

    def walk(self, node, board, reach):
        """[n0, n1] chips of player 0 at a node of the tree, board None on the first of two streets."""
        arrays, last = self.game.tree.arrays, self.game.tree.streets - 1
        boards = range(len(self.result)) if board is None else [board]
        if arrays.kind[node] != DECISION:
            if arrays.showdown[node] == 0:
                return np.full(self.pairs.shape, arrays.fixed[node])
            if board is not None:
                return arrays.showdown[node] * self.result[board]
            return arrays.showdown[node] * (self.allowed * self.result).sum(0)
        street = int(arrays.block[node]) // 2
        if board is None and street == last:
            return sum(self.allowed[b] * self.walk(node, b, reach) for b in boards)
        return self.decide(node, board, reach)

    def decide(self, node, board, reach):
        arrays, cards = self.game.tree.arrays, self.game.cards
        block, slot, count = (int(column[node]) for column in (arrays.block, arrays.slot, arrays.count))
        player, at = block % 2, board or 0
        bucket = cards.bucket[block // 2][player, at if block // 2 == len(cards.bucket) - 1 else 0, self.hands[player]]
        sigma = self.sigma[block][np.maximum(bucket, 0), slot : slot + count].T
        below = []
        for share, child in zip(sigma, self.game.tree.children(node), strict=True):
            deeper = [r * share if p == player else r for p, r in enumerate(reach)]
            below.append(self.walk(child, board, deeper))
        mine = sigma[:, :, None] if player == 0 else sigma[:, None, :]
        here = (mine * below).sum(0)
        chance = self.pairs if board is None else self.allowed[board]
        live = bucket >= 0
        for a, value in enumerate(below):
            gain = (value - here) * chance * (1 - 2 * player)
            other = self.weight[1 - player] * reach[1 - player]
            gain = (gain @ other if player == 0 else other @ gain) * self.weight[player]
            np.add.at(self.found[table_name("regret", block)], (slot + a, bucket[live]), gain[live])
            share = self.weight[player] * reach[player] * sigma[a]
            if board is not None:
                share = share * self.free[player][board] / len(self.result)
            elif len(self.result) > 1:
                share = share * self.free[player].mean(0)
            np.add.at(self.found[table_name("strategy_sum", block)], (slot + a, bucket[live]), share[live])
        return here


@cache
def exact(path, buckets=0):
    """(game, tables of a fixed strategy, `Exact`) of an endgame, lossless or with so many random buckets."""
    game = with_buckets(endgame(path), buckets) if buckets else endgame(path)
    tables = profile(game)
    return game, tables, Exact(game, tables)


def worst(found, expected):
    """Largest difference by kind of table, in units of the largest exact entry of that kind."""
    return {
        kind: max(np.abs(found[name] - expected[name]).max() for name in expected if name.startswith(kind))
        / max(np.abs(expected[name]).max() for name in expected if name.startswith(kind))
        for kind in ("regret", "strategy_sum")
    }


@pytest.mark.parametrize("path, buckets", [(SUBGAME_3, 0), (RIVER, 0), (RIVER, 20)], ids=["3", "own", "own, bucketed"])
def test_increments_on_a_river_are_the_exact_regrets(path, buckets):
    game, tables, twin = exact(path, buckets)
    found = worst(increments(game, from_cards(game.cards, 0), tables), twin.found)
    assert max(found.values()) < 1e-9, found


def without_weights(board, traverser):
    """A planted error: regrets lack the hand's own deal weight."""
    weight = board.weight.copy()
    weight[traverser] = 1
    return board._replace(weight=weight)


@pytest.mark.parametrize("buckets", [0, 20])
def test_regrets_without_the_own_deal_weight_are_wrong(buckets):
    game, tables, twin = exact(RIVER, buckets)
    found = worst(increments(game, from_cards(game.cards, 0), tables, without_weights), twin.found)
    assert found["regret"] > 0.01
    assert found["strategy_sum"] < 1e-9


# --- boards are sampled ---


@cache
def turn_increments(buckets=0):
    """Increments on each of the 48 rivers of our turn endgame."""
    game, tables, _ = exact(TURN, buckets)
    boards = len(game.cards.board_cards[-1])
    return [increments(game, from_cards(game.cards, board), tables) for board in range(boards)]


def mean(each):
    return {name: sum(one[name] for one in each) / len(each) for name in each[0]}


@pytest.mark.parametrize("buckets", [0, 20])
def test_the_mean_over_all_rivers_is_exact_up_to_one_constant(buckets):
    _, _, twin = exact(TURN, buckets)
    found = mean(turn_increments(buckets))
    assert twin.constant == 48 / 44
    for name in found:
        if name.startswith("regret"):
            found[name] = found[name] * 48 / 44
    assert max(worst(found, twin.found).values()) < 1e-9


def test_hands_that_only_the_street_s_own_board_allows_make_the_streets_unequal():
    """A planted error: the turn's hands take part whatever the river is."""
    game, tables, twin = exact(TURN)
    wrong = mutants.mutant(
        listed_cards,
        ("self.live(last, board)", "self.live(0, self.path(last, int(board))[0])"),
        (
            "        for player, hands in enumerate(live):\n            missing",
            "        bucket *= bucket > 0\n        for player, hands in enumerate(live):\n            missing",
        ),
    )
    boards = range(len(game.cards.board_cards[-1]))
    hands = [wrong.ListedCards.board_hands(game.cards, board) for board in boards]
    each = [increments(game, of_hands(here, game.cards.deck_size, np.float64), tables) for here in hands]
    assert min(worst(mean(each), twin.found).values()) > 0.1


# --- boards ---


def deck_game(tree=LEDUC.tree, board_cards=(3, 2)):
    deck = DeckOfClasses(board_cards, np.full((len(board_cards), 2), 7), lambda: [])
    return Game("a game with the whole deck", tree, deck)


def test_a_board_off_the_deck_holds_every_hand_it_leaves():
    game, cards = deck_game(), [0, 13, 26, 39, 51]
    board = from_cards(game.cards, cards)
    hands, held = board.hand[0], hand_cards(52, 2)
    assert board.count.tolist() == [1081, 1081] and not np.isin(held[hands], cards).any()
    assert np.array_equal(board.hand[0], board.hand[1]) and (board.weight == 1).all()
    strength = board_strengths(cards)
    ranked = board.showdown
    assert np.array_equal(strength[hands[ranked.order[0]]], ranked.strength[0])
    assert (np.diff(ranked.strength[0]) >= 0).all()
    assert np.array_equal(held[hands[ranked.order[1]]], ranked.card[1])
    assert np.array_equal(ranked.same[0], np.arange(1081))  # both lists are the same
    for street in range(2):
        rows = board.bucket[street, 0, : board.rows[street, 0]]
        assert rows.tolist() == list(range(7)) and not board.direct.any()
        assert np.array_equal(rows[board.local[street, 0]], (held[hands] ** 2).sum(1) * (street + 1) % 7)


def test_boards_follow_from_seed_worker_and_iteration():
    listed, deck = endgame(TURN), deck_game()
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
    """CFR+ with periods of about so many boards."""
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


def test_a_traversal_touches_every_node_that_is_reached():
    board, tables = from_cards(LEDUC.cards, 0), new_tables(table_specs(LEDUC, "float64", "float64"))
    # Terminals count, and so does the board between the rounds.
    assert traverse(LEDUC, board, tables, 0)[1] == int(LEDUC.tree.arrays.touched.sum()) == LEDUC.tree.nodes + 5


def test_tables_and_options_that_make_no_sense_are_refused():
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
