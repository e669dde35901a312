"""What a best response on the river wins from a policy that solves its rivers again (`mccfr.play.resolving`).

On each board what the responder wins from the policy as it is comes from the walk of `sampled_best_response`.  What
solving again changes is a sum over the tree's decisions that begin the river: at each, what his hands win by a best
response to the solution, less what they win from the policy, weighed by how he comes there with the policy's play.
There are hundreds of them, so some are drawn, each as often in the mean as hands come there times what is in the pot;
divided by that number, what they come to is right in expectation.  On the river he has the endgame's bets, before it
the tree's.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from mccfr.cards.listed import ListedCards
from mccfr.evaluation.side import Side
from mccfr.games.betting import BettingState
from mccfr.play.dealing import dealing_of
from mccfr.play.resolving.spot import Spot, hand_rows
from mccfr.play.resolving.table import Acted, Resolver, Settings
from mccfr.play.resolving.whole import roots
from mccfr.play.seat import Seat
from mccfr.policy.source import StrategySource
from mccfr.rng import EVALUATION
from mccfr.tables.strategy import Strategy
from mccfr.trees.lines import put_in_chips

ROOTS = 12
"""Decisions that begin the river, drawn for each board and seat."""
_ROOTS_DRAWN = 1  # names their stream beside that of boards
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Root:
    """A decision that begins the river: its node, both players' ranges there [2, H], and how much it matters."""

    node: int
    reach: Floats
    share: float


class ResolvedRivers:
    """Boards on which a policy solves its rivers again."""

    def __init__(self, side: Side, settings: Settings, seed: int, drawn: int = ROOTS) -> None:
        """Raises `ValueError` for a game that is not whole no-limit hold'em, and settings of an earlier street."""
        if settings.street != "river":
            raise ValueError(
                f"resolve = {settings.street!r}: sampled-br responds to rivers that are solved again, and lbr to hands "
                "that are from an earlier street on"
            )
        self._game, self._strategy, self._seed, self._count = side.game, side.strategy, seed, drawn
        self._resolver = Resolver(Seat(StrategySource(side.game, cast(Strategy, side.strategy))), settings)
        self._street = self._resolver.street
        self._dealing = dealing_of(side.game.cards)
        self._roots = roots(side.game, self._street)

    def gained(self, unit: int, board: list[int]) -> Floats:
        """[2] what the responder wins less by seat, in chips times weights of hands, as walks have it."""
        known = self._game.cards.after(self._street, board)
        found, random = np.zeros(2), np.random.default_rng((EVALUATION, self._seed, unit, _ROOTS_DRAWN))
        reached = self._reached(known)
        if not reached:
            return found
        expected = np.array([root.share for root in reached])
        expected *= self._count / expected.sum()
        for player in range(2):
            times = np.diff(np.floor(np.cumsum(expected) + random.random()), prepend=0.0)
            for place in np.flatnonzero(times).tolist():
                weight = times[place] / expected[place]
                found[player] += weight * self._less(reached[place], player, board)
        return found

    def _reached(self, known: ListedCards) -> list[Root]:
        """Decisions that begin the river and that somebody comes to."""
        tree, found = self._game.tree, list[Root]()
        reach = {0: known.reach}
        inside = {node for root in self._roots for node in tree.path(root)}
        for node in sorted(inside):  # parents come before their children
            here = reach.pop(node, None)
            if here is None:
                continue
            street, player = divmod(int(tree.arrays.block[node]), 2)
            if street == self._street:
                together = float(here[0] @ self._dealing.met(here[1]))
                if together > 0:
                    found.append(Root(node, here, together * sum(put_in_chips(tree, node))))
                continue
            rows = hand_rows(self._game, self._strategy, node, known.bucket[street][player, 0])
            for number, child in enumerate(tree.children(node)):
                if child in inside:
                    reach[child] = here.copy()
                    reach[child][player] *= rows[:, number]
        return found

    def _less(self, root: Root, player: int, board: list[int]) -> float:
        """What a responder's hands win less at a root, weighed by his own range."""
        spot = Spot(self._game, root.node, board)
        as_it_is = spot.best_response(player, root.reach[1 - player], spot.tables(self._strategy)).value
        line, state = self._line(root.node, board)
        solved = self._resolver.begin(1 - player, line, state, tuple(board)).responses()
        return float(root.reach[player] @ (as_it_is - solved))

    def _line(self, node: int, board: list[int]) -> tuple[list[Acted], BettingState]:
        """What was done on the way to a decision of the tree, in the real betting."""
        tree, betting, line = self._game.tree, self._resolver.seat.betting, list[Acted]()
        state: Any = betting.start()[0]
        for below in tree.path(node)[1:]:
            line.append((state, tree.label[below], tuple(board[: self._game.cards.cards_on(state.street)])))
            state = betting.apply(state, tree.label[below])
        assert isinstance(state, BettingState)
        return line, state
