"""Counterfactual regret minimisation (CFR) in all variants of `mccfr.solvers.variants`.

Source: Zinkevich, Johanson, Bowling & Piccione, "Regret Minimization in Games with Incomplete Information", NIPS 2007.

Every history is visited.  The value v(I, a) of an action is weighted by the reach of chance and the opponent.  The
strategy enters the average with the player's own reach.  A variant states how iteration t changes regrets and strategy
sums (`Variant.step`).
"""

import numpy as np

from mccfr.config.solver_tables import SolverConfig
from mccfr.gallery.history_game import DRAWS_NOTHING, Count, History, HistoryGame, Infoset, Row, regret_matching
from mccfr.solvers.minimisers import NORMAL_HEDGE, OPTIMISTIC, Step
from mccfr.solvers.variants import variant


class Options(SolverConfig, frozen=True, tag="cfr"):
    """Options of CFR.

    variant  name of a variant, such as "cfr+" or "dcfr" (`mccfr.solvers.variants`)
    updates  "alternating" or "simultaneous"
    horizon  planned number of iterations, which variants with a schedule of discounts need
    """

    variant: str = "cfr"
    updates: str = "alternating"
    horizon: Count | None = None


class Cfr(HistoryGame):
    """CFR in full width, in any variant: each iteration visits every history."""

    options = Options
    keeps = ("regret", "strategy_sum", "predicted_regret")
    traits = DRAWS_NOTHING

    def iterate(self, t: int) -> None:
        """Run iteration t: update the players one after the other, or both at once."""
        given = self.given
        made = variant(given.variant, updates=given.updates, horizon=given.horizon)
        for players in ((0,), (1,)) if made.alternating else ((0, 1),):
            for I in self.infosets:
                I.sigma, I.gained = strategy(I, made.step(t)), np.zeros(len(I.actions))
            for i in players:
                self.walk(self.root, i, 1.0, 1.0)
            for I in self.infosets:
                if I.player in players:
                    update(I, made.step(t))

    def walk(self, h: History, i: int, own: float, others: float) -> float:
        """Return the value in chips of history h for player i, and add to `gained` of i's infosets.

        `gained` is the iteration's regrets.  `own` is the reach of player i, `others` that of the opponent and chance.
        """
        self.nodes += 1
        if h.terminal:
            return h.payoff[i]
        if h.chance or h.player != i:
            shares = h.probability if h.chance else h.infoset.sigma
            return sum(p * self.walk(child, i, own, others * p) for p, child in zip(shares, h.children, strict=True))
        I = h.infoset
        v = np.array([self.walk(child, i, own * p, others) for p, child in zip(I.sigma, h.children, strict=True)])
        I.gained += others * (v - I.sigma @ v)
        I.reach = own
        return float(I.sigma @ v)


def strategy(I: Infoset, step: Step) -> Row:
    """Return the strategy [A] of infoset I: by regret matching, or NormalHedge in variants with it.

    step  the CFR variant's parameters in this iteration; in predictive variants `predicted_regret` replaces the regrets
    """
    basis = I.regret if step.predicts is None else I.predicted_regret
    return normal_hedge(basis) if step.rule == NORMAL_HEDGE and basis.max() > 0 else regret_matching(basis)


def update(I: Infoset, step: Step) -> None:
    """Add an iteration's regrets, `I.gained`, to the regrets, and its strategy to the strategy sum.

    step  the CFR variant's discount factors and weights in this iteration
    """
    before, R = I.regret.copy(), I.regret + I.gained
    I.regret[:] = R * np.where(R > 0, step.positive, step.negative)
    I.predicted_regret[:] = before + 2 * I.gained if step.predicts == OPTIMISTIC else I.regret + I.gained
    I.strategy_sum[:] = step.keep * I.strategy_sum + step.weight * I.reach * I.sigma


def normal_hedge(regrets: Row) -> Row:
    """Return the NormalHedge strategy (Chaudhuri, Freund & Hsu 2009) of regrets [A].

    σ ∝ R⁺ exp(R⁺²/2c), with c such that exp(R⁺²/2c) is e on average over the actions.  One regret must be above 0.
    """
    R = np.maximum(regrets, 0) / regrets.max()
    low, high = 1e-2, 1e2
    for _ in range(50):
        c = (low * high) ** 0.5
        low, high = (c, high) if np.exp(R**2 / (2 * c)).mean() > np.e else (low, c)
    share = R * np.exp(R**2 / (2 * low))
    return share / share.sum()
