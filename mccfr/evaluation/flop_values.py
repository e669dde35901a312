"""What a strategy does on flop after flop where a line leads, without solving: frequencies, equities, values.

Frequencies are exact, and so are equities, over all 1,176 pairs of turn and river.  Values come from drawn ones, on
each of which both ranges are walked down the betting (`mccfr.evaluation.hand_values`), exact in the private cards;
equity on the same run-outs, whose mean is known, takes off luck (a control variate, its factor fitted over all flops).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.boards import board_classes
from abstraction.cards import cards_text
from abstraction.ranges import class_names, class_of
from mccfr.cards.dealt import Board, DealtCards
from mccfr.evaluation.hand_values import Below
from mccfr.evaluation.units import Effort, Units, play_units
from mccfr.intervals import student95
from mccfr.play.line_ranges import Followed, RangesOfLine
from mccfr.play.run_outs import RunOuts, all_run_outs, win_minus_lose
from mccfr.policy.profile import Profile
from mccfr.trees.lines import line_text

Floats = npt.NDArray[np.float64]
FLOP_CARDS = 3
CLASSES = 169
_PLAYER_COLUMNS = 4  # of each class and player: weight, equity, value, weight of the value; the first times each


class Flops(NamedTuple):
    """Which flops, F of them.

    cards   [F, 3] int8
    weight  [F] how many of the 22,100 flops each stands for
    """

    cards: npt.NDArray[np.int8]
    weight: Floats


def all_flops() -> Flops:
    """The 1,755 flops that differ by more than suits."""
    known = board_classes(FLOP_CARDS)
    return Flops(known.boards, known.multiplicity.astype(np.float64))


def some_flops(count: int) -> Flops:
    """So many flops that stand for all: of each of as many strata, by ranks and suits, the one in its middle.

    `ValueError` for more or fewer than there are.
    """
    every = all_flops()
    if not 1 <= count <= len(every.cards):
        raise ValueError(f"flops = {count} is not allowed: from 1 to {len(every.cards):,} are there")
    ranks, suits = every.cards // 4, every.cards % 4
    pairs = 3 - np.array([len(set(each)) for each in ranks.tolist()])
    colours = np.array([len(set(each)) for each in suits.tolist()])
    order = np.lexsort((ranks[:, 0], ranks[:, 1], ranks[:, 2], colours, pairs))
    sums, steps = np.cumsum(every.weight[order]), np.arange(1, count)
    cuts = np.searchsorted(sums, sums[-1] * steps / count, side="right")
    cuts = np.maximum.accumulate(cuts - steps) + steps  # no stratum is empty
    cuts = np.minimum(cuts, len(order) - count + steps)
    chosen, weight = [], []
    for own in np.split(order, cuts):
        half = np.cumsum(every.weight[own])
        chosen.append(int(own[np.searchsorted(half, half[-1] / 2)]))
        weight.append(float(half[-1]))
    return Flops(every.cards[chosen], np.array(weight))


def pair_weights(dealing: DealtCards, reach: Floats) -> Floats:
    """[2, H] weight of each player's hands times that of the other's hands that they may meet."""
    return reach * np.stack([np.maximum(dealing.disjoint_weight(other), 0) for other in reach[::-1]])


def class_sums(
    source: Profile, dealing: DealtCards, place: tuple[int, int, int, Board], reach: Floats, values: Floats
) -> Floats:
    """[CLASSES, 2·4 + A] sums at a decision: node, street, player, board; `values` as of `LineOnFlops._walked`."""
    (node, street, actor, board), columns = place, []
    pairs, every = pair_weights(dealing, reach), all_run_outs(dealing, street, board)
    for player in range(2):
        won = reach[player] * win_minus_lose(dealing, every, reach[1 - player])
        columns += [pairs[player], 0.5 * (pairs[player] + won), *values[:, player]]
    columns += list(source.rows(node, dealing.bucket_row(street, actor, board))[0].T * pairs[actor])
    group = class_of(dealing.hand_cards)
    return np.stack([np.bincount(group, column, CLASSES) for column in columns], axis=1)


class LineOnFlops(Units):
    """A line of a strategy on flops, one a unit.  A actions, K run-outs of each flop.

    A unit finds, for each class of hands, CLASSES × (2 × _PLAYER_COLUMNS + A) sums; and of each run-out what player 0's
    range wins, the same at a showdown, and the weight of both; K × 3.
    """

    def __init__(self, source: Profile, line: str, flops: Flops, drawn: int, seed: int) -> None:
        """Raises `ValueError` for a line that leads to no decision of the tree on the flop, and for too few drawn."""
        if drawn < 2:
            raise ValueError(f"run-outs = {drawn}: at least 2 of each flop are needed, for an interval")
        self._ranges, self._line, self._flops = RangesOfLine(source), line, flops
        self._drawn, self._seed = drawn, seed
        found = self.follow(0)
        (node, _), *more = found.places
        tree = source.game.tree
        if more or line_text(tree, max(node, 0)) != found.line:
            raise ValueError(f"line {line!r} has bets that the strategy has not: give one of its own")
        self.node, self.line, self.put_in = node, found.line, found.state.put_in
        self.player = found.state.player
        self.actions = [tree.label[child] for child in tree.children(node)]
        self._source = source
        self.fields = CLASSES * self._columns + 3 * drawn

    @property
    def _columns(self) -> int:
        return 2 * _PLAYER_COLUMNS + len(self.actions)

    @cached_property
    def _below(self) -> Below:
        return Below(self._source, self._ranges.dealing, self.node)

    def follow(self, unit: int) -> Followed:
        """The line on a flop."""
        try:
            found = self._ranges.follow(self._line, cards_text(self._flops.cards[unit].tolist()))
        except ValueError as error:
            raise ValueError(f"{error}; the report is of a line that ends on the flop, as r300c/") from None
        if found.boards is None:
            raise ValueError(f"line {self._line!r} ends behind the flop: the report is of a line that ends on it")
        return found

    def play(self, unit: int) -> Floats:
        """As `Units.play`."""
        dealing, found = self._ranges.dealing, self.follow(unit)
        assert found.boards is not None
        board, reach = found.boards[-1], self._ranges.reach(found)
        values, drawn = self._walked(unit, found.state.street, board, reach)
        place = self.node, found.state.street, self.player, board
        return np.concatenate([class_sums(self._source, dealing, place, reach, values).ravel(), drawn.ravel()])

    def _walked(self, unit: int, street: int, board: Any, reach: Floats) -> tuple[Floats, Floats]:
        """[2, 2, H] chips that hands win times their weight, and the weight, by player; [K, 3] of each run-out."""
        dealing, rng = self._ranges.dealing, np.random.default_rng((self._seed, unit))
        full, _ = dealing.full_boards(street, board, (), self._drawn, rng)
        values, drawn = np.zeros((2, *reach.shape)), np.zeros((self._drawn, 3))
        for number, each in enumerate(full):
            cards = self._below.dealt(each, reach)
            value, _, weight = self._below.values(cards)
            values += np.stack([cards.reach * value, cards.reach * weight])
            shown = RunOuts.of(cards.strength)
            won = cards.reach[0] @ win_minus_lose(dealing, shown, cards.reach[1])
            drawn[number] = cards.reach[0] @ value[0], won, cards.reach[0] @ weight[0]
        return values, drawn


class Estimate(NamedTuple):
    """A mean, and how far it may be off at 95 %."""

    mean: float
    within: float


@dataclass(frozen=True)
class FlopReport:
    """What was found.  F flops, A actions.

    actions, player  at the line's decision, and who acts
    pot              chips in it
    put_in           chips of each player over the hand
    flops            which
    classes          [F, CLASSES, 2·4 + A] and
    run_outs         [F, K, 3] sums as of `LineOnFlops`; of none, values are exact
    """

    line: str
    actions: list[str]
    player: int
    put_in: tuple[float, float]
    flops: Flops
    classes: Floats
    run_outs: Floats

    @property
    def pot(self) -> float:
        """Chips that lie there."""
        return float(sum(self.put_in))

    @cached_property
    def _factor(self) -> float:
        """Chips that a range wins for each that it would at showdowns, by which luck is taken off."""
        value, shown, weight = np.moveaxis(self.run_outs, 2, 0)
        rest = [column - weight * (column.sum(1) / weight.sum(1))[:, None] for column in (value, shown)]
        spread = float((rest[1] ** 2).sum())
        return float((rest[0] * rest[1]).sum()) / spread if spread > 0 else 0.0

    def weight(self, flops: npt.NDArray[np.int64]) -> Floats:
        """[F] what each flop counts for: the pairs of hands that may meet there, and the flops that it stands for."""
        return self.flops.weight[flops] * self.classes[flops, :, 0].sum(axis=1)

    def value(self, flops: npt.NDArray[np.int64], player: int) -> Estimate:
        """What a player's range wins on flops from here on, chips; what he has put in is gone."""
        if not self.run_outs.shape[1]:
            mean = self._of_range(flops, _PLAYER_COLUMNS * player + 2, _PLAYER_COLUMNS * player + 3)
            return Estimate(mean + self.put_in[player], 0.0)
        value, shown, weight = np.moveaxis(self.run_outs[flops], 2, 0)
        pairs, equity = self.classes[flops][:, :, 0].sum(axis=1), self.classes[flops][:, :, 1].sum(axis=1)
        value = value - self._factor * (shown - weight * ((2 * equity - pairs) / pairs)[:, None])
        ratio = value.sum(axis=1) / weight.sum(axis=1)
        runs, count = value.shape[1], self.weight(flops)
        rest = (value - ratio[:, None] * weight) / weight.mean(axis=1, keepdims=True)
        error = (rest**2).sum(axis=1) / (runs - 1) / runs
        share = count / count.sum()
        within = student95(len(flops) * (runs - 1)) * float(np.sqrt(share**2 @ error))
        mean = float(share @ ratio)
        return Estimate((mean if player == 0 else -mean) + self.put_in[player], within)

    def equity(self, flops: npt.NDArray[np.int64], player: int) -> float:
        """The share of the pot that a player's range would win at showdowns."""
        return self._of_range(flops, _PLAYER_COLUMNS * player + 1, _PLAYER_COLUMNS * player)

    def frequencies(self, flops: npt.NDArray[np.int64]) -> list[float]:
        """How often each action is taken."""
        first = 2 * _PLAYER_COLUMNS
        return [
            self._of_range(flops, first + number, _PLAYER_COLUMNS * self.player) for number in range(len(self.actions))
        ]

    def _of_range(self, flops: npt.NDArray[np.int64], column: int, by: int) -> float:
        sums = self.flops.weight[flops] @ self.classes[flops][:, :, [column, by]].sum(axis=1)
        return float(sums[0] / sums[1])

    def of_classes(self, player: int) -> dict[str, tuple[float, float, float, list[float]]]:
        """Of each class of a player's hands: its share of the range, equity, value as of `value`, and frequencies."""
        sums = np.tensordot(self.flops.weight, self.classes, 1)
        weight, equity, value, walked = sums[:, _PLAYER_COLUMNS * player : _PLAYER_COLUMNS * (player + 1)].T
        found = {}
        for number, name in enumerate(class_names()):
            if weight[number] > 0 and walked[number] > 0:
                played = (sums[number, 2 * _PLAYER_COLUMNS :] / weight[number]).tolist()
                worth = value[number] / walked[number] + self.put_in[player]
                share, acts = float(weight[number] / weight.sum()), player == self.player
                found[name] = share, equity[number] / weight[number], worth, played if acts else []
        return found


def flop_report(
    source: Profile,
    line: str,
    flops: Flops,
    drawn: int = 10,
    seed: int = 0,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
    progress: Callable[[int, int], None] | None = None,
) -> FlopReport:
    """What a strategy does on flops where a line leads; raises as `LineOnFlops` and `play_units`."""
    units = LineOnFlops(source, line, flops, drawn, seed)
    what = {"method": "flops", "line": units.line, "run_outs": drawn, "seed": seed, "flops": flops.cards.tolist()}
    found = play_units(units, len(flops.cards), effort, what=what, sides=(source,), progress=progress)
    classes, rest = np.split(found, [CLASSES * (2 * _PLAYER_COLUMNS + len(units.actions))], axis=1)
    return FlopReport(
        units.line,
        units.actions,
        units.player,
        (units.put_in[0], units.put_in[1]),
        flops,
        classes.reshape(len(found), CLASSES, -1),
        rest.reshape(len(found), drawn, 3),
    )
