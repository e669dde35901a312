"""Strategy sums on the first street only: the same is learnt, and later streets' average comes from snapshots."""

import os
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import sessions
from commands import call
from harness import LEDUC, Trainer, same_tables
from places import ROOT
from sessions import Listener, go

from abstraction.boards import canonical_boards, used_slots
from abstraction.lookup import board_rows
from mccfr.cards.deck import WholeDeck
from mccfr.config.file import config_from
from mccfr.config.games import PokerGame
from mccfr.evaluation.exact import evaluate_exact
from mccfr.games.catalogue import build_game
from mccfr.games.poker import poker
from mccfr.policy import Policy, Profile
from mccfr.policy.query import query
from mccfr.runs.directory.run import EVALUATIONS
from mccfr.runs.events import Totals
from mccfr.runs.results import averages, snapshot_mean
from mccfr.runs.results.averages import checkpoint_average, stretch_weight
from mccfr.runs.results.checkpoints import find_checkpoint, read_tables
from mccfr.runs.results.evaluating import evaluate_target
from mccfr.runs.results.export import ExportOptions, export_run
from mccfr.runs.session.plan import make_plan
from mccfr.tables.discount import Schedule
from mccfr.tables.layout import TableSet, make_layout, private_tables, table_name
from mccfr.tables.strategy import Strategy
from storage import checkpoint as checkpoints

TOY = poker(PokerGame(antes=(1, 1), stack=5))
LINEAR = {"discount": "linear", "period_nodes": 50_000, "seed": 5}
DCFR = {"algorithm": "outcome-sampling", "discount": "dcfr", "period_nodes": 40_000}


def without_later_sums(trainer):
    """The trainer with no strategy sums after the first street."""
    dtypes = {"regret_dtype": trainer.options["regret_dtype"], "sum_dtype": trainer.sums}
    trainer.tables = private_tables(make_layout(trainer.game, summed_streets=1, **dtypes))
    return trainer


@pytest.mark.parametrize("sum_dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["linear", "dcfr"])
@pytest.mark.parametrize("game", [LEDUC, TOY], ids=["Leduc", "toy"])
@pytest.mark.parametrize("general", [False, True], ids=["packed", "general"])
@pytest.mark.parametrize("algorithm", ["external", "outcome"])
def test_what_is_learnt_is_the_same_to_the_last_bit(algorithm, general, game, kind, sum_dtype):
    options = {"schedule": Schedule(kind, 5_000), "general": general, "seed": 1, "sum_dtype": sum_dtype}
    full = Trainer(game, algorithm, **options).train(nodes=60_000)
    first = without_later_sums(Trainer(game, algorithm, **options)).train(nodes=60_000)
    left_out = {name for name in full.tables if name.startswith("strategy_sum") and "/street0/" not in name}
    assert full.tables.keys() - first.tables.keys() == left_out and left_out
    full.tables = TableSet({name: table for name, table in full.tables.items() if name not in left_out})
    assert same_tables(full, first)
    assert all(table.any() for table in first.tables.values())


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


def make(path, solver, *, preflop=True, every=20_000, evaluation=None, form="zarr", **settings):
    """A new run of Leduc in this process, with a snapshot at every `every` nodes or with all sums."""
    tables = {"format": form} | ({"strategy_sums": "preflop", "snapshot_nodes": every} if preflop else {})
    return sessions.make(path, solver, tables=tables, evaluation=evaluation, **settings)


def average(run, number=None):
    return checkpoint_average(run.build_game(), run.config, find_checkpoint(run, number))


@pytest.mark.parametrize("solver", [LINEAR, DCFR], ids=["external-linear", "outcome-dcfr"])
def test_sessions_and_checkpoints_change_neither_tables_nor_snapshots(tmp_path, solver):
    whole, parts, full = (make(tmp_path / name, solver, preflop=name != "full") for name in ("whole", "parts", "full"))
    for run in (whole, full):
        go(run, nodes=90_000)
    go(parts, nodes=20_000, keep_checkpoints=1)  # ends at a snapshot
    go(parts, iterations=700, checkpoint_nodes=7_000, keep_checkpoints=1)
    go(parts, nodes=61_000, checkpoint_seconds=0.01, keep_checkpoints=1)
    go(parts, nodes=90_000, keep_checkpoints=1)
    ends = [find_checkpoint(run, None) for run in (whole, parts, full)]
    tables = [read_tables(checkpoint) for checkpoint in ends]
    assert tables[0].keys() == tables[1].keys() < tables[2].keys()
    for name, table in tables[0].items():
        np.testing.assert_array_equal(table, tables[1][name], err_msg=name)
        np.testing.assert_array_equal(table, tables[2][name], err_msg=name)
    behind = [[(s["nodes_touched"], s["iterations"]) for s in end.state["snapshots"]] for end in ends[:2]]
    assert behind[0] == behind[1]
    assert [nodes // 20_000 for nodes, _ in behind[0]] == [1, 2, 3, 4]
    for nodes, iterations in behind[0]:  # the first iteration that reaches the multiple
        limit = nodes // 20_000 * 20_000
        again = make(tmp_path / f"until{limit}", solver)
        go(again, nodes=limit)
        assert find_checkpoint(again, None).state["iterations"] == iterations
    kept = checkpoints.list_checkpoints(parts.path("checkpoints"))
    assert kept == [*(s["checkpoint"] for s in ends[1].state["snapshots"]), ends[1].number]
    for one, other in zip(average(whole).probability, average(parts).probability, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_evaluation_point_is_a_checkpoint_and_no_snapshot(tmp_path):
    points = {"at_nodes": [30_000], "every_checkpoint": False, "at_end": True}
    run = make(tmp_path / "run", LINEAR, evaluation=points)
    go(run, nodes=30_000)
    go(run, nodes=50_000)
    records = run.read(EVALUATIONS)
    assert [record["nodes_touched"] // 10_000 for record in records] == [3, 5]
    for record in records:
        assert (
            evaluate_target(run.directory, "exact", record["checkpoint"])["exploitability_chips"]
            == (record["exploitability_chips"])
        )
    states = [find_checkpoint(run, n).state for n in checkpoints.list_checkpoints(run.path("checkpoints"))]
    assert [(state["nodes_touched"] // 10_000, state["snapshot"]) for state in states] == [
        (2, True),
        (3, False),
        (4, True),
        (5, False),
    ]


def test_a_snapshot_that_is_gone_costs_evaluations_and_no_training(tmp_path, capsys):
    run = make(tmp_path / "run", LINEAR)
    go(run, nodes=50_000)
    first = find_checkpoint(run, None).state["snapshots"][0]["checkpoint"]
    gone = checkpoints.checkpoint_path(run.path("checkpoints"), first)
    gone.rename(tmp_path / "elsewhere")
    listener = Listener()
    go(run, listener, nodes=60_000)
    assert any(str(gone) in said and "is gone" in said for said in listener.told)
    status, _, err = call(capsys, "evaluate", run.directory)
    assert status != 0 and str(gone) in err and "Traceback" not in err
    (tmp_path / "elsewhere").rename(gone)
    assert evaluate_target(run.directory, "exact", None)["exploitability_chips"] > 0


@pytest.mark.parametrize(("sums", "within"), [({}, 0.01), ({"averaging_power": 3}, 0.02)], ids=str)
def test_stretches_weigh_what_their_iterations_do(tmp_path, sums, within):
    """The weights of all stretches of a run; the iterations' own are in the checkpoints."""
    run = make(tmp_path / "run", LINEAR | {"period_nodes": 7_000} | sums)
    go(run, nodes=100_000)
    states = [find_checkpoint(run, n).state for n in checkpoints.list_checkpoints(run.path("checkpoints"))]
    before, weight = Totals(), 0.0
    assert len(states) == 5
    for state in states:
        now = Totals(state["nodes_touched"], state["iterations"])
        expected = state["iterations_weight"] - weight
        assert stretch_weight(run.algorithm.schedule, before, now) == pytest.approx(expected, rel=within)
        before, weight = now, state["iterations_weight"]
    for kind, until in (("initial", None), ("dcfr", 55)):
        schedule = Schedule(kind, 10, until, gamma=2.0)
        each = [schedule.effective_period(n) ** 2 if kind == "dcfr" else schedule.weight(n) for n in range(3, 77)]
        assert stretch_weight(schedule, Totals(3, 30), Totals(77, 770)) == pytest.approx(10 * sum(each))


LONG_NODES, SNAPSHOTS = 20_000_000, 100


@pytest.fixture(scope="module")
def long_run(tmp_path_factory):
    """Leduc with 100 snapshots; its figures with all sums."""
    solver = {"discount": "linear", "period_nodes": LONG_NODES // 100}
    path = tmp_path_factory.mktemp("long")
    every, evaluation = LONG_NODES // SNAPSHOTS, {"every_checkpoint": False, "at_end": False}
    run = make(path / "preflop", solver, every=every, evaluation=evaluation, form="hdf5")
    full = make(path / "all", solver, preflop=False, evaluation={"every_checkpoint": False})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # a hundred checkpoints, none of which need outlive a power cut
        go(run, nodes=LONG_NODES)
        return run, go(full, nodes=LONG_NODES).evaluation["exploitability_chips"]


def exploitability(run):
    return evaluate_exact(run.build_game(), average(run)).exploitability_chips


def test_leduc_comes_close_to_full_sums(long_run):
    """0.0252 chips where all sums give 0.0236."""
    run, full = long_run
    assert full < 0.03
    assert exploitability(run) < 1.15 * full


def test_own_reach_left_out_is_caught(long_run, monkeypatch):
    """By period weight alone 0.0447 chips, 1.9 times full sums; with reach on the own street only 0.0355, 1.5 times."""
    run, full = long_run
    monkeypatch.setattr(snapshot_mean, "parent_buckets", lambda game, block: None)
    own_street = exploitability(run)
    lines = snapshot_mean.own_lines
    monkeypatch.setattr(
        snapshot_mean,
        "own_lines",
        lambda game: [each._replace(before=np.full_like(each.before, -1)) for each in lines(game)],
    )
    period_only = exploitability(run)
    assert 1.3 * full < own_street < 0.9 * period_only


def test_period_weight_left_out_is_caught(long_run, monkeypatch):
    """All snapshots alike: 0.0278 chips, 1.18 times full sums; weight by nodes alone is the same."""
    run, full = long_run
    monkeypatch.setattr(averages, "stretch_weight", lambda schedule, before, now: 1.0)
    assert exploitability(run) > 1.15 * full


def test_the_last_snapshot_alone_is_caught(long_run, monkeypatch):
    """The current strategy is no equilibrium: 1.0 chips."""
    run, full = long_run
    last = stretch_weight

    def only_last(schedule, before, now):
        return last(schedule, before, now) if now.nodes >= LONG_NODES else 0.0

    monkeypatch.setattr(averages, "stretch_weight", only_last)
    assert exploitability(run) > 10 * full


def test_exports_and_queries_see_the_average(long_run, tmp_path):
    run, _ = long_run
    out = export_run(run, run.build_game(), tmp_path / "policy")
    strategy, policy = average(run), Policy.open(out)
    for one, other in zip(strategy.probability, policy.strategy().probability, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)
    tables = export_run(run, run.build_game(), tmp_path / "tables", ExportOptions(format="zarr"))
    assert tables.exists()
    first, later = (
        query(Profile(run.build_game(), strategy), line, "Kc", board)["actions"]
        for line, board in (("", None), ("cc/", "Qc"))
    )
    # A card comes in a sixth of the deals; where no sums are kept, chance has no part in the weight.
    total = find_checkpoint(run, None).state["iterations_weight"]
    assert 0.16 * total < first[0]["weight"] < 0.17 * total < later[0]["weight"] < total


# Settings and plans --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "tables", "solver", "expected"),
    [
        ("kuhn", 'strategy_sums = "preflop"\nsnapshot_nodes = 1e6', "", "needs a game of several streets"),
        (
            "leduc",
            'strategy_sums = "preflop"\nsnapshot_nodes = 1e6',
            '[solver]\nalgorithm = "cfr"',
            "it must be 'all' with solver.algorithm = 'cfr'",
        ),
    ],
)
def test_bad_settings_exit_2_with_one_sentence(tmp_path, capsys, game, tables, solver, expected):
    config = tmp_path / "run.toml"
    config.write_text(f'{solver}\n[game]\nname = "{game}"\n[tables]\n{tables}\n[run]\nnodes = 1000\n')
    status, _, err = call(capsys, "solve", config, "--run", tmp_path / "run")
    assert status == 2
    assert expected in " ".join(err.split())
    assert not (tmp_path / "run").exists()


def test_other_snapshots_are_another_run(tmp_path, capsys):
    run = make(tmp_path / "run", {}, every=20_000)
    go(run, nodes=30_000)
    config = tmp_path / "run.toml"
    config.write_text(
        '[game]\nname = "leduc"\n[tables]\nstrategy_sums = "preflop"\nsnapshot_nodes = 10_000\n[run]\nnodes = 40_000\n'
    )
    status, _, err = call(capsys, "solve", config, "--run", run.directory)
    assert status == 2 and "tables.snapshot_nodes" in err


def test_a_plan_counts_smaller_tables_and_the_snapshots(tmp_path):
    def planned(tables, **settings):
        document = {"game": {"name": "leduc"}, "tables": tables, "run": {"workers": 1, "nodes": 10**6, **settings}}
        return make_plan(config_from(document, "test"), ROOT)

    preflop = {"strategy_sums": "preflop", "snapshot_nodes": 3 * 10**5}
    full, first = planned({}), planned(preflop)
    assert first["bytes_per_street"][0] == full["bytes_per_street"][0]
    regrets = sum(size for name, size in full["bytes_per_table"].items() if name.startswith("regret/street1"))
    assert first["bytes_per_street"][1] == regrets < full["bytes_per_street"][1]
    assert (full["checkpoints_kept"], first["checkpoints_kept"]) == (0, 3)
    assert first["disk_bytes"] == (3 + 1 + 3) * first["checkpoint_bytes"]
    assert first["evaluation_bytes"] == full["evaluation_bytes"] + max(first["bytes_per_table"].values())
    by_iterations = planned(preflop, nodes=None, iterations=10**5)
    assert by_iterations["checkpoints_kept"] == round(10**5 * by_iterations["nodes_per_iteration"]) // (3 * 10**5) > 0
    assert planned(preflop, nodes=None, seconds=1.0)["checkpoints_kept"] == 100
    assert planned(preflop, nodes=None)["checkpoints_kept"] == 1
