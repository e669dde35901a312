"""Outcome sampling with baselines (VR-MCCFR).

Source: Schmid, Burch, Lanctot, Moravčík, Kadlec & Bowling, "Variance Reduction in Monte Carlo Counterfactual Regret
Minimization (VR-MCCFR) for Extensive Form Games Using Baselines". AAAI 2019, equations 6 to 9.

The estimate of an action that is not sampled is its baseline b(I, a).  The estimate of the sampled action is b + (value
− b) / probability.  The expectation is that of outcome sampling for any baseline; a better baseline gives a smaller
variance.  Each baseline moves by a constant share towards the sampled value.
"""

from mccfr.config.solver_tables import SolverConfig
from mccfr.gallery.history_game import History, HistoryGame, Share, regret_matching


class Options(SolverConfig, frozen=True, tag="baselines"):
    """epsilon: share of uniform exploration; rate: share by which baselines move."""

    epsilon: Share = 0.6
    rate: Share = 0.5


class OutcomeWithBaselines(HistoryGame):
    """Outcome sampling with baselines."""

    options = Options
    keeps = ("regret", "strategy_sum", "baseline")

    def iterate(self, t: int) -> None:
        """Sample one path for each player."""
        for i in (0, 1):
            self.walk(self.root, i, 1.0)

    def walk(self, h: History, i: int, q: float) -> float:
        """Return an estimate of the value of h for player i; q is the probability of i's own choices."""
        self.nodes += 1
        if h.terminal:
            return h.payoff[i]
        if h.chance:
            return self.walk(self.draw(h.children, h.probability), i, q)
        I, sigma, options = h.infoset, regret_matching(h.infoset.regret), self.given
        explored = options.epsilon / len(sigma) + (1 - options.epsilon) * sigma
        xi = explored if h.player == i else sigma
        sign = 1 if i == 0 else -1  # baselines are in chips of player 0
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
