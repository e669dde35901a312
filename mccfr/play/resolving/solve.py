"""One spot solved again for one of its players.

Full-width CFR (DCFR unless told otherwise) on real hands, with a gadget before the first decision (`gadgets`).  Each
iteration the opponent goes first: his hands' values in the subgame teach the gadget, and what comes through it, or by
mistake, is the range that our traversal meets.  Regrets of an infoset do not depend on its own player's range, so
nothing else changes.

A spot whose hands keep shared buckets on later streets (`Spot.merged`) is solved by CFR-BR on BOARDS sampled boards an
iteration instead, as 2,352 turns and rivers follow a flop: on the last street the opponent responds best with every
hand (`RespondedSampling`).  So our play is learnt against what real hands could take from it, and not from buckets that
are as blind as ours; what they can take from the whole of it is found on all boards (`Resolved.excess_chips`).
Maxmargin was not tried so, and is refused.

Chips are those of the whole hand throughout.  Counterfactual values are linear in our range, which is scaled to a sum
of 1 inside, so that neither float32 nor what counts as a gain depends on how rarely we get here.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt

from mccfr.cards.deals import NO_BUCKET
from mccfr.play.resolving.gadgets import Gadget, Maxmargin, Resolving, Unsafe
from mccfr.play.resolving.spot import Spot, Tables
from mccfr.solvers.public.public_chance.responding import OPTIONS, RespondedSampling
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import PRESETS, Variant
from mccfr.tables.layout import table_name
from mccfr.tables.strategy import row_starts

Floats = npt.NDArray[np.float64]
METHODS = ("resolving", "maxmargin", "unsafe")
"""Gadgets by the names that commands take, the default first."""
BOARDS = 8
"""Full boards of one iteration where boards are sampled."""
BEGUN, BEGUN_SAMPLED = 2.0, 1.0
"""Pots that regrets begin with where all boards are walked, and where some are, shared out as the strategy in force
plays: so its play is where we start from, and what it does well is not lost in few iterations.  The opponent's are
shared out as it says, too, if only evenly, and learn less hastily (docs/measured/resolving.md)."""
MOST_GIVEN = 0.005
"""Of the pot, by real hands on all boards: what gives away more than the strategy in force is not played there."""
_SAMPLED = PRESETS["dcfr"]  # of gadgets there
_CHECKED = 1.4  # precision is looked at whenever so many times as many iterations are done
_FIRST_CHECK = 16


@dataclass(frozen=True)
class Effort:
    """How long a spot is solved: until the gap is no more than `precision_chips`, or either limit is reached.

    iterations       the most that are done
    precision_chips  of the gadget's game, for each hand that gets there; 0: all iterations are done
    seconds          wall time after which no further iteration begins; results then depend on the machine
    stopped          asked after each iteration: whether no further one is wanted
    """

    iterations: int = 1_000
    precision_chips: float = 0.0
    seconds: float | None = None
    stopped: Callable[[], bool] = field(default=bool, repr=False, compare=False)


class Resolved:
    """A spot that was solved again.  What tells of it is found when it is asked for.

    tables      strategies of both players in the spot, as `Spot.tables`, in the dtype of the solving; ours is what it
                was solved for
    iterations  done
    """

    def __init__(self, side: "_Side", gadget: Gadget, tables: Tables, iterations: int) -> None:
        self._side, self._gadget = side, gadget
        self.tables, self.iterations = tables, iterations

    @cached_property
    def values(self) -> Floats:
        """[H] what the opponent's hands win by best responses against it, counterfactual, at our range as given."""
        return self._best * self._side.scale

    @cached_property
    def gap_chips(self) -> float:
        """Exploitability in the gadget's game, chips a hand: what best responses of both players gain together."""
        side, (other, beside) = self._side, self._gadget.average()
        mine = side.spot.best_response(side.player, other, self.tables).value
        return self._gadget.best(self._best) + float(side.ours @ mine) - beside

    @property
    def alternatives(self) -> Floats | None:
        """[H] what they won before, as `resolve` was told."""
        side = self._side
        return None if side.alternatives is None else side.alternatives * side.scale

    @property
    def excess_chips(self) -> float:
        """What the opponent's hands together win beyond their alternatives, chips a hand that gets there, if each comes
        as dealt and takes what is more: so much more than before he may win at most.  NaN without alternatives."""
        side = self._side
        if side.alternatives is None:
            return nan
        return float(side.any_hand @ np.maximum(self._best - side.alternatives, 0))

    @cached_property
    def _best(self) -> Floats:
        side = self._side
        return side.spot.best_response(1 - side.player, side.ours, self.tables).value


@dataclass(frozen=True)
class _Side:
    """The player that a spot is solved for, with `ours` [H], his range over its sum `scale`; of his opponent
    `any_hand` [H], weights of the deal of which one hand gets there, and alternatives at `ours`."""

    spot: Spot
    player: int
    ours: Floats
    scale: float
    any_hand: Floats
    alternatives: Floats | None


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
    workers: int = 1,
    seed: int = 0,
    alike: Sequence[npt.NDArray[np.integer]] | None = None,
    begun: Tables | None = None,
) -> Resolved:
    """Solve a spot for one player.

    ranges        [2, H] weights of both players' hands at the root, by the strategies in force; of the safe methods'
                  results neither bound nor gap relies on the opponent's
    alternatives  [H] counterfactual values of the opponent's hands, at our range; the unsafe method needs none
    begun         the strategy in force, as `Resolved.tables`, for regrets to begin with; where boards are sampled, ours
                  is it in the end, too, if what was found gives away more than `MOST_GIVEN` of the pot
    workers       threads that share the boards of the next street; what is found does not depend on them
    seed          of the boards that are sampled where hands share buckets later; `variant`, `dtype` and `workers` are
                  not asked then
    alike         by block [buckets]: infosets of one number get one strategy, the mean of theirs by how often we get
                  there; None: each its own.  Values and gap are those of what is got

    Raises `ValueError` for another method, or one that needs all boards where they are sampled, a range of ours without
    hands, and where alternatives are missing.
    """
    if method not in METHODS:
        raise ValueError(f"method = {method!r} is not allowed: it must be one of {', '.join(METHODS)}")
    if spot.merged and method == "maxmargin":
        raise ValueError("method = 'maxmargin' is not for sampled boards: use 'resolving' or 'unsafe'")
    if alternatives is None and method != "unsafe":
        raise ValueError(f"method = {method!r} needs the opponent's alternatives; only 'unsafe' does without")
    scale = float(ranges[player].sum())
    if not scale > 0:
        raise ValueError(f"player {player} has no hand that comes to node {spot.node}: nothing is to be solved")
    ours, dealt = ranges[player] / scale, spot.weights[1 - player]
    opponent_weight = np.where(dealt > 0, spot.dealing.disjoint_weight(ours), 0)
    other = ranges[1 - player] if (ranges[1 - player] * opponent_weight).any() else dealt
    believed, any_hand = other / (other @ opponent_weight), dealt / (dealt @ opponent_weight)
    mistaken = (believed + any_hand) / 2
    side = _Side(spot, player, ours, scale, any_hand, None if alternatives is None else alternatives / scale)
    gadget: Gadget
    if side.alternatives is None or method == "unsafe":
        gadget = Unsafe(believed)
    elif method == "resolving":
        gadget = Resolving(any_hand, side.alternatives, mistaken)
    else:
        gadget = Maxmargin(dealt, side.alternatives, opponent_weight, mistaken)
    if spot.merged:
        return _Responded(side, gadget, alike, seed, begun).run(effort)
    cfr = VectorCfr(spot.game, variant, dtype, workers, public=spot.public)
    return _FullWidth(side, gadget, alike, cfr, begun).run(effort)


class _Solver(ABC):
    """CFR behind a gadget.  The gadget's game is one hand: gaps are chips."""

    _cfr: Any  # what iterates, one of two

    def __init__(self, side: _Side, gadget: Gadget, alike: Sequence[npt.NDArray[np.integer]] | None) -> None:
        self._side, self._gadget, self._alike = side, gadget, alike
        self._iteration = 0

    @property
    def _tables(self) -> Mapping[str, npt.NDArray[Any]]:
        """Tables by name, [slot, bucket]."""
        return self._cfr.tables

    @abstractmethod
    def _iterate(self) -> None:
        """One iteration."""

    def run(self, effort: Effort) -> Resolved:
        """Iterate."""
        began, following = time.perf_counter(), _FIRST_CHECK
        while self._iteration < effort.iterations:
            self._iterate()
            self._iteration += 1
            late = effort.seconds is not None and time.perf_counter() - began >= effort.seconds
            if late or effort.stopped():
                break
            if effort.precision_chips and self._iteration >= following:
                if (found := self._found()).gap_chips <= effort.precision_chips:
                    return found
                following = int(self._iteration * _CHECKED)
        return self._found()

    def _at_root(self, other: Floats) -> list[Floats]:
        """Both players' ranges, by player."""
        return [self._side.ours, other] if self._side.player == 0 else [other, self._side.ours]

    def _found(self) -> Resolved:
        """What the iterations so far have come to."""
        game, tables = self._side.spot.game, []
        for block, slots in enumerate(game.tree.row_slots.tolist()):
            sums = self._tables.get(table_name("strategy_sum", block))
            if sums is None:
                sums = np.zeros((slots, int(game.buckets[block])))
            elif self._alike is not None:
                sums = _together(sums, self._alike[block])
            tables.append(_shares(sums, row_starts(game, block)))
        return Resolved(self._side, self._gadget, tables, self._iteration)


class _FullWidth(_Solver):
    """All boards in every iteration."""

    def __init__(
        self,
        side: _Side,
        gadget: Gadget,
        alike: Sequence[npt.NDArray[np.integer]] | None,
        cfr: VectorCfr,
        begun: Tables | None,
    ) -> None:
        super().__init__(side, gadget, alike)
        self._cfr = cfr
        pots = BEGUN * side.spot.game.pot_chips * np.cumprod(side.spot.public.boards.weight)  # a board's, by street
        for block, table in enumerate(begun or ()):
            if (name := table_name("regret", block)) in self._tables:
                self._tables[name][:] = pots[block // 2] * table

    def _iterate(self) -> None:
        cfr, player, gadget = self._cfr, self._side.player, self._gadget
        step = cfr.variant.step(cfr.iteration + 1)
        values = cfr.traverse(1 - player, self._at_root(gadget.range()))
        gadget.update(values.astype(np.float64), step)
        cfr.traverse(player, self._at_root(gadget.opponent_range(0.5 / (cfr.iteration + 1))))
        cfr.iteration += 1


class _Responded(_Solver):
    """Some boards in every iteration, on which the opponent responds to our play."""

    def __init__(
        self,
        side: _Side,
        gadget: Gadget,
        alike: Sequence[npt.NDArray[np.integer]] | None,
        seed: int,
        begun: Tables | None,
    ) -> None:
        super().__init__(side, gadget, alike)
        game = side.spot.game
        schedule = replace(OPTIONS.schedule, period_nodes=2 * BOARDS * game.tree.nodes)  # an iteration
        self._cfr = RespondedSampling(game, seed=seed, options=replace(OPTIONS, schedule=schedule))
        self._factor, self._begun = side.spot.board_factor, begun
        for block, table in enumerate(begun or ()):
            if block % 2 != side.player or (name := table_name("regret", block)) not in self._tables:
                continue
            buckets = game.cards.listed().bucket[block // 2][side.player]
            held = np.bincount(buckets[buckets != NO_BUCKET]) / len(buckets)  # hands of a bucket, on a board
            self._tables[name][:] = BEGUN_SAMPLED * game.pot_chips * held * table

    def run(self, effort: Effort) -> Resolved:
        """As `_Solver.run`."""
        found, side = super().run(effort), self._side
        if self._begun is None or not found.excess_chips > MOST_GIVEN * side.spot.game.pot_chips:
            return found
        return Resolved(side, self._gadget, self._begun, found.iterations)

    def _iterate(self) -> None:
        gadget, values = self._gadget, np.zeros(len(self._side.ours))
        at_root = self._at_root(gadget.opponent_range(0.5 / (self._iteration + 1)))
        for _ in range(BOARDS):  # who comes in must not depend on the board that he then meets
            values += self._cfr.answered(self._side.player, at_root)
        gadget.update(values * (self._factor / BOARDS), _SAMPLED.step(self._iteration + 1))


def _together(sums: npt.NDArray[np.floating], alike: npt.NDArray[np.integer]) -> npt.NDArray[np.floating]:
    """[slots, buckets] in every column the total of those of its number."""
    _, number = np.unique(alike, return_inverse=True)
    return np.stack([np.bincount(number, row)[number] for row in sums]).astype(sums.dtype)


def _shares(sums: npt.NDArray[np.floating], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.floating]:
    """[slots, buckets] each cell of a row by the row's total; of rows that were never reached all alike."""
    found, counts = sums.copy(), np.diff(starts)
    for start, count in zip(starts.tolist(), counts.tolist(), strict=False):
        row = found[start : start + count]
        total = row.sum(axis=0)
        np.divide(row, total, out=row, where=total > 0)
        row[:, total == 0] = 1 / count
    return found
