"""Sampled pruning: kernels against a naive implementation, planted errors.

Shows:

* Kernels with sampled pruning equal a naive implementation to the last bit
  (test_kernels_equal_a_naive_one_to_the_last_bit)
"""

import numpy as np
import pytest
from harness import LEDUC, Trainer, same_tables
from planted import NO_FLOOR, SKIPS_IN_UNIFORM_PLAY, SKIPS_ON_THE_LAST_STREET, THRESHOLD_WITHOUT_WEIGHT, wrong_external

from mccfr.common.rng import uniform
from mccfr.config.game_tables import PokerGame
from mccfr.games.poker import poker
from mccfr.solvers.sampling.external.external_packed import NO_PRUNING, Pruning
from mccfr.tables.linear_discounting import Schedule
from mccfr.trees.compiled import DECISION, TERMINAL

TOY = poker(PokerGame(antes=(1, 1), stack=5))
GAMES = {"Leduc": LEDUC, "toy": TOY}
PRUNING = Pruning(1, 5.0, 6.25, 6.25)
WIDE = {"regret_dtype": "float64", "sum_dtype": "float64"}


def trainer(game, pruning=PRUNING, *, kernel=None, negative=False, **options):
    """A run of external sampling that prunes; `negative`: from random regrets, most of them below zero."""
    made = Trainer(game, **options)
    made.inner._own = lambda _: (pruning,)
    made.inner._kernel = kernel or made.inner._kernel
    if negative:
        generator = np.random.default_rng(5)
        for name in sorted(name for name in made.tables if name.startswith("regret/")):
            made.tables[name][:] = generator.uniform(-20, 2, made.tables[name].shape)
    return made


def lane_sum(values):
    """Sum in the order of eight lanes folded in half three times."""
    x = [*values, *[0.0] * (8 - len(values))]
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]))


def current_strategy(regrets):
    positive = np.maximum(regrets, 0)
    total = lane_sum(positive)
    return positive / total if total > 0 else np.full(len(regrets), 1 / len(regrets))


def drawn(weights, u):
    """Action drawn in proportion to weights."""
    return int(np.searchsorted(np.cumsum(weights), u * np.sum(weights), side="right"))


def naive_traversal(tree, tables, bucket, result, traverser, weight, rng, pruning):
    """One traversal over general records, in the order in which the kernels draw; returns nodes touched."""

    def row(node, base):
        block = tree.block[node]
        start = base[block] + bucket[block] * tables.width[block] + tree.slot[node]
        return slice(start, start + tree.count[node])

    pruned = uniform(rng) < 0.95
    last_street = max(tree.block) // 2
    queue, sigma, chosen, value = [0], {}, {}, {}
    for node in queue:
        if tree.kind[node] == TERMINAL:
            continue
        regrets = tables.regret[row(node, tables.regret_base)]
        sigma[node] = current_strategy(regrets)
        children = range(tree.first[node], tree.first[node] + tree.count[node])
        if tree.player[node] == traverser:
            may_skip = pruned and tree.block[node] // 2 != last_street and np.any(regrets > 0)
            for child, regret in zip(children, regrets, strict=True):
                if not (may_skip and regret < -pruning.below * weight and tree.kind[child] == DECISION):
                    queue.append(child)
        else:
            tables.strategy_sum[row(node, tables.sum_base)] += weight * sigma[node]
            chosen[node] = children[drawn(sigma[node], uniform(rng))]
            queue.append(chosen[node])
    for node in reversed(queue):
        if tree.kind[node] == TERMINAL:
            value[node] = (1 - 2 * traverser) * (tree.fixed[node] + tree.showdown[node] * result)
        elif node in chosen:
            value[node] = value[chosen[node]]
        else:
            first, cells = tree.first[node], row(node, tables.regret_base)
            seen = [a for a in range(tree.count[node]) if first + a in value]
            products = [sigma[node][a] * value[first + a] if a in seen else 0.0 for a in range(tree.count[node])]
            value[node] = lane_sum(products)
            for a in seen:
                regret = tables.regret[cells][a] + (value[first + a] - value[node]) * weight
                tables.regret[cells.start + a] = max(regret, -pruning.floor * weight)
    return sum(int(tree.touched[node]) for node in queue)


def naive_kernel(tree, tables, deals, limits, weight, rng, _, pruning):
    """Slow twin of `external_sampling_general` with pruning, for float64 tables."""
    nodes, deal = 0, limits[0]
    while deal < limits[1] and nodes < limits[2]:
        for traverser in range(2):
            deal_arguments = deals.bucket[deal], deals.result[deal], traverser
            nodes += naive_traversal(tree, tables, *deal_arguments, weight, rng, pruning)
        deal += 1
    return deal - limits[0], nodes


def naive_run(game, iterations=600, **options):
    return trainer(game, kernel=naive_kernel, general=True, negative=True, **WIDE, **options).train(iterations)


@pytest.mark.parametrize("kind", ["none", "linear"])
@pytest.mark.parametrize("name", GAMES)
def test_kernels_equal_a_naive_one_to_the_last_bit(name, kind):
    game, options = GAMES[name], {"schedule": Schedule(kind, 4_000), "seed": 2}
    naive = naive_run(game, **options)
    for general in (False, True):
        fast = trainer(game, general=general, negative=True, **WIDE, **options).train(600)
        assert same_tables(fast, naive)
    unpruned = trainer(game, NO_PRUNING, negative=True, **WIDE, **options).train(600)
    assert naive.nodes < 0.85 * unpruned.nodes, "hardly anything was pruned"
    floor = -6.25 * naive.schedule.weight(naive.nodes)
    assert any(np.any(table == floor) for table in naive.tables.values()), "no regret reached the floor"


@pytest.mark.parametrize("general", [False, True], ids=["packed", "general"])
def test_pruning_that_is_not_active_changes_nothing(general):
    off = trainer(LEDUC, NO_PRUNING, general=general, **WIDE).train(3_000)
    without = Trainer(LEDUC, **WIDE).train(3_000)  # packed and general are equal: test_kernels_equal.py
    assert same_tables(off, without)
    assert off.updated == without.updated


@pytest.mark.parametrize("error", [SKIPS_ON_THE_LAST_STREET, NO_FLOOR, THRESHOLD_WITHOUT_WEIGHT, SKIPS_IN_UNIFORM_PLAY])
def test_planted_errors_are_caught(error):
    """Find each error within 600 iterations of Leduc by comparison with the slow twin."""
    options = {"schedule": Schedule("linear", 4_000), "seed": 2, "negative": True, **WIDE}
    production = trainer(LEDUC, **options).train(600)
    right, wrong = (trainer(LEDUC, kernels=wrong_external(), planted=p, **options).train(600) for p in (0, error))
    assert same_tables(right, production)
    assert not same_tables(wrong, production)
