"""Variance explained by buckets, and percentile buckets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from abstraction.bucket_report import variance_explained
from abstraction.clustering.percentiles import percentile_buckets


def test_variance_explained_is_all_or_nothing():
    points = np.random.default_rng(0).random((50, 3))
    assert variance_explained(points, np.arange(50), np.ones(50), 50) == pytest.approx(1)
    assert variance_explained(points, np.zeros(50, np.int32), np.ones(50), 1) == pytest.approx(0)
    labels, weights = np.array([0, 0, 2, 2]), np.array([1, 3, 2, 2])
    points = np.array([[0.0], [1.0], [5.0], [5.0]])
    within, total = 4 * 3 / 16, 8 * np.average((points[:, 0] - 2.875) ** 2, weights=weights)
    assert variance_explained(points, labels, weights, 4) == pytest.approx(1 - within / total)


def labels_of(values, lowest):
    return np.searchsorted(lowest, values, side="right") - 1


def test_percentiles_by_hand():
    values = np.array([0.1, 0.2, 0.3, 0.4])
    assert percentile_buckets(values, np.array([4, 1, 1, 1]), 2).tolist() == [0.1, 0.2]
    # Nearly all the weight is on one value: the others still fill the other buckets.
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
