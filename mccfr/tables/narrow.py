"""Tables with cells of 16 bits: how they lie in files and in memory, and what they mean.

`bfloat16` numbers, which NumPy does not know, are stored as uint16: the upper halves of float32 numbers.  `float16` and
`int16` cells are in units that each row has for itself, 2^(scale - 128); the scales, uint8 [bucket, row], are a table
of the same name with `_scale`.  How kernels read and round them: `mccfr.solvers.sampling.cells`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.rounding import LEAST_SCALE, MOST_SCALE, SCALE_ZERO
from storage.schema import ArraySpec

NARROW_DTYPES = ("float16", "bfloat16", "int16")
"""Of `tables.regret_dtype` and `tables.sum_dtype`, those of 16 bits."""

HALF = np.dtype([("half", np.uint16)])
"""Cells of float16 as kernels see them, in whose compiler that dtype has no arrays."""

_SCALED_BITS = 15  # of the largest cell of a scaled row, in its units
_STORED_BFLOAT, _LARGEST_BFLOAT, _SIGN = "uint16", 0x7F7F, 0x8000


def stored_dtype(dtype: str) -> str:
    """The dtype that cells have in memory and in files."""
    return _STORED_BFLOAT if dtype == "bfloat16" else dtype


def has_scale(dtype: str) -> bool:
    """Whether rows of cells of a dtype have scales."""
    return dtype in ("float16", "int16")


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
    if cells.dtype == _STORED_BFLOAT:
        return (cells.astype(np.uint32) << 16).view(np.float32)
    return cells


def narrowed(
    values: npt.NDArray[np.float64], dtype: np.dtype[Any], starts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8] | None]:
    """The 16-bit cells nearest to regrets or sums [buckets, slots or more], and scales [buckets, rows] or None.

    dtype   of the cells in memory
    starts  [rows+1] first slot of each row, and the end of the last

    Scales are those that kernels give such rows.  What is above the largest cell is cut off there.
    """
    if dtype == _STORED_BFLOAT:
        most = np.array(_LARGEST_BFLOAT << 16, np.uint32).view(np.float32)
        bits = np.clip(values, -most, most).astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16), None  # to even where it lies half-way
    used = values[:, : starts[-1]]
    largest = np.maximum.reduceat(np.abs(used), starts[:-1], axis=1)
    _, exponents = np.frexp(largest * (1 + 2.0 ** (1 - _SCALED_BITS)))  # a hair more, so that it may be rounded up
    found = np.where(largest > 0, exponents + SCALE_ZERO - _SCALED_BITS, LEAST_SCALE)
    scales = np.clip(found, LEAST_SCALE, MOST_SCALE).astype(np.int32)
    units = np.ldexp(used, -np.repeat(scales - SCALE_ZERO, np.diff(starts), axis=1))
    cells = np.zeros(values.shape, dtype)
    most_units = 2.0**_SCALED_BITS - 1
    cells[:, : starts[-1]] = np.clip(np.rint(units) if dtype == np.int16 else units, -most_units, most_units)
    return cells, scales.astype(np.uint8)


def saturated(arrays: Mapping[str, npt.NDArray[Any]], specs: Iterable[ArraySpec]) -> int | None:
    """16-bit cells at the largest number of their dtype, and rows at the largest scale; None where there are none.

    What is there has been cut off, or is about to be.
    """
    found = None
    for spec in specs:
        kind, cells = spec.name.split("/")[0], arrays.get(spec.name)
        if cells is None:
            continue
        if kind.endswith("_scale"):
            found = (found or 0) + int(np.count_nonzero(cells == MOST_SCALE))
        elif spec.dtype == _STORED_BFLOAT and kind in ("regret", "strategy_sum"):
            found = (found or 0) + int(np.count_nonzero((cells & ~np.uint16(_SIGN)) == _LARGEST_BFLOAT))
    return found
