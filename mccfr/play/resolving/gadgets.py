"""Gadget games for re-solving a subgame: the opponent's range at its root.

The re-solving player's range follows from the strategy before re-solving. The opponent's range is unknown; there are
three gadgets, each a game before the subgame:

* *Unsafe* (Ganzfried & Sandholm 2015): the opponent's range follows from an assumed strategy. If it plays another one,
  its gain is unbounded.
* *Re-solving* (CFR-D gadget: Burch, Johanson & Bowling 2014, section 5): the opponent is dealt any hand, and either
  enters the subgame or takes the hand's *alternative*, a counterfactual value. Let the alternatives be best-response
  values against the strategy before. Then a solution gives no hand more than before.
* *Maxmargin* (Moravcik, Schmid, Ha, Hladik & Gaukrodger 2016, "Refining subgames in large imperfect information
  games"): the opponent chooses its hand and wins the subgame's value minus the alternative. A solution maximises the
  smallest *margin* (alternative minus value) over hands.

Margins are in chips per hand; all other values are counterfactual, chips times the weight of the player's hands. Reach
subgame solving (Brown & Sandholm 2017, section 4) maximises *reach margins*: it raises the alternatives by the
opponent's earlier mistakes (`reach_gains` of `mccfr.play.resolving.all_spots`).

A safe gadget's game has many equilibria: if a hand stays out of the subgame, any play that keeps it out is optimal. A
sequential equilibrium plays well against such hands too (Kubicek, Lisy & Sandholm 2026). The player therefore learns
against a range in which hands enter by mistake, with probability 1/2t in iteration t (`Gadget.opponent_range`). Half of
these follow the deal, half the strategy before. The gap (NashConv) is measured without mistakes.

A gadget's own regrets use the subgame's matching and discounting (`Step`).
"""

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from mccfr.solvers.minimisers import Step

Floats = npt.NDArray[np.float64]


class Gadget(ABC):
    """Base class of gadgets: games in which each of the opponent's H hands enters a subgame or not.

    In every iteration the solver takes the opponent's range from the gadget. Then it updates the gadget with the values
    of the hands.
    """

    def __init__(self, hands: int, mistaken: Floats | None = None) -> None:
        """Take the number of the opponent's hands.

        mistaken  [H] weights of hands that enter the subgame by mistake; None: no mistakes
        """
        self._sums, self._weight, self._mistaken = np.zeros(hands), 0.0, mistaken

    @abstractmethod
    def range(self) -> Floats:
        """Return [H] weights of the opponent's hands in the subgame, by the gadget's current strategy."""

    def opponent_range(self, chance: float) -> Floats:
        """Return [H] the opponent's range against which the re-solving player updates its regrets.

        chance  weight, 0 to 1, of the range of hands that enter by mistake; `range()` has the weight 1 - chance
        """
        return self.range() if self._mistaken is None else (1 - chance) * self.range() + chance * self._mistaken

    @abstractmethod
    def update(self, values: Floats, step: Step) -> None:
        """Update the gadget's regrets and average strategy after an iteration.

        values  [H] counterfactual values of the opponent's hands in the subgame
        step    discounting of regrets and strategy sums in this iteration
        """

    @abstractmethod
    def best(self, values: Floats) -> float:
        """Return the opponent's best-response value in the gadget's game.

        values  [H] counterfactual values of the opponent's hands in the subgame
        """

    @abstractmethod
    def average(self) -> tuple[Floats, float]:
        """Return the opponent's average play as ([H] range in the subgame, value outside of it).

        The average is over the iterations so far, weighted like strategy sums.  The value is the part of the opponent's
        result that the subgame does not contain, in the unit of `best`.  Both are needed for the gap (NashConv).
        """

    def _add(self, played: Floats, step: Step) -> None:
        self._sums = self._sums * step.keep + step.weight * played
        self._weight = self._weight * step.keep + step.weight

    @property
    def _mean(self) -> Floats:
        return self._sums / self._weight


def _discount(regret: Floats, step: Step) -> None:
    regret *= np.where(regret > 0, step.positive, step.negative)


class Unsafe(Gadget):
    """Gadget of unsafe re-solving: the opponent always enters, with a fixed range."""

    def __init__(self, weights: Floats) -> None:
        """Take the weights [H] of the opponent's hands."""
        super().__init__(len(weights))
        self._given = weights

    def range(self) -> Floats:
        """Return [H] the fixed weights of the opponent's hands."""
        return self._given

    def update(self, values: Floats, step: Step) -> None:
        """Ignore the values of an iteration: this gadget's range is fixed, so it learns nothing."""

    def best(self, values: Floats) -> float:
        """Return the opponent's value with its fixed range: the sum of weights times values.

        values  [H] counterfactual values of the opponent's hands in the subgame
        """
        return float(self._given @ values)

    def average(self) -> tuple[Floats, float]:
        """Return ([H] the opponent's fixed range, 0): no hand stays outside of the subgame."""
        return self._given, 0.0


class Resolving(Gadget):
    """CFR-D gadget: each hand of the opponent enters the subgame, or takes a fixed value instead.

    This value is the hand's alternative.
    """

    def __init__(self, deal: Floats, alternatives: Floats, mistaken: Floats | None = None) -> None:
        """Start with regrets of 0.

        deal          [H] weight with which each of the opponent's hands is dealt, whatever the opponent's strategy
        alternatives  [H] counterfactual value of each hand if it does not enter the subgame, in chips times the weight
                      of the re-solving player's hands that share no card with it
        mistaken      [H] weights of the opponent's hands in the subgame if it enters by mistake, in the scale of
                      `deal`. `opponent_range` mixes them into the range; None: no mistakes

        A mistake is to enter with a hand that the gadget's strategy would keep out for its alternative. It makes the
        player learn to play well against such hands too.

        The weights of the re-solving player's range sum to 1. Take the product of both players' weights (deal and
        range) for each pair of hands without a common card. These products also sum to 1.
        """
        super().__init__(len(deal), mistaken)
        self._dealt, self._alternatives = deal, alternatives
        self._enter, self._leave = np.zeros_like(deal), np.zeros_like(deal)

    def _entered(self) -> Floats:
        enter, leave = np.maximum(self._enter, 0), np.maximum(self._leave, 0)
        total = enter + leave
        return np.divide(enter, total, out=np.full_like(total, 0.5), where=total > 0)

    def range(self) -> Floats:
        """Return [H] the opponent's range: weight in the deal times probability of entering.

        With each hand the opponent either enters the subgame or takes a fixed value.  The probability is that of its
        current strategy for this choice.
        """
        return self._dealt * self._entered()

    def update(self, values: Floats, step: Step) -> None:
        """Update the regrets of entering the subgame and of taking the alternative, for each hand.

        values  [H] counterfactual values of the opponent's hands in the subgame
        step    discounting of regrets and strategy sums in this iteration
        """
        entered = self._entered()
        self._add(entered, step)
        mean = entered * values + (1 - entered) * self._alternatives
        self._enter += values - mean
        self._leave += self._alternatives - mean
        _discount(self._enter, step)
        _discount(self._leave, step)

    def best(self, values: Floats) -> float:
        """Return the best-response value: each hand takes the better of subgame and alternative.

        values  [H] counterfactual values of the opponent's hands in the subgame
        """
        return float(self._dealt @ np.maximum(values, self._alternatives))

    def average(self) -> tuple[Floats, float]:
        """Return the opponent's average play as ([H] range in the subgame, value outside of it).

        The average is over the iterations so far, weighted like strategy sums.  The range is a hand's weight in the
        deal times its mean probability of entering.  The value is that of the alternatives that hands take instead.
        """
        entered = self._mean
        return self._dealt * entered, float(self._dealt @ ((1 - entered) * self._alternatives))


class Maxmargin(Gadget):
    """Maxmargin gadget: the opponent chooses a hand, and wins its value minus a fixed value.

    The first is the hand's value in the subgame. The fixed one is its alternative, such as its value before re-solving.
    """

    def __init__(
        self, deal: Floats, alternatives: Floats, opponent_weight: Floats, mistaken: Floats | None = None
    ) -> None:
        """Take the deal and the alternatives (fixed values) of the opponent's hands.

        deal             [H] weight of each hand in the deal; only whether it is 0 matters
        alternatives     [H] counterfactual value that is subtracted from each hand's value
        opponent_weight  [H] for each hand, total weight of the re-solving player's hands that share no card with it
        mistaken         [H] weights of hands that enter the subgame by mistake; None: no mistakes
        """
        super().__init__(len(deal), mistaken)
        self._live = (deal > 0) & (opponent_weight > 0)
        self._alternatives = alternatives
        self._share = np.divide(1.0, opponent_weight, out=np.zeros_like(opponent_weight), where=self._live)
        self._regret = np.zeros_like(opponent_weight)

    def _chosen(self) -> Floats:
        positive = np.where(self._live, np.maximum(self._regret, 0), 0)
        total = positive.sum()
        return positive / total if total > 0 else self._live / self._live.sum()

    def range(self) -> Floats:
        """Return [H] the opponent's range: probability of choosing each hand, divided by a weight.

        The weight is that of the re-solving player's hands that share no card with the hand.
        """
        return self._chosen() * self._share

    def _gains(self, values: Floats) -> Floats:
        return (values - self._alternatives) * self._share

    def update(self, values: Floats, step: Step) -> None:
        """Update the regrets of choosing each hand, and the average strategy, after an iteration.

        values  [H] counterfactual values of the opponent's hands in the subgame
        step    discounting of regrets and strategy sums in this iteration
        """
        chosen, gains = self._chosen(), self._gains(values)
        self._add(chosen, step)
        self._regret += np.where(self._live, gains - chosen @ gains, 0)
        _discount(self._regret, step)

    def best(self, values: Floats) -> float:
        """Return the opponent's largest gain over the hands: value minus alternative, in chips.

        It is minus the smallest margin.

        values  [H] counterfactual values of the opponent's hands in the subgame
        """
        return float(self._gains(values)[self._live].max())

    def average(self) -> tuple[Floats, float]:
        """Return the opponent's average play as ([H] range in the subgame, value outside of it).

        The average is over the iterations so far, weighted like strategy sums.  The opponent pays the alternative of
        each hand with which it enters.  So the value is minus the sum over hands of range times alternative.
        """
        range_ = self._mean * self._share
        return range_, -float(range_ @ self._alternatives)
