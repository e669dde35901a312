"""Average strategy sampling.

Source: Gibson, Burch, Lanctot & Szafron, "Efficient Monte Carlo Counterfactual Regret Minimization in Games with Many
Player Actions", NIPS 2012, algorithm 1.

It is external sampling that explores each action of the traverser with the probability

    rho(a) = max(epsilon, (beta + tau S(I, a)) / (beta + sum of S(I, .))),

so that actions with a small average strategy are sampled rarely.
"""

import numpy as np

from mccfr.config.solver_tables import SolverConfig
from mccfr.gallery.history_game import History, HistoryGame, Positive, Share, regret_matching


class Options(SolverConfig, frozen=True, tag="average-strategy"):
    """epsilon, tau and beta in the formula of rho(a)."""

    epsilon: Share = 0.05
    tau: Positive = 1000.0
    beta: Positive = 1_000_000.0


class AverageStrategySampling(HistoryGame):
    """Average strategy sampling."""

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
        options, S = self.given, I.strategy_sum
        rho = np.maximum(options.epsilon, (options.beta + options.tau * S) / (options.beta + S.sum()))
        rho = np.minimum(1.0, rho)
        v = np.zeros(len(sigma))
        for a in np.flatnonzero(self.rng.random(len(rho)) < rho):
            v[a] = self.walk(h.children[a], i, q * rho[a]) / rho[a]
        I.regret += (v - sigma @ v) / q
        return float(sigma @ v)
