"""The earth mover's distance: equal to transport problems; medians; potential-aware points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import potential_points
from transport import earth_movers_distance, exact_transport, ground_distances, histograms_of

from abstraction.clustering.assign import Members
from abstraction.clustering.centres import group_centres
from abstraction.clustering.kmeans import kmeans
from abstraction.clustering.metric import EMD, cdf
from abstraction.potential_aware import bucket_axes, bucket_positions


def weighted_medians(points, weights):
    """Return the lower weighted median [D] of each coordinate of points [N, D], one group's centre."""
    members = Members(np.arange(len(points), dtype=np.int32), np.array([0, len(points)]))
    return group_centres(points, weights, members, np.zeros((1, points.shape[1]), np.float32), EMD)[0]


def transport(first, second, cost):
    """Least Σ flow x cost that turns masses `first` [I] into `second` [J], as a linear programme."""
    from scipy.optimize import linprog

    rows, columns = cost.shape
    constraints = np.zeros((rows + columns, rows * columns))
    for i in range(rows):
        constraints[i, i * columns : (i + 1) * columns] = 1
    for j in range(columns):
        constraints[rows + j, j::columns] = 1
    return linprog(cost.ravel(), A_eq=constraints, b_eq=np.concatenate([first, second])).fun


def test_one_dimensional_distance_equals_transport():
    rng = np.random.default_rng(0)
    for bins in (2, 5, 12):
        apart = np.abs(np.arange(bins)[:, None] - np.arange(bins)[None])
        for _ in range(8):
            counts = rng.integers(0, 9, (2, bins)) + np.eye(2, bins, dtype=np.int64)
            rows = cdf(counts)
            expected = transport(*(counts / counts.sum(axis=1, keepdims=True)), apart)
            assert earth_movers_distance(rows[0], rows[1]) == pytest.approx(expected, abs=1e-6)
            assert earth_movers_distance(rows[0], rows[1], 1 / bins) == pytest.approx(expected / bins, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 40), grid=st.sampled_from([2, 7, 10**6]))
def test_medians_are_optimal(seed, count, grid):
    rng = np.random.default_rng(seed)
    points = (rng.integers(-grid, grid, (count, 3)) / np.float32(grid)).astype(np.float32)
    weights = rng.integers(1, 9, count).astype(np.float64)
    medians = weighted_medians(points, weights)
    for j in range(3):
        # The objective is convex with kinks at the points: no point may do better; of equals, the smallest.
        work = np.abs(points[:, j, None].astype(np.float64) - points[None, :, j]).T @ weights
        best = points[work <= work.min() * (1 + 1e-12), j]
        assert medians[j] == best.min()


def test_centres_are_cumulative_distributions():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(46, rng.dirichlet(np.ones(10), 600))
    found = kmeans(cdf(counts), np.ones(600, np.int64), 15, distance="emd")
    assert (np.diff(found.centres, axis=1) >= 0).all()
    assert (histograms_of(found.centres) >= 0).all()
    work = earth_movers_distance(cdf(counts), found.centres[found.labels]).sum()
    assert found.inertia == pytest.approx(work, rel=1e-6)
    squares = kmeans(cdf(counts), np.ones(600, np.int64), 15, distance="l2")
    assert work < earth_movers_distance(cdf(counts), squares.centres[squares.labels]).sum()


@pytest.mark.parametrize("distance", ["l2", "emd"])
def test_exact_transport(distance):
    rng = np.random.default_rng(0)
    centres = rng.random((12, 3)).astype(np.float32)
    for cards in (1, 4, 9):
        first, second = rng.integers(0, 12, (2, cards))
        exact = exact_transport(first, second, centres, distance)
        ground = ground_distances(centres, centres, distance)
        masses = [np.bincount(part, minlength=12) / cards for part in (first, second)]
        assert exact == pytest.approx(transport(*masses, ground), abs=1e-7)


def test_potential_points_give_exact_transport_on_a_line():
    rng = np.random.default_rng(0)
    centres = rng.random((30, 1))
    hands = rng.integers(0, 30, (40, 9))
    points = potential_points(hands, centres, hands.shape[1])
    assert (np.diff(points, axis=1) >= 0).all()
    for one, other in rng.integers(0, 40, (20, 2)):
        expected = exact_transport(hands[one], hands[other], centres)
        assert np.abs(points[one] - points[other]).sum() == pytest.approx(expected, abs=1e-6)


def test_axes_of_next_buckets_keep_their_distances():
    rng = np.random.default_rng(0)
    turned, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    flat = rng.normal(size=(50, 2)) * [3, 1]
    positions = bucket_axes((flat @ turned[:2] + 7).astype(np.float32), np.ones(50), 2)
    assert ground_distances(positions, positions, "l2") == pytest.approx(ground_distances(flat, flat, "l2"), abs=1e-5)
    assert positions[:, 0].var() > positions[:, 1].var()
    assert bucket_axes(flat, axes=9).shape == (50, 2)


@pytest.mark.parametrize("distance", ["l2", "emd"])
def test_runs_of_positions_never_exceed_all_of_them(distance):
    rng = np.random.default_rng(0)
    centres = np.sort(rng.random((40, 6)), axis=1)
    hands = rng.integers(0, 40, (30, 11))
    positions = bucket_positions(centres, None, distance, 4)
    every, runs = (potential_points(hands, positions, values) for values in (hands.shape[1], 3))
    assert (every.shape, runs.shape) == ((30, 44), (30, 12))
    apart = [np.abs(points[:15] - points[15:]).sum(axis=1) for points in (every, runs)]
    assert (apart[1] <= apart[0] + 1e-6).all()
    assert runs.sum(axis=1) == pytest.approx(every.sum(axis=1), abs=1e-5)
