"""Linear discounting and other discounts for sampling algorithms, by nodes touched.

Source: Brown & Sandholm 2019, sections 3 and 5.

A period is `period_nodes` nodes over all workers. It has a number n, from 1 on:

* `linear` (linear discounting) gives updates in period n the weight n. The paper multiplies regrets and strategy sums
  by n/(n+1) after the period; the weights give the same strategies without a pass over the tables.
  `SampledSolver.run` of `mccfr.solvers.sampling.sampled` passes the weight to the kernels.  They multiply by it in
  `update`, `add` and others of `mccfr.solvers.regret`; for packed trees these are `update_row`, `add_row` and others
  of `mccfr.solvers.sampling.packed_rows`.  Counted by iterations it is the variant `lcfr` of `mccfr.solvers.variants`.
* `initial` gives updates the weight 1 in period 1, and 10 afterwards.
* `dcfr` (discounted CFR) multiplies positive regrets after period n by n^α/(n^α+1), negative ones by n^β/(n^β+1), and
  strategy sums by (n/(n+1))^γ. The multiplication is a pass over all tables (`mccfr.solvers.dcfr_discount`).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Factors(NamedTuple):
    """Factors by which a pass over all tables multiplies regrets (by sign) and strategy sums."""

    positive: float
    negative: float
    sums: float


@dataclass(frozen=True)
class Schedule:
    """A run's discount schedule: weights and discounts by the number of nodes touched so far.

    In all methods `nodes` is this number, over all workers of the run.
    """

    kind: str = "none"  # "none" | "linear" | "initial" | "dcfr"
    period_nodes: int = 10_000_000
    until_nodes: int | None = None  # no discounting after this node count: the weight stays constant
    alpha: float = 1.5
    beta: float = 0.0
    gamma: float = 2.0

    @property
    def sweeps(self) -> bool:
        """True for the kind `dcfr`: a pass over all tables multiplies them whenever a period ends."""
        return self.kind == "dcfr"

    def period(self, nodes: int) -> int:
        """Return the number, from 1, of the period in which the next iteration begins."""
        return nodes // self.period_nodes + 1

    def period_end(self, nodes: int) -> int:
        """Return the node count at which the period of the next iteration ends."""
        return (nodes // self.period_nodes + 1) * self.period_nodes

    def effective_period(self, nodes: int) -> int:
        """Return the number, from 1, of the period that determines the discount.

        After `until_nodes` nodes it stays constant.
        """
        if self.until_nodes is not None:
            nodes = min(nodes, self.until_nodes)
        return self.period(nodes)

    def weight(self, nodes: int) -> float:
        """Return the weight of an update of regrets and strategy sums that follows after `nodes` nodes."""
        period = self.effective_period(nodes)
        if self.kind == "linear":
            return float(period)
        if self.kind == "initial":
            return 1.0 if period == 1 else 10.0
        return 1.0

    def ends(self, nodes: int) -> int:
        """Return the number of periods whose end requires a multiplication of the tables; 0 without `dcfr`.

        Periods that end after `until_nodes` nodes do not count.
        """
        return self.effective_period(nodes) - 1 if self.sweeps else 0

    def factors(self, first: int, last: int) -> Factors:
        """Return the Factors for several period ends together: the products over the periods first+1 to last.

        Periods are counted from 1.
        """
        n = np.arange(first + 1, last + 1, dtype=np.float64)
        share = [_share(n, exponent) for exponent in (self.alpha, self.beta)]
        return Factors(*(float(np.prod(factors)) for factors in (*share, (n / (n + 1)) ** self.gamma)))


def _share(n: npt.NDArray[np.float64], exponent: float) -> npt.NDArray[np.float64]:
    """Return n^x / (n^x + 1) for each number n of a period; 1 for x = ∞ and 0 for x = -∞.

    n         [K] numbers of periods, from 1
    exponent  x: α for positive regrets, β for negative ones
    """
    if np.isinf(exponent):
        return np.full(len(n), float(exponent > 0))
    return np.asarray(1 / (1 + n**-exponent), np.float64)
