"""Kernels over packed and general trees: equal bits, and node counts by definition.

Shows:

* Packed and general kernels agree to the last bit (test_kernels_equal, test_packed_rows)
"""

import numpy as np
import pytest
from harness import KUHN, LEDUC, Trainer, rows, same_tables

import mccfr
from mccfr.solvers.sampling.outcome.paths import DEALS_TOGETHER
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.table_layout import table_name
from mccfr.trees.compiled import DECISION

NO_LIMIT_TOY = mccfr.game("poker", antes=(1, 1), stack=5)
ONE_ROUND_TOY = mccfr.game("poker", hole_cards=2, board_cards=(0,), blinds=(2, 1), stack=8, first_player=(2,))
GAMES = {"Kuhn": KUHN, "Leduc": LEDUC, "toy": NO_LIMIT_TOY}
SCHEDULES = {kind: Schedule(kind, 5_000) for kind in ("none", "linear", "initial", "dcfr")}


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("algorithm", ["external", "outcome"])
def test_general_equals_packed_to_the_last_bit(algorithm, name, kind):
    options = {"schedule": SCHEDULES[kind], "seed": 1, "deals": DEALS_TOGETHER}
    packed, general = (
        Trainer(GAMES[name], algorithm, general=general, **options).train(nodes=100_000) for general in (False, True)
    )
    assert packed.nodes >= 100_000
    assert same_tables(packed, general)
    assert packed.updated == general.updated
    for table in packed.tables:
        assert packed.tables[table].any(), table


@pytest.mark.parametrize("general", [False, True], ids=["packed", "general"])
def test_deals_of_a_group_do_not_see_each_others_updates(general):
    """Compare a group's updates with those of single deals, each from the tables before the group."""
    trainer = Trainer(LEDUC, "outcome", general=general).train(10 * DEALS_TOGETHER)
    before = {name: table.copy() for name, table in trainer.tables.items()}
    added = {name: np.zeros_like(table) for name, table in before.items()}
    alone = trainer.resume()
    alone.inner._together = 1
    for iteration in range(alone.iterations + 1, alone.iterations + DEALS_TOGETHER + 1):
        alone.train(iteration)
        for name, table in alone.tables.items():
            added[name] += table - before[name]
            table[:] = before[name]
    trainer.train(trainer.iterations + DEALS_TOGETHER)
    assert trainer.nodes == alone.nodes
    for name, table in trainer.tables.items():
        scale = np.abs(table).max()
        np.testing.assert_allclose(table, before[name] + added[name], rtol=0, atol=1e-5 * scale, err_msg=name)


@pytest.mark.parametrize("algorithm", ["external", "outcome"])
def test_seeds_and_node_limits(algorithm):
    one, other = (Trainer(KUHN, algorithm, seed=seed).train(1_024) for seed in (1, 2))
    assert not same_tables(one, other)
    limited = Trainer(KUHN, algorithm, seed=1).train(nodes=one.nodes - 1)  # the group that reaches it is the last
    assert (limited.iterations, limited.nodes) == (1_024, one.nodes)
    assert same_tables(limited, one)


def count_nodes(game, pure, bucket, traverser, walk_all, node=0, street=0):
    """Return [nodes touched, visited decisions] of a traversal by definition if all players play `pure`.

    Each visited decision or terminal counts one. Chance nodes also count: one for each change of street, and one for
    an all-in called before the last street.
    """
    arrays, last = game.tree.arrays, game.tree.streets - 1
    if arrays.kind[node] != DECISION:
        return np.array([1 + (arrays.showdown[node] != 0 and street < last), 0])
    block, player = int(arrays.block[node]), int(arrays.player[node])
    entered = np.array([1 + (block // 2 != street), 1])
    children = list(game.tree.children(node))
    if player != traverser or not walk_all:
        children = [children[pure[block][bucket[block], int(arrays.row[node])]]]
    return entered + sum(count_nodes(game, pure, bucket, traverser, walk_all, child, block // 2) for child in children)


@pytest.mark.parametrize("general", [False, True], ids=["packed", "general"])
@pytest.mark.parametrize("algorithm", ["external", "outcome"])
@pytest.mark.parametrize("game", [KUHN, LEDUC, NO_LIMIT_TOY, ONE_ROUND_TOY], ids=["Kuhn", "Leduc", "toy", "one round"])
def test_nodes_touched_follow_the_definition(game, algorithm, general):
    """With pure strategies and without exploration a traversal is determined, so nodes can be counted."""
    rng = np.random.default_rng(3)
    trainer = Trainer(game, algorithm, general=general, epsilon=1e-15, deals=1)
    seen = set()
    for iteration in range(1, 51):
        pure = [np.zeros((int(b), int(r)), int) for b, r in zip(game.buckets, game.tree.row_count, strict=True)]
        for block, slots, row in rows(game):
            table = trainer.tables[table_name("regret", block)]
            pure[block][:, row] = rng.integers(slots.stop - slots.start, size=len(table))
            table[:, slots] = np.where(np.arange(slots.stop - slots.start) == pure[block][:, row, None], 1e12, -1e12)
        before = trainer.nodes, trainer.updated
        trainer.train(iteration)
        bucket = trainer.inner._deals.bucket[iteration - 1]
        nodes, rows_updated = sum(count_nodes(game, pure, bucket, p, algorithm == "external") for p in range(2))
        assert trainer.nodes - before[0] == nodes
        assert trainer.updated - before[1] == rows_updated
        seen.add(int(nodes))
    assert len(seen) >= 2
