"""External-sampling MCCFR.

Source: Lanctot, Waugh, Zinkevich & Bowling, "Monte Carlo Sampling for Regret Minimization in Extensive Games", NIPS
2009, section 3.2.

All actions of the traverser i are explored; one action of the opponent and of chance is sampled.  The opponent's
strategy is added to the strategy sum at each visit, which happens in proportion to the opponent's reach.
"""

import numpy as np

from mccfr.gallery.history_game import History, HistoryGame, regret_matching


class ExternalSampling(HistoryGame):
    """External-sampling MCCFR."""

    def iterate(self, t: int) -> None:
        """Run one traversal for each player."""
        for i in (0, 1):
            self.walk(self.root, i)

    def walk(self, h: History, i: int) -> float:
        """Return a sampled value of h for player i."""
        self.nodes += 1
        if h.terminal:
            return h.payoff[i]
        if h.chance:
            return self.walk(self.draw(h.children, h.probability), i)
        I, sigma = h.infoset, regret_matching(h.infoset.regret)
        if h.player != i:
            I.strategy_sum += sigma
            return self.walk(self.draw(h.children, sigma), i)
        v = np.array([self.walk(child, i) for child in h.children])
        I.regret += v - sigma @ v
        return float(sigma @ v)
