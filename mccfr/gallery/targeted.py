"""Targeted CFR (Jackson, "Targeted CFR", AAAI workshop on computer poker 2017, algorithm 1).

Every traversal is for all streets or for one of some.  On these the traverser walks all his actions and learns; on the
others one is drawn from his current strategy, and nothing is learnt.  How often a street is for what is not divided
out, as published: a regret grows by a positive multiple of what external sampling would add.
"""

import numpy as np

from mccfr.config.solvers import SolverConfig
from mccfr.gallery.ground import Ground, History, Share, regret_matching


class Options(SolverConfig, frozen=True, tag="targeted"):
    """full_share: of the traversals, which are for all streets; these alone add to strategy sums."""

    full_share: Share = 0.2


class TargetedSampling(Ground):
    """Targeted CFR."""

    options = Options

    def iterate(self, t: int) -> None:
        """A traversal for each player; a street, where it is for one, is drawn evenly."""
        streets = max(I.histories[0].street for I in self.infosets) + 1
        for i in (0, 1):
            full = self.rng.random() < self.given.full_share
            self.walk(self.root, i, None if full else int(self.rng.integers(streets)))

    def walk(self, h: History, i: int, target: int | None) -> float:
        """A sampled value of h to player i; target: the street to learn on, None: all."""
        self.nodes += 1
        if h.terminal:
            return h.payoff[i]
        if h.chance:
            return self.walk(self.draw(h.children, h.probability), i, target)
        I, sigma = h.infoset, regret_matching(h.infoset.regret)
        if h.player != i or target not in (None, h.street):
            if h.player != i and target is None:
                I.strategy_sum += sigma
            return self.walk(self.draw(h.children, sigma), i, target)
        v = np.array([self.walk(child, i, target) for child in h.children])
        I.regret += v - sigma @ v
        return float(sigma @ v)
