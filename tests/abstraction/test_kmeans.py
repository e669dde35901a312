"""k-means, earth mover's distance and percentiles, compared with naive versions and definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import potential_points
from refusals import refused
from scipy.optimize import linprog

from abstraction.bucket_report import variance_explained
from abstraction.clustering.assign import Members, nearest_centres
from abstraction.clustering.centres import group_centres
from abstraction.clustering.kmeans import kmeans, run, start, start_from, state_arrays, state_from_arrays, step
from abstraction.clustering.metric import DISTANCES, EMD, cdf
from abstraction.clustering.percentiles import percentile_buckets
from abstraction.clustering.points import Problem, distinct_points
from abstraction.clustering.seeding import seed_centres, uniform
from abstraction.clustering.two_level import refine, share_buckets
from abstraction.potential_aware import bucket_axes, bucket_positions


def problem_of(points, weights, distance="l2", workers=1):
    return Problem(points, np.asarray(weights, np.float64), DISTANCES[distance], workers)


def naive_distances(points, centres, distance):
    """Return [N, k] float32: sums over coordinates in order, with each operation rounded."""
    sums = np.zeros((len(points), len(centres)), np.float32)
    for j in range(points.shape[1]):
        difference = points[:, j, None] - centres[None, :, j]
        sums += np.abs(difference) if distance == "emd" else difference * difference
    return sums


def naive_centre(points, weights, distance):
    """Return the centre of one bucket: the mean, summed in order, or the lower weighted median."""
    if distance == "l2":
        total = np.zeros(points.shape[1])
        for point, weight in zip(points, weights, strict=True):
            total += weight * point.astype(np.float64)
        return (total / sum(weights)).astype(np.float32)
    centre = np.empty(points.shape[1], np.float32)
    for j in range(points.shape[1]):
        order = np.argsort(points[:, j], kind="stable")
        centre[j] = points[order[np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)], j]
    return centre


def naive_assign(points, weights, centres, distance):
    sums = naive_distances(points, centres, distance)
    labels = sums.argmin(axis=1)
    own = sums[np.arange(len(points)), labels]
    for empty in np.setdiff1d(np.arange(len(centres)), labels):
        counts = np.bincount(labels, minlength=len(centres))
        movable = (own > 0) & (counts[labels] > 1)
        moved = int(np.argmax(np.where(movable, weights * own, -1)))
        centres[empty], labels[moved], own[moved] = points[moved], empty, 0
    return labels, own


def naive_lloyd(points, weights, centres, distance, steps):
    """Return (centres, labels, distances) after `steps` steps, with all distances computed in each."""
    centres = centres.copy()
    labels, own = naive_assign(points, weights, centres, distance)
    for _ in range(steps):
        centres = np.array(
            [naive_centre(points[labels == c], weights[labels == c], distance) for c in range(len(centres))]
        )
        labels, own = naive_assign(points, weights, centres, distance)
    return centres, labels, own


def equity_like(count, bins=12, seed=0):
    """Return (points, weights) of distinct cumulative histograms like those of hands, with many ties."""
    rng = np.random.default_rng(seed)
    middle, width = rng.beta(1.5, 1.5, (count, 1)), rng.uniform(0.03, 0.2, (count, 1))
    chance = np.exp(-0.5 * (((np.arange(bins) + 0.5) / bins - middle) / width) ** 2) + 1e-9
    counts = rng.multinomial(46, chance / chance.sum(axis=1, keepdims=True))
    weights = rng.choice([4, 12, 24], count)
    merged = distinct_points((np.cumsum(counts, axis=1)[:, :-1]).astype(np.uint8), weights)
    return merged.points.astype(np.float32) / np.float32(46), merged.weights


def same(one, other):
    return all(
        getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in ("centres", "labels", "distances")
    ) and (one.iteration, one.inertia, one.changed) == (other.iteration, other.inertia, other.changed)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    dimensions=st.integers(1, 7),
    k=st.integers(1, 130),
    grid=st.sampled_from([3, 10, 1000]),
    distance=st.sampled_from(["l2", "emd"]),
    far=st.booleans(),
)
def test_fast_equals_naive(seed, dimensions, k, grid, distance, far):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, grid, (200, dimensions)).astype(np.float32) / np.float32(grid)
    merged = distinct_points(points + np.float32(100 * far), rng.integers(1, 25, 200))
    k = min(k, len(merged.points))
    # Random centres, some equal and some far, cause ties and empty buckets.
    centres = merged.points[rng.integers(0, len(merged.points), k)] + np.float32(rng.integers(0, 2))
    problem = problem_of(merged.points, merged.weights, distance, 1)
    state = start_from(problem, centres)
    for steps in range(4):
        expected, labels, own = naive_lloyd(problem.points, problem.weights, centres, distance, steps)
        assert state.centres.tobytes() == expected.tobytes()
        assert np.array_equal(state.labels, labels)
        assert np.array_equal(state.distances, own)
        assert state.inertia == pytest.approx((problem.weights * own).sum(), rel=1e-12)
        assert np.bincount(state.labels, minlength=k).min() > 0
        state = step(problem, state)


@pytest.mark.parametrize("distance", ["l2", "emd"])
def test_many_centres_equal_naive_from_any_guess(distance):
    points, _ = equity_like(3000)
    centres = points[::9].copy()
    sums = naive_distances(points, centres, distance)
    expected = sums.argmin(axis=1)
    guess = np.random.default_rng(0).integers(0, len(centres), len(points)).astype(np.int32)
    for labels in (None, guess):
        found = nearest_centres(points, centres, DISTANCES[distance], 2, labels)
        assert np.array_equal(found.labels, expected)
        assert np.array_equal(found.distances, sums.min(axis=1))


@pytest.mark.parametrize("distance", ["l2", "emd"])
def test_seeds_equal_those_of_all_distances(distance):
    points, weights = equity_like(10_000)
    problem = problem_of(points, weights, distance)
    seeds = seed_centres(problem, 90, seed=5)
    sums = naive_distances(points, points[seeds.chosen], distance)
    assert np.array_equal(seeds.nearest.labels, sums.argmin(axis=1))
    assert np.array_equal(seeds.nearest.distances, sums.min(axis=1))
    # Each draw lies where the cumulative weight x distance passes its share.
    for number in (1, 2, 50, 89):
        mass = weights * sums[:, :number].min(axis=1).astype(np.float64)
        expected = np.searchsorted(np.cumsum(mass), uniform(5, 0, number) * mass.sum(), side="right")
        assert seeds.chosen[number] == expected


@pytest.mark.parametrize("distance", ["l2", "emd"])
def test_resume_equals_uninterrupted(distance):
    points, weights = equity_like(2000)
    problem = problem_of(points, weights, distance)
    first = start(problem, 80)
    saved = [state_arrays(first)]
    whole = run(problem, first, progress=lambda state: saved.append(state_arrays(state)))
    assert whole.iteration == len(saved) - 1 > 4
    for arrays in (saved[0], saved[1], saved[4], saved[-1]):
        assert all(np.isfinite(array).all() for array in arrays.values()), "checkpoints refuse such cells"
        copied = {name: array.copy() for name, array in arrays.items()}
        assert same(run(problem, state_from_arrays(problem, copied)), whole)
    with pytest.raises(ValueError, match=r"do not fit points of shape \(7, 11\)"):
        state_from_arrays(problem_of(points[:7], weights[:7]), saved[0])
    with pytest.raises(ValueError, match="saved labels lie between 20 and 99, but k is 80"):
        state_from_arrays(problem, {**saved[0], "labels": saved[0]["labels"] + 20})


def test_within_one_percent_of_scikit_learn():
    points, weights = equity_like(6000)
    problem = problem_of(points, weights, "l2", 2)
    begin = start(problem, 60, seed=3)
    ours = run(problem, begin, iterations=300, tolerance=0)
    from sklearn.cluster import KMeans  # here, because the import takes a second

    theirs = KMeans(60, init=begin.centres, n_init=1, max_iter=300, tol=0).fit(points, sample_weight=weights)
    assert ours.changed == 0
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=0.01)
    assert ours.inertia < 0.8 * begin.inertia


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_distinct_points(dtype):
    rng = np.random.default_rng(0)
    points = rng.integers(0, 4, (5000, 5)).astype(dtype)
    weights = rng.integers(1, 30, 5000)
    found = distinct_points(points, weights)
    expected, first, inverse = np.unique(points, axis=0, return_index=True, return_inverse=True)
    assert found.points.dtype == dtype and len(found.points) == len(expected)
    assert np.array_equal(found.points[found.inverse], points)
    assert np.array_equal(found.points, points[np.sort(first)])
    assert np.array_equal(found.weights[found.inverse[first]], np.bincount(inverse, weights))


@pytest.mark.parametrize("distance", ["l2", "emd"])
def test_two_levels_are_within_ten_percent_of_plain_k_means(distance):
    points, weights = equity_like(4000)
    flat = kmeans(points, weights, 300, distance=distance, workers=2)
    seen = []
    state, other = (
        refine(problem_of(points, weights, distance, workers), 300, progress=lambda *stage: seen.append(stage))
        for workers in (1, 2)
    )
    assert state.labels.tobytes() == other.labels.tobytes()
    assert np.array_equal(state.labels, naive_distances(points, state.centres, distance).argmin(axis=1))
    assert np.bincount(state.labels, minlength=300).min() > 0
    assert state.inertia < 1.1 * flat.inertia
    assert [stage for stage in seen if stage[0] == "buckets"][:17] == [("buckets", i, 17) for i in range(1, 18)]


def test_buckets_are_divided_by_need_and_number_of_distinct_points():
    assert share_buckets(np.array([8.0, 0, 4, 4]), np.array([100, 100, 2, 100]), 20).tolist() == [11, 1, 2, 6]
    assert share_buckets(np.zeros(3), np.array([2, 1, 4]), 7).tolist() == [2, 1, 4]


def weighted_medians(points, weights):
    """Return the lower weighted medians [D] of the coordinates of points [N, D], as one group's centre."""
    members = Members(np.arange(len(points), dtype=np.int32), np.array([0, len(points)]))
    return group_centres(points, weights, members, np.zeros((1, points.shape[1]), np.float32), EMD)[0]


def earth_movers_distance(first, second, width=1.0):
    """Return the EMD [N] of cumulative rows [N, B - 1], with bins `width` apart (Vallender 1974)."""
    return width * np.abs(first.astype(np.float64) - second).sum(axis=-1)


def ground_distances(first, second):
    """Return the Euclidean distances [I, J] of centres [I, D] and [J, D]."""
    return np.linalg.norm(first.astype(np.float64)[:, None] - second[None], axis=2)


def transport(first, second, cost):
    """Return the least Σ flow x cost from masses `first` [I] to `second` [J], by linear programming."""
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
        # The objective is convex and piecewise linear with kinks at the points: the smallest best point is right.
        work = np.abs(points[:, j, None].astype(np.float64) - points[None, :, j]).T @ weights
        best = points[work <= work.min() * (1 + 1e-12), j]
        assert medians[j] == best.min()


def test_centres_are_cumulative_distributions():
    rng = np.random.default_rng(0)
    counts = rng.multinomial(46, rng.dirichlet(np.ones(10), 600))
    found = kmeans(cdf(counts), np.ones(600, np.int64), 15, distance="emd")
    assert (np.diff(found.centres, axis=1) >= 0).all()
    assert found.centres.min() >= 0 and found.centres.max() <= 1
    work = earth_movers_distance(cdf(counts), found.centres[found.labels]).sum()
    assert found.inertia == pytest.approx(work, rel=1e-6)
    squares = kmeans(cdf(counts), np.ones(600, np.int64), 15, distance="l2")
    assert work < earth_movers_distance(cdf(counts), squares.centres[squares.labels]).sum()


def test_potential_points_give_exact_transport_on_a_line():
    rng = np.random.default_rng(0)
    centres = rng.random((30, 1))
    hands = rng.integers(0, 30, (40, 9))
    points = potential_points(hands, centres, hands.shape[1])
    assert (np.diff(points, axis=1) >= 0).all()
    for one, other in rng.integers(0, 40, (20, 2)):
        masses = (np.bincount(hands[hand], minlength=30) / hands.shape[1] for hand in (one, other))
        expected = transport(*masses, ground_distances(centres, centres))
        assert np.abs(points[one] - points[other]).sum() == pytest.approx(expected, abs=1e-6)


def test_axes_of_next_buckets_keep_their_distances():
    rng = np.random.default_rng(0)
    turned, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    flat = rng.normal(size=(50, 2)) * [3, 1]
    positions = bucket_axes((flat @ turned[:2] + 7).astype(np.float32), np.ones(50), 2)
    assert ground_distances(positions, positions) == pytest.approx(ground_distances(flat, flat), abs=1e-5)
    assert positions[:, 0].var() > positions[:, 1].var()
    assert bucket_axes(flat, axes=9).shape == (50, 2)


@pytest.mark.parametrize("distance", ["l2", "emd"])
def test_distances_of_summed_runs_never_exceed_those_of_all_positions(distance):
    rng = np.random.default_rng(0)
    centres = np.sort(rng.random((40, 6)), axis=1)
    hands = rng.integers(0, 40, (30, 11))
    positions = bucket_positions(centres, None, distance, 4)
    every, runs = (potential_points(hands, positions, values) for values in (hands.shape[1], 3))
    assert (every.shape, runs.shape) == ((30, 44), (30, 12))
    apart = [np.abs(points[:15] - points[15:]).sum(axis=1) for points in (every, runs)]
    assert (apart[1] <= apart[0] + 1e-6).all()
    assert runs.sum(axis=1) == pytest.approx(every.sum(axis=1), abs=1e-5)


def test_variance_explained_of_known_cases():
    points = np.random.default_rng(0).random((50, 3))
    assert variance_explained(points, np.arange(50), np.ones(50), 50) == pytest.approx(1)
    assert variance_explained(points, np.zeros(50, np.int32), np.ones(50), 1) == pytest.approx(0)
    labels, weights = np.array([0, 0, 2, 2]), np.array([1, 3, 2, 2])
    points = np.array([[0.0], [1.0], [5.0], [5.0]])
    within, total = 4 * 3 / 16, 8 * np.average((points[:, 0] - 2.875) ** 2, weights=weights)
    assert variance_explained(points, labels, weights, 4) == pytest.approx(1 - within / total)


def labels_of(values, lowest):
    return np.searchsorted(lowest, values, side="right") - 1


def test_percentile_buckets_of_known_cases():
    values = np.array([0.1, 0.2, 0.3, 0.4])
    assert percentile_buckets(values, np.array([4, 1, 1, 1]), 2).tolist() == [0.1, 0.2]
    # One value has nearly all the weight; the other values still fill the other buckets.
    assert percentile_buckets(np.arange(5), np.array([1, 1, 1, 1, 1000]), 5).tolist() == [0, 1, 2, 3, 4]


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 60), k=st.integers(1, 60))
def test_percentile_buckets(seed, count, k):
    rng = np.random.default_rng(seed)
    values, weights = np.sort(rng.choice(200, count, replace=False)), rng.integers(1, 30, count)
    if k > count:
        refused(f"k is {k}, but there are {count} distinct values", percentile_buckets, values, weights, k)
        return
    lowest = percentile_buckets(values, weights, k)
    assert set(lowest) <= set(values) and np.array_equal(np.unique(labels_of(values, lowest)), np.arange(k))
