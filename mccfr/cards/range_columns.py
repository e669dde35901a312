"""Stores tables with a column for each hand compactly, without the hands outside of the ranges.

Often about 50 of 1,326 hands have a range weight above 0.
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin


class RangeColumns(NDArrayOperatorsMixin):
    """Array [.., H] with a column for each hand, which stores the columns of n hands only.

    These are the hands in a range. The function `columns` reads the stored columns. Any other use as an array computes
    the full array once, by `make`.

    kept   [.., n] the stored columns
    held   [n] hand index of each stored column, ascending
    shape  shape of the full array
    hands  number H of all hands
    make   function without arguments that computes the full array
    """

    def __init__(
        self, kept: npt.NDArray[Any], held: npt.NDArray[np.integer], hands: int, make: Callable[[], npt.NDArray[Any]]
    ) -> None:
        self.kept, self.held, self.shape, self._make = kept, held, (*kept.shape[:-1], hands), make

    @cached_property
    def full_array(self) -> npt.NDArray[Any]:
        """The array [.., H] with all columns, computed on first use."""
        return self._make()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.full_array, dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*(np.asarray(one) for one in inputs), **options)

    def __getitem__(self, at: Any) -> Any:
        return self.full_array[at]

    def __len__(self) -> int:
        return len(self.kept)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.full_array, name)


def spread(
    kept: npt.NDArray[np.int32], held: npt.NDArray[np.integer], hands: int, nothing: int
) -> npt.NDArray[np.int32]:
    """Return an array [.., H] that has `kept` in the columns `held`, and `nothing` in the others.

    kept     [.., n] columns
    held     [n] hand index of each of these columns, ascending
    hands    number H of all hands
    nothing  value of every cell of the other columns

    The result is a `RangeColumns`, or `kept` itself if n = H.
    """
    if len(held) == hands:
        return kept
    return cast(npt.NDArray[np.int32], RangeColumns(kept, held, hands, partial(_filled, kept, held, hands, nothing)))


def _filled(
    kept: npt.NDArray[np.int32], held: npt.NDArray[np.integer], hands: int, nothing: int
) -> npt.NDArray[np.int32]:
    found = np.full((*kept.shape[:-1], hands), nothing, kept.dtype)
    found[..., held] = kept
    return found


def stored_columns(table: npt.NDArray[Any]) -> tuple[npt.NDArray[np.integer], npt.NDArray[Any]]:
    """Return the hands [n] whose columns a table [.., H] stores, and these columns [.., n].

    An ordinary array stores the columns of all hands.
    """
    if isinstance(table, RangeColumns):
        return table.held, table.kept
    return np.arange(table.shape[-1]), table


def columns(table: npt.NDArray[Any], hands: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
    """Return the columns [.., n] of a table [.., H] for the ascending hand indices `hands` [n]."""
    if isinstance(table, RangeColumns):
        column = np.searchsorted(table.held, hands)
        if np.array_equal(table.held.take(column, mode="clip"), hands):
            return table.kept[..., column]
    return np.asarray(table)[..., hands]
