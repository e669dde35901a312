"""CFR-BR: each player learns against an opponent who plays a best response to the current strategy.

Source: Johanson, Bard, Burch & Bowling, "Finding Optimal Abstract Strategies in Extensive-Form Games", AAAI 2012.

Here the best response knows only its own infosets.  So with a card abstraction it sees buckets instead of cards.  In
`mccfr.solvers.public.cfr_br_algorithm` it sees its real cards, on sampled boards.
"""

from collections.abc import Iterable

import numpy as np

from mccfr.gallery.cfr import Cfr, strategy, update
from mccfr.gallery.history_game import History, Infoset
from mccfr.solvers.variants import variant


class CfrBestResponse(Cfr):
    """CFR-BR over all histories: each player learns against the opponent's best response."""

    def iterate(self, t: int) -> None:
        """For each player, compute the opponent's best response and the player's regrets against it."""
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
        """Make player j play a best response from some histories on; return its value in chips.

        The strategy is written to `sigma` of j's infosets.  The value is summed over the histories, each times its
        probability.

        reached  (history, probability that chance and the opponent reach it) of each history
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
