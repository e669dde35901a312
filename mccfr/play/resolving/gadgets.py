"""Gadget games for re-solving a subgame: the opponent's range at its root.

The re-solving player's range follows from the strategy in force. The opponent's range is unknown; there are three
gadgets, each a game before the subgame:

* *Unsafe* (Ganzfried & Sandholm 2015): the opponent's range follows from an assumed strategy. If it plays another
  one, its gain is unbounded.
* *Re-solving* (CFR-D gadget: Burch, Johanson & Bowling 2014, section 5): the opponent is dealt any hand, and either
  enters the subgame or takes the hand's *alternative*, a counterfactual value. With best-response values against the
  strategy in force as alternatives, a solution gives no hand more than before.
* *Maxmargin* (Moravcik, Schmid, Ha, Hladik & Gaukrodger 2016, "Refining subgames in large imperfect information
  games"): the opponent chooses its hand and wins the subgame's value minus the alternative. A solution maximises the
  smallest *margin* (alternative minus value) over hands.

Margins are in chips per hand; all other values are counterfactual, chips times the weight of the player's hands.
Reach subgame solving (Brown & Sandholm 2017, section 4) maximises *reach margins*: it raises the alternatives by the
opponent's earlier mistakes (`reach_margins` of `mccfr.play.resolving.all_spots`).

A safe gadget's game has many equilibria, since any play that keeps a hand out of the subgame is optimal against it.
Better ones also play well against those hands, as a sequential equilibrium does (Kubicek, Lisy & Sandholm 2026). The
player therefore learns against a range in which hands enter by mistake, with probability 1/2t in iteration t
(`Gadget.opponent_range`). Half of these follow the deal, half the strategy in force. Gaps are those of the gadget
without mistakes.

A gadget's own regrets use the subgame's matching and discounting (`Step`).
"""

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from mccfr.solvers.minimisers import Step

Floats = npt.NDArray[np.float64]


class Gadget(ABC):
    """Base class of gadgets: games in which each of the opponent's H hands enters a subgame or not.

    In every iteration the solver takes the opponent's range from it, and updates it with the values of the hands.
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
        """Return [H] the opponent's range for the player's traversal, with entries by mistake mixed in.

        chance  weight of `mistaken` in the mixture, 0 to 1; the rest is `range()`
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
        """Return ([H] the opponent's average range in the subgame, its average value outside of the subgame)."""

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
        """Return the fixed range."""
        return self._given

    def update(self, values: Floats, step: Step) -> None:
        """Receive the values of an iteration; this gadget ignores them, since its range is fixed."""

    def best(self, values: Floats) -> float:
        """Return the opponent's value with its fixed range: the sum of weights times values."""
        return float(self._given @ values)

    def average(self) -> tuple[Floats, float]:
        """Return the fixed range, and 0: no hand stays outside of the subgame."""
        return self._given, 0.0


class Resolving(Gadget):
    """CFR-D gadget: with each dealt hand the opponent enters the subgame or takes the hand's alternative."""

    def __init__(self, deal: Floats, alternatives: Floats, mistaken: Floats | None = None) -> None:
        """Start with regrets of 0.

        deal          [H] weight with which each of the opponent's hands is dealt, whatever the opponent's strategy
        alternatives  [H] counterfactual value of each hand if the opponent does not enter the subgame. It is in chips
                      times the weight of the player's hands
        mistaken      [H] weights of the opponent's hands in the subgame if it enters by mistake, in the scale of
                      `deal`. `opponent_range` mixes them into the range; None: no mistakes

        A mistake is to enter with a hand that the gadget's strategy would keep out for its alternative. It makes the
        player learn to play well against such hands too.

        Weights are scaled to the re-solving player's range, whose weights sum to 1. Take all pairs of an opponent's and
        a player's hand without a common card. The products of their two weights sum to 1 over these pairs.
        """
        super().__init__(len(deal), mistaken)
        self._dealt, self._alternatives = deal, alternatives
        self._enter, self._leave = np.zeros_like(deal), np.zeros_like(deal)

    def _entered(self) -> Floats:
        enter, leave = np.maximum(self._enter, 0), np.maximum(self._leave, 0)
        total = enter + leave
        return np.divide(enter, total, out=np.full_like(total, 0.5), where=total > 0)

    def range(self) -> Floats:
        """Return [H] each hand's weight in the deal times its current probability of entering."""
        return self._dealt * self._entered()

    def update(self, values: Floats, step: Step) -> None:
        """Update the regrets of entering and of taking the alternative."""
        entered = self._entered()
        self._add(entered, step)
        mean = entered * values + (1 - entered) * self._alternatives
        self._enter += values - mean
        self._leave += self._alternatives - mean
        _discount(self._enter, step)
        _discount(self._leave, step)

    def best(self, values: Floats) -> float:
        """Return the opponent's value if each hand takes the larger of its subgame value and alternative."""
        return float(self._dealt @ np.maximum(values, self._alternatives))

    def average(self) -> tuple[Floats, float]:
        """Return the opponent's average range [H], and its average value from taking alternatives."""
        entered = self._mean
        return self._dealt * entered, float(self._dealt @ ((1 - entered) * self._alternatives))


class Maxmargin(Gadget):
    """Maxmargin gadget: the opponent chooses its hand, and wins the hand's value minus its alternative."""

    def __init__(
        self, deal: Floats, alternatives: Floats, opponent_weight: Floats, mistaken: Floats | None = None
    ) -> None:
        """Take the deal and the alternatives of the opponent's hands.

        deal             [H] weight of each hand in the deal; only whether it is 0 matters
        alternatives     [H] counterfactual value that is subtracted from each hand's value
        opponent_weight  [H] total weight of the player's hands that share no card with each hand
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
        """Return [H] each hand's probability of being chosen, divided by its `opponent_weight`."""
        return self._chosen() * self._share

    def _gains(self, values: Floats) -> Floats:
        return (values - self._alternatives) * self._share

    def update(self, values: Floats, step: Step) -> None:
        """Update the regrets of choosing each hand."""
        chosen, gains = self._chosen(), self._gains(values)
        self._add(chosen, step)
        self._regret += np.where(self._live, gains - chosen @ gains, 0)
        _discount(self._regret, step)

    def best(self, values: Floats) -> float:
        """Return the largest of the hands' values minus alternatives, in chips: minus the smallest margin."""
        return float(self._gains(values)[self._live].max())

    def average(self) -> tuple[Floats, float]:
        """Return the opponent's average range [H] in the subgame, and its average value outside.

        The value is minus the sum of range times alternatives: the opponent pays the alternative of the hand with
        which it enters.
        """
        range_ = self._mean * self._share
        return range_, -float(range_ @ self._alternatives)
