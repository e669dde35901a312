"""k-means: equal to a naive version, resumable, the same for any number of workers; two levels lose little."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abstraction.clustering.assign import nearest_centres
from abstraction.clustering.kmeans import kmeans, run, start, start_from, state_arrays, state_from_arrays, step
from abstraction.clustering.metric import DISTANCES
from abstraction.clustering.points import Problem, distinct_points
from abstraction.clustering.seeding import seed_centres, uniform
from abstraction.clustering.two_level import refine, share_buckets


def problem_of(points, weights, distance="l2", workers=1):
    return Problem(points, np.asarray(weights, np.float64), DISTANCES[distance], workers)


def naive_distances(points, centres, distance):
    """[N, k] float32: the sum over coordinates in order, each operation rounded."""
    sums = np.zeros((len(points), len(centres)), np.float32)
    for j in range(points.shape[1]):
        difference = points[:, j, None] - centres[None, :, j]
        sums += np.abs(difference) if distance == "emd" else difference * difference
    return sums


def naive_centre(points, weights, distance):
    """Mean added up in order, or lower weighted median, of one bucket."""
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
    """Centres and labels after so many steps, everything measured."""
    centres = centres.copy()
    labels, own = naive_assign(points, weights, centres, distance)
    for _ in range(steps):
        centres = np.array(
            [naive_centre(points[labels == c], weights[labels == c], distance) for c in range(len(centres))]
        )
        labels, own = naive_assign(points, weights, centres, distance)
    return centres, labels, own


def equity_like(count, bins=12, seed=0):
    """Return distinct cumulative histograms with few directions, many ties, and orbit sizes, as hands have."""
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
    # Centres at random, equal and far ones among them: ties and empty buckets.
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
        assert all(np.isfinite(array).all() for array in arrays.values()), "no store takes it"
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
    from sklearn.cluster import KMeans  # here: which takes a second to import

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
def test_two_levels_lose_little(distance):
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


def test_buckets_are_shared_by_need_and_room():
    assert share_buckets(np.array([8.0, 0, 4, 4]), np.array([100, 100, 2, 100]), 20).tolist() == [11, 1, 2, 6]
    assert share_buckets(np.zeros(3), np.array([2, 1, 4]), 7).tolist() == [2, 1, 4]
