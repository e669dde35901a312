"""CFR-BR (Johanson, Bard, Burch & Bowling, "Finding Optimal Abstract Strategies in Extensive-Form Games", AAAI 2012).

Each player learns against an opponent who answers his current strategy best.  Here the opponent sees what the player of
his seat sees; with buckets the fast one lets him see his real cards, on sampled boards (`mccfr.solvers.public.cfr_br`).
"""

from collections.abc import Iterable

import numpy as np

from mccfr.gallery.cfr import Cfr, strategy, update
from mccfr.gallery.ground import History, Infoset
from mccfr.solvers.variants import variant


class CfrBestResponse(Cfr):
    """CFR-BR."""

    def iterate(self, t: int) -> None:
        """In turn for both players: the other one's best response, then regrets against it."""
        step = variant(self.given.variant).step(t)
        for i in (0, 1):
            own = [I for I in self.infosets if I.player == i]
            for I in own:
                I.sigma, I.gained = strategy(I, step), np.zeros(len(I.actions))
            self.respond([(self.root, 1.0)], 1 - i)
            self.walk(self.root, i, 1.0, 1.0)
            for I in own:
                update(I, step)

    def respond(self, reached: Iterable[tuple[History, float]], j: int) -> float:
        """Player j's best response from some histories on, each with the probability that others bring it about.

        It is put into the infosets below; returns what it is worth to him.
        """
        total, below, met = 0.0, list(reached), dict[Infoset, list[tuple[History, float]]]()
        for h, others in below:
            self.nodes += 1
            if h.terminal:
                total += others * h.payoff[j]
            elif h.player == j:
                met.setdefault(h.infoset, []).append((h, others))
            else:
                shares = h.probability if h.chance else h.infoset.sigma
                below.extend((child, others * p) for p, child in zip(shares, h.children, strict=True))
        for I, here in met.items():
            v = [self.respond([(h.children[a], others) for h, others in here], j) for a in I.actions]
            I.sigma = np.eye(len(v))[np.argmax(v)]
            total += max(v)
        return total
