import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import rand_index
from refusals import refused

from abstraction.clustering.percentiles import percentile_buckets
from abstraction.clustering.quality import variance_explained


def test_variance_explained_is_all_or_nothing():
    points = np.random.default_rng(0).random((50, 3))
    assert variance_explained(points, np.arange(50), None, 50) == pytest.approx(1)
    assert variance_explained(points, np.zeros(50, np.int32), None, 1) == pytest.approx(0)
    labels, weights = np.array([0, 0, 2, 2]), np.array([1, 3, 2, 2])
    points = np.array([[0.0], [1.0], [5.0], [5.0]])
    within, total = 4 * 3 / 16, 8 * np.average((points[:, 0] - 2.875) ** 2, weights=weights)
    assert variance_explained(points, labels, weights, 4) == pytest.approx(1 - within / total)


def adjusted_rand_score(one, other):
    from sklearn import metrics  # here: which takes a second to import

    return metrics.adjusted_rand_score(one, other)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(2, 300), first=st.integers(1, 40), second=st.integers(1, 40))
def test_adjusted_rand_index_equals_scikit_learn(seed, count, first, second):
    rng = np.random.default_rng(seed)
    one = rng.integers(0, first, count)
    other = np.where(rng.random(count) < 0.5, one, rng.integers(0, second, count))
    found = rand_index(one, other)
    assert found == pytest.approx(adjusted_rand_score(one, other), abs=1e-12)
    assert found == rand_index(other, one)
    weights = rng.integers(1, 4, count)
    repeated = adjusted_rand_score(np.repeat(one, weights), np.repeat(other, weights))
    assert rand_index(one, other, weights) == pytest.approx(repeated, abs=1e-12)


def test_adjusted_rand_index_of_large_labels_and_weights():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 50_000, (2, 3000))
    other[:1500] = one[:1500]
    assert rand_index(one, other) == pytest.approx(adjusted_rand_score(one, other), abs=1e-12)
    # Two halves of 2^30 items each, of which one labeling splits the second: pair counts beyond 2^53 stay exact.
    found = rand_index(np.array([0, 1, 1]), np.array([0, 1, 2]), np.array([2**30, 2**29, 2**29]))
    n, half, quarter = (m * (m - 1) // 2 for m in (2**31, 2**30, 2**29))
    both, rows, columns = half + 2 * quarter, 2 * half, half + 2 * quarter
    assert found == (2 * (both * n - rows * columns)) / ((rows + columns) * n - 2 * rows * columns)
    assert rand_index(one, one) == 1


def test_percentiles_by_hand():
    found = percentile_buckets(np.array([0.4, 0.1, 0.3, 0.2, 0.1]), [1, 1, 1, 1, 3], 2)
    assert found.labels.tolist() == [1, 0, 1, 1, 0]
    assert found.lowest.tolist() == [0.1, 0.2]
    # Nearly all the weight on one value: the others still fill the other buckets.
    heavy = percentile_buckets(np.arange(5), [1, 1, 1, 1, 1000], 5)
    assert heavy.labels.tolist() == [0, 1, 2, 3, 4]


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), distinct=st.integers(1, 60), k=st.integers(1, 60))
def test_percentile_buckets(seed, distinct, k):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, distinct, 200)
    weights = rng.integers(1, 30, 200)
    there = len(np.unique(values))
    if k > there:
        refused(f"k is {k}, but there are {there} distinct values", percentile_buckets, values, weights, k)
        return
    found = percentile_buckets(values, weights, k)
    assert sorted(set(found.labels.tolist())) == list(range(k))
    order = np.argsort(values, kind="stable")
    assert (np.diff(found.labels[order]) >= 0).all()
    assert np.array_equal(np.searchsorted(found.lowest, values, side="right") - 1, found.labels)


def test_percentiles_of_many_values_are_even():
    rng = np.random.default_rng(0)
    values, weights = rng.random(20_000), rng.integers(1, 25, 20_000)
    share = np.bincount(percentile_buckets(values, weights, 40).labels, weights, 40) * 40 / weights.sum()
    assert 0.99 < share.min() <= share.max() < 1.01
