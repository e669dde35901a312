"""Warm starts: tables initialised from a strategy, also with other buckets.

Shows:

* On the same buckets, a warm start begins with exactly the given strategy
  (test_current_and_average_strategy_begin_with_the_given_strategy)
* On other buckets, strategy sums are split in proportion to shared hands
  (test_strategy_sums_are_split_in_proportion_to_shared_hands; planted: test_planted_errors_in_warm_starts_are_caught)
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from harness import MERGED_LEDUC, Trainer
from mutants import mutant
from places import RUNS
from strategies import partly_reached_strategy

from mccfr.config.game_tables import Menu, PokerGame
from mccfr.games.registry import build_game
from mccfr.solvers import warm_start
from mccfr.tables.strategy import average_strategy, row_starts
from mccfr.tables.table_layout import TableSet, make_layout, private_tables, table_name

ITERATIONS = 1_000
DOUBLE = {"regret_dtype": "float64", "sum_dtype": "float64"}


@cache
def deck():
    """Return a game with two streets, six cards and a bet menu, without buckets."""
    return build_game(
        PokerGame(
            ranks=3, suits=2, board_cards=[0, 1], antes=[1, 1], stack=9, menu=Menu(first=("1p",), later=("allin",))
        ),
        RUNS,
    )


def by_rank(game):
    """Return the game with one bucket for each rank of the hand, for all boards."""
    cards = game.cards
    bucket = [np.where(found >= 0, cards.hand_cards[:, 0] // 2, -1).astype(np.int32) for found in cards.bucket]
    return replace(game, cards=replace(cards, bucket=bucket, buckets=np.full((cards.streets, 2), 3)))


def warm_tables(game, source, strategy, iterations=ITERATIONS, code=warm_start):
    """Return new tables of `game` that begin with a strategy of `source`."""
    tables = private_tables(make_layout(game, regret_dtype="float64", sum_dtype="float64"))
    code._fill(game, tables, source, strategy, iterations)
    return tables


def current(game, tables):
    """Return the strategy that regret matching gives for the tables."""
    names = {block: table_name("strategy_sum", block) for block in range(2 * game.tree.streets)}
    cells = {
        names[block]: np.maximum(tables.rows("regret", block)[:, : row_starts(game, block)[-1]], 0.0) for block in names
    }
    return average_strategy(game, TableSet(cells))


def difference(found, strategy):
    """Return the largest difference of two strategies' probabilities."""
    pairs = zip(found.probability, strategy.probability, strict=True)
    return max(float(np.abs(mine - theirs).max()) for mine, theirs in pairs)


@cache
def known():
    """Return Leduc trained for 10,000 iterations."""
    return Trainer(MERGED_LEDUC, **DOUBLE).train(10_000)


def test_current_and_average_strategy_begin_with_the_given_strategy():
    tables = warm_tables(MERGED_LEDUC, MERGED_LEDUC, known().strategy)
    assert difference(current(MERGED_LEDUC, tables), known().strategy) < 1e-12
    assert difference(average_strategy(MERGED_LEDUC, tables), known().strategy) < 1e-12


@pytest.mark.parametrize(
    "edit",
    [
        ("row * (size / np.where(total > 0, total, 1))[:, None]", "size[:, None] + 0 * row"),
        ("scale[block % 2] * _weighted(source, strategy, block)", "_weighted(source, strategy, 2 * (block // 2))"),
    ],
    ids=["regrets without the strategy", "one player's rows for both"],
)
def test_planted_errors_in_warm_starts_are_caught(edit):
    """With either error some probability of the first strategy differs by 0.9."""
    tables = warm_tables(MERGED_LEDUC, MERGED_LEDUC, known().strategy, code=mutant(warm_start, edit))
    assert difference(current(MERGED_LEDUC, tables), known().strategy) > 0.5


def naive_sums(game, source, strategy, iterations):
    """Return {(node, bucket): sums}, computed hand by hand; game and source have the same tree."""
    arrays, found = game.tree.arrays, {}
    scale = [iterations / max(strategy.weight[b].sum(axis=0).max() for b in (player, player + 2)) for player in (0, 1)]
    for node in game.tree.decisions.tolist():
        block, slot = int(arrays.block[node]), int(arrays.slot[node])
        street, player = divmod(block, 2)
        mine, theirs = game.cards.bucket[street][player], source.cards.bucket[street][player]
        held = (mine >= 0) & (game.cards.reach[player] > 0)
        for board, hand in np.argwhere(held).tolist():
            own, other = int(mine[board, hand]), int(theirs[board, hand])
            alike = int((held & (theirs == other)).sum())
            row = strategy.probability[block][other, slot : slot + int(arrays.count[node])]
            sums = scale[player] * strategy.weight[block][other, int(arrays.row[node])] * row / alike
            found[node, own] = found.get((node, own), 0) + sums
    return found


@pytest.mark.parametrize("finer", [True, False])
def test_strategy_sums_are_split_in_proportion_to_shared_hands(finer):
    """Convert coarse buckets to hands and back, and compare with loops; unreached rows are 0."""
    game, source = (deck(), by_rank(deck())) if finer else (by_rank(deck()), deck())
    strategy = partly_reached_strategy(source, 1)
    tables, arrays = warm_tables(game, source, strategy), game.tree.arrays
    for (node, own), sums in naive_sums(game, source, strategy, ITERATIONS).items():
        block, slot = int(arrays.block[node]), int(arrays.slot[node])
        cells = tables.rows("strategy_sum", block)[own, slot : slot + len(sums)]
        np.testing.assert_allclose(cells, source.cards.most_hands * sums, rtol=1e-12)
        regrets = tables.rows("regret", block)[own, slot : slot + len(sums)]
        assert (regrets >= 0).all()
        if sums.sum() > 0 and regrets.sum() > 0:
            np.testing.assert_allclose(regrets / regrets.sum(), sums / sums.sum(), rtol=1e-12)
