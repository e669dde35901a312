"""Deep CFR (Brown, Lerer, Gross & Sandholm, ICML 2019) and Single Deep CFR (Steinberger, 2019), a table standing in for
the network.

K external-sampling traversals of each player leave regrets in his memory, those of iteration t with weight t; his
strategy follows from their weighted mean at each infoset, which is what a network is fitted to.  The average is exact:
every iteration's strategy with weight t and its own reach.
"""

import numpy as np

from mccfr.config.solvers import SolverConfig
from mccfr.gallery.ground import Count, Ground, History, Infoset, Row


class Options(SolverConfig, frozen=True, tag="deep"):
    """traversals: K."""

    traversals: Count = 100


class DeepCfr(Ground):
    """Deep CFR: `memory` has the sum of t times regret, `samples` that of t; `regret` is what was fitted."""

    options = Options
    keeps = ("regret", "strategy_sum", "memory", "samples")

    def iterate(self, t: int) -> None:
        """For each player: traversals against strategies that stay as they are, then a fit."""
        for i in (0, 1):
            self.play(strategy)
            for I in self.infosets:
                if I.player != i:
                    I.strategy_sum += t * I.reach * I.sigma
            for _ in range(self.given.traversals):
                self.walk(self.root, i, t)
            for I in self.infosets:
                if I.player == i and I.samples[0] > 0:
                    I.regret[:] = I.memory / I.samples

    def walk(self, h: History, i: int, t: int) -> float:
        """A sampled value of h to player i, as in external sampling."""
        self.nodes += 1
        if h.terminal:
            return h.payoff[i]
        if h.chance:
            return self.walk(self.draw(h.children, h.probability), i, t)
        I = h.infoset
        if h.player != i:
            return self.walk(self.draw(h.children, I.sigma), i, t)
        v = np.array([self.walk(child, i, t) for child in h.children])
        I.memory += t * (v - I.sigma @ v)
        I.samples += t
        return float(I.sigma @ v)


def strategy(I: Infoset) -> Row:
    """Regret matching; where no advantage is positive the largest is played, or before the first fit all alike."""
    positive = np.maximum(I.regret, 0)
    chosen = positive if positive.any() else (I.regret == I.regret.max()).astype(float)
    return chosen / chosen.sum()
