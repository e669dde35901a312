"""Deep CFR with a table instead of the network, and the exact average of Single Deep CFR.

Source: Brown, Lerer, Gross & Sandholm, "Deep Counterfactual Regret Minimization", ICML 2019; Steinberger, "Single Deep
Counterfactual Regret Minimization", 2019.

K external-sampling traversals for each player add sampled regrets to that player's memory, with weight t in iteration
t.  The strategy follows from their weighted mean at each infoset, to which a network would be fitted.  It enters the
average exactly, with weight t and the player's own reach.
"""

import numpy as np

from mccfr.config.solver_tables import SolverConfig
from mccfr.gallery.history_game import Count, History, HistoryGame, Infoset, Row


class Options(SolverConfig, frozen=True, tag="deep"):
    """Options of Deep CFR.

    traversals  number K of traversals for each player in each iteration
    """

    traversals: Count = 100


class DeepCfr(HistoryGame):
    """Deep CFR, with a table of mean sampled regrets in place of the network.

    At each infoset, `memory` [A] is the sum over visits of t times the sampled regrets, where t is the iteration.
    `samples` is the sum of t over visits.  `regret` is `memory` divided by `samples`.
    """

    options = Options
    keeps = ("regret", "strategy_sum", "memory", "samples")

    def iterate(self, t: int) -> None:
        """For each player, run K traversals with fixed strategies, then compute mean regrets."""
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
        """Return a sampled value in chips of history h for player i, and add regrets to `memory`.

        All actions of i are explored; one action of the opponent and of chance is sampled.
        """
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
    """Return an infoset's regret-matching strategy [A].

    If no regret is positive, the action of largest regret is played; if all are equal, as at first, it is uniform.
    """
    positive = np.maximum(I.regret, 0)
    chosen = positive if positive.any() else (I.regret == I.regret.max()).astype(float)
    return chosen / chosen.sum()
