"""DREAM with tables instead of networks.

Source: Steinberger, Lerer & Brown, "DREAM: Deep Regret Minimization with Advantage Baselines and Model-free Learning",
2020.

DREAM is Deep CFR with outcome sampling: K paths for each player.  The estimate of an action that is not sampled is its
baseline b(h, a).  That of the sampled action is b + (value − b) / probability (Schmid et al.  2019).  The expectation
does not depend on b; a better b gives a smaller variance.

A baseline belongs to a history, including both players' cards.  It learns by expected SARSA. Its target is the payoff
at the end, else the strategy's mean of the baselines at the next decision.
"""

import numpy as np

from mccfr.gallery import deep
from mccfr.gallery.history_game import History, Row, Share
from mccfr.games.game import Game
from mccfr.tables.table_layout import TableSet, table_name


class Options(deep.Options, frozen=True, tag="dream"):
    """epsilon: share of uniform exploration; rate: share by which baselines move."""

    epsilon: Share = 0.5
    rate: Share = 0.3


class Dream(deep.DeepCfr):
    """DREAM; `b` is the baseline of each history, in chips of player 0."""

    options = Options
    keeps_by_history = ("baseline",)

    def begin(self, game: Game, tables: TableSet) -> None:
        """Connect the algorithm to game and tables, including the baseline table."""
        super().begin(game, tables)
        self.b: Row = tables[table_name("baseline", 0)][0]

    def walk(self, h: History, i: int, t: int, q: float = 1.0) -> float:
        """Return an estimate of the value of h for player i; q is the probability of i's own choices.

        Sets `ahead` to the target of the baseline of h, in chips of player 0.
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
