"""Divides the values of one feature (hands' E[HS] or E[HS²]) into buckets of about equal weight."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def percentile_buckets(values: NDArray[Any], weights: NDArray[np.float64], k: int) -> NDArray[Any]:
    """Divide distinct ascending values [V] with weights [V] into k buckets of about equal weight.

    Returns the smallest value of each bucket, [k]; a value v is in the last bucket whose smallest value is <= v.  The
    total weight, in ascending order of value, is divided into k equal parts.  A value goes to the bucket in whose part
    the middle of its own weight lies.  Values are moved only as far as needed to leave no bucket empty.
    Raises `ValueError` for k larger than the number of values.
    """
    if not 1 <= k <= len(values):
        raise ValueError(f"k is {k}, but there are {len(values)} distinct values: choose k at most that, at least 1")
    mass = weights.astype(np.float64)
    upto = np.cumsum(mass)
    bucket_of_row = ((upto - 0.5 * mass) * (k / upto[-1])).astype(np.int64)
    # First value of each bucket: strictly increasing, and leaving at least one value for each later bucket.
    bucket = np.arange(k)
    starts = np.searchsorted(bucket_of_row, bucket)
    starts = np.maximum.accumulate(starts - bucket) + bucket
    return values[np.minimum(starts, len(values) - k + bucket)]
