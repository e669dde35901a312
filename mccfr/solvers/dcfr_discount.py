"""Discounts whole tables of regrets and strategy sums, as DCFR requires (Brown & Sandholm 2019).

A period is a fixed number of nodes touched; at its end all cells are multiplied by the factors of DCFR.  Worker 0 does
this while the other workers train on; workers update shared tables without locks in any case.  The number of period
ends that are done is saved, so a stopped run continues bit for bit.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from abstraction.kernels.jit import nogil_njit
from mccfr.common.rng import ROUNDING, next_word, random_at, seed_stream
from mccfr.common.rounding import lane_bits, rounded
from mccfr.solvers.regret import as_element
from mccfr.tables.linear_discounting import Schedule


@nogil_njit
def discount_regret_table(table, positive, negative):
    """Multiply regrets above 0 by `positive` and all others by `negative`, in place.

    table               two axes, float32 or float64
    positive, negative  factors, float64
    """
    up, down = as_element(table, positive), as_element(table, negative)
    for i in range(table.shape[0]):
        row = table[i]
        for k in range(row.shape[0]):
            row[k] *= up if row[k] > 0 else down


@nogil_njit
def discount_sum_table(table, factor, word):
    """Multiply strategy sums by `factor` (float64), in place.

    table  two axes, float32 or float64
    word   uint64 random bits for the stochastic rounding of float32 sums
    """
    for i in range(table.shape[0]):
        row, row_word = table[i], random_at(word, np.uint64(i))
        for k in range(row.shape[0]):
            row[k] = rounded(row, factor * np.float64(row[k]), lane_bits(row_word, k))


class DcfrDiscount:
    """Multiplies a run's regrets and strategy sums by their DCFR factors at the ends of periods.

    regrets, sums  tables of two axes, float32 or float64, changed in place
    schedule       gives period ends and factors; only a schedule of kind "dcfr" has period ends
    stream         (seed, worker), from which the random bits for rounding float32 sums are drawn
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
        """Add regret tables that `run` discounts too: at the same times, by factors of their own.

        The times are the ends of periods (numbers of nodes touched) in the schedule that the constructor got.

        regrets   tables of two axes, float32 or float64, changed in place
        schedule  only gives the factors of these tables; its periods are ignored
        """
        self._regrets.append((list(regrets), schedule))

    def warm_up(self) -> None:
        """Compile the kernels, or load them from the cache."""
        for table in self._regrets[0][0][:1]:
            discount_regret_table(np.zeros((1, 1), table.dtype), 1.0, 1.0)
        for table in self._sums[:1]:
            discount_sum_table(np.zeros((1, 1), table.dtype), 1.0, np.uint64(0))

    def run(self, nodes_before: int, nodes: int) -> int:
        """Discount the tables, in place, for all period ends passed since the last call.

        nodes_before  number of period ends (not of nodes) at which the tables were discounted before this call
        nodes         nodes that all workers of the run have touched so far

        Returns the number of period ends at which the tables have been discounted after this call.
        """
        ends = self._schedule.ends(nodes)
        if ends <= nodes_before:
            return nodes_before
        factors = self._schedule.factors(nodes_before, ends)
        for tables, schedule in self._regrets:
            of_these = schedule.factors(nodes_before, ends)
            for table in tables:
                discount_regret_table(table, of_these.positive, of_these.negative)
        rng = np.zeros(4, np.uint64)
        seed_stream(rng, *self._stream, np.uint64(ROUNDING), np.uint64(ends))
        for table in self._sums:
            discount_sum_table(table, factors.sums, np.uint64(next_word(rng)))
        return ends
