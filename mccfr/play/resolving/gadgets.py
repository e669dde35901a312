"""What stands before a subgame while it is solved again: with which hands the opponent comes into it.

The player whose strategy is solved for holds the hands that he would, by the strategy in force.  What the opponent
holds is not known; three answers, each of them a game before the subgame:

* *Unsafe* (Ganzfried & Sandholm 2015): he holds what a strategy of his own would have him hold.  If he plays another
  one, he may win anything.
* *Re-solving* (the CFR-D gadget: Burch, Johanson & Bowling 2014, section 5): he is dealt any hand, and with each may
  enter the subgame, or leave with an *alternative*, what that hand was worth to him.  If it was worth what a best
  response wins from the strategy in force, a solution gives no hand more than that.
* *Maxmargin* (Moravcik, Schmid, Ha, Hladik & Gaukrodger 2016, "Refining subgames in large imperfect information
  games"): he chooses the hand, and wins what it is worth in the subgame beyond its alternative.  A solution makes the
  smallest *margin* of any hand, alternative less value, as large as can be.

Margins are chips a hand; all other values are counterfactual, chips times the weight of our hands.  Alternatives may be
raised by what the opponent has given away on his way (`gifts`), which makes either of the two "reach" subgame solving
(Brown & Sandholm 2017, section 4).

A safe gadget's game has many equilibria: against hands that do not enter, our play may be anything that keeps them out.
The better ones answer those hands as well, as a sequential equilibrium does (Kubicek, Lisy & Sandholm 2026).  So our
play learns against a range in which hands enter by mistake, with a chance of 1/2t in iteration t (`Gadget.met`); half
of these come as dealt, half as the strategy in force would have him come, which is ours.  Gaps are those of the gadget
without mistakes.

A gadget's own regrets are matched and discounted as those of the subgame (`Step`).
"""

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from mccfr.solvers.minimisers import Step

Floats = npt.NDArray[np.float64]


class Gadget(ABC):
    """The opponent's way into a subgame.  H hands of his."""

    def __init__(self, hands: int, mistaken: Floats | None = None) -> None:
        """`mistaken` [H] weighs the hands that enter by mistake; None: none do."""
        self._sums, self._weight, self._mistaken = np.zeros(hands), 0.0, mistaken

    @abstractmethod
    def range(self) -> Floats:
        """[H] weights of his hands in the subgame, as he plays now."""

    def opponent_range(self, chance: float) -> Floats:
        """[H] the range that our play learns against: with this chance he enters by mistake."""
        return self.range() if self._mistaken is None else (1 - chance) * self.range() + chance * self._mistaken

    @abstractmethod
    def update(self, values: Floats, step: Step) -> None:
        """Learn from the counterfactual values [H] of his hands in the subgame."""

    @abstractmethod
    def best(self, values: Floats) -> float:
        """What he wins at most if his hands are worth these values [H] in the subgame."""

    @abstractmethod
    def average(self) -> tuple[Floats, float]:
        """([H] the mean of his ranges so far, what he wins beside the subgame with it)."""

    def _add(self, played: Floats, step: Step) -> None:
        self._sums = self._sums * step.keep + step.weight * played
        self._weight = self._weight * step.keep + step.weight

    @property
    def _mean(self) -> Floats:
        return self._sums / self._weight


def _discount(regret: Floats, step: Step) -> None:
    regret *= np.where(regret > 0, step.positive, step.negative)


class Unsafe(Gadget):
    """He holds a range, whatever it is worth."""

    def __init__(self, given: Floats) -> None:
        """`given` [H] are the weights of his hands."""
        super().__init__(len(given))
        self._given = given

    def range(self) -> Floats:
        """As `Gadget.range`."""
        return self._given

    def update(self, values: Floats, step: Step) -> None:
        """As `Gadget.update`: there is nothing to learn."""

    def best(self, values: Floats) -> float:
        """As `Gadget.best`."""
        return float(self._given @ values)

    def average(self) -> tuple[Floats, float]:
        """As `Gadget.average`."""
        return self._given, 0.0


class Resolving(Gadget):
    """He enters with any hand of the deal, or takes its alternative."""

    def __init__(self, dealt: Floats, alternatives: Floats, mistaken: Floats | None = None) -> None:
        """`dealt` [H] are the weights of the deal, not those of his strategy; `alternatives` [H] as `values`."""
        super().__init__(len(dealt), mistaken)
        self._dealt, self._alternatives = dealt, alternatives
        self._enter, self._leave = np.zeros_like(dealt), np.zeros_like(dealt)

    def _entered(self) -> Floats:
        enter, leave = np.maximum(self._enter, 0), np.maximum(self._leave, 0)
        total = enter + leave
        return np.divide(enter, total, out=np.full_like(total, 0.5), where=total > 0)

    def range(self) -> Floats:
        """As `Gadget.range`."""
        return self._dealt * self._entered()

    def update(self, values: Floats, step: Step) -> None:
        """As `Gadget.update`."""
        entered = self._entered()
        self._add(entered, step)
        mean = entered * values + (1 - entered) * self._alternatives
        self._enter += values - mean
        self._leave += self._alternatives - mean
        _discount(self._enter, step)
        _discount(self._leave, step)

    def best(self, values: Floats) -> float:
        """As `Gadget.best`."""
        return float(self._dealt @ np.maximum(values, self._alternatives))

    def average(self) -> tuple[Floats, float]:
        """As `Gadget.average`."""
        entered = self._mean
        return self._dealt * entered, float(self._dealt @ ((1 - entered) * self._alternatives))


class Maxmargin(Gadget):
    """He enters with a hand of his choice, and wins what it is worth beyond its alternative."""

    def __init__(
        self, dealt: Floats, alternatives: Floats, opponent_weight: Floats, mistaken: Floats | None = None
    ) -> None:
        """`opponent_weight` [H] is the weight of our hands that each of his meets, 0 for a hand that meets none."""
        super().__init__(len(dealt), mistaken)
        self._live = (dealt > 0) & (opponent_weight > 0)
        self._alternatives = alternatives
        self._share = np.divide(1.0, opponent_weight, out=np.zeros_like(opponent_weight), where=self._live)
        self._regret = np.zeros_like(opponent_weight)

    def _chosen(self) -> Floats:
        positive = np.where(self._live, np.maximum(self._regret, 0), 0)
        total = positive.sum()
        return positive / total if total > 0 else self._live / self._live.sum()

    def range(self) -> Floats:
        """As `Gadget.range`: each hand by how often it is chosen, our hands beside it weighing 1 together."""
        return self._chosen() * self._share

    def _gains(self, values: Floats) -> Floats:
        return (values - self._alternatives) * self._share

    def update(self, values: Floats, step: Step) -> None:
        """As `Gadget.update`."""
        chosen, gains = self._chosen(), self._gains(values)
        self._add(chosen, step)
        self._regret += np.where(self._live, gains - chosen @ gains, 0)
        _discount(self._regret, step)

    def best(self, values: Floats) -> float:
        """As `Gadget.best`: less the smallest margin."""
        return float(self._gains(values)[self._live].max())

    def average(self) -> tuple[Floats, float]:
        """As `Gadget.average`."""
        range_ = self._mean * self._share
        return range_, -float(range_ @ self._alternatives)
