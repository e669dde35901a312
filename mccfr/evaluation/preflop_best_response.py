"""Best responses whose first-street actions are chosen over many boards together.

Each sample is one board of the second street, such as a flop, walked with all later boards. It gives, for each hand
class, the value there of each leaf of the first street (fold, showdown or exit to the next street). The first-street
actions are then chosen over all samples together, since the player sees no board there.

* **All boards** (for the full deck the 1,755 flops that differ by more than suits, weighted by multiplicity): the
  choice and its value are exact.
* **Boards drawn from each of several groups of similar boards**, the strata (`mccfr.evaluation.stratified_boards`): the
  maximum over the drawn boards is biased upwards. `Sampled.lower` chooses for each sample by all the others and scores
  the choice there. Its expectation is at most the best response's value. `Sampled.estimate` chooses by all samples and
  removes bias by the stratified jackknife (Jones 1974, "Jackknife estimation of functions of stratum means", Biometrika
  61). It removes nearly all of the bias if one action of a class is clearly best. If actions are equally good, as near
  an equilibrium, most of the bias stays. Its interval therefore begins at the lower end of `lower` and ends at the
  upper end without the correction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abstraction.boards import board_classes, preflop_classes
from mccfr.cards.base import Cards
from mccfr.common.intervals import student95
from mccfr.evaluation.board_game import board_game
from mccfr.evaluation.samples import Effort, run_samples
from mccfr.evaluation.stratified_boards import BoardSamples, BoardStrata, stratified95
from mccfr.games.game import Game
from mccfr.policy.strategy_profile import Profile
from mccfr.solvers.public.best_response import Walk
from mccfr.solvers.public.public_tree import PublicTree
from mccfr.solvers.public.street_arrays import FOLLOW
from mccfr.trees.street_trees import AT_DECISION, StreetTrees, street_trees

LEAST_FLOPS = 8
"""Least number of flops of an estimate: two strata of four."""
_SECOND = 1  # the street whose boards are samples
Floats = npt.NDArray[np.float64]
Interval = tuple[float, float]


class OverAllFlops(NamedTuple):
    """Exact best response values over all boards, in chips per hand.

    Values leave out `Game.offset_chips`, half of a pot that comes from neither player (usually 0).

    value  chips of player 0 when both players follow the strategy
    best   [2] chips of each player's best response to the strategy
    """

    value: float
    best: tuple[float, float]


class Sampled(NamedTuple):
    """Estimates of best response values from sampled boards, in chips per hand.

    Values leave out `Game.offset_chips`, half of a pot that comes from neither player (usually 0).

    lower     value of a response, the mean over both seats, and its 95 % interval. On each board its first-street
              actions are those that are best on the other boards. So in expectation its value is at most a best
              response's
    estimate  bias-corrected value of a best response, the mean over both seats, and its 95 % interval
    best      chips by seat of the response of `lower`
    value     chips of player 0 when both players follow the strategy
    """

    lower: tuple[float, Interval]
    estimate: tuple[float, Interval]
    best: tuple[float, float]
    value: float


class FirstStreet:
    """Finds the best response on the first street, before any board: an action for each hand class.

    A sample is one board of the next street. There are C hand classes, and E leaves of the first street: folds,
    showdowns, and lines that reach the board. The result of a sample is one vector of three parts:

    * [2, E, C] value in chips of each leaf to each player, summed over the hands of a class with their range weights
    * the board's weight: the sum of the weights of all pairs of hands
    * the chips of player 0 when both players follow the strategy, summed over pairs of hands with their weights
    """

    def __init__(self, game: Game) -> None:
        self._trees: StreetTrees = street_trees(game.tree)
        self._class = hand_classes(game.cards)
        self._members = int(self._trees.first[1])
        self._out = np.flatnonzero(self._trees.kind[: self._members] != AT_DECISION)
        self._shape = (2, len(self._out), int(self._class.max()) + 1)
        self.fields = int(np.prod(self._shape)) + 2

    def sample_of_board(self, public: PublicTree, tables: Sequence[npt.NDArray[np.floating]]) -> Floats:
        """Return the result of one board as a flat float64 array, whose parts the class describes.

        From the board on, each player's value is that of a best response.

        public  the public tree with this board, and all later boards that can follow it
        tables  the strategy's tables on it, one for each street and player
        """
        values, follow = np.zeros(self._shape), 0.0
        for player in range(2):
            walk = Walk(public, tables, follow=player == 0)
            sums = walk.values(player, _SECOND)
            follow = float(sums[FOLLOW]) if player == 0 else follow
            first, stop = public.ranges.first[player, :2]
            hand = public.ranges.hand[first:stop]
            own = public.reach[player, hand]
            for leaf, member in enumerate(self._out.tolist()):
                value = walk.root.value[-1, walk.root.member_first[0] + member, : stop - first]
                values[player, leaf] = np.bincount(self._class[hand], own * value, self._shape[2])
        return np.append(values.ravel(), [public.joint_weight, follow])

    def _parts(self, samples: Floats) -> tuple[Floats, Floats, Floats]:
        """Split n results into leaf values [n, 2, E, C], weights [n] and player 0's chips [n].

        samples  [n, fields] results of `sample_of_board`
        """
        return samples[:, :-2].reshape(len(samples), *self._shape), samples[:, -2], samples[:, -1]

    def result_of(self, samples: Floats, times: npt.NDArray[np.integer]) -> OverAllFlops:
        """Return exact best response values from samples that together cover all boards.

        samples  [n, fields] results of `sample_of_board`
        times    [n] number of boards that each sample represents, such as the suit-isomorphic flops
        """
        values, weight, follow = self._parts(samples)
        total = float(times @ weight)
        sums = np.einsum("n,npec->pec", times, values)
        best = [float(self._walk(player, sums[player], None)[0].sum()) / total for player in range(2)]
        return OverAllFlops(float(times @ follow) / total, (best[0], best[1]))

    def sampled(self, samples: Floats, strata: BoardStrata) -> Sampled:
        """Return estimates of best response values from sampled boards.

        samples  [n, fields] results of `sample_of_board`
        strata   from which group of similar boards each sample was drawn; each group has at least two samples
        """
        values, weight, follow = self._parts(samples)
        sums, whole = np.zeros((len(samples), 2)), np.zeros(2)
        gains = np.zeros((len(samples), 2))
        for player in range(2):
            others = _without_each(values[:, player], strata)
            best, choice = self._walk(player, others, None)
            gains[:, player] = best.sum(axis=-1)
            sums[:, player] = self._walk(player, values[:, player], choice)[0].sum(axis=-1)
            whole[player] = self._walk(player, _total(values[:, player], strata), None)[0].sum()
        lower = stratified95(sums.sum(axis=1) / 2, weight, strata)
        each = [stratified95(sums[:, player], weight, strata)[0] for player in range(2)]
        leave_one_out = gains.sum(axis=1) / 2 / _without_each(weight, strata)
        flattered = float(whole.sum() / 2 / _total(weight, strata))
        bias, width = _jackknife(flattered, leave_one_out, strata)
        estimate = (flattered - bias, (min(lower[1][0], flattered - bias), flattered + width))
        return Sampled(lower, estimate, (each[0], each[1]), stratified95(follow, weight, strata)[0])

    def _walk(
        self, player: int, values: Floats, choice: dict[int, npt.NDArray[np.int64]] | None
    ) -> tuple[Floats, dict[int, npt.NDArray[np.int64]]]:
        """Choose a player's first-street actions; return their values [..., C] and the actions.

        Values are those at the root, by hand class. The actions are {decision: index of the action [..., C] by class}.

        values  [..., E, C] values of the first street's leaves; leading axes, such as one over samples, are kept
        choice  actions to play, in the form of the result; None: the best for each class
        """
        trees, chosen = self._trees, dict[int, npt.NDArray[np.int64]]()
        value = {member: values[..., leaf, :] for leaf, member in enumerate(self._out.tolist())}
        for member in range(self._members - 1, -1, -1):
            if trees.kind[member] != AT_DECISION:
                continue
            child = int(trees.child[member])
            below = np.stack([value[child + action] for action in range(int(trees.actions[member]))])
            if trees.player[member] != player:
                value[member] = below.sum(axis=0)
                continue
            best = below.argmax(axis=0) if choice is None else choice[member]
            chosen[member] = best
            value[member] = np.take_along_axis(below, np.broadcast_to(best, (1, *below.shape[1:])), axis=0)[0]
        return value[0], chosen


def _share(strata: BoardStrata) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return two arrays [L] for L groups of boards: samples of a group, and boards per sample.

    The second is the number of boards that one sample of the group represents; for the full deck in proportion to it.

    strata  groups of similar boards (strata), with their samples and numbers of boards
    """
    units = np.bincount(strata.stratum, minlength=len(strata.size))
    return units, strata.size / units


def _total(samples: Floats, strata: BoardStrata) -> Floats:
    """Return the estimated sum over all boards of an array, from its values on the sampled boards.

    For the full deck it is the sum times a constant.

    samples  [n, ...] the array on each sampled board
    strata   groups of similar boards, from which the boards were drawn
    """
    total: Floats = np.tensordot(_share(strata)[1][strata.stratum], samples, 1)
    return total


def _without_each(samples: Floats, strata: BoardStrata) -> Floats:
    """Return [n, ...] estimated sums over all boards, each with one sample left out.

    The other samples of the same group then count for more, so that they represent all boards of the group. For the
    full deck the sums are multiplied by a constant.

    samples  [n, ...] array on each sampled board, which is summed
    strata   groups of similar boards, from which the boards were drawn
    """
    units, share = _share(strata)
    number, last = strata.stratum, (slice(None), *[None] * (samples.ndim - 1))
    sums = np.zeros((len(units), *samples.shape[1:]))
    np.add.at(sums, number, samples)
    others = (strata.size / np.maximum(units - 1, 1))[number][last] * (sums[number] - samples)
    estimates: Floats = _total(samples, strata) - (share[number][last] * sums[number]) + others
    return estimates


def _jackknife(estimate: float, leave_one_out: Floats, strata: BoardStrata) -> tuple[float, float]:
    """Return the bias of `estimate` and half the width of its 95 % interval.

    estimate       result of all n samples
    leave_one_out  [n] the same result with each sample left out
    strata         groups of similar boards, with the group of each sample
    """
    number, units = strata.stratum, _share(strata)[0]
    undrawn = 1 - units / strata.size if strata.listed else np.ones(len(units))
    mean = np.bincount(number, leave_one_out) / units
    spread = np.bincount(number, (leave_one_out - mean[number]) ** 2)
    bias = float((undrawn * (units - 1) * (mean - estimate)).sum())
    error = sqrt(float((undrawn * (units - 1) / units * spread).sum()))
    return bias, student95(int((units - 1)[undrawn > 0].sum())) * error if undrawn.any() else 0.0


class SecondStreetBoards(BoardSamples):
    """Runs an evaluation of exploitability on boards of the second street, such as flops.

    It is for games whose first street has no board. Each sample is one board; its result is that of `FirstStreet`.

    times  [n] number of the 22,100 flops that each sample represents; empty if flops are sampled
    """

    least, ready, option, step = LEAST_FLOPS, LEAST_FLOPS, "flops", "flop"

    def __init__(self, side: Profile, seed: int = 0, listed: int | None = None, *, every: bool = False) -> None:
        """Prepare the evaluation of a strategy.

        side    the game and both players' strategies
        seed    seed of the drawn boards; without effect if `every`
        listed  number of the second street's boards in a game that lists them; None: flops of the full deck
        every   True: walk one flop of each of the 1,755 suit-isomorphism classes, without sampling
        """
        super().__init__(side, _SECOND, listed, seed)
        self.first, self._every = FirstStreet(side.game), every
        self.fields = self.first.fields
        self.times = np.ones(0, np.int64)

    def draw(self, count: int) -> int:
        """Draw `count` boards; if all flops are walked, take one of each class. Return their number."""
        self.identity_fields = {"method": "exact", "flops": None if self._every else count, "seed": self.seed}
        if not self._every:
            return super().draw(count)
        self.identity_fields["seed"] = 0
        classes = board_classes(self.game.cards.cards_on(_SECOND))
        self.boards, self.times = classes.boards.tolist(), classes.multiplicity.astype(np.int64)
        return len(self.boards)

    def play(self, sample: int) -> Floats:
        """Return the result of board number `sample`, a flat float64 array (`FirstStreet`)."""
        return self.first.sample_of_board(*board_game(self.game, self.strategy, _SECOND, self.boards[sample]))


@dataclass(frozen=True)
class FlopsEvaluation:
    """Exploitability of a two-player strategy over all flops or a sample, in chips per hand.

    The game's `offset_chips` are half of a pot that comes from neither player.

    value_chips           chips of player 0 when both follow the strategy, with the game's `offset_chips`
    best_response_chips   by player: chips of its best response to the strategy, or on a sample of flops of the response
                          of `lower_chips`. Player 0's plus `offset_chips`, player 1's minus it
    exploitability_chips  mean over both players of the best response's gain; on a sample of flops a bias-corrected
                          estimate
    ci95_chips            95 % interval of the exploitability; None if every flop was walked
    lower_chips           chips of a response, the mean over both seats, and its 95 % interval; None if every flop was
                          walked. Its preflop actions on a flop are those that are best on the other flops, so the chips
                          are in expectation a lower bound on exploitability
    flops                 number of flops walked
    """

    value_chips: float
    best_response_chips: tuple[float, float]
    exploitability_chips: float
    ci95_chips: Interval | None
    lower_chips: tuple[float, Interval] | None
    flops: int


def evaluate_flops(
    side: Profile,
    flops: int | None = None,
    seed: int = 0,
    effort: Effort = Effort(),  # noqa: B008  (frozen)
) -> FlopsEvaluation:
    """Return the exploitability of a full-deck hold'em strategy, flop by flop.

    side    the game and both players' strategies
    flops   number of flops drawn from all 22,100, at least 8. None: one flop of each of the 1,755 suit-isomorphism
            classes, with an exact result
    seed    seed of the drawn flops
    effort  number of processes, time budget and journal file for resuming. A time budget replaces `flops`: flops are
            drawn, as many as fit it

    Best responses may only use the bets of the strategy's tree. Values below different flops are independent, so each
    is walked alone (Johanson, Waugh, Bowling & Zinkevich 2011, "Accelerating best response calculation in large
    extensive games").

    Raises `ValueError` for too few flops, and if the journal belongs to another evaluation. Raises `OSError` if the
    journal cannot be read or written, `StoppedError` if a signal stops it, and `RuntimeError` if a worker process dies.
    """
    every, offset = flops is None and effort.seconds is None, side.game.offset_chips
    samples = SecondStreetBoards(side, seed, every=every)
    results = run_samples(samples, flops or LEAST_FLOPS, effort)
    if every:
        won = samples.first.result_of(results, samples.times)
        best = (won.best[0] + offset, won.best[1] - offset)
        return FlopsEvaluation(won.value + offset, best, sum(won.best) / 2, None, None, len(results))
    some = samples.first.sampled(results, samples.strata)
    best = (some.best[0] + offset, some.best[1] - offset)
    return FlopsEvaluation(some.value + offset, best, *some.estimate, some.lower, len(results))


def hand_classes(cards: Cards) -> npt.NDArray[np.int64]:
    """Return [H] the preflop class of each of a game's H hands: hands of a class take one action.

    With the full deck these are the 169 suit-isomorphism classes. In a game that lists its hands each hand is a class.
    """
    if cards.boards is None:
        return preflop_classes().astype(np.int64)
    return np.arange(len(cards.listed().hand_cards))
