"""External-sampling MCCFR, for two and more players.

Source: Lanctot, Waugh, Zinkevich & Bowling, "Monte Carlo Sampling for Regret Minimization in Extensive Games", NIPS
2009, section 3.2.

All actions of the traverser i are explored; one action of every other player j and of chance is sampled.  The strategy
of j is added to the strategy sum at each visit.  Visits happen in proportion to the reach of all players but i.  The
average needs additions in proportion to the reach of j alone.  So the weight is 1 over the probability of the actions
that players other than i and j have sampled before.  With two players it is 1.
"""

from dataclasses import replace

import numpy as np

from mccfr.gallery.history_game import TRAITS, History, HistoryGame, Row, regret_matching


class ExternalSampling(HistoryGame):
    """External-sampling MCCFR; the traversals of all other players add to a player's strategy sum."""

    traits = replace(TRAITS, takes_seats=True)

    def iterate(self, t: int) -> None:
        """Run a traversal for each player: it updates its regrets and the others' strategy sums."""
        for i in range(len(self.root.last)):
            self.walk(self.root, i, np.ones(len(self.root.last)))

    def walk(self, h: History, i: int, sampled: Row) -> float:
        """Return a sampled value of history h for player i, in chips.

        sampled  [P] for each player, the product of the probabilities of its actions that were sampled before h
        """
        self.nodes += 1
        if h.terminal:
            return h.payoff[i]
        if h.chance:
            return self.walk(self.draw(h.children, h.probability), i, sampled)
        I, sigma = h.infoset, regret_matching(h.infoset.regret)
        if h.player != i:
            I.strategy_sum += self.weight(h.player, i, sampled) * sigma
            a = self.draw(I.actions, sigma)
            return self.walk(h.children[a], i, np.where(np.arange(len(sampled)) == h.player, sigma[a], 1) * sampled)
        v = np.array([self.walk(child, i, sampled) for child in h.children])
        I.regret += v - sigma @ v
        return float(sigma @ v)

    def weight(self, j: int, i: int, sampled: Row) -> float:
        """Return the weight of player j's strategy in its strategy sum, in a traversal of player i.

        It is 1 over the probability of the actions sampled so far of players other than i and j.
        """
        return 1 / float(np.delete(sampled, j).prod())


class AverageAtOneTraversal(ExternalSampling):
    """External sampling that adds to a player's strategy sum in one other player's traversal only.

    For player j that is the traversal of player j - 1, for player 0 of the last player.  No weights are used.  It is
    `AverageType.SIMPLE` of OpenSpiel.  With three and more players it is not the average of the strategies that were
    played, and its NashConv does not fall to 0.
    """

    def weight(self, j: int, i: int, sampled: Row) -> float:
        """Return 1 if player j comes just after player i in the order of players, else 0."""
        return float(j == (i + 1) % len(sampled))
