"""Discounting of sampled runs, driven by nodes touched (Brown & Sandholm 2019, sections 3 and 5).

A period is `period_nodes` nodes over all workers. `linear` multiplies all that is accumulated by n/(n+1) after period
n; the same strategies follow, up to scale, from weighting each new update by its period's number n, and no table is
swept. `initial` gives weight 1 in period 1 and 10 afterwards. `dcfr` multiplies positive regrets by n^α/(n^α+1),
negative ones by n^β/(n^β+1) and strategy sums by (n/(n+1))^γ after period n. A regret's sign cannot change while its
row is not touched, so a row is brought up to date when it is next updated: a stamp counts the period ends it has seen,
and the product over the gap comes from sums of logarithms (plain prefix products underflow: with β = 0 after 1,075
periods).

Strategy sums weigh what regrets weigh, or period n counts n^averaging_power in them, whatever is done with regrets and
however long: as in CFR+ and DCFR, where the average forgets early strategies sooner than the regrets do.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_LOG_ZERO = -800.0  # exp of it is 0 in float64; a factor of exactly 0, kept finite so that differences stay defined


class Discount(NamedTuple):
    """What a kernel needs for one period.

    weight      float64  factor of every new update of regrets
    sum_weight  float64  and of strategy sums
    lazy    int64    1: rows carry stamps and are discounted when updated
    ends    int64    period ends so far that discount
    positive_factors, negative_factors, sum_factors  [2, P] float64
            row 0: the factor of period end 1, 2, .. P-1 for positive regrets, negative regrets, strategy sums
            row 1: sums of their logarithms up to that end; column 0 of both stands for no period end
    """

    weight: float
    sum_weight: float
    lazy: int
    ends: int
    positive_factors: npt.NDArray[np.float64]
    negative_factors: npt.NDArray[np.float64]
    sum_factors: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Schedule:
    """A run's discounting; every method is a pure function of the nodes touched so far."""

    kind: str = "none"  # "none" | "linear" | "initial" | "dcfr"
    period_nodes: int = 10_000_000
    until_nodes: int | None = None  # discounting ends here; the weight stays where it is
    alpha: float = 1.5
    beta: float = 0.0
    gamma: float = 2.0
    averaging_power: float | None = None  # of strategy sums, to the end; None: they weigh what regrets weigh

    @property
    def lazy(self) -> bool:
        """Whether rows need stamps."""
        return self.kind == "dcfr"

    def period(self, nodes: int) -> int:
        """Number of the period in which the next iteration falls, from 1."""
        return nodes // self.period_nodes + 1

    def period_end(self, nodes: int) -> int:
        """Node count at which the present period ends."""
        return (nodes // self.period_nodes + 1) * self.period_nodes

    def effective_period(self, nodes: int) -> int:
        """The period that discounting has got to: it stands still once discounting has ended."""
        if self.until_nodes is not None:
            nodes = min(nodes, self.until_nodes)
        return self.period(nodes)

    def weight(self, nodes: int) -> float:
        """Factor of a new update of regrets."""
        period = self.effective_period(nodes)
        if self.kind == "linear":
            return float(period)
        if self.kind == "initial":
            return 1.0 if period == 1 else 10.0
        return 1.0

    def sum_weight(self, nodes: int) -> float:
        """Factor of a new update of strategy sums."""
        if self.averaging_power is None:
            return self.weight(nodes)
        return float(self.period(nodes)) ** self.averaging_power

    def at(self, nodes: int, known: Discount | None = None) -> Discount:
        """The kernels' form at a node count; the tables of `known` are used again where they reach far enough."""
        ends = self.effective_period(nodes) - 1
        if known is not None and known.sum_factors.shape[1] > ends:
            ends = ends if self.lazy else 0
            return known._replace(weight=self.weight(nodes), sum_weight=self.sum_weight(nodes), ends=ends)
        factors = np.ones((3, 2, 1)) if not self.lazy else self._factors(2 * ends + 64)
        return Discount(self.weight(nodes), self.sum_weight(nodes), int(self.lazy), ends if self.lazy else 0, *factors)

    def _factors(self, count: int) -> npt.NDArray[np.float64]:
        """[3, 2, count+1]: factors and their log sums for positive regrets, negative regrets and strategy sums."""
        n = np.arange(1, count + 1, dtype=np.float64)
        found = np.zeros((3, 2, count + 1))
        found[:, 0] = 1.0
        for kind, exponent in ((0, self.alpha), (1, self.beta)):
            if exponent == np.inf:
                continue  # no discount: factor 1
            # log(n^x / (n^x + 1)) = -log(1 + n^-x); x = -infinity: factor 0, also after period 1
            zero = exponent == -np.inf
            term = np.full(count, _LOG_ZERO) if zero else -np.logaddexp(0.0, -exponent * np.log(n))
            found[kind, 0, 1:] = 0.0 if zero else 1 / (1 + n**-exponent)
            found[kind, 1, 1:] = np.cumsum(np.maximum(term, _LOG_ZERO))
        found[2, 0, 1:] = (n / (n + 1)) ** self.gamma
        found[2, 1, 1:] = np.cumsum(self.gamma * np.log(n / (n + 1)))
        return found
