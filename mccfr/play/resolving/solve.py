"""Re-solves a spot, a subgame that begins at a decision on a board, for one of its players.

The solver is full-width CFR (DCFR by default) on real hands, with a gadget before the first decision (`gadgets`). For
"resolving" the opponent enters the subgame or takes another payoff, for "maxmargin" it chooses its hand. For "unsafe"
its range is fixed. In each iteration the opponent's traversal comes first and its hands' values update the gadget. The
gadget's range is then the opponent's range in the player's traversal. Unless it is fixed, hands that the gadget would
keep out are mixed in, with a weight that shrinks from iteration to iteration. An infoset's regrets do not depend on its
own player's range, so nothing else changes.

A spot with shared buckets on later streets (`Spot.merged`) has too many boards: 2,352 turns and rivers follow a
flop. It is solved by CFR-BR on BOARDS sampled boards per iteration. On the last street the opponent plays a best
response with every real hand (`RespondedSampling`). The opponent's gain against the whole solution is computed on
all boards (`Resolved.excess_chips`). Maxmargin is not supported there.

Chips are those of the whole hand. Counterfactual values are linear in the player's range. Internally the range is
scaled to sum 1, so that precision does not depend on the probability of reaching the spot.
"""

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
from mccfr.play.resolving.resolving_spot import Spot, Tables
from mccfr.solvers.public.public_chance.sampled_board_responses import OPTIONS, RespondedSampling
from mccfr.solvers.public.vector_cfr import VectorCfr
from mccfr.solvers.variants import PRESETS, Variant
from mccfr.tables.strategy import row_starts
from mccfr.tables.table_layout import table_name

Floats = npt.NDArray[np.float64]
METHODS = ("resolving", "maxmargin", "unsafe")
"""Names of the gadgets in commands; the first is the default."""
BOARDS = 8
"""Sampled full boards of one iteration."""
INITIAL_REGRETS, INITIAL_REGRETS_SAMPLED = 2.0, 1.0
"""Initial regrets in pots, in proportion to the strategy in force: on all boards, and on sampled boards.

Few iterations then keep that strategy's good actions (docs/measured/resolving.md)."""
MOST_EXCESS = 0.005
"""Limit of `excess_chips` in pots on sampled boards; above it the strategy in force is kept."""
_SAMPLED = PRESETS["dcfr"]  # discounting of gadgets on sampled boards
_CHECKED = 1.4  # factor between the iterations at which precision is checked
_FIRST_CHECK = 16


@dataclass(frozen=True)
class Effort:
    """Stopping rules for solving a subgame; the first one that applies stops it.

    iterations       largest number of iterations
    precision_chips  NashConv of the subgame with its gadget, in chips per hand that gets there, at which solving stops;
                     0: no check
    stopped          function called after each iteration; it stops the solver by returning True
    """

    iterations: int = 1_000
    precision_chips: float = 0.0
    stopped: Callable[[], bool] = field(default=bool, repr=False, compare=False)


class Resolved:
    """Solution of a re-solved spot, a subgame; its figures are computed on access.

    tables      strategies of both players in the spot, by block [slots, buckets], in the solver's dtype. Only the
                re-solving player's part is meant to be used. A block has the decisions of one street and player; a
                slot is one action of one of them
    iterations  number of iterations done
    """

    def __init__(self, side: "_Side", gadget: Gadget, tables: Tables, iterations: int) -> None:
        self._side, self._gadget = side, gadget
        self.tables, self.iterations = tables, iterations

    @cached_property
    def values(self) -> Floats:
        """[H] counterfactual values of the opponent's best response to the solution, at the root.

        A value is chips won, summed over the re-solving player's hands with the weights of its range.
        """
        return self._best * self._side.scale

    @cached_property
    def gap_chips(self) -> float:
        """NashConv of the subgame with its gadget: both players' best-response gains together.

        The unit is chips per hand of poker that gets to the subgame.
        """
        side, (opponent_range, outside) = self._side, self._gadget.average()
        own_values = side.spot.best_response(side.player, opponent_range, self.tables).value
        return self._gadget.best(self._best) + float(side.ours @ own_values) - outside

    @property
    def alternatives(self) -> Floats | None:
        """[H] values of the opponent's hands before re-solving, as given to `resolve`, or None.

        They are counterfactual: chips won, summed over the re-solving player's hands with the weights of its range.
        """
        side = self._side
        return None if side.alternatives is None else side.alternatives * side.scale

    @property
    def excess_chips(self) -> float:
        """Upper bound of the opponent's gain by re-solving, in chips per hand of poker in the subgame.

        Alternatives are its values before re-solving. An opposing hand gains the excess of its best-response value over
        its alternative, at least 0, and counts with its weight in the deal. NaN without alternatives.
        """
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
    """The re-solving player of a subgame, with both players' hands, weighted for the solver.

    spot, player  the subgame, and the number of the re-solving player in it: 0 or 1
    ours          [H] the player's range divided by its sum `scale`
    scale         sum of the weights of the player's range
    any_hand      [H] the deal's weights of the opponent's hands. Their scale is such that all possible pairs with a
                  hand in `ours` weigh 1 in total
    alternatives  [H] counterfactual values of the opponent's hands if they do not enter the subgame, for the range
                  `ours`; None: no gadget
    """

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
    workers: int = 1,
    seed: int = 0,
    alike: Sequence[npt.NDArray[np.integer]] | None = None,
    initial: Tables | None = None,
) -> Resolved:
    """Solve a spot for one player, and return the solution with its values.

    spot          subgame from a decision on a board
    player        number of the player who re-solves: 0 or 1
    ranges        [2, H] weights of both players' hands at the root, by the strategies so far. Bounds and gaps of
                  "resolving" and "maxmargin" do not rely on the opponent's range
    alternatives  [H] value of each opposing hand if it does not enter the subgame: counterfactual, for the player's
                  range; None is allowed for "unsafe"
    method        gadget before the root: "resolving", "maxmargin", or "unsafe" for none
    effort        when to stop
    initial       strategy before re-solving, for initial regrets: [slots, buckets] for each block. On sampled boards it
                  is returned instead of the solution if the solution's `excess_chips` is above `MOST_EXCESS` pots
    variant       CFR variant; not used on sampled boards
    workers       threads that share the boards of the next street, if boards are not sampled; no effect on results
    seed          seed of sampled boards, which a `merged` spot uses
    alike         for each block (street and player) [buckets] a number: buckets with equal numbers play the same
                  strategy in the result, the mean of theirs weighted by reach. None: each plays its own

    Raises `ValueError` for an unknown or unsupported method, an empty range of the player, or missing alternatives.
    """
    if method not in METHODS:
        raise ValueError(f"method = {method!r} is not allowed: it must be one of {', '.join(METHODS)}")
    if spot.merged and method == "maxmargin":
        raise ValueError("method = 'maxmargin' is not for sampled boards: use 'resolving' or 'unsafe'")
    if alternatives is None and method != "unsafe":
        raise ValueError(f"method = {method!r} needs the opponent's alternatives; only 'unsafe' does without")
    scale = float(ranges[player].sum())
    if not scale > 0:
        raise ValueError(f"player {player} reaches node {spot.node} with no hand: choose another node")
    ours, deal = ranges[player] / scale, spot.weights[1 - player]
    opponent_weight = np.where(deal > 0, spot.dealing.disjoint_weight(ours), 0)
    other = ranges[1 - player] if (ranges[1 - player] * opponent_weight).any() else deal
    assumed, any_hand = other / (other @ opponent_weight), deal / (deal @ opponent_weight)
    mistakes = (assumed + any_hand) / 2
    side = _Side(spot, player, ours, scale, any_hand, None if alternatives is None else alternatives / scale)
    gadget: Gadget
    if side.alternatives is None or method == "unsafe":
        gadget = Unsafe(assumed)
    elif method == "resolving":
        gadget = Resolving(any_hand, side.alternatives, mistakes)
    else:
        gadget = Maxmargin(deal, side.alternatives, opponent_weight, mistakes)
    if spot.merged:
        return _SampledBoards(side, gadget, alike, seed, initial).run(effort)
    cfr = VectorCfr(spot.game, variant, spot.dtype, workers, public=spot.public)
    return _FullWidth(side, gadget, alike, cfr, initial).run(effort)


class _Solver(ABC):
    """Base class of solvers: CFR on a subgame with a gadget, a game before its first decision.

    Ranges are scaled such that all possible pairs of both players' hands weigh 1 in total. So gaps are in chips per
    hand of poker that gets to the subgame.
    """

    _cfr: Any  # `VectorCfr` or `RespondedSampling`

    def __init__(self, side: _Side, gadget: Gadget, alike: Sequence[npt.NDArray[np.integer]] | None) -> None:
        self._side, self._gadget, self._alike = side, gadget, alike
        self._iteration = 0

    @property
    def _tables(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return {name: array [slots, buckets]} of regrets and strategy sums.

        A name states kind, street and player, such as "regret/street0/player1".
        """
        return self._cfr.tables

    @abstractmethod
    def _iterate(self) -> None:
        """Do one iteration of CFR in the subgame, and update the gadget with its values."""

    def run(self, effort: Effort) -> Resolved:
        """Iterate until one of the stopping rules of `effort` applies, and return the result."""
        following = _FIRST_CHECK
        while self._iteration < effort.iterations:
            self._iterate()
            self._iteration += 1
            if effort.stopped():
                break
            if effort.precision_chips and self._iteration >= following:
                if (found := self._result()).gap_chips <= effort.precision_chips:
                    return found
                following = int(self._iteration * _CHECKED)
        return self._result()

    def _at_root(self, other: Floats) -> list[Floats]:
        """Return both players' ranges at the root, player 0's first; `other` [H] is the opponent's."""
        return [self._side.ours, other] if self._side.player == 0 else [other, self._side.ours]

    def _result(self) -> Resolved:
        """Return the average strategy of the iterations so far as a `Resolved`."""
        game, tables = self._side.spot.game, []
        for block, slots in enumerate(game.tree.row_slots.tolist()):
            sums = self._tables.get(table_name("strategy_sum", block))
            if sums is None:
                sums = np.zeros((slots, int(game.buckets[block])))
            elif self._alike is not None:
                sums = _merged_columns(sums, self._alike[block])
            tables.append(_normalised(sums, row_starts(game, block)))
        return Resolved(self._side, self._gadget, tables, self._iteration)


class _FullWidth(_Solver):
    """Solver that traverses all boards in every iteration, by full-width CFR."""

    def __init__(
        self,
        side: _Side,
        gadget: Gadget,
        alike: Sequence[npt.NDArray[np.integer]] | None,
        cfr: VectorCfr,
        initial: Tables | None,
    ) -> None:
        super().__init__(side, gadget, alike)
        self._cfr = cfr
        pots = INITIAL_REGRETS * side.spot.game.pot_chips * np.cumprod(side.spot.public.boards.weight)  # by street
        for block, table in enumerate(initial or ()):
            if (name := table_name("regret", block)) in self._tables:
                self._tables[name][:] = pots[block // 2] * table

    def _iterate(self) -> None:
        cfr, player, gadget = self._cfr, self._side.player, self._gadget
        step = cfr.variant.step(cfr.iteration + 1)
        values = cfr.traverse(1 - player, self._at_root(gadget.range()))
        gadget.update(values.astype(np.float64), step)
        cfr.traverse(player, self._at_root(gadget.opponent_range(0.5 / (cfr.iteration + 1))))
        cfr.iteration += 1


class _SampledBoards(_Solver):
    """Solver with sampled boards in every iteration, on which the opponent plays best responses."""

    def __init__(
        self,
        side: _Side,
        gadget: Gadget,
        alike: Sequence[npt.NDArray[np.integer]] | None,
        seed: int,
        initial: Tables | None,
    ) -> None:
        super().__init__(side, gadget, alike)
        game = side.spot.game
        schedule = replace(OPTIONS.schedule, period_nodes=2 * BOARDS * game.tree.nodes)  # one period per iteration
        self._cfr = RespondedSampling(game, seed=seed, options=replace(OPTIONS, schedule=schedule))
        self._factor, self._begun = side.spot.board_factor, initial
        for block, table in enumerate(initial or ()):
            if block % 2 != side.player or (name := table_name("regret", block)) not in self._tables:
                continue
            buckets = game.listed_cards().bucket[block // 2][side.player]
            held = np.bincount(buckets[buckets != NO_BUCKET]) / len(buckets)  # mean hands per bucket and board
            self._tables[name][:] = INITIAL_REGRETS_SAMPLED * game.pot_chips * held * table

    def run(self, effort: Effort) -> Resolved:
        """Iterate until one of the stopping rules of `effort` applies, and return the result.

        If a strategy before re-solving was given (`initial`), and the solution's excess is above `MOST_EXCESS` pots,
        the result has that strategy instead. The excess bounds the opponent's gain by re-solving
        (`Resolved.excess_chips`).
        """
        result, side = super().run(effort), self._side
        if self._begun is None or not result.excess_chips > MOST_EXCESS * side.spot.game.pot_chips:
            return result
        return Resolved(side, self._gadget, self._begun, result.iterations)

    def _iterate(self) -> None:
        gadget, values = self._gadget, np.zeros(len(self._side.ours))
        at_root = self._at_root(gadget.opponent_range(0.5 / (self._iteration + 1)))
        for _ in range(BOARDS):  # the entering range must not depend on the sampled board
            values += self._cfr.answered(self._side.player, at_root)
        gadget.update(values * (self._factor / BOARDS), _SAMPLED.step(self._iteration + 1))


def _merged_columns(sums: npt.NDArray[np.floating], alike: npt.NDArray[np.integer]) -> npt.NDArray[np.floating]:
    """Return strategy sums [slots, buckets]: a bucket gets the total of all buckets like it.

    sums   [slots, buckets] strategy sums of each bucket
    alike  [buckets] a number; buckets with equal numbers are alike
    """
    _, number = np.unique(alike, return_inverse=True)
    return np.stack([np.bincount(number, row)[number] for row in sums]).astype(sums.dtype)


def _normalised(sums: npt.NDArray[np.floating], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.floating]:
    """Return [slots, buckets] probabilities: each infoset's strategy sums divided by their total.

    Infosets without weight play uniformly.

    sums    [slots, buckets] strategy sums of one block
    starts  first slot of each decision, and the number of slots at the end
    """
    shares, counts = sums.copy(), np.diff(starts)
    for start, count in zip(starts.tolist(), counts.tolist(), strict=False):
        row = shares[start : start + count]
        total = row.sum(axis=0)
        np.divide(row, total, out=row, where=total > 0)
        row[:, total == 0] = 1 / count
    return shares
