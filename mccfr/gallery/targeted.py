"""Targeted CFR.

Source: Jackson, "Targeted CFR", AAAI workshop on computer poker 2017, algorithm 1.

Every traversal updates all streets or one street.  On updated streets all actions of the traverser are explored.  On
the others one action is sampled from the current strategy, and nothing is updated.  As published, regrets are not
divided by the probability that a street is chosen.  They grow by a positive multiple of what external sampling would
add.
"""

import numpy as np

from mccfr.config.solver_tables import SolverConfig
from mccfr.gallery.history_game import History, HistoryGame, Share, regret_matching


class Options(SolverConfig, frozen=True, tag="targeted"):
    """full_share: share of traversals that update all streets; only these add to strategy sums."""

    full_share: Share = 0.2


class TargetedSampling(HistoryGame):
    """Targeted CFR."""

    options = Options

    def iterate(self, t: int) -> None:
        """Run one traversal for each player, for all streets or one drawn uniformly."""
        streets = max(I.histories[0].street for I in self.infosets) + 1
        for i in (0, 1):
            full = self.rng.random() < self.given.full_share
            self.walk(self.root, i, None if full else int(self.rng.integers(streets)))

    def walk(self, h: History, i: int, target: int | None) -> float:
        """Return a sampled value of h for player i; `target` is the street to update, None for all."""
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
