"""Random strategies, and their exact head-to-head values."""

from dataclasses import replace

import numpy as np

from mccfr.evaluation.exact import evaluate_exact
from mccfr.evaluation.head_to_head import head_to_head
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.public.best_response import FOLLOW, RESPOND, values
from mccfr.tables.strategy import Strategy, average_strategy
from mccfr.tables.table_layout import TableSet, table_name
from mccfr.trees.compiled import Locks


def random_strategy(game, seed=0):
    """Return a random strategy far from uniform; a third of the actions have probability 0."""
    rng, arrays, tables = np.random.default_rng(seed), game.tree.arrays, []
    for block, (buckets, slots) in enumerate(zip(game.buckets, game.tree.row_slots, strict=True)):
        table = rng.random((int(buckets), int(slots))) * (rng.random((int(buckets), int(slots))) < 2 / 3)
        for node in game.tree.decisions[arrays.block[game.tree.decisions] == block].tolist():
            part = slice(int(arrays.slot[node]), int(arrays.slot[node] + arrays.count[node]))
            table[:, part] += table[:, part].sum(1, keepdims=True) == 0
            table[:, part] /= table[:, part].sum(1, keepdims=True)
        tables.append(table)
    weights = [np.ones(shape) for shape in zip(game.buckets.tolist(), game.tree.row_count.tolist(), strict=True)]
    return Strategy(tuple(tables), tuple(weights))


def partly_reached_strategy(game, seed=0):
    """Return the average of random sums of different sizes, a third of them 0, with unreached rows."""
    rng = np.random.default_rng(seed)
    tables = {}
    for block in np.flatnonzero(game.tree.row_count):
        shape = int(game.buckets[block]), int(game.tree.row_slots[block])
        sums = rng.random(shape) ** 6 * 1e6 * (rng.random(shape) < 0.67)
        sums[rng.random(shape[0]) < 0.2] = 0
        tables[table_name("strategy_sum", block)] = sums
    return average_strategy(game, TableSet(tables))


def some_locks(game, *, by_hand=False, bars=True, seed=9):
    """Return the game with random locks: rows are free, locked, or without their last action."""
    generator, shares = np.random.default_rng(seed), {}
    for node in game.tree.decisions[::2].tolist():
        actions, block = int(game.tree.arrays.count[node]), int(game.tree.arrays.block[node])
        size = game.cards.reach.shape[1] if by_hand else int(game.buckets[block])
        table = np.full((actions, size), -1.0)
        whole, barred, _ = np.array_split(generator.permutation(size), 3)
        table[:, whole] = generator.dirichlet(np.ones(actions), len(whole)).T
        table[-1, barred[: len(barred) * bars]] = 0
        shares[node] = table
    return replace(game, tree=replace(game.tree, locks=Locks(shares, by_hand)))


def play(game, a, b, **options):
    """Evaluate two strategies head-to-head in one game."""
    return head_to_head(Profile(game, a), Profile(game, b), **options)


def combine(first, second):
    """Return the strategy with player 0's part of `first` and player 1's part of `second`."""
    tables = tuple((first, second)[block % 2].probability[block] for block in range(len(first.probability)))
    return Strategy(tables, first.weight)


def exact_chips(games, a, b):
    """Return the chips that `a` wins from `b` over both seats, by exact evaluation."""
    pairs = zip(games, ((a, b), (b, a)), strict=True)
    first, second = (evaluate_exact(game, combine(*pair)).value_chips for game, pair in pairs)
    return (first - second) / 2


def tabulate(game, choose):
    """Return the strategy of a function (node, bucket) -> probabilities of the node's actions."""
    blocks = range(len(game.tree.row_slots))
    probability = [np.zeros((int(game.buckets[b]), int(game.tree.row_slots[b]))) for b in blocks]
    arrays = game.tree.arrays
    for node in game.tree.decisions:
        block, slot, count = int(arrays.block[node]), int(arrays.slot[node]), int(arrays.count[node])
        for bucket in range(int(game.buckets[block])):
            probability[block][bucket, slot : slot + count] = choose(int(node), bucket)
    return Strategy(
        tuple(probability), tuple(np.ones((int(game.buckets[b]), int(game.tree.row_count[b]))) for b in blocks)
    )


def expected_value(game, strategy, public=None):
    """Return player 0's mean chips."""
    return float(values(game, strategy, (0,), public)[0, FOLLOW])


def best_response_value(game, strategy, player, public=None):
    """Return a player's mean chips with a best response to the opponent's part of a strategy."""
    return float(values(game, strategy, (player,), public)[0, RESPOND])


def lock_distance(game, strategy):
    """Return the largest difference of a strategy from the game's locks, over all possible hands."""
    found, arrays, cards = 0.0, game.tree.arrays, game.cards
    for node, shares in game.tree.locks.shares.items():
        block, slot = int(arrays.block[node]), int(arrays.slot[node])
        bucket = cards.bucket[block // 2][block % 2]
        _, hands = np.nonzero((bucket >= 0) & (cards.reach[block % 2] > 0))
        rows = bucket[(bucket >= 0) & (cards.reach[block % 2] > 0)]
        given = shares[:, hands if game.tree.locks.by_hand else rows]
        played = strategy.probability[block][rows, slot : slot + len(shares)].T
        found = max(found, np.abs(played - given)[given >= 0].max(initial=0))
    return found
