"""Discounting of sampled runs, driven by nodes touched (Brown & Sandholm 2019, sections 3 and 5).

A period is `period_nodes` nodes over all workers. `linear` multiplies all that is accumulated by n/(n+1) after period
n; the same strategies follow, up to scale, from weighting each new update by its period's number n, and no table is
swept. `initial` gives weight 1 in period 1 and 10 afterwards. `dcfr` multiplies positive regrets by n^α/(n^α+1),
negative ones by n^β/(n^β+1) and strategy sums by (n/(n+1))^γ after period n: tables are swept (`mccfr.solvers.sweep`).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Factors(NamedTuple):
    """What a sweep multiplies with: float64."""

    positive: float
    negative: float
    sums: float


@dataclass(frozen=True)
class Schedule:
    """A run's discounting; every method is a pure function of the nodes touched so far."""

    kind: str = "none"  # "none" | "linear" | "initial" | "dcfr"
    period_nodes: int = 10_000_000
    until_nodes: int | None = None  # discounting ends here; the weight stays where it is
    alpha: float = 1.5
    beta: float = 0.0
    gamma: float = 2.0

    @property
    def sweeps(self) -> bool:
        """Whether tables are multiplied at the ends of periods."""
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
        """Factor of a new update of regrets and of strategy sums."""
        period = self.effective_period(nodes)
        if self.kind == "linear":
            return float(period)
        if self.kind == "initial":
            return 1.0 if period == 1 else 10.0
        return 1.0

    def ends(self, nodes: int) -> int:
        """Period ends so far at which tables are swept."""
        return self.effective_period(nodes) - 1 if self.sweeps else 0

    def factors(self, first: int, last: int) -> Factors:
        """Of one sweep for the period ends first+1 .. last."""
        n = np.arange(first + 1, last + 1, dtype=np.float64)
        share = [_share(n, exponent) for exponent in (self.alpha, self.beta)]
        return Factors(*(float(np.prod(factors)) for factors in (*share, (n / (n + 1)) ** self.gamma)))


def _share(n: npt.NDArray[np.float64], exponent: float) -> npt.NDArray[np.float64]:
    """n^x / (n^x + 1); 1 where x is infinite, and 0 where it is minus that."""
    if np.isinf(exponent):
        return np.full(len(n), float(exponent > 0))
    return np.asarray(1 / (1 + n**-exponent), np.float64)
