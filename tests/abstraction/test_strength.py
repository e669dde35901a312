"""Hand strengths over run-outs, histograms and OCHS features.

Shows:

* Hand strengths are sums over all run-outs of the board (test_sums_over_runouts_equal_the_definition)
"""

import csv
from itertools import combinations
from weakref import WeakSet

import numpy as np
import pytest
from places import DATA
from refusals import refused

from abstraction.boards import canonical_boards, hole_permutations, locate_board, preflop_classes, used_slots
from abstraction.cards import combo_index, combo_table, parse_cards
from abstraction.hand_evaluator import board_strengths
from abstraction.histograms import equity_histograms, preflop_histograms
from abstraction.kernels.parallel import run_ranges
from abstraction.ochs import ochs_features, opponent_clusters
from abstraction.strength import BLOCKED, hand_strength, preflop_strengths, river_strengths, runout_sums

REFERENCE = DATA / "hand_strength.csv"


@pytest.fixture(scope="module")
def reference():
    """Return rows of an independent program: street, hand, board, run-outs, two sums, two means."""
    lines = [line for line in REFERENCE.read_text().splitlines() if not line.startswith("#")]
    return list(csv.reader(lines[1:]))


def naive_strengths(board):
    """Return 2·wins + ties of every hand on a river board, hand against hand."""
    values, table = board_strengths(board), combo_table()
    out = np.full(1326, BLOCKED)
    for combo in np.flatnonzero(values > 0):
        free = (values > 0) & ~np.isin(table, table[combo]).any(axis=1)
        assert free.sum() == 990
        out[combo] = 2 * (values[free] < values[combo]).sum() + (values[free] == values[combo]).sum()
    return out


def slot(hand, board):
    index, permutation = locate_board(parse_cards(board))
    return index, hole_permutations()[permutation, combo_index(*parse_cards(hand))]


def test_river_strengths_equal_hand_against_hand(river):
    special = ["2c2d2h2s3c", "TcJcQcKcAc", "9h8h7h6h2s", "2c3d4h5sAc", "KcKdKhQsQc"]
    indices = [locate_board(parse_cards(board))[0] for board in special]
    for index in [*indices, *np.random.default_rng(1).integers(134459, size=15).tolist()]:
        assert np.array_equal(river[index], naive_strengths(canonical_boards(5)[index].tolist()))


def test_river_strength_takes_1950_values(river):
    occurs = np.zeros(BLOCKED + 1, bool)
    for rows in np.array_split(river, 200):
        occurs[rows] = True
    values = np.flatnonzero(occurs)
    assert len(values) == 1951  # 1,950 strengths and the mark of blocked slots
    assert values[-2:].tolist() == [1980, BLOCKED]
    assert ((river == BLOCKED).sum(axis=1) == 1326 - 1081).all()


def test_ranges_and_workers_do_not_change_anything(river, preflop):
    assert np.array_equal(river_strengths(500, 1200), river[500:1200])
    whole = runout_sums(river, 4, 100, 300, workers=2)
    parts = [runout_sums(river, 4, first, first + 100) for first in (100, 200)]
    for i in range(2):
        assert np.array_equal(whole[i], np.concatenate([part[i] for part in parts]))
    assert np.array_equal(preflop_strengths(5000, 9000), preflop_strengths(5000, 9000, river=river, workers=2))
    ranges = (0, 7777), (7777, 90000), (90000, 134459)
    assert np.array_equal(preflop, sum(preflop_strengths(*some, river=river) for some in ranges))


@pytest.mark.parametrize("cards", [3, 4])
def test_sums_over_runouts_equal_the_definition(river, cards):
    index = 1234
    sums, squares = runout_sums(river, cards, index, index + 1)
    board = canonical_boards(cards)[index].tolist()
    expected = np.zeros((2, 1326), np.int64)
    for runout in combinations([card for card in range(52) if card not in board], 5 - cards):
        found, permutation = locate_board([*board, *runout])
        row = river[found, hole_permutations()[permutation]].astype(np.int64)
        row[row == BLOCKED] = 0
        expected += [row, row * row]
    on_board = np.isin(combo_table(), board).any(axis=1)
    expected[:, on_board] = -1
    assert np.array_equal(sums[0], expected[0])
    assert np.array_equal(squares[0], expected[1])


def test_the_tables_hold_the_reference_values(reference, river):
    for street, hand, board, _, wins2, squares, _, _ in reference:
        index, combo = slot(hand, board)
        if street == "river":
            assert river[index, combo] == int(wins2)
        else:
            sums = runout_sums(river, len(board) // 2, index, index + 1)
            assert [int(part[0, combo]) for part in sums] == [int(wins2), int(squares)]


def test_preflop_strengths_weight_boards_by_multiplicity(preflop):
    counts, members = preflop, np.bincount(preflop_classes())
    assert np.array_equal(counts.sum(axis=1), 2_118_760 * members)
    # Each win is another hand's loss, so the mean strength is half of the maximum.
    assert 2 * (counts @ np.arange(1981)).sum() == 1980 * counts.sum()
    # Aces win 85.2 % and tie 0.5 % of the time; 3-2 offsuit is the weakest hand. Both are widely published.
    aces = hand_strength("AsAh", workers=2)
    assert (aces["street"], aces["board"], aces["runouts"]) == ("preflop", "", 2_118_760)
    assert aces["ehs"] == pytest.approx(0.852037, abs=1e-6)
    expectation = counts @ np.arange(1981) / (members * 2_118_760 * 1980)
    assert expectation.argmin() == preflop_classes()[combo_index(*parse_cards("3d2c"))]
    row = counts[expectation.argmax()]
    assert aces["wins2_sum"] * 6 == row @ np.arange(1981)
    assert aces["wins2_square_sum"] * 6 == row @ np.arange(1981) ** 2


@pytest.mark.parametrize("workers", [1, 2])
def test_chunks_cover_a_range_in_order_and_errors_are_raised(workers):
    assert list(run_ranges(lambda a, b: (a, b), 3, 11, 3, workers)) == [(3, 6), (6, 9), (9, 11)]
    assert list(run_ranges(lambda a, b: (a, b), 3, 3, 3, workers)) == []

    def fail(first, _):
        if first == 6:
            raise OSError("no space")

    refused("no space", list, run_ranges(fail, 0, 12, 3, workers), error=OSError)


def test_results_of_chunks_are_freed_as_they_are_used():
    class Result:
        pass

    alive = WeakSet()

    def work(*_):
        alive.add(result := Result())
        return result

    assert max(len(alive) for _ in run_ranges(work, 0, 60, 1, 2)) <= 7


RUNOUTS = {3: 1081, 4: 46}


def naive_histograms(river, board, bins):
    """Return counts per bin of a board's hands, run-out by run-out.

    Run-outs of a flop are ordered, so counts are halved.
    """
    live = [card for card in range(52) if card not in board]
    counts = np.zeros((1326, bins), np.int64)
    for runout in combinations(live, 5 - len(board)):
        index, permutation = locate_board([*board, *runout])
        strength = river[index, hole_permutations()[permutation]].astype(np.int64)
        for combo in np.flatnonzero(strength != BLOCKED):
            counts[combo, strength[combo] * bins // 1981] += 1
    return counts


@pytest.mark.parametrize(("cards", "bins", "indices"), [(4, 50, (0, 7, 5000, 16431)), (4, 7, (99,)), (3, 50, (1200,))])
def test_histograms_equal_counting(river, cards, bins, indices):
    for index in indices:
        found = equity_histograms(river, cards, index, index + 1, bins=bins)
        assert np.array_equal(found[0], naive_histograms(river, canonical_boards(cards)[index].tolist(), bins))


@pytest.mark.parametrize(("cards", "dtype"), [(3, np.uint16), (4, np.uint8)])
def test_histograms_hold_every_runout_once(river, cards, dtype):
    start, stop = 300, 340
    found = equity_histograms(river, cards, start, stop)
    assert found.dtype == dtype and found.shape == (stop - start, 1326, 50)
    used = used_slots(canonical_boards(cards)[start:stop])
    assert np.array_equal(found.sum(axis=2), np.where(used, RUNOUTS[cards], 0))


def test_preflop_histograms_are_counts_by_bin():
    strengths = preflop_strengths(0, 300)
    for bins in (2, 50, 1981):
        expected = np.zeros((169, bins), np.int64)
        for value in range(1981):
            expected[:, value * bins // 1981] += strengths[:, value]
        assert np.array_equal(preflop_histograms(strengths, bins), expected)


def naive_features(board, cluster_of, clusters):
    """Return the equity of every hand against each cluster, hand against hand."""
    values, table = board_strengths(board), combo_table()
    out = np.full((1326, clusters), -1, np.float32)
    for combo in np.flatnonzero(values > 0):
        free = (values > 0) & ~np.isin(table, table[combo]).any(axis=1)
        for k in range(clusters):
            theirs = values[free & (cluster_of == k)]
            wins2 = 2 * (theirs < values[combo]).sum() + (theirs == values[combo]).sum()
            out[combo, k] = np.float32(wins2) / np.float32(2 * len(theirs)) if len(theirs) else 0.5
    return out


def class_of(hand):
    return preflop_classes()[combo_index(*parse_cards(hand))]


@pytest.mark.parametrize("clusters", [1, 3, 8])
def test_ochs_features_equal_hand_against_hand(clusters):
    random_state = np.random.default_rng(clusters)
    of_class = random_state.permutation(np.arange(169) % clusters)
    if clusters == 8:  # a cluster of aces alone is empty if two are on the board and one is in the hand
        of_class[of_class == 7] = 0
        of_class[class_of("AsAh")] = 7
    cluster_of = of_class[preflop_classes()]
    indices = [locate_board(parse_cards("AcAd7h8s9c"))[0], *random_state.integers(134459, size=3).tolist()]
    for index in indices:
        expected = naive_features(canonical_boards(5)[index].tolist(), cluster_of, clusters)
        assert np.array_equal(ochs_features(of_class, index, index + 1)[0], expected)


def test_one_cluster_of_all_hands_gives_the_river_strength():
    found = ochs_features(np.zeros(169, int), 70_000, 70_100)[:, :, 0]
    strength = river_strengths(70_000, 70_100)
    expected = np.where(strength == 65535, np.float32(-1), strength.astype(np.float32) / np.float32(1980))
    assert np.array_equal(found, expected)


def test_opponent_clusters_are_a_function_of_the_seed_and_ordered(preflop):
    found = opponent_clusters(preflop, seed=3)
    assert np.array_equal(found, opponent_clusters(preflop, seed=3))
    assert sorted(set(found.tolist())) == list(range(8))
    combos = np.bincount(preflop_classes())
    equity = preflop @ np.arange(1981)
    mean = np.bincount(found, equity) / np.bincount(found, combos)
    assert (np.diff(mean) > 0).all()
    assert found[class_of("AsAh")] == 7
    assert found[class_of("3d2c")] == 0


def test_opponent_clusters_cannot_be_improved_by_moving_one_class(preflop):
    """Compute the distance of each class to the clusters' medians from the definition."""
    found = opponent_clusters(preflop)
    counts = preflop_histograms(preflop)
    cdf = np.cumsum(counts, axis=1) / counts.sum(axis=1, keepdims=True)
    combos = np.bincount(preflop_classes())
    medians = np.array(
        [
            np.quantile(np.repeat(cdf[found == k], combos[found == k], axis=0), 0.5, axis=0, method="lower")
            for k in range(8)
        ]
    )
    distance = np.abs(cdf[:, None] - medians).sum(axis=2)
    own = distance[np.arange(169), found]
    assert (own <= distance.min(axis=1) + 1e-12).all()
    # Total distance is smaller than that of eight equal parts in the order of equity.
    by_equity = np.argsort(np.argsort(preflop @ np.arange(1981) / combos)) * 8 // 169
    cut = [np.abs(cdf[by_equity == k] - np.median(cdf[by_equity == k], axis=0)).sum(axis=1) for k in range(8)]
    parts = sum((combos[by_equity == k] * cut[k]).sum() for k in range(8))
    assert (combos * own).sum() < 0.97 * parts
