import numpy as np
import pytest

from abstraction.boards import canonical_boards, locate_board, preflop_classes
from abstraction.cards import combo_index, combo_table, parse_cards
from abstraction.hand_evaluator import board_strengths
from abstraction.histograms import preflop_histograms
from abstraction.ochs import ochs_features, opponent_clusters
from abstraction.strength import river_strengths


def naive_features(board, cluster_of, clusters):
    """Equity of every hand against each cluster, hand against hand."""
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
def test_features_equal_hand_against_hand(clusters):
    random_state = np.random.default_rng(clusters)
    of_class = random_state.permutation(np.arange(169) % clusters)
    if clusters == 8:  # aces alone: two on the board and one in the hand leave none of them
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


def test_opponent_clusters_cannot_be_bettered_by_moving_one_class(preflop):
    """Distance of each class to the medians of the clusters, from the definition."""
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
    # Far below one cluster for all, and below cutting the order of equity into eight equal parts.
    by_equity = np.argsort(np.argsort(preflop @ np.arange(1981) / combos)) * 8 // 169
    cut = [np.abs(cdf[by_equity == k] - np.median(cdf[by_equity == k], axis=0)).sum(axis=1) for k in range(8)]
    parts = sum((combos[by_equity == k] * cut[k]).sum() for k in range(8))
    assert (combos * own).sum() < 0.97 * parts
