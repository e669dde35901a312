"""A best response that decides before any board lies: what each way out of the first street is worth, board by board.

A unit is a board of the second street, walked with all that may follow it.  It says what each way out of the first
street is worth there to each class of a player's hole cards.  What he does on the first street is then chosen over
units together, for he knows none of them.

* **All boards** (of the deck one of each kind that is alike but for suits, 1,755 flops, by how many there are): the
  choice and what it wins are exact.
* **Some boards, drawn in strata** (`mccfr.evaluation.strata`): a maximum over what these happen to give is too high.
  `Sampled.lower` chooses for each unit by all the others and scores it there: the strategy of a player who has not seen
  the board, so that its mean is not above what a best response wins.  `Sampled.estimate` chooses by all, and takes off
  what that flatters by the jackknife of strata (Jones 1974, "Jackknife estimation of functions of stratum means",
  Biometrika 61).  Where one action of a class is clearly best it takes off nearly all of the bias; where actions are
  worth the same, as near an equilibrium, most of the bias stays (docs/evaluation.md has figures).  So the interval
  begins where that of `lower` does, and ends where it would without the correction.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.boards import board_classes, preflop_classes
from mccfr.cards.cards import Cards
from mccfr.evaluation.board_game import board_game
from mccfr.evaluation.strata import BoardStrata, drawn_boards, stratified95, units_each
from mccfr.evaluation.units import Units
from mccfr.games.game import Game
from mccfr.intervals import student95
from mccfr.policy.profile import Profile
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.public_tree import PublicTree
from mccfr.solvers.public.street_arrays import FOLLOW
from mccfr.trees.streets import AT_DECISION, StreetTrees, street_trees

_SECOND = 1  # the street whose boards are units
Floats = npt.NDArray[np.float64]
Interval = tuple[float, float]


class OverAllFlops(NamedTuple):
    """What all boards come to, chips a hand without the game's `offset_chips`.

    value  to player 0 when both follow the strategy
    best   to each player when he responds best
    """

    value: float
    best: tuple[float, float]


class Sampled(NamedTuple):
    """What some boards come to, chips a hand: means over both seats, and 95 % intervals.

    lower     of choices made without the board that scores them; not above the truth, in expectation
    estimate  of what a best response wins
    best      to each player, as `lower` has it
    value     to player 0 when both follow the strategy
    """

    lower: tuple[float, Interval]
    estimate: tuple[float, Interval]
    best: tuple[float, float]
    value: float


class FirstStreet:
    """The responder's decisions before a board lies: chosen for each class of his hands.

    C classes, E ways out of the first street: folds, showdowns and exits.  A unit is [2, E, C] what they are worth to
    each player, weighed by his own deals, then the board's weight, and what player 0 wins by following the strategy.
    """

    def __init__(self, game: Game) -> None:
        self._trees: StreetTrees = street_trees(game.tree)
        self._class = hand_classes(game.cards)
        self._members = int(self._trees.first[1])
        self._out = np.flatnonzero(self._trees.kind[: self._members] != AT_DECISION)
        self._shape = (2, len(self._out), int(self._class.max()) + 1)
        self.fields = int(np.prod(self._shape)) + 2

    def found(self, public: PublicTree, tables: Sequence[npt.NDArray[np.floating]]) -> Floats:
        """[fields] what walks of a board find with a strategy's tables on it, best responses being taken once it lies.

        What following wins is asked for once.
        """
        values, follow = np.zeros(self._shape), 0.0
        for player in range(2):
            walk = Walk(public, tables, follow=player == 0)
            sums = walk.values(player, _SECOND)
            follow = float(sums[FOLLOW]) if player == 0 else follow
            first, stop = public.ranges.first[player, :2]
            hand = public.ranges.hand[first:stop]
            own = public.reach[player, hand]
            for place, member in enumerate(self._out.tolist()):
                value = walk.root.value[-1, walk.root.member_first[0] + member, : stop - first]
                values[player, place] = np.bincount(self._class[hand], own * value, self._shape[2])
        return np.append(values.ravel(), [public.joint_weight, follow])

    def _parts(self, found: Floats) -> tuple[Floats, Floats, Floats]:
        """[n, 2, E, C] values, [n] weight and [n] what player 0 wins by following, of units [n, fields]."""
        return found[:, :-2].reshape(len(found), *self._shape), found[:, -2], found[:, -1]

    def whole(self, found: Floats, times: npt.NDArray[np.integer]) -> OverAllFlops:
        """What all boards come to, from units [n, fields] of `times` [n] boards each."""
        values, weight, follow = self._parts(found)
        total = float(times @ weight)
        sums = np.einsum("n,npec->pec", times, values)
        best = [float(self._walk(player, sums[player], None)[0].sum()) / total for player in range(2)]
        return OverAllFlops(float(times @ follow) / total, (best[0], best[1]))

    def sampled(self, found: Floats, strata: BoardStrata) -> Sampled:
        """What units [n, fields] drawn in strata say of all boards; every stratum must have two at the least."""
        values, weight, follow = self._parts(found)
        sums, whole = np.zeros((len(found), 2)), np.zeros(2)
        rest = np.zeros((len(found), 2))
        for player in range(2):
            others = _without_each(values[:, player], strata)
            best, choice = self._walk(player, others, None)
            rest[:, player] = best.sum(axis=-1)
            sums[:, player] = self._walk(player, values[:, player], choice)[0].sum(axis=-1)
            whole[player] = self._walk(player, _total(values[:, player], strata), None)[0].sum()
        lower = stratified95(sums.sum(axis=1) / 2, weight, strata)
        each = [stratified95(sums[:, player], weight, strata)[0] for player in range(2)]
        left = rest.sum(axis=1) / 2 / _without_each(weight, strata)
        flattered = float(whole.sum() / 2 / _total(weight, strata))
        bias, width = _jackknife(flattered, left, strata)
        estimate = (flattered - bias, (min(lower[1][0], flattered - bias), flattered + width))
        return Sampled(lower, estimate, (each[0], each[1]), stratified95(follow, weight, strata)[0])

    def _walk(
        self, player: int, values: Floats, choice: dict[int, npt.NDArray[np.int64]] | None
    ) -> tuple[Floats, dict[int, npt.NDArray[np.int64]]]:
        """[..., C] value of the root from those of the ways out [..., E, C], and what was done [..., C] at decisions.

        choice  what the player does; None: what is best for each class
        """
        trees, done = self._trees, dict[int, npt.NDArray[np.int64]]()
        value = {member: values[..., place, :] for place, member in enumerate(self._out.tolist())}
        for member in range(self._members - 1, -1, -1):
            if trees.kind[member] != AT_DECISION:
                continue
            child = int(trees.child[member])
            below = np.stack([value[child + action] for action in range(int(trees.actions[member]))])
            if trees.player[member] != player:
                value[member] = below.sum(axis=0)
                continue
            best = below.argmax(axis=0) if choice is None else choice[member]
            done[member] = best
            value[member] = np.take_along_axis(below, np.broadcast_to(best, (1, *below.shape[1:])), axis=0)[0]
        return value[0], done


def _share(strata: BoardStrata) -> tuple[npt.NDArray[np.int64], Floats]:
    """(units of each stratum, boards that one of its units stands for)."""
    units = np.bincount(strata.stratum, minlength=len(strata.size))
    return units, strata.size / units


def _total(found: Floats, strata: BoardStrata) -> Floats:
    """[...] sum over all boards, as units [n, ...] have it."""
    total: Floats = np.tensordot(_share(strata)[1][strata.stratum], found, 1)
    return total


def _without_each(found: Floats, strata: BoardStrata) -> Floats:
    """[n, ...] sums over all boards, as all units but each one have it: the others of its stratum count for it."""
    units, share = _share(strata)
    number, last = strata.stratum, (slice(None), *[None] * (found.ndim - 1))
    sums = np.zeros((len(units), *found.shape[1:]))
    np.add.at(sums, number, found)
    others = (strata.size / np.maximum(units - 1, 1))[number][last] * (sums[number] - found)
    left: Floats = _total(found, strata) - (share[number][last] * sums[number]) + others
    return left


def _jackknife(whole: float, left: Floats, strata: BoardStrata) -> tuple[float, float]:
    """Bias of a figure of all units, and half the width of its 95 % interval, from those without each unit [n]."""
    number, units = strata.stratum, _share(strata)[0]
    undrawn = 1 - units / strata.size if strata.listed else np.ones(len(units))
    mean = np.bincount(number, left) / units
    spread = np.bincount(number, (left - mean[number]) ** 2)
    bias = float((undrawn * (units - 1) * (mean - whole)).sum())
    error = sqrt(float((undrawn * (units - 1) / units * spread).sum()))
    return bias, student95(int((units - 1)[undrawn > 0].sum())) * error if undrawn.any() else 0.0


class SecondStreetBoards(Units):
    """Units of a game whose first street has no board: boards of the second, each one's part of `FirstStreet`."""

    def __init__(self, side: Profile) -> None:
        self._game, self._strategy = side.game, side.strategy
        self.first = FirstStreet(side.game)
        self.fields = self.first.fields
        self.strata = BoardStrata.of(1, 1, 1)
        self.boards: Sequence[int] | Sequence[Sequence[int]] = []
        self.times = np.ones(0, np.int64)

    def draw(self, units: int, seed: int, listed: int | None) -> None:
        """Draw the boards of so many units; `listed` of them there are, None: flops of the deck."""
        self.strata = BoardStrata.of(units, units_each(units), listed)
        self.boards = drawn_boards(self._game.cards, _SECOND, self.strata, seed)

    def all_flops(self) -> int:
        """Take one flop of each kind that is alike but for suits; their number."""
        classes = board_classes(self._game.cards.cards_on(_SECOND))
        self.boards, self.times = classes.boards.tolist(), classes.multiplicity.astype(np.int64)
        return len(self.boards)

    def play(self, unit: int) -> Floats:
        """As `Units.play`."""
        public, tables = board_game(self._game, self._strategy, _SECOND, self.boards[unit])
        return self.first.found(public, tables)


def hand_classes(cards: Cards) -> npt.NDArray[np.int64]:
    """[H] class of each hand before a board lies: of hole cards in hold'em; elsewhere every hand is one."""
    if cards.boards is None:
        return preflop_classes().astype(np.int64)
    return np.arange(len(cards.listed().hand_cards))
