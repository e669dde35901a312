"""An algorithm: chance sampling (Zinkevich et al. 2007), CFR on one deal at a time."""

import numpy as np

from mccfr.config.solver_tables import SolverConfig
from mccfr.gallery.history_game import Count, History, HistoryGame, regret_matching


class Options(SolverConfig, frozen=True, tag="chance-sampling"):
    """Keys of the table [solver].  deals: number of deals sampled in one iteration."""

    deals: Count = 1


class ChanceSampling(HistoryGame):
    """Samples chance and walks every action of both players."""

    options = Options

    def iterate(self, t: int) -> None:
        """Do one traversal for each player and deal; `t` counts from 1."""
        for _ in range(self.given.deals):
            for i in (0, 1):
                self.walk(self.root, i, 1.0, 1.0)

    def walk(self, h: History, i: int, own: float, other: float) -> float:
        """Return a sampled value of h to player i.  own, other: reach probabilities of i and of the opponent."""
        self.nodes += 1
        if h.terminal:
            return h.payoff[i]
        if h.chance:
            return self.walk(self.draw(h.children, h.probability), i, own, other)
        infoset, sigma = h.infoset, regret_matching(h.infoset.regret)
        if h.player != i:
            return sum(p * self.walk(child, i, own, other * p) for p, child in zip(sigma, h.children, strict=True))
        v = np.array([self.walk(child, i, own * p, other) for p, child in zip(sigma, h.children, strict=True)])
        infoset.regret += other * (v - sigma @ v)
        infoset.strategy_sum += own * sigma
        return float(sigma @ v)
