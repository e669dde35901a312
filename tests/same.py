"""Compares arrays by name, and files."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np


def files_of(folder: Path) -> dict[str, bytes]:
    """Return {relative name: content} of every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def assert_same_arrays(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> None:
    """Assert that both have the same names and the same cells under each."""
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)
