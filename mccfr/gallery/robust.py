"""Robust sampling.

Source: Li, Hu, Zhang, Qi & Song, "Double Neural Counterfactual Regret Minimization", ICLR 2020, section 4.

It is external sampling that explores k of the traverser's n actions, drawn uniformly.  The value of each counts n/k
times.
"""

import numpy as np

from mccfr.config.solver_tables import SolverConfig
from mccfr.gallery.history_game import Count, History, HistoryGame, regret_matching


class Options(SolverConfig, frozen=True, tag="robust"):
    """most_actions: number k of the traverser's actions that are explored."""

    most_actions: Count = 2


class RobustSampling(HistoryGame):
    """Robust sampling."""

    options = Options

    def iterate(self, t: int) -> None:
        """Run one traversal for each player."""
        for i in (0, 1):
            self.walk(self.root, i, 1.0)

    def walk(self, h: History, i: int, q: float) -> float:
        """Return a sampled value of h for player i; q is the probability that i's own sampling reaches h."""
        self.nodes += 1
        if h.terminal:
            return h.payoff[i]
        if h.chance:
            return self.walk(self.draw(h.children, h.probability), i, q)
        I, sigma = h.infoset, regret_matching(h.infoset.regret)
        if h.player != i:
            I.strategy_sum += sigma / q
            return self.walk(self.draw(h.children, sigma), i, q)
        n = len(sigma)
        k = min(self.given.most_actions, n)
        v = np.zeros(n)
        for a in self.rng.choice(n, k, replace=False):
            v[a] = self.walk(h.children[a], i, q * k / n) * n / k
        I.regret += (v - sigma @ v) / q
        return float(sigma @ v)
