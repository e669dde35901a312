"""Compares arrays by name."""

from collections.abc import Mapping

import numpy as np


def assert_same_arrays(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> None:
    """The same names, and the same cells under each."""
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)
