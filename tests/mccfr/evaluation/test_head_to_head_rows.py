"""Head-to-head of strategies read row by row from disk: same result to the last bit, little memory.

Shows:

* Head-to-head from rows on disk equals that of dense strategies, in constant memory (test_head_to_head_rows)
"""

import mmap
import os
import tracemalloc

import numpy as np
import pytest
from refusals import refused
from sessions import OUTCOME, make, trained
from small_games import DeckOfClasses, deck_game, game_of
from strategies import play, random_strategy

from mccfr.evaluation.head_to_head import head_to_head
from mccfr.games.betting import BettingRules
from mccfr.games.betting_tree import build_tree
from mccfr.games.game import Game
from mccfr.policy.quantise import quantise
from mccfr.policy.strategy_profile import Profile
from mccfr.runs.results import average_strategies
from mccfr.runs.results.average_strategies import checkpoint_average
from mccfr.runs.results.checkpoints import find_checkpoint
from mccfr.runs.results.targets import Reference, open_target
from mccfr.tables import row_tables as module
from mccfr.tables.row_tables import full_rows
from mccfr.tables.strategy import BlockRows, Strategy, average_block, row_starts, uniform_strategy
from mccfr.tables.table_layout import TableSet, table_name
from storage import unnamed_files
from storage.unnamed_files import spilled

FORMS = ("uint8", "uint16", "float32 sums", "float64 sums", "float32 sums, slot first", "float32 sums, padded")


def stored(game, form, seed):
    """Return a strategy with rows in a form, and as dense arrays; a fifth of the buckets is unreached."""
    rng, rows, dense = np.random.default_rng(seed), [], []
    for block, (buckets, slots) in enumerate(zip(game.buckets.tolist(), game.tree.row_slots.tolist(), strict=True)):
        sums = rng.random((buckets, slots)) ** 4 * (rng.random((buckets, slots)) < 0.7)
        sums[rng.random(buckets) < 0.2] = 0
        if form.startswith("float"):
            sums = np.asarray(sums, form.split()[0])
        probability, weight = average_block(game, block, TableSet({table_name("strategy_sum", block): sums}))
        if form.startswith("uint"):
            starts, weight = row_starts(game, block), weight.astype(np.float32)
            sums = quantise(probability, starts, form)
            rows.append(BlockRows(sums, weight))
            probability = rows[-1].probabilities(starts)
        elif form.endswith("slot first"):
            rows.append(BlockRows(np.ascontiguousarray(sums.T).T, sums=True))
        elif form.endswith("padded"):
            rows.append(BlockRows(np.pad(sums, ((0, 0), (0, 5)), constant_values=7), sums=True))
        else:
            rows.append(BlockRows(sums, sums=True))
        dense.append((probability, weight))
    whole = Strategy(tuple(p for p, _ in dense), tuple(w for _, w in dense))
    return Strategy.stored(game, rows), whole


def assert_rows_alike(game, one, other):
    """Assert that the rows of random buckets are equal to the last bit at every decision."""
    arrays, dice = game.tree.arrays, np.random.default_rng(1)
    for node in game.tree.decisions.tolist():
        block, row, slot, count = (int(field[node]) for field in (arrays.block, arrays.row, arrays.slot, arrays.count))
        buckets = dice.integers(0, int(game.buckets[block]), 9)
        reads = [strategy.blocks[block].rows(row, slice(slot, slot + count), buckets) for strategy in (one, other)]
        assert reads[0][0].shape == (9, count) and np.array_equal(reads[0][0], reads[1][0])
        assert np.array_equal(reads[0][1], reads[1][1])


@pytest.mark.parametrize("form", FORMS[1:])
def test_rows_in_any_storage_form_equal_dense_rows(form):
    for game in (game_of("leduc, suits merged"), game_of("turn")):
        assert_rows_alike(game, *stored(game, form, 1))


@pytest.mark.parametrize("expanded", [True, False], ids=["expanded", "in place"])
@pytest.mark.parametrize("form", FORMS)
def test_head_to_head_from_any_storage_form_equals_dense_tables(monkeypatch, form, expanded):
    """Compare to the last bit with own and shared rows, listed boards and the full deck."""
    if not expanded:
        monkeypatch.setattr(module, "LARGEST_EXPANDED_BYTES", -1)
    for game in (game_of("leduc"), game_of("leduc, suits merged"), game_of("turn"), deck_game()):
        (one, dense_one), (two, dense_two) = (stored(game, form, seed) for seed in (1, 2))
        found = play(game, one, two, boards=5)
        assert found == play(game, dense_one, dense_two, boards=5) and found.mean_chips != 0
        assert play(game, two, dense_one, boards=5).mean_chips == -found.mean_chips


@pytest.mark.parametrize("form", FORMS)
def test_full_tables_do_not_depend_on_pieces_and_threads(monkeypatch, form):
    game = game_of("turn")
    source, dense = stored(game, form, 3)
    monkeypatch.setattr(module, "_SLOTS", 3)
    for block in range(2 * game.tree.streets):
        starts, expected = row_starts(game, block), dense.probability[block].T
        for threads in (1, 3):
            assert np.array_equal(full_rows(source.blocks[block], starts, threads), expected)
        slot_first = BlockRows(np.ascontiguousarray(expected).T)
        assert np.shares_memory(full_rows(slot_first, starts), slot_first.cells)


def test_tables_of_wrong_type_or_width_are_refused():
    game = game_of("leduc")
    whole = random_strategy(game, 1)
    for wrong in (
        [BlockRows(table.astype(np.float32)) for table in whole.probability],
        [BlockRows(table.astype(np.uint16)) for table in whole.probability],
    ):
        refused("cannot be read row by row", play, game, Strategy.stored(game, wrong), whole)
    wider = [BlockRows(np.pad(table, ((0, 0), (0, 1)))) for table in whole.probability]
    refused("use a strategy with the game that it was trained for", play, game, Strategy.stored(game, wider), whole)


# Runs -----------------------------------------------------------------------------------------------------------------

SOLVERS = {
    "bucket first": {**OUTCOME, "period_nodes": 5_000},
    "slot first": {"algorithm": "public-chance-sampling"},
    "full width": {"algorithm": "cfr", "variant": "dcfr"},
}


@pytest.mark.parametrize("in_file", [False, True], ids=["in memory", "in a file"])
@pytest.mark.parametrize("name", SOLVERS)
def test_evaluation_from_strategy_sums_equals_the_dense_average(tmp_path, monkeypatch, name, in_file):
    run = trained(make(tmp_path / "run", SOLVERS[name], game={"name": "leduc"}), iterations=300)
    if in_file:
        monkeypatch.setattr(average_strategies, "IN_MEMORY_BYTES", 0)
    target, game = open_target(Reference(run.directory)), run.build_game()
    dense = checkpoint_average(game, run.config, find_checkpoint(run, None))
    for block, rows in enumerate(target.strategy.blocks):
        cells = rows.cells
        assert rows.sums and in_file == isinstance(_owner(cells), mmap.mmap)
        assert np.array_equal(target.strategy.probability[block], dense.probability[block])
        assert np.array_equal(target.strategy.weight[block], dense.weight[block])
    assert_rows_alike(game, target.strategy, dense)
    uniform = Profile(game, uniform_strategy(game))
    assert head_to_head(Profile(target.game, target.strategy), uniform) == head_to_head(Profile(game, dense), uniform)


def _owner(array):
    """Return the object that owns an array's memory."""
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return array


def test_arrays_in_unnamed_files_leave_no_name_and_report_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(unnamed_files.tempfile, "tempdir", str(tmp_path))
    array = spilled((3, 5), np.float32)
    assert array.shape == (3, 5) and array.dtype == np.float32 and not array.any() and not list(tmp_path.iterdir())
    array[2, 4] = 7
    assert array.sum() == 7 and spilled((0, 4), np.uint8).shape == (0, 4)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    refused(f"{tmp_path} has no room for 60 bytes: set TMPDIR", spilled, (3, 5), np.float32, error=OSError)


# Memory ---------------------------------------------------------------------------------------------------------------


def large_game(sizes, buckets):
    """Return a game of two streets with many bet sizes and buckets, and more rows than one walk takes."""

    def targets(state):
        steps = [state.to_call + 10 * (1 + k) for k in range(sizes)]
        return steps if state.bets < 2 else []

    rules = BettingRules((50, 100), (1, 0), targets, board_cards=(3, 2))
    deck = DeckOfClasses((3, 2), np.full((2, 2), buckets), lambda: [])
    return Game("two streets", build_tree(rules), deck)


def spilled_strategy(game, seed):
    """Return a strategy with its probabilities in files, as in a policy."""
    rng, rows = np.random.default_rng(seed), []
    for block in range(2 * game.tree.streets):
        starts, buckets = row_starts(game, block), int(game.buckets[block])
        shares, weight = (spilled((buckets, n), d) for n, d in ((starts[-1], np.uint16), (len(starts) - 1, np.float32)))
        for bucket in range(buckets):  # probability 1 for one action of each row
            chosen = starts[:-1] + rng.integers(0, np.diff(starts))
            shares[bucket, chosen], weight[bucket] = 65535, 1
        rows.append(BlockRows(shares, weight))
    return Strategy((), (), rows)


def test_memory_does_not_grow_with_the_tables(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_EXPANDED_BYTES", 1 << 16)
    peaks = []
    for buckets in (40, 400):
        game = large_game(6, buckets)
        sides = [Profile(game, spilled_strategy(game, seed)) for seed in (1, 2)]
        head_to_head(*sides, boards=2)  # compiles, and fills caches
        tracemalloc.start()
        head_to_head(*sides, boards=2)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        dense = 8 * int((game.tree.row_slots * game.buckets).sum())
    assert dense > 40 << 20  # size of the larger strategy in dense tables
    assert peaks[1] < 1.2 * peaks[0] + (4 << 20) and peaks[1] < dense / 2
