"""Sampled pruning: kernels against a naive implementation, planted errors, convergence.

Shows:

* Kernels with sampled pruning equal a naive implementation to the last bit
  (test_kernels_equal_a_naive_one_to_the_last_bit)
* Thresholds of pruning scale with the big blind (test_thresholds_of_pruning_are_in_big_blinds)
"""

import numpy as np
import pytest
from harness import LEDUC, LEDUC_EXTERNAL_SHORT, Trainer, same_tables
from places import ROOT
from planted import NO_FLOOR, SKIPS_IN_UNIFORM_PLAY, SKIPS_ON_THE_LAST_STREET, THRESHOLD_WITHOUT_WEIGHT, wrong_external

import mccfr
from mccfr.common.rng import uniform
from mccfr.config.toml_files import config_from
from mccfr.solvers.game_from_config import configured_game
from mccfr.solvers.registry import algorithm_of
from mccfr.solvers.sampling.external.external_packed import NO_PRUNING, Pruning
from mccfr.tables.linear_discounting import Schedule
from mccfr.tables.table_layout import private_tables
from mccfr.trees.compiled import DECISION, TERMINAL

TOY = mccfr.game("poker", antes=(1, 1), stack=5)
GAMES = {"Leduc": LEDUC, "toy": TOY}
PRUNING = Pruning(1, 5.0, 6.25, 6.25)
WIDE = {"regret_dtype": "float64", "sum_dtype": "float64"}


def trainer(game, pruning=PRUNING, *, kernel=None, negative=False, **options):
    """Return a run of external sampling with pruning.

    negative  True: start from random regrets, most of them below 0
    """
    run = Trainer(game, **options)
    run.inner._own = lambda _: (pruning,)
    run.inner._kernel = kernel or run.inner._kernel
    if negative:
        generator = np.random.default_rng(5)
        for name in sorted(name for name in run.tables if name.startswith("regret/")):
            run.tables[name][:] = generator.uniform(-20, 2, run.tables[name].shape)
    return run


def lane_sum(values):
    """Sum in the order of the kernels: eight lanes, folded in half three times."""
    x = [*values, *[0.0] * (8 - len(values))]
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]))


def current_strategy(regrets):
    positive = np.maximum(regrets, 0)
    total = lane_sum(positive)
    return positive / total if total > 0 else np.full(len(regrets), 1 / len(regrets))


def draw_action(weights, u):
    """Return the action that the random number u draws in proportion to weights."""
    return int(np.searchsorted(np.cumsum(weights), u * np.sum(weights), side="right"))


def naive_traversal(tree, tables, bucket, result, traverser, weight, rng, pruning):
    """Run one traversal over general records, with draws in the kernels' order; return nodes touched."""

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
            chosen[node] = children[draw_action(sigma[node], uniform(rng))]
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
    """Naive form of `external_sampling_general` with pruning, for float64 tables."""
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
def test_inactive_pruning_changes_no_table(general):
    off = trainer(LEDUC, NO_PRUNING, general=general, **WIDE).train(3_000)
    without = Trainer(LEDUC, **WIDE).train(3_000)  # packed and general are equal: test_kernels_equal.py
    assert same_tables(off, without)
    assert off.updated == without.updated


@pytest.mark.parametrize("error", [SKIPS_ON_THE_LAST_STREET, NO_FLOOR, THRESHOLD_WITHOUT_WEIGHT, SKIPS_IN_UNIFORM_PLAY])
def test_planted_errors_are_caught(error):
    """Find each error within 600 iterations of Leduc by comparison with production."""
    options = {"schedule": Schedule("linear", 4_000), "seed": 2, "negative": True, **WIDE}
    production = trainer(LEDUC, **options).train(600)
    right, wrong = (trainer(LEDUC, kernels=wrong_external(), planted=p, **options).train(600) for p in (0, error))
    assert same_tables(right, production)
    assert not same_tables(wrong, production)


@pytest.mark.parametrize(
    ("game", "iterations", "below_chips", "share", "bound_chips"),
    [(LEDUC, 2_000_000, 1_000.0, 0.95, LEDUC_EXTERNAL_SHORT.chips), (TOY, 500_000, 300.0, 0.85, 0.015 * TOY.pot_chips)],
    ids=["Leduc", "toy"],
)
def test_convergence_with_pruning(game, iterations, below_chips, share, bound_chips):
    """Prune from two million nodes on.

    Measured over three seeds: Leduc 0.90 of the nodes and 0.017 to 0.020 chips; the toy 0.76 of the nodes and 0.016 to
    0.017 chips, without pruning 0.014 to 0.015 chips.
    """
    schedule = Schedule("linear", 1_000_000)
    full = Trainer(game, schedule=schedule).train(iterations // 10)
    pruned = trainer(game, NO_PRUNING, schedule=schedule).train(nodes=2_000_000)
    pruned.inner._own = lambda _: (Pruning(1, below_chips, 1.1 * below_chips, 1.1 * below_chips),)
    pruned.train(iterations)
    assert pruned.nodes < share * 10 * full.nodes
    assert pruned.exploitability_chips < bound_chips


def pruned_turn(chips):
    """Train a turn endgame with pruning and big blinds of `chips`; return nodes and regrets in big blinds."""
    game = {"name": "holdem-subgame", "board": "QsJh2h7c", "ranges": {"oop": "AA,QJs,98s", "ip": "KK,T9s,77"}}
    game |= {"pot": 8 * chips, "effective_stack": 24 * chips, "big_blind": chips, "menu": {"first": ["1p"]}}
    pruning = {"negative_regret_pruning": True, "prune_after_nodes": 0, "prune_below_bb": 8.0, "floor_bb": 12.0}
    config = config_from({"game": game, "solver": pruning}, "test")
    spot, algorithm = configured_game(config, ROOT), algorithm_of(config)
    tables = private_tables(algorithm.layout(spot))
    solver = algorithm.solver(spot, tables)
    for _ in range(4):
        solver.run(solver.state.nodes, 2**62, 2**62)
    assert -algorithm.first_floor(spot, 0) == 12 * chips
    return solver.state.nodes, {name: tables[name] / chips for name in tables if name.startswith("regret/")}


def test_thresholds_of_pruning_are_in_big_blinds():
    """The same game with chips a 64th as large visits the same nodes and has the same bits."""
    (nodes, small), (again, large) = pruned_turn(1.0), pruned_turn(64.0)
    assert nodes == again and min(table.min() for table in small.values()) == -12
    for name, table in small.items():
        np.testing.assert_array_equal(table, large[name])
