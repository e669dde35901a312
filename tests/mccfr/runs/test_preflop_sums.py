"""Strategy sums on the first street only: old runs of them are read, by their snapshots."""

import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from archives import unpack
from commands import call
from harness import LEDUC
from places import ROOT

from abstraction.boards import canonical_boards, used_slots
from abstraction.lookup import board_rows
from mccfr.cards.deck import WholeDeck
from mccfr.config.file import config_from
from mccfr.config.games import PokerGame
from mccfr.games.catalogue import build_game
from mccfr.games.poker import poker
from mccfr.runs.results import averages, snapshot_mean
from mccfr.runs.results.evaluating import evaluate_target
from mccfr.solvers.solver import former_problem
from mccfr.tables.layout import make_layout, private_tables, table_name
from mccfr.tables.strategy import Strategy

# The mean of current strategies --------------------------------------------------------------------------------------


def three_streets():
    """Poker of three streets whose second forgets what was held on the first, and whose third remembers the second."""
    game = poker(
        PokerGame(board_cards=(0, 1, 1), antes=(1, 1), limit=True, raise_sizes=(1, 1, 2), max_raises=(1, 2, 1))
    )
    cards = game.cards
    second = np.where(cards.bucket[1] >= 0, cards.bucket[1] % 4, -1)
    third = np.where(cards.bucket[2] >= 0, second[:, cards.board_parent[2]] * 3 + cards.bucket[2] % 3, -1)
    counts = np.array([cards.buckets[0], [4, 4], [12, 12]])
    return replace(game, cards=replace(cards, bucket=[cards.bucket[0], second, third], buckets=counts))


THREE_STREETS = three_streets()


def naive_parents(game, street, player):
    """[K] sets of buckets on the street before, over every board and hand."""
    cards = game.cards
    found = [set() for _ in range(int(cards.buckets[street, player]))]
    for board, row in enumerate(cards.bucket[street][player]):
        for hand, bucket in enumerate(row):
            if bucket >= 0:
                found[bucket].add(int(cards.bucket[street - 1][player, cards.board_parent[street][board], hand]))
    return found


def naive_mean(game, snapshots, weights):
    """(probability, weight) of each later block: every infoset on its own, its reach along the whole path."""
    arrays = game.tree.arrays
    probability = [np.zeros((int(k), int(n))) for k, n in zip(game.buckets, game.tree.row_slots, strict=True)]
    total = [np.zeros((int(k), int(n))) for k, n in zip(game.buckets, game.tree.row_count, strict=True)]

    def row(tables, node, bucket):
        first = int(arrays.slot[node])
        table = tables[table_name("regret", int(arrays.block[node]))]
        return np.asarray(table[bucket, first : first + int(arrays.count[node])], float)

    def sigma(tables, node, bucket):
        positive = np.maximum(row(tables, node, bucket), 0)
        return positive / positive.sum() if positive.sum() else np.full(len(positive), 1 / len(positive))

    for node in game.tree.decisions.tolist():
        block, slot = int(arrays.block[node]), int(arrays.slot[node])
        if block < 2:
            continue
        street, player = divmod(block, 2)
        known = [naive_parents(game, s, player) if s else None for s in range(street + 1)]
        path = game.tree.path(node)
        for bucket in range(int(game.buckets[block])):
            held, at = {street: bucket}, street
            while at > 0 and all(len(parents) == 1 for parents in known[at]):
                held[at - 1] = next(iter(known[at][held[at]]))
                at -= 1
            cells = probability[block][bucket, slot : slot + int(arrays.count[node])]
            for tables, weight in zip(snapshots, weights, strict=True):
                if not row(tables, node, bucket).any():
                    continue
                reach = weight
                for over, child in pairwise(path):
                    if arrays.player[over] == player and int(arrays.block[over]) // 2 in held:
                        played = sigma(tables, over, held[int(arrays.block[over]) // 2])
                        reach *= played[child - int(arrays.first[over])]
                cells += reach * sigma(tables, node, bucket)
                total[block][bucket, int(arrays.row[node])] += reach
            weight = total[block][bucket, int(arrays.row[node])]
            cells[:] = cells / weight if weight else 1 / len(cells)
    return probability[2:], total[2:]


@pytest.mark.parametrize("game", [LEDUC, THREE_STREETS], ids=["perfect recall", "imperfect recall"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_mean_weighs_each_snapshot_by_own_reach(game, dtype):
    rng = np.random.default_rng(4)
    tables = private_tables(make_layout(game, regret_dtype=dtype))
    snapshots = []
    for _ in range(4):
        regrets = {name: rng.normal(size=t.shape).astype(dtype) for name, t in tables.items() if name[:4] == "regr"}
        for table in regrets.values():  # bucket 0 has not been dealt yet, and some others not in every snapshot
            table[rng.random(len(table)) < 0.2] = 0
            table[0] = 0
        snapshots.append(regrets)
    weights = [3.0, 1.0, 0.0, 5.0]
    blocks = [snapshot_mean._uniform(game, block) for block in (0, 1)]
    mean = snapshot_mean.SnapshotMean(game, Strategy(*zip(*blocks, strict=True)))
    for regrets, weight in zip(snapshots, weights, strict=True):
        mean.add(regrets.__getitem__, weight)
    probability, weight = naive_mean(game, snapshots, weights)
    for block in range(2, 2 * game.tree.streets):
        np.testing.assert_allclose(mean.strategy.weight[block], weight[block - 2], rtol=1e-12)
        np.testing.assert_allclose(mean.strategy.probability[block], probability[block - 2], rtol=1e-12, atol=1e-15)
        assert (weight[block - 2] == 0).any() and (weight[block - 2] > 0).any()
    for block in (0, 1):
        assert not mean.strategy.weight[block].any()


def test_recall_is_decided_from_the_cards():
    for game in (LEDUC, THREE_STREETS):
        for block in range(2, 2 * game.tree.streets):
            parents = naive_parents(game, *divmod(block, 2))
            found = snapshot_mean.parent_buckets(game, block)
            assert (found is not None) == all(len(before) == 1 for before in parents)
            assert found is None or found.tolist() == [next(iter(before)) for before in parents]
    assert snapshot_mean.parent_buckets(THREE_STREETS, 2) is None
    assert snapshot_mean.parent_buckets(THREE_STREETS, 4) is not None


def holdem_deck(board_cards, *tables):
    """A deck with the given bucket tables [boards, 1326], unused cells at the highest value of their dtype."""
    counts = [[int(table[table != np.iinfo(table.dtype).max].max()) + 1] * 2 for table in tables]
    return WholeDeck(board_cards, np.array(counts), lambda: tables)


def coarser(table, buckets):
    """The table with `buckets` buckets, each a union."""
    return np.where(table == np.iinfo(table.dtype).max, 0xFFFF, table % buckets).astype(np.uint16)


def test_recall_in_whole_holdem():
    game = build_game(config_from({"game": {"name": "flop-holdem"}}, "test").game, ROOT)
    parent = snapshot_mean.parent_buckets(game, 3)
    assert len(parent) == game.buckets[3]
    assert set(parent.tolist()) == set(range(169))
    preflop, flop = game.cards.load()
    nested = replace(game, cards=holdem_deck((0, 3), coarser(preflop, 2), flop))
    np.testing.assert_array_equal(snapshot_mean.parent_buckets(nested, 2), parent % 2)
    forgets = replace(game, cards=holdem_deck((0, 3), preflop, coarser(flop, 50)))
    assert snapshot_mean.parent_buckets(forgets, 2) is None


def test_recall_in_holdem_sees_every_way_of_dealing():
    """The flop may be any three of the turn's cards: the bucket that the lowest three gave says nothing of others."""
    game = build_game(config_from({"game": {"name": "flop-holdem"}}, "test").game, ROOT)
    preflop, flop = game.cards.load()
    flop, boards = coarser(flop, 3), canonical_boards(4)
    lowest_three = board_rows(holdem_deck((0, 3), preflop, flop).lookup, boards[:, :3])
    turn = np.where(used_slots(boards), lowest_three, 0xFFFF).astype(np.uint16)
    deck = holdem_deck((3, 1), flop, turn)
    bucket, before = next(deck.bucket_pairs(1, 0))
    np.testing.assert_array_equal(bucket, before)
    assert snapshot_mean.parent_buckets(replace(game, cards=deck), 2) is None


# Runs ----------------------------------------------------------------------------------------------------------------

CHIPS = 0.3814925081387218
"""Of the run, with three snapshots and the newest checkpoint (`test_former.py`)."""


@pytest.fixture
def preflop(tmp_path):
    return unpack("preflop", tmp_path)


def test_a_snapshot_that_is_gone_is_named(preflop, capsys):
    shutil.rmtree(preflop / "run" / "checkpoints" / "000001")
    status, _, said = call(capsys, "evaluate", preflop / "run")
    assert status != 0 and "is gone: checkpoint 4 takes the average strategy of later streets from it" in said


def all_regrets(game, block):
    """No bucket says what its hands were before: own reach counts from the street on."""


def no_lines(schedule, before, now):
    """Iterations of every period count alike."""
    return float(now.iterations - before.iterations)


@pytest.mark.parametrize(
    ("place", "name", "planted"),
    [(snapshot_mean, "parent_buckets", all_regrets), (averages, "stretch_weight", no_lines)],
    ids=["reach", "period weight"],
)
def test_a_planted_error_is_caught(preflop, monkeypatch, place, name, planted):
    monkeypatch.setattr(place, name, planted)
    assert evaluate_target(preflop / "run", "exact")["exploitability_chips"] != pytest.approx(CHIPS, rel=1e-4)


def test_a_new_run_has_no_such_keys():
    document = {"game": {"name": "leduc"}}
    assert config_from({**document, "tables": {"strategy_sums": "all"}}, "test") == config_from(document, "test")
    said = former_problem(config_from({**document, "tables": {"snapshot_nodes": 5}}, "test"))
    assert said is not None and said.startswith("tables.snapshot_nodes = 5, which was for tables.strategy_sums")
