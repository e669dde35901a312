"""Outcome-sampling MCCFR.

Source: Lanctot, Waugh, Zinkevich & Bowling, "Monte Carlo Sampling for Regret Minimization in Extensive Games", NIPS
2009, section 3.1; Lanctot's thesis, 2013, algorithm 3.

One path is sampled.  The traverser i plays uniformly with probability epsilon, else the current strategy.  Sampled
regrets are divided by the probability q that i's own choices reach the infoset.
"""

import numpy as np

from mccfr.config.solver_tables import SolverConfig
from mccfr.gallery.history_game import History, HistoryGame, Share, regret_matching


class Options(SolverConfig, frozen=True, tag="outcome"):
    """Options of outcome sampling.

    epsilon  probability with which the traverser plays uniformly, above 0 and at most 1
    """

    epsilon: Share = 0.6


class OutcomeSampling(HistoryGame):
    """Outcome-sampling MCCFR: an iteration samples one path for each player."""

    options = Options

    def iterate(self, t: int) -> None:
        """Sample a path for each player: it updates its regrets and the other's strategy sums."""
        for i in (0, 1):
            self.walk(self.root, i, 1.0)

    def walk(self, h: History, i: int, q: float) -> float:
        """Return an estimate in chips of the value of history h for player i, if h was sampled.

        q  probability of player i's own sampled choices before h
        """
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
