"""DREAM (Steinberger, Lerer & Brown, "DREAM: Deep Regret Minimization with Advantage Baselines and Model-free
Learning", 2020), tables standing in for both networks.

As Deep CFR, by outcome sampling: K paths of each player.  An action that is not taken is worth its baseline
b(h, a), and the one that is taken (value - b) / probability more (Schmid et al. 2019), so that no expectation changes
whatever b is; the better it is, the less a sample scatters.  The baseline knows the history, both players' cards among
it.  It learns by expected SARSA: towards the chips where the hand ends, else towards what the strategy makes of the
baselines at the next decision.
"""

import numpy as np

from mccfr.gallery import deep
from mccfr.gallery.ground import History, Row, Share
from mccfr.games.game import Game
from mccfr.tables.layout import TableSet, table_name


class Options(deep.Options, frozen=True, tag="dream"):
    """epsilon: share of uniform exploration;  rate: share by which baselines move."""

    epsilon: Share = 0.5
    rate: Share = 0.3


class Dream(deep.DeepCfr):
    """DREAM: `b` has what each history is worth to player 0."""

    options = Options
    keeps_by_history = ("baseline",)

    def begin(self, game: Game, tables: TableSet) -> None:
        """As `Ground.begin`."""
        super().begin(game, tables)
        self.b: Row = tables[table_name("baseline", 0)][0]

    def walk(self, h: History, i: int, t: int, q: float = 1.0) -> float:
        """An estimate of the value of h to player i; q: probability that his own choices led here.

        `ahead` is what the baselines say of the next decision then, or the chips at the end, to player 0.
        """
        self.nodes += 1
        if h.terminal:
            self.ahead = h.payoff[0]
            return h.payoff[i]
        if h.chance:
            return self.walk(self.draw(h.children, h.probability), i, t, q)
        I, sigma, given = h.infoset, h.infoset.sigma, self.given
        xi = given.epsilon / len(sigma) + (1 - given.epsilon) * sigma if h.player == i else sigma
        a, b = self.draw(I.actions, xi), np.array([self.b[child.node] for child in h.children])
        u = self.walk(h.children[a], i, t, q * xi[a] if h.player == i else q)
        v = b.copy() if i == 0 else -b
        v[a] += (u - v[a]) / xi[a]
        self.b[h.children[a].node] += given.rate * (self.ahead - b[a])
        self.ahead = float(sigma @ b)
        if h.player == i:
            I.memory += t * (v - sigma @ v) / q
            I.samples += t / q
        return float(sigma @ v)
