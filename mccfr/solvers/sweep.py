"""Discounts of `dcfr` as the paper has them: at the end of a period every table is multiplied (Brown & Sandholm 2019).

One worker sweeps for all; the others train on meanwhile, which is what workers without locks do to each other anyway.
What has been swept is counted, so that a run that was stopped goes on bit by bit.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import nogil_njit
from mccfr.rng import ROUNDING, next_word, random_at, seed_stream
from mccfr.rounding import lane_bits, rounded
from mccfr.solvers.regret import as_element
from mccfr.tables.discount import Schedule


@nogil_njit
def discount_regret_table(table, positive, negative):
    """Multiply cells above 0 by `positive` and the others by `negative`, in place."""
    up, down = as_element(table, positive), as_element(table, negative)
    for i in range(table.shape[0]):
        row = table[i]
        for k in range(row.shape[0]):
            row[k] *= up if row[k] > 0 else down


@nogil_njit
def discount_sum_table(table, factor, word):
    """Multiply strategy sums by `factor` (float64), in place; float32 ones are rounded by random bits (uint64)."""
    for i in range(table.shape[0]):
        row, row_word = table[i], random_at(word, np.uint64(i))
        for k in range(row.shape[0]):
            row[k] = rounded(row, factor * np.float64(row[k]), lane_bits(row_word, k))


class Sweep:
    """The sweeps of a run.

    regrets, sums  its tables, of two axes, float32 or float64, changed in place
    schedule       with `sweeps`
    stream         (seed, worker): what names the random bits that float32 sums are rounded by
    """

    def __init__(
        self,
        regrets: Iterable[npt.NDArray[Any]],
        sums: Iterable[npt.NDArray[Any]],
        schedule: Schedule,
        stream: tuple[int, int],
    ) -> None:
        self._regrets, self._sums, self._schedule = [(list(regrets), schedule)], list(sums), schedule
        self._stream = np.uint64(stream[0]), np.uint64(stream[1])

    def also(self, regrets: Iterable[npt.NDArray[Any]], schedule: Schedule) -> None:
        """Sweep other regrets too, by factors of a schedule of their own, whose periods are the run's."""
        self._regrets.append((list(regrets), schedule))

    def warm_up(self) -> None:
        """Compile (or load from the cache) the kernels."""
        for table in self._regrets[0][0][:1]:
            discount_regret_table(np.zeros((1, 1), table.dtype), 1.0, 1.0)
        for table in self._sums[:1]:
            discount_sum_table(np.zeros((1, 1), table.dtype), 1.0, np.uint64(0))

    def run(self, seen: int, nodes: int) -> int:
        """Discount the tables for the period ends between `seen` and a count of nodes; returns those seen then."""
        ends = self._schedule.ends(nodes)
        if ends <= seen:
            return seen
        factors = self._schedule.factors(seen, ends)
        for tables, schedule in self._regrets:
            of_these = schedule.factors(seen, ends)
            for table in tables:
                discount_regret_table(table, of_these.positive, of_these.negative)
        rng = np.zeros(4, np.uint64)
        seed_stream(rng, *self._stream, np.uint64(ROUNDING), np.uint64(ends))
        for table in self._sums:
            discount_sum_table(table, factors.sums, np.uint64(next_word(rng)))
        return ends
