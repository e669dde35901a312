"""16-bit table cells: storage and conversion to numbers.

`int16` cells are multiples of 2^(scale - 128), with one scale for the actions of each decision and bucket. The scales,
uint8, are a table of the same name with `_scale`, such as "regret_scale/street0/player1". Full-width solvers train on
them (`mccfr.solvers.public.narrow_rows`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.common.rounding import MOST_SCALE, SCALE_ZERO
from storage.schema import ArraySpec


def number_dtype(cells: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which kernels compute: float32 for int16 cells, otherwise the cells' own."""
    return cells if cells in (np.float32, np.float64) else np.dtype(np.float32)


def numbers(
    cells: npt.NDArray[Any], scales: npt.NDArray[np.uint8] | None, starts: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    """Return the values [buckets, slots or more] of one table; float32 and float64 are not copied.

    A row holds the actions of one decision, a slot is one action of it.

    cells   [buckets, slots or more] table of one street and player
    scales  [buckets, rows] uint8 scales of int16 cells, otherwise None
    starts  [rows+1] first slot of each row, and the end of the last
    """
    if scales is not None:
        values = cells.astype(np.float32)
        powers = np.repeat(scales.astype(np.int32) - SCALE_ZERO, np.diff(starts), axis=1)
        values[:, : starts[-1]] = np.ldexp(values[:, : starts[-1]], powers)
        return values
    return cells


def saturated(arrays: Mapping[str, npt.NDArray[Any]], specs: Iterable[ArraySpec]) -> int | None:
    """Return how many rows of 16-bit cells have the largest scale; larger values would be cut off.

    A row is the cells of one decision and bucket.

    arrays  tables by name
    specs   schemas of the tables to examine

    Returns None if none of these tables has 16-bit cells.
    """
    scales = [arrays[spec.name] for spec in specs if "_scale/" in spec.name and spec.name in arrays]
    return sum(int(np.count_nonzero(table == MOST_SCALE)) for table in scales) if scales else None
