"""Tables with cells of 16 bits: how they lie in files and in memory, and what they mean.

`int16` cells are in units that each row has for itself, 2^(scale - 128); the scales, uint8 [bucket, row], are a table
of the same name with `_scale`.  Full width trains on them (`mccfr.solvers.public.narrow_rows`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.rounding import MOST_SCALE, SCALE_ZERO
from storage.schema import ArraySpec


def number_dtype(cells: np.dtype[Any]) -> np.dtype[Any]:
    """Of a kernel's arithmetic on cells of a dtype, and of its scratch."""
    return cells if cells in (np.float32, np.float64) else np.dtype(np.float32)


def numbers(
    cells: npt.NDArray[Any], scales: npt.NDArray[np.uint8] | None, starts: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    """Regrets or sums [buckets, slots or more] of a block's cells; those of float32 and float64 are the cells.

    scales  [buckets, rows], where the rows have any
    starts  [rows+1] first slot of each row, and the end of the last
    """
    if scales is not None:
        found = cells.astype(np.float32)
        powers = np.repeat(scales.astype(np.int32) - SCALE_ZERO, np.diff(starts), axis=1)
        found[:, : starts[-1]] = np.ldexp(found[:, : starts[-1]], powers)
        return found
    return cells


def saturated(arrays: Mapping[str, npt.NDArray[Any]], specs: Iterable[ArraySpec]) -> int | None:
    """Rows of 16-bit cells at the largest scale, cut off or about to be; None where there are no such rows."""
    scales = [arrays[spec.name] for spec in specs if "_scale/" in spec.name and spec.name in arrays]
    return sum(int(np.count_nonzero(table == MOST_SCALE)) for table in scales) if scales else None
