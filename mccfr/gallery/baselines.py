"""Outcome sampling with baselines (Schmid, Burch, Lanctot, Moravčík, Kadlec & Bowling, "Variance Reduction in Monte
Carlo Counterfactual Regret Minimization (VR-MCCFR) for Extensive Form Games Using Baselines", AAAI 2019, eqs 6 to 9).

Every action that is not taken is worth its baseline b(I, a), and the one that is taken (value - b) / probability more.
Whatever the baselines are, the mean is that of outcome sampling; the better they are, the less it scatters.  They move
towards what is sampled by a constant share.
"""

from mccfr.config.solvers import SolverConfig
from mccfr.gallery.ground import Ground, History, Share, regret_matching


class Options(SolverConfig, frozen=True, tag="baselines"):
    """epsilon: share of uniform exploration;  rate: share by which baselines move."""

    epsilon: Share = 0.6
    rate: Share = 0.5


class OutcomeWithBaselines(Ground):
    """VR-MCCFR."""

    options = Options
    keeps = ("regret", "strategy_sum", "baseline")

    def iterate(self, t: int) -> None:
        """A path for each player."""
        for i in (0, 1):
            self.walk(self.root, i, 1.0)

    def walk(self, h: History, i: int, q: float) -> float:
        """An estimate of the value of h to player i; q: probability that his own choices led here."""
        self.nodes += 1
        if h.terminal:
            return h.payoff[i]
        if h.chance:
            return self.walk(self.draw(h.children, h.probability), i, q)
        I, sigma, options = h.infoset, regret_matching(h.infoset.regret), self.given
        explored = options.epsilon / len(sigma) + (1 - options.epsilon) * sigma
        xi = explored if h.player == i else sigma
        sign = 1 if i == 0 else -1  # baselines are chips to player 0
        a = self.draw(I.actions, xi)
        u = self.walk(h.children[a], i, q * xi[a] if h.player == i else q)
        v = sign * I.baseline.copy()
        v[a] += (u - v[a]) / xi[a]
        I.baseline[a] += options.rate * (sign * u - I.baseline[a])
        if h.player == i:
            I.regret += (v - sigma @ v) / q
        else:
            I.strategy_sum += sigma / q
        return float(sigma @ v)
