"""One spot solved again for one of its players.

Full-width CFR (DCFR unless told otherwise) on real hands, with a gadget before the first decision (`gadgets`).  Each
iteration the opponent goes first: his hands' values in the subgame teach the gadget, and what comes through it is the
range that our traversal meets.  Regrets of an infoset do not depend on its own player's range, so nothing else changes.

Chips are those of the whole hand throughout.  Counterfactual values are linear in our range, which is scaled to a sum
of 1 inside, so that neither float32 nor what counts as a gain depends on how rarely we get here.
"""

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mccfr.play.resolving.gadgets import Gadget, Maxmargin, Resolving, Unsafe
from mccfr.play.resolving.spot import Spot, Tables
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import PRESETS, Variant

Floats = npt.NDArray[np.float64]
METHODS = ("maxmargin", "resolving", "unsafe")
"""Gadgets by the names that commands take, the default first."""
_CHECKED = 2.0  # precision is looked at whenever so many times as many iterations are done
_FIRST_CHECK = 16


@dataclass(frozen=True)
class Effort:
    """How long a spot is solved: until the gap is no more than `precision_chips`, or either limit is reached.

    iterations       the most that are done
    precision_chips  of the gadget's game, for each hand that gets there; 0: all iterations are done
    seconds          wall time after which no further iteration begins; results then depend on the machine
    """

    iterations: int = 1_000
    precision_chips: float = 0.0
    seconds: float | None = None


@dataclass(frozen=True)
class Resolved:
    """A spot that was solved again.

    tables      strategies of both players in the spot, as `Spot.tables`; ours is what it was solved for
    values      [H] what the opponent's hands win by best responses against it, counterfactual, at our range as given
    gap_chips   exploitability in the gadget's game, chips a hand: what best responses of both players gain together
    iterations  done
    """

    tables: Tables
    values: Floats
    gap_chips: float
    iterations: int


def resolve(
    spot: Spot,
    player: int,
    ranges: Floats,
    alternatives: Floats | None,
    method: str = METHODS[0],
    effort: Effort = Effort(),
    *,
    variant: Variant = PRESETS["dcfr"],
    dtype: str = "float64",
) -> Resolved:
    """Solve a spot for one player.

    ranges        [2, H] weights of both players' hands at the root, by the strategies in force; the opponent's is read
                  by the unsafe method alone
    alternatives  [H] counterfactual values of the opponent's hands, at our range; the unsafe method needs none

    Raises `ValueError` for another method, a range of ours without hands, and where alternatives are missing.
    """
    if method not in METHODS:
        raise ValueError(f"method = {method!r} is not allowed: it must be one of {', '.join(METHODS)}")
    if alternatives is None and method != "unsafe":
        raise ValueError(f"method = {method!r} needs the opponent's alternatives; only 'unsafe' does without")
    scale = float(ranges[player].sum())
    if not scale > 0:
        raise ValueError(f"player {player} has no hand that comes to node {spot.node}: nothing is to be solved")
    ours, dealt = ranges[player] / scale, spot.weights[1 - player]
    met = np.where(dealt > 0, spot.dealing.met(ours), 0)
    gadget: Gadget
    if alternatives is None or method == "unsafe":
        other = ranges[1 - player] if (ranges[1 - player] * met).any() else dealt
        gadget = Unsafe(other / (other @ met))
    elif method == "resolving":
        gadget = Resolving(dealt / (dealt @ met), alternatives / scale)
    else:
        gadget = Maxmargin(dealt, alternatives / scale, met)
    solver = _Solver(spot, player, ours, gadget, variant, dtype)
    gap = solver.run(effort)
    found = spot.best_response(1 - player, ours, solver.tables())
    return Resolved(solver.tables(), found.value * scale, gap, solver.cfr.iteration)


class _Solver:
    """CFR behind a gadget.  `ours` [H] sums to 1, and the gadget's game is one hand: gaps are chips."""

    def __init__(self, spot: Spot, player: int, ours: Floats, gadget: Gadget, variant: Variant, dtype: str) -> None:
        self._spot, self._player, self._ours, self._gadget = spot, player, ours, gadget
        self.cfr = VectorCfr(spot.game, variant, dtype, public=spot.public)

    def run(self, effort: Effort) -> float:
        """Iterate; returns the gap."""
        began, following = time.perf_counter(), _FIRST_CHECK
        while self.cfr.iteration < effort.iterations:
            self._iterate()
            if effort.seconds is not None and time.perf_counter() - began >= effort.seconds:
                break
            if effort.precision_chips and self.cfr.iteration >= following:
                if (gap := self.gap()) <= effort.precision_chips:
                    return gap
                following = int(self.cfr.iteration * _CHECKED)
        return self.gap()

    def _iterate(self) -> None:
        cfr, player, gadget = self.cfr, self._player, self._gadget
        step = cfr.variant.step(cfr.iteration + 1)
        values = cfr.traverse(1 - player, self._at_root(gadget.range()))
        gadget.update(values.astype(np.float64), step)
        cfr.traverse(player, self._at_root(gadget.range()))
        cfr.iteration += 1

    def _at_root(self, other: Floats) -> list[Floats]:
        """Both players' ranges, by player."""
        return [self._ours, other] if self._player == 0 else [other, self._ours]

    def tables(self) -> Tables:
        """The average strategies."""
        return [np.ascontiguousarray(table.T) for table in self.cfr.average_strategy().probability]

    def gap(self) -> float:
        """What best responses of both players gain in the gadget's game, which is of one hand."""
        tables, spot, player = self.tables(), self._spot, self._player
        theirs = self._gadget.best(spot.best_response(1 - player, self._ours, tables).value)
        other, beside = self._gadget.average()
        mine = float(self._ours @ spot.best_response(player, other, tables).value)
        return theirs + mine - beside
