"""Outcome-sampling MCCFR (Lanctot, Waugh, Zinkevich & Bowling 2009, section 3.1; Lanctot's thesis, 2013, algorithm 3).

One path.  The traverser i plays uniformly with probability epsilon, else his current strategy; what he finds is divided
by the probability q with which his own choices have led there.
"""

import numpy as np

from mccfr.config.solvers import SolverConfig
from mccfr.gallery.ground import Ground, History, Share, regret_matching


class Options(SolverConfig, frozen=True, tag="outcome"):
    """epsilon: share of uniform exploration."""

    epsilon: Share = 0.6


class OutcomeSampling(Ground):
    """Outcome sampling."""

    options = Options

    def iterate(self, t: int) -> None:
        """A path for each player."""
        for i in (0, 1):
            self.walk(self.root, i, 1.0)

    def walk(self, h: History, i: int, q: float) -> float:
        """An estimate of the value of h to player i, given that h was sampled."""
        self.nodes += 1
        if h.terminal:
            return h.payoff[i]
        if h.chance:
            return self.walk(self.draw(h.children, h.probability), i, q)
        I, sigma = h.infoset, regret_matching(h.infoset.regret)
        if h.player != i:
            I.strategy_sum += sigma / q
            return self.walk(self.draw(h.children, sigma), i, q)
        epsilon = self.given.epsilon
        xi = epsilon / len(sigma) + (1 - epsilon) * sigma
        a = self.draw(I.actions, xi)
        v = np.zeros(len(sigma))
        v[a] = self.walk(h.children[a], i, q * xi[a]) / xi[a]
        I.regret += (v - sigma @ v) / q
        return float(sigma @ v)
