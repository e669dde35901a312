"""Percentile buckets of one number (E[HS], E[HS²]), with weights as equal as ties allow."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Percentiles(NamedTuple):
    """Buckets in ascending order of the number."""

    labels: NDArray[np.int32]
    """[N] bucket of each item; bucket 0 holds the smallest values"""
    lowest: NDArray[Any]
    """[k] smallest value of each bucket, dtype as given; v is in the last bucket with `lowest` <= v"""


def percentile_buckets(values: NDArray[Any], weights: ArrayLike | None, k: int) -> Percentiles:
    """Divide values [N] with weights [N] (None: 1 each) into k buckets of about equal weight.

    Equal values share a bucket.  A value goes to the bucket that contains the middle of its weight, moved as little as
    needed to leave no bucket empty.  Raises `ValueError` for k larger than the number of distinct values.
    """
    values = np.asarray(values)
    if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
        raise ValueError(f"values of shape {values.shape} were given: one finite number for each item is needed")
    given = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != values.shape or not given.min() > 0:
        raise ValueError(f"weights of shape {given.shape} were given: one positive weight for each value is needed")
    distinct, inverse = np.unique(values, return_inverse=True)
    if not 1 <= k <= len(distinct):
        raise ValueError(f"k is {k}, but there are {len(distinct)} distinct values: choose k at most that, at least 1")
    mass = np.bincount(inverse, given)
    upto = np.cumsum(mass)
    wanted = ((upto - 0.5 * mass) * (k / upto[-1])).astype(np.int64)
    # First value of each bucket: strictly increasing, and leaving at least one value for each later bucket.
    bucket = np.arange(k)
    starts = np.searchsorted(wanted, bucket)
    starts = np.maximum.accumulate(starts - bucket) + bucket
    starts = np.minimum(starts, len(distinct) - k + bucket)
    of_value = np.searchsorted(starts, np.arange(len(distinct)), side="right") - 1
    return Percentiles(of_value[inverse].astype(np.int32), distinct[starts])
