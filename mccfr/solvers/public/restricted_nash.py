"""Restricted Nash responses: between a best response to a fixed strategy and an equilibrium.

Johanson, Zinkevich & Bowling, "Computing Robust Counter-Strategies" (NIPS 2007), section 4: the opponent plays the
fixed strategy with probability p, which is drawn once a deal and which the responder does not see, and is free else.
An equilibrium of that game wins from the fixed strategy nearly what a best response does, and is exploited far less.

It is CFR-BR's walk with another opponent: the responder meets the mixture of both as one strategy of the same
realisation (Kuhn 1953), exact with perfect recall; the free opponent learns against the responder as ever.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from mccfr.games.game import Game
from mccfr.games.recall import parent_buckets
from mccfr.solvers.public.cfr_br import CfrBr
from mccfr.solvers.variants import variant
from mccfr.trees.compiled import DECISION

_VARIANT = "dcfr"
Tables = Sequence[npt.NDArray[np.float64]]


class Mixture:
    """A player who draws one of two strategies before the deal, as one behaviour strategy."""

    def __init__(self, game: Game, player: int) -> None:
        """`ValueError` where buckets forget what a hand's was on an earlier street."""
        self._game, self._player = game, player
        self._parent = [parent_buckets(game, block) for block in range(2 * game.tree.streets)]
        if any(self._parent[block] is None for block in range(2 + player, len(self._parent), 2)):
            raise ValueError(f"{game.name} has imperfect recall: no mixture of its strategies is one of them")
        self._before = dict(self._own_actions())

    def _own_actions(self) -> Iterator[tuple[int, tuple[int, int] | None]]:
        """Each decision of the player with his last decision before it and the action there; None: it is his first."""
        tree = self._game.tree
        for node in tree.decisions.tolist():
            if tree.arrays.player[node] == self._player:
                child, over = node, int(tree.parent[node])
                while over >= 0 and not (
                    tree.arrays.kind[over] == DECISION and tree.arrays.player[over] == self._player
                ):
                    child, over = over, int(tree.parent[over])
                yield node, None if over < 0 else (over, child - int(tree.arrays.first[over]))

    def write(self, share: float, one: Tables, other: Tables, out: Tables) -> None:
        """out [slots, buckets] of the player's blocks = `one` with probability `share`, else `other`; in place."""
        arrays, reach = self._game.tree.arrays, dict[int, npt.NDArray[np.float64]]()
        for node, before in self._before.items():  # parents come first
            block, slot, count = (int(of[node]) for of in (arrays.block, arrays.slot, arrays.count))
            here = np.repeat([[share], [1 - share]], self._game.buckets[block], axis=1)
            if before is not None:
                over, action = before
                came = int(arrays.block[over])
                cell = int(arrays.slot[over]) + action
                here = reach[over] * np.stack([one[came][cell], other[came][cell]])
                for street in range(came + 2, block + 1, 2):
                    here = here[:, self._parent[street]]
            reach[node], total = here, here.sum(axis=0)
            part = np.where(total > 0, here[0] / np.where(total > 0, total, 1), share)
            rows = slice(slot, slot + count)
            out[block][rows] = part * one[block][rows] + (1 - part) * other[block][rows]


class RestrictedNash(CfrBr):
    """CFR of a responder and of an opponent who plays a fixed strategy with a probability, and learns else.

    mixture  of the opponent
    fixed    B × [slots, buckets] his strategy; the responder's part is not read
    """

    def __init__(self, game: Game, responder: int, fixed: Tables, share: float) -> None:
        """`share` is the probability of the fixed strategy, from 0 to 1; `ValueError` as of `CfrBr` and `Mixture`."""
        super().__init__(game, variant(_VARIANT))
        self.mixture, self._responder, self._fixed, self._share = Mixture(game, 1 - responder), responder, fixed, share

    def _respond(self, player: int) -> float:
        """Put the other player's strategy where CFR-BR has a best response."""
        other, noted = 1 - player, self._sides[player].noted
        self._freeze(self.variant.step(self.iteration + 1), other)
        if player == self._responder:
            self.mixture.write(self._share, self._fixed, self._frozen, noted)
        else:
            for block in range(other, len(noted), 2):
                noted[block][:] = self._frozen[block]
        return 0.0
